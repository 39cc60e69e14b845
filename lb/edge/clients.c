/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares of the memory: packets that are held for each client, which is an IPv4 address or an IPv6
 * /64 of a zone. Clients exist only while one of their connections has something under way.
 */
#include <errno.h>

#include <rte_malloc.h>

#include "edge/edge_private.h"

/* Connections searched for the one to reset; then any of the client's will do. */
#define CLIENTS_SEARCH 256
/* ms without a whole packet acknowledged: such a reader may be reset to make room for others. With
 * segments under way it has longer: they may have been lost, and those that replaced them, too. */
#define CLIENTS_STALLED_MS 1000
#define CLIENTS_LOST_MS    3000
/* A client has replies' half of its share, and a part of it while readers of it are reset: half of
 * it after the first, a third after the second. */
#define CLIENTS_SLOW_MAX 64
#define CLIENTS_SLOW_S   4

static struct edge_client **clients_chain(const struct edge *e, uint64_t key, uint16_t zone)
{
	return &e->client_chain[edge_client_hash(e, key, zone) & e->client_mask];
}

static struct edge_client *clients_find(struct edge_client *at, uint64_t key, uint16_t zone)
{
	while (at != NULL && (at->key != key || at->zone != zone))
		at = at->next;
	return at;
}

struct edge_client *edge_client_join(struct edge *e, const struct flow *flow)
{
	uint64_t key = lcore_client_address(flow);
	uint16_t zone = flow->zone;
	struct edge_client **chain = clients_chain(e, key, zone);
	struct edge_client *client = clients_find(*chain, key, zone);

	if (client == NULL) {
		client = e->free_client; /* there are as many as busy connections */
		e->free_client = client->next;
		e->n_clients++;
		*client = (struct edge_client){.next = *chain, .key = key, .zone = zone};
		TAILQ_INIT(&client->waiting);
		TAILQ_INIT(&client->others);
		STAILQ_INIT(&client->more);
		for (enum edge_tls_way way = 0; way < EDGE_TLS_WAYS; way++)
			TAILQ_INIT(&client->tls[way]);
		*chain = client;
	}
	client->users++;
	return client;
}

void edge_client_leave(struct edge *e, struct edge_client *client)
{
	struct edge_client **at = clients_chain(e, client->key, client->zone);

	if (--client->users > 0)
		return;
	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	client->next = e->free_client;
	e->free_client = client;
	e->n_clients--;
}

const struct edge_client *edge_client_of(const struct edge *e, const struct flow *flow)
{
	uint64_t key = lcore_client_address(flow);

	return clients_find(*clients_chain(e, key, flow->zone), key, flow->zone);
}

/* --- readers that are too slow ------------------------------------------------------------------
 */

static bool clients_is_stalled(const struct edge *e, const struct edge_busy *b)
{
	const struct tcp_connection *tcp = &b->connection->tcp;
	uint32_t ms = tcp->snd_una == tcp->snd_nxt ? CLIENTS_STALLED_MS : CLIENTS_LOST_MS;

	return (b->out != NULL || b->shut) && e->stack.now_ms - b->progress_ms >= ms;
}

/* The connection with bytes to send that has waited longest for a packet to be acknowledged, of
 * <client> or of any. NULL: none has waited for long. */
static struct edge_busy *clients_slowest(const struct edge *e, const struct edge_client *client)
{
	unsigned int left = CLIENTS_SEARCH;
	struct edge_busy *b;

	TAILQ_FOREACH (b, &e->sending, sending) {
		if (left-- == 0 || e->stack.now_ms - b->progress_ms < CLIENTS_STALLED_MS)
			return NULL;
		if ((client == NULL || b->client == client) && clients_is_stalled(e, b))
			return b;
	}
	return NULL;
}

/* Readers that were reset lately; half as many every four seconds. */
static unsigned int clients_slow(const struct edge *e, const struct edge_connection *c)
{
	struct edge_opener *o = &e->opener[c->opener];
	unsigned int halvings;

	if (likely(o->slow == 0))
		return 0;
	halvings = (uint8_t)(e->stack.now_ms / 1000 - o->slow_seconds) / CLIENTS_SLOW_S;
	o->slow >>= RTE_MIN(halvings, 7u);
	o->slow_seconds += halvings * CLIENTS_SLOW_S;
	return o->slow;
}

