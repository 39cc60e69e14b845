/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies that a framing writes anew, and what it asks for in return: its memory, its settings for
 * a call, and text in chains of packets. Few bytes per turn: a reply that needs more waits for the
 * next one.
 */
#include <errno.h>
#include <time.h>

#include <rte_malloc.h>

#include "edge/edge_private.h"
#include "config/memory.h"
#include "framing/grpc_session.h"
#include "packet/notice.h"

/* Other lcores write their counters while they are read here, by design. */
#define RACING __attribute__((no_sanitize("thread")))

#define REWRITE_ROOM 2048 /* bytes that a call of rewrite() may write */
/* Work of a call of rewrite(); a byte that it writes is as much as one that is read. */
#define REWRITE_CALL_WORK 16
/* Bytes of a reply that a call is shown at least; each gives some of text. */
#define REWRITE_BYTES_MIN 64
#define REWRITE_HEAD HTTP_RESPONSE_MAX
/* Packets of an answer: no more than one client may hold, or a chain may have. */
#define REWRITE_PACKETS 60000u
#define REWRITE_LIMIT   10000 /* ms for a head, or 64 KiB of JSON */
#define REWRITE_SHORT   1000  /* the same while there are few readers */

/* For each lcore. */
#define REWRITE_READERS 128
#define REWRITE_ASKED   2048
#define REWRITE_LAYOUTS (LB_SERVICES_MAX + 32)
/* Connections that speak HTTP/2, of one client a quarter; and streams open in them. */
#define REWRITE_SESSIONS 128
#define REWRITE_STREAMS  (REWRITE_SESSIONS * GRPC_STREAMS_HELD)
/* Packets that a session counts as. */
#define REWRITE_SESSION_PACKETS 16

_Static_assert(REWRITE_READERS * sizeof(struct kserve_reader) +
			       REWRITE_ASKED *
				       (sizeof(struct kserve_asked) + sizeof(struct edge_rewrite)) +
			       REWRITE_LAYOUTS * sizeof(struct kserve_layout) +
			       EDGE_ROWS * sizeof(struct edge_rows) +
			       REWRITE_STREAMS * sizeof(struct grpc_stream) +
			       REWRITE_SESSIONS * GRPC_SESSION_BYTES + sizeof(struct kserve_room) <=
		       LB_TCP_TEXT_BYTES,
	       "memory.c counts it");
_Static_assert(REWRITE_ROOM >= KSERVE_ANSWER_ROOM, "a call can go on");

/* --- settings ----------------------------------------------------------------------------------
 */

static void rewrite_set_date(struct edge *e)
{
	if (e->dated && e->stack.now_ms / 1000 == e->date_second)
		return;
	e->dated = true;
	e->date_second = e->stack.now_ms / 1000;
	http_date_write((uint64_t)time(NULL), e->kserve->date);
}

/* The description that the service's workers have now; looked at once per ms. */
static struct kserve_layout *rewrite_layout(struct edge *e, uint16_t service)
{
	struct edge_layout *known = &e->layout[service];
	const char *model = lcore_service_config(e->lc, service)->model;
	const struct model_entry *entry;

	if (known->looked && known->ms == e->stack.now_ms)
		return known->layout;
	known->looked = true;
	known->ms = e->stack.now_ms;
	entry = lcore_model(e->lc, model, strlen(model));
	if (known->layout != NULL && entry != NULL &&
	    strcmp(known->layout->model.name, model) == 0 &&
	    known->layout->max_rows == entry->max_rows &&
	    memcmp(&known->layout->description, &entry->description, sizeof(entry->description)) ==
		    0)
		return known->layout;
	if (known->layout != NULL)
		kserve_layout_leave(e->kserve, known->layout);
	known->layout = entry == NULL ? NULL
				      : kserve_layout_of(e->kserve, model, &entry->description,
							 entry->max_rows);
	return known->layout;
}

/* Makes a service the current one. */
static void rewrite_select(struct edge *e, uint16_t service)
{
	const struct lb_service_config *config = lcore_service_config(e->lc, service);
	struct kserve_room *room = e->kserve;

	room->service = service;
	room->layout = rewrite_layout(e, service);
	room->model = config->model;
	room->serving = lcore_may_serve(e->lc, service);
	room->max_request = config->max_request;
}

static bool rewrite_find(struct kserve_room *room, const char *model)
{
	struct edge *e = room->edge;
	uint16_t first = room->service, service = first;

	do {
		const struct lb_service_config *config = lcore_service_config(e->lc, service);

		if (!config->leaving && strcmp(config->model, model) == 0) {
			rewrite_select(e, service);
			return true;
		}
		service = e->lc->services->beside[service];
	} while (service != first);
	return false;
}

static bool rewrite_next(struct kserve_room *room)
{
	struct edge *e = room->edge;

	rewrite_select(e, e->lc->services->beside[room->service]);
	return room->service != room->service_of_connection;
}

/* ms since 1970 of the last reply on an lcore; 0: none. Their clocks are the same. */
RACING static uint64_t rewrite_replied(const struct edge *e, const struct edge *other,
				       uint16_t service)
{
	struct timespec now;

	if (other->replied_ms[service] == 0)
		return 0;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 -
	       (uint32_t)(e->stack.now_ms - other->replied_ms[service]);
}

RACING static void rewrite_count(const struct kserve_room *room, struct kserve_counters *counters)
{
	const struct edge *e = room->edge;
	const struct lb *lb = e->lc->lb;
	uint64_t sum_ns[LATENCY_PARTS] = {0}, replies = 0, failed = 0, last = 0;

	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		const struct lcore *lc = lb->lcore[i];

		replies += lc->service[room->service].stats.replies;
		failed += lc->service[room->service].stats.notices;
		latency_add_sums(sum_ns, &lc->latency[room->service]);
		last = RTE_MAX(last, rewrite_replied(e, lc->edge, room->service));
	}
	*counters = (struct kserve_counters){
		.success = {replies, sum_ns[LATENCY_TOTAL]},
		.fail = {failed, 0},
		.queue = {replies, sum_ns[LATENCY_QUEUE]},
		.input = {replies, sum_ns[LATENCY_WIRE] + sum_ns[LATENCY_WAIT]},
		.infer = {replies, sum_ns[LATENCY_RUN]},
		.output = {replies, sum_ns[LATENCY_REPLY]},
		.inferences = replies,
		.executions = replies,
		.last_inference = last,
	};
}

/* A client's part of so many; some at least. */
static uint32_t rewrite_share(const struct edge *e, uint32_t all)
{
	return RTE_MAX(all * e->known->tcp.client_percent / 100, 4u);
}

/* Sessions of all, or of a client, that leave half of what requests may have of so many packets. */
static uint32_t rewrite_sessions(uint32_t most, uint32_t packets)
{
	uint32_t borne = edge_half(edge_half(packets)) / REWRITE_SESSION_PACKETS;

	return RTE_MIN(most, RTE_MAX(borne, 1u));
}

void edge_rewrite_share(struct edge *e)
{
	e->kserve->readers_max = rewrite_share(e, REWRITE_READERS);
	e->kserve->asked_max = rewrite_share(e, REWRITE_ASKED);
	e->sessions = rewrite_sessions(REWRITE_SESSIONS, e->budget);
	e->sessions_share = rewrite_sessions(rewrite_share(e, REWRITE_SESSIONS), e->share);
	grpc_memory_share(&e->grpc->memory, e->known->tcp.client_percent);
}

/* The last eighth of the sessions is for clients that have one at most. */
static bool rewrite_may_open(const struct edge *e, const struct edge_client *client)
{
	return client->sessions < e->sessions_share && e->n_sessions < e->sessions &&
	       (client->sessions < 2 || e->n_sessions < e->sessions - e->sessions / 8);
}

void edge_kserve_settings(struct edge *e, const struct edge_connection *c,
			  struct stream_settings *settings)
{
	struct kserve_room *room = e->kserve;