/* Packets of replies that the client of <c> may have. */
static uint32_t clients_reply_room(const struct edge *e, const struct edge_connection *c)
{
	unsigned int slow = clients_slow(e, c);

	return likely(slow == 0) ? edge_half(e->share) : edge_half(e->share) / (1 + slow);
}

/* Does another usual reply fit there? */
static bool clients_has_own_room(const struct edge *e, const struct edge_busy *b)
{
	const struct edge_client *client = b->client;

	return client->replies + client->reserved + edge_usual_reply(b) <=
	       clients_reply_room(e, b->connection);
}

static void clients_note_slow(struct edge *e, const struct edge_connection *c)
{
	struct edge_opener *o = &e->opener[c->opener];

	if (clients_slow(e, c) == 0)
		o->slow_seconds = e->stack.now_ms / 1000;
	o->slow += o->slow < CLIENTS_SLOW_MAX;
}

static void clients_reset(struct edge *e, struct edge_busy *b, enum lb_drop reason)
{
	struct edge_connection *c = b->connection;

	if (reason == LB_DROP_TCP_READER)
		clients_note_slow(e, c);
	edge_count_drop(e, c, reason);
	/* It ends at the end of the turn, and is not found again until then. */
	if (b->replies > 0) {
		TAILQ_REMOVE(&e->sending, b, sending);
		TAILQ_INSERT_TAIL(&e->sending, b, sending);
	}
	b->progress_ms = e->stack.now_ms;
	tcp_abort(&c->tcp);
	edge_touch(e, c);
}

void edge_press(struct edge *e, const struct edge_client *client)
{
	struct edge_busy *b;

	if (client->replies < e->share)
		return;
	b = clients_slowest(e, client);
	if (b != NULL)
		clients_reset(e, b, LB_DROP_TCP_READER);
}

/* Do its replies keep others from getting theirs: all clients, or its own other connections? What
 * is remembered of a request by gRPC is so until its answer was taken. */
static bool clients_is_in_the_way(const struct edge *e, const struct edge_busy *b)
{
	const struct edge_client *client = b->client;

	return e->replies > edge_half(e->budget) ||
	       (kserve_room_is_short(e->kserve) && b->placement.framing->emit != NULL) ||
	       (client->stalled > b->connection->stalled && !clients_has_own_room(e, b));
}

void edge_press_all(struct edge *e)
{
	struct edge_busy *b = TAILQ_FIRST(&e->sending), *next;

	for (unsigned int i = 0; i < CLIENTS_SEARCH && b != NULL; i++, b = next) {
		next = TAILQ_NEXT(b, sending);
		if (e->stack.now_ms - b->progress_ms < CLIENTS_STALLED_MS)
			return;
		if (clients_is_stalled(e, b) && clients_is_in_the_way(e, b))
			clients_reset(e, b, LB_DROP_TCP_READER);
	}
}

/* --- bytes that wait for others
 * -------------------------------------------------------------------
 *
 * A client may leave a hole in front of what it sent, or a request half sent, for good. Where that
 * keeps others' segments out it has to go on.
 */

/* ms in which what is missing must come at the rate of tcp.min_rate. Lost, it comes again, and
 * again. */
#define CLIENTS_WAITING_MS 8000
/* ms after a segment was refused in which others may still be refused: their clients ask less and
 * less often. */
#define CLIENTS_SHORT_MS 20000
/* Connections looked at per ms then: a million in less than that time. */
#define CLIENTS_LOOKS 64u

static bool clients_waits(const struct edge_busy *b)
{
	const struct placement *p = &b->placement;
	const struct edge_request *r;

	if (b->connection->stalled || b->unwritten > 0)
		return false;
	r = edge_request_find(b, p->open.request);
	return p->held != NULL || p->stream.got != 0 || (r != NULL && r->bytes != NULL) ||
	       (b->tls != NULL && edge_tls_held(b) > 0);
}

static bool clients_keeps_out(const struct edge *e, const struct edge_busy *b)
{
	return !edge_has_room(e) || edge_is_short_of_busy(e) || e->stack.helds == NULL ||
	       (b->client->users > 1 && !edge_client_has_room(e, b->client));
}