	e->text_used = true;
	e->room_known = false;
	rewrite_set_date(e);
	room->service_of_connection = c->service;
	rewrite_select(e, c->service);
	room->owner = c->busy;
	room->now_ms = e->stack.now_ms;
	room->share = &c->busy->client->text;
	room->may_open = rewrite_may_open(e, c->busy->client);
	room->streams_max = RTE_MIN(e->pipeline, GRPC_STREAMS_MAX);
	settings->kserve = room;
	settings->max_request = e->lc->services->max_request[c->service];
}

int edge_rewrite_init(struct edge *e)
{
	e->kserve = rte_zmalloc("kserve",
				kserve_room_bytes(REWRITE_READERS, REWRITE_ASKED, REWRITE_LAYOUTS),
				RTE_CACHE_LINE_SIZE);
	e->rewrite_memory = rte_zmalloc("rewrites", REWRITE_ASKED * sizeof(*e->rewrite_memory), 0);
	TAILQ_INIT(&e->rewrites);
	TAILQ_INIT(&e->long_rewrites);
	TAILQ_INIT(&e->free_rewrites);
	TAILQ_INIT(&e->streaming);
	if (e->kserve == NULL || e->rewrite_memory == NULL)
		return -ENOMEM;
	kserve_room_init(e->kserve, REWRITE_READERS, REWRITE_ASKED, REWRITE_LAYOUTS);
	e->kserve->version = DOORBELL_VERSION;
	e->kserve->edge = e;
	e->kserve->find = rewrite_find;
	e->kserve->next = rewrite_next;
	e->kserve->count = rewrite_count;
	edge_access_begin(e);
	e->grpc = rte_zmalloc("grpc", grpc_room_bytes(REWRITE_SESSIONS, REWRITE_STREAMS),
			      RTE_CACHE_LINE_SIZE);
	if (e->grpc == NULL ||
	    grpc_room_init(e->grpc, e->kserve, REWRITE_SESSIONS, REWRITE_STREAMS) < 0)
		return -ENOMEM;
	edge_rewrite_share(e);
	for (unsigned int i = 0; i < REWRITE_ASKED; i++)
		TAILQ_INSERT_TAIL(&e->free_rewrites, &e->rewrite_memory[i], entry);
	e->kserve->text_left = e->kserve->text_turn = EDGE_WORK;
	e->write_left = e->ends_left = EDGE_WORK_LEAST;
	return 0;
}

void edge_rewrite_fini(struct edge *e)
{
	if (e->grpc != NULL)
		grpc_room_fini(e->grpc);
	rte_free(e->grpc);
	rte_free(e->kserve);
	rte_free(e->rewrite_memory);
}

void edge_count_session(struct edge_busy *b)
{
	if (b->session || b->placement.framing->emit == NULL || b->placement.stream.own == NULL)
		return;
	b->session = true;
	b->client->sessions++;
	b->edge->n_sessions++;
	edge_hold(b, REWRITE_SESSION_PACKETS);
}

void edge_rewrite_leave_text(struct edge *e)
{
	int32_t left = e->kserve->text_left, theirs = e->text_owed ? EDGE_WORK : EDGE_WORK_LEAST;

	if (e->text_waited)
		return;
	e->text_used = e->text_waited = true;
	if (!e->text_owed && left >= EDGE_WORK_LEAST)
		return;
	/* A call may have taken more than was left, a large document for example. */
	e->text_owed = left + theirs <= 0;
	if (!e->text_owed)
		e->kserve->text_left = left + theirs;
}

void edge_rewrite_end_turn(struct edge *e)
{
	e->text_waited = false;
	e->text_short = e->kserve->text_left <= 0 || e->text_whole;
	/* Those that wait may have ended meanwhile. */
	e->text_owed = (e->text_owed || e->text_whole) && !TAILQ_EMPTY(&e->turns);
	e->text_whole = false;
	e->text_used = e->text_short;
	/* Those whose segments come then have none before those that wait. */
	e->kserve->text_left = e->text_owed ? 0 : EDGE_WORK;
	e->write_left = EDGE_WORK_LEAST;
}