static void clients_look(struct edge *e, struct edge_busy *b)
{
	uint64_t came = edge_came(b) - b->waits_position;
	uint32_t now = e->stack.now_ms - (e->stack.now_ms == 0), ms = now - b->waits_ms;
	bool waits = clients_waits(b), slow;

	if (waits && b->waits_ms != 0 && ms < CLIENTS_WAITING_MS)
		return;
	slow = came == 0 || came * 1000 < (uint64_t)ms * e->known->tcp.min_rate;
	/* Was it looked at lately? */
	slow = slow && b->waits_ms != 0 && ms < CLIENTS_SHORT_MS;
	b->waits_ms = waits ? now : 0;
	b->waits_position = edge_came(b);
	if (waits && slow && clients_keeps_out(e, b))
		clients_reset(e, b, LB_DROP_TCP_SLOW);
}

void edge_press_waiting(struct edge *e)
{
	if (likely(e->refused_ms == 0))
		return;
	if (e->stack.now_ms - e->refused_ms >= CLIENTS_SHORT_MS)
		e->refused_ms = 0;
	for (unsigned int left = RTE_MIN(CLIENTS_LOOKS, e->busies); left > 0; left--) {
		struct edge_busy *b = &e->busy_memory[e->looked];

		e->looked = (e->looked + 1) % e->busies;
		/* Is it in use? */
		if (b->connection != NULL && b->connection->busy == b)
			clients_look(e, b);
	}
}

/* --- room for replies
 * -----------------------------------------------------------------------------
 *
 * A worker sends a reply at its own pace, so all of it may wait for the client. Before a request is
 * read, room is set aside for a reply of the service's usual size.
 */

/* <sum> begins with the first reply, whose average it then is. */
static void clients_average(uint32_t *sum, uint32_t packets)
{
	*sum += *sum == 0 ? packets * EDGE_REPLIES_AVERAGE : packets - *sum / EDGE_REPLIES_AVERAGE;
}

void edge_count_reply(struct edge_busy *b, uint32_t packets)
{
	clients_average(&b->client->reply_packets, packets);
	clients_average(&b->edge->reply_packets[b->connection->service], packets);
}

bool edge_has_reply_room(const struct edge *e, const struct edge_busy *b)
{
	const struct edge_client *client = b->client;
	uint32_t usual = edge_usual_reply(b);

	/* One is always read: a reply may be larger than all the room there is. */
	if (client->replies + client->reserved == 0)
		return true;
	if (!clients_has_own_room(e, b))
		return false;
	return edge_client_is_small(e, client) ||
	       e->replies + e->reserved + usual <= edge_half(edge_commons(e));
}

uint32_t edge_held_packets(const struct lcore *lc)
{
	return lc->edge == NULL ? 0 : lc->edge->held;
}

/* Bytes that a connection is offered at first: what a sender begins with (RFC 6928), and more where
 * many have room. */
#define CLIENTS_FIRST_MIN 16384
#define CLIENTS_FIRST_MAX 65535
#define CLIENTS_FIRST_OF  16
/* Bytes of a usual segment: of 1,500 without headers and timestamps. */
#define CLIENTS_SEGMENT 1448

void edge_clients_share(struct edge *e)
{
	uint64_t first;

	e->share = RTE_MAX((uint64_t)e->budget * e->known->tcp.client_percent / 100, 16u);
	e->small = RTE_MIN(e->share, RTE_MAX(e->budget / 32, 16u));
	e->plenty = edge_promised(RTE_MIN(e->share, edge_commons(e)));
	e->busy_share = RTE_MAX((uint64_t)e->busies * e->known->tcp.client_percent / 100, 16u);
	first = (uint64_t)e->share * CLIENTS_SEGMENT / CLIENTS_FIRST_OF;
	first = RTE_MIN(RTE_MAX(first, (uint64_t)CLIENTS_FIRST_MIN), (uint64_t)CLIENTS_FIRST_MAX);
	e->first_window = RTE_MIN(first, (uint64_t)e->known->tcp.window);
}

int edge_clients_init(struct edge *e, uint32_t busy, uint32_t packets)
{
	uint32_t chains = rte_align32pow2(busy);

	e->budget = packets;
	e->busies = busy;
	edge_clients_share(e);
	e->client_mask = chains - 1;
	e->client_chain = rte_zmalloc("client_chains", chains * sizeof(*e->client_chain), 0);
	e->client_memory = rte_zmalloc("clients", busy * sizeof(*e->client_memory), 0);
	if (e->client_chain == NULL || e->client_memory == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < busy; i++) {
		e->client_memory[i].next = e->free_client;
		e->free_client = &e->client_memory[i];
	}
	return 0;
}