void edge_rewrite_check_readers(struct edge *e)
{
	bool few = kserve_room_readers_are_short(e->kserve);
	uint32_t limit = few ? REWRITE_SHORT : REWRITE_LIMIT;
	struct kserve_reader *r = TAILQ_FIRST(&e->kserve->readers);
	struct edge_busy *b;

	if (r == NULL || e->stack.now_ms - r->since_ms < limit)
		return;
	/* One per ms is enough: the next one is the oldest then. */
	b = r->owner;
	e->lc->stats.drop[LB_DROP_TCP_SLOW]++;
	r->since_ms = e->stack.now_ms;
	tcp_abort(&b->connection->tcp);
	edge_touch(e, b->connection);
}

/* --- chains of text ----------------------------------------------------------------------------
 */

/* A packet at the end of a chain; in front of the first one there is room for a head. */
static struct rte_mbuf *rewrite_add_packet(struct edge *e, struct rte_mbuf **head,
					   struct rte_mbuf **tail)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->lc->packets);

	if (m == NULL)
		return NULL;
	if (*head == NULL) {
		m->data_off = RTE_MIN(m->buf_len, m->data_off + REWRITE_HEAD);
		*head = m;
	} else {
		(*tail)->next = m;
		(*head)->nb_segs++;
	}
	*tail = m;
	return m;
}

bool edge_append_text(struct edge *e, struct rte_mbuf **head, struct rte_mbuf **tail,
		      const uint8_t *bytes, uint32_t length)
{
	while (length > 0) {
		uint32_t room = *tail == NULL ? 0 : rte_pktmbuf_tailroom(*tail);
		uint32_t n = RTE_MIN(room, length);

		if (room == 0) {
			if (rewrite_add_packet(e, head, tail) == NULL)
				return false;
			continue;
		}
		memcpy(rte_pktmbuf_mtod_offset(*tail, uint8_t *, (*tail)->data_len), bytes, n);
		(*tail)->data_len += n;
		(*head)->pkt_len += n;
		bytes += n;
		length -= n;
	}
	return true;
}

/* --- replies -----------------------------------------------------------------------------------
 */

/* Short ones go first: a client that asks for megabytes of JSON delays only its like. */
static struct edge_rewrites *rewrite_list(struct edge *e, const struct rte_mbuf *m)
{
	return m->pkt_len <= REWRITE_ROOM ? &e->rewrites : &e->long_rewrites;
}

bool edge_rewrite_begin(struct edge *e, struct edge_connection *c, struct edge_request *r,
			const struct stream_reply *reply, struct rte_mbuf *m)
{
	struct edge_rewrite *w = TAILQ_FIRST(&e->free_rewrites), **at = &r->rewrite;
	struct edge_rewrites *list;

	if (w == NULL)
		return false;
	TAILQ_REMOVE(&e->free_rewrites, w, entry);
	list = rewrite_list(e, m);
	/* A younger chunk of a reply waits for those before it. */
	if (r->rewrite != NULL)
		list = NULL;
	else
		TAILQ_INSERT_TAIL(list, w, entry);
	*w = (struct edge_rewrite){.entry = w->entry,
				   .list = list,
				   .connection = c,
				   .request = r,
				   .reply = *reply,
				   .packets = m->nb_segs,
				   .bytes = m,
				   .at = m};
	while (*at != NULL)
		at = &(*at)->next;
	*at = w;
	return true;
}

void edge_rewrite_end(struct edge *e, struct edge_request *r)
{
	struct edge_rewrite *w = r->rewrite, *next = w->next;

	r->rewrite = next;
	if (next != NULL) {
		next->list = rewrite_list(e, next->bytes);
		TAILQ_INSERT_TAIL(next->list, next, entry);
	}
	edge_bury(e, w->bytes);
	edge_bury(e, w->text);
	TAILQ_REMOVE(w->list, w, entry);
	TAILQ_INSERT_HEAD(&e->free_rewrites, w, entry);
}

/* The bytes of the reply from reply.taken on that lie in a row. */
static uint32_t rewrite_bytes(struct edge_rewrite *w, const uint8_t **bytes)
{
	uint32_t taken = w->reply.taken;

	if (taken < w->at_offset) {
		w->at = w->bytes;
		w->at_offset = 0;
	}
	while (w->at != NULL && taken >= w->at_offset + w->at->data_len) {
		w->at_offset += w->at->data_len;
		w->at = w->at->next;
	}
	if (w->at == NULL) {
		w->at = w->bytes;
		w->at_offset = 0;
		*bytes = NULL;
		return 0;
	}
	*bytes = rte_pktmbuf_mtod_offset(w->at, const uint8_t *, taken - w->at_offset);
	return w->at_offset + w->at->data_len - taken;
}

/* Puts what was kept of the reply behind the text. */
static void rewrite_keep(struct edge_rewrite *w)
{
	struct rte_mbuf *bytes = w->bytes;

	w->bytes = NULL;
	if (bytes->pkt_len == 0)
		return rte_pktmbuf_free(bytes);
	w->tail->next = bytes;
	w->tail = rte_pktmbuf_lastseg(bytes);
	w->text->nb_segs += bytes->nb_segs;
	w->text->pkt_len += bytes->pkt_len;
}

/* Text counts for its client from the beginning. */
static bool rewrite_append(struct edge *e, struct edge_rewrite *w, const uint8_t *text,
			   uint32_t length)
{
	uint32_t before = w->text == NULL ? 0 : w->text->nb_segs, more;
	bool fits = edge_append_text(e, &w->text, &w->tail, text, length);

	more = (w->text == NULL ? 0 : w->text->nb_segs) - before;
	w->packets += more;
	if (more > 0)
		edge_hold_answer(e, w->connection->busy, more);
	return fits;
}

/* Bytes of the reply whose text there is time for. */
static uint32_t rewrite_most(const struct edge *e)
{
	int32_t left = RTE_MAX(e->write_left, e->kserve->text_left - EDGE_WORK_LEAST);

	return RTE_MAX(left / 2, REWRITE_BYTES_MIN);
}

/* One call of rewrite(). 1: the reply is written; 0: it is not; -ENOMEM. */
static int rewrite_step(struct edge *e, struct edge_rewrite *w)
{
	const struct placement *p = &w->connection->busy->placement;
	struct stream_rewritten done;
	uint8_t text[REWRITE_ROOM];
	const uint8_t *bytes;
	uint32_t n = rewrite_bytes(w, &bytes), looked;
	int32_t left = e->kserve->text_left;

	n = RTE_MIN(n, rewrite_most(e));
	done = p->framing->rewrite((struct stream *)&p->stream, &w->reply, bytes, n, text,
				   sizeof(text));
	/* Looking at the reply is work of writing, too: reading keeps its part of the turn. */
	looked = (uint32_t)(left - e->kserve->text_left);
	e->kserve->text_left = left;
	edge_work(e, &e->write_left, done.length + looked + REWRITE_CALL_WORK);
	if (!rewrite_append(e, w, text, done.length))
		return -ENOMEM;
	if (w->text != NULL && w->text->nb_segs > RTE_MIN(e->share, REWRITE_PACKETS)) {
		w->reply.notice = LB_NOTICE_MODEL_ERROR;
		return 1;
	}
	if (done.done && done.keeps)
		rewrite_keep(w);
	w->waits = done.done && done.waits;
	return done.done;
}

int edge_rewrite_run(struct edge *e, struct edge_rewrite *w)
{
	int rc = 0;

	e->text_used = true;
	/* Text of the chunks before it is sent with it. */
	if (w->text == NULL && w->request->text != NULL) {
		w->text = w->request->text;
		w->tail = w->request->text_tail;
		w->request->text = NULL;
	}
	while (rc == 0 && edge_may_work(e, e->write_left))
		rc = rewrite_step(e, w);
	if (rc != 0)
		return rc;
	/* It is not done in a turn: the others of its kind have theirs. */
	TAILQ_REMOVE(w->list, w, entry);
	TAILQ_INSERT_TAIL(w->list, w, entry);
	return 0;
}
