/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: their beginning and end, timers, windows, and TIME-WAIT. */
#include "edge/deadlines.h"
#include "observe/flow_trace.h"
#include "runtime/txq.h"
#include "tcp/sequence.h"

/* Timers and stalled connections visited per turn: bounds its time. */
#define CONNECTIONS_BUDGET 256
/* us of a round trip at least, where a connection's window is measured. */
#define CONNECTIONS_ROUND_US 250
/* Bytes of a record of TLS at most. */
#define CONNECTIONS_RECORD 16640

static const struct stream_framing *connections_framing(const struct lb_service_config *config,
							const struct edge_connection *c)
{
	if (config->framing == LB_FRAMING_KSERVE)
		return c->position == 0 ? &stream_kserve_any : &stream_kserve;
	return config->framing == LB_FRAMING_TAGGED ? &stream_tagged : &stream_length;
}

static bool connections_any_leaving(const struct service_snapshot *services)
{
	for (unsigned int i = 0; i < services->n; i++)
		if (services->config[i].leaving)
			return true;
	return false;
}

/* Connections of services that a reload took away end when all is answered. */
static void connections_close_leaving(struct edge *e)
{
	for (uint32_t i = 1; i <= e->connections; i++) {
		struct edge_connection *c = &e->connection[i];

		if (c->handle != 0 && e->known->config[c->service].leaving && !c->closing)
			edge_close(e, c);
	}
}

static void connections_read_config(struct edge *e)
{
	const struct service_snapshot *services = e->lc->services;

	e->known = services;
	if (e->n_open > 0 && connections_any_leaving(services))
		connections_close_leaving(e);
	e->window = services->tcp.window;
	e->pipeline = services->tcp.pipeline;
	e->backlog_max = services->tcp.backlog;
	e->wait_ms = services->tcp.time_wait_ms;
	e->idle_ms = services->tcp.idle_ms;
	edge_clients_share(e);
	edge_openers_share(e);
	if (e->kserve != NULL) /* it is, but for the first time */
		edge_rewrite_share(e);
}

void edge_begin_turn(struct edge *e)
{
	const struct lcore *lc = e->lc;

	if (unlikely(e->known != lc->services))
		connections_read_config(e);

	e->stack.now_us = lb_tsc_to_ns(lc->lb, lc->now - lc->lb->tsc_start) / 1000;
	e->stack.now_ms = lc->now_ms;
}

struct edge_connection *edge_open(struct edge *e, struct flow *flow, uint32_t hash,
				  const struct client_path *path)
{
	struct edge_connection *c;

	if (e->n_free == 0)
		return NULL;
	flow->connection = e->free_connection[--e->n_free];
	flow->worker = WORKER_NONE;
	c = &e->connection[flow->connection];
	memset(c, 0, sizeof(*c));
	c->handle = conntrack_handle(e->lc->ct, flow);
	c->idle_ms = e->stack.now_ms;
	c->service = flow->service;
	c->secured = lb_service_has_tls(lcore_service_config(e->lc, c->service));
	c->hash = hash;
	c->path = *path;
	edge_opener_join(e, c, flow);
	e->n_open++;
	e->open[c->service]++;
	return c;
}

struct edge_busy *edge_begin(struct edge *e, struct edge_connection *c)
{
	const struct lb_service_config *config = lcore_service_config(e->lc, c->service);
	struct edge_busy *b = e->free_busy;

	if (b == NULL)
		return NULL;
	e->free_busy = b->next;
	edge_prefetch_bytes(e->free_busy, sizeof(*b));
	e->n_busy++;
	memset(b, 0, sizeof(*b));
	b->edge = e;
	b->connection = c;
	b->client = edge_client_join(e, edge_flow(e, c));
	b->last = &b->first;
	b->in_order = b->round_position = c->position;
	b->round_us = e->stack.now_us;
	/* An earlier offer stands. */
	b->window = RTE_MAX(e->first_window, c->tcp.rcv_edge - c->tcp.rcv_nxt);
	placement_init(&b->placement, connections_framing(config, c), &edge_placement_ops, b);
	b->placement.stream.position = c->position;
	b->placement.stream.requests = c->requests;
	c->busy = b;
	if (unlikely(c->secured)) {
		edge_tls_begin(e, b);
		b->round_position = 0;
	}
	return b;
}

/* Packets of long chains that are freed in a turn. */
#define CONNECTIONS_BURIED 256

static void connections_free_busy(struct edge *e, struct edge_connection *c)
{
	struct edge_busy *b = c->busy;

	while (b->first != NULL) {
		struct edge_request *r = b->first;

		b->first = r->next;
		edge_request_free(e, r);
	}
	edge_bury(e, b->out);
	if (unlikely(b->tls != NULL))
		edge_tls_end(e, b);
	placement_fini(&b->placement);
	if (b->replies > 0)
		TAILQ_REMOVE(&e->sending, b, sending);
	edge_let_reply_go(b, b->replies);
	edge_let_go(b, b->held);
	edge_reserve(b, -b->reserved);
	if (c->stalled)
		edge_leave_stalled(e, b);
	b->client->sessions -= b->session;
	e->n_sessions -= b->session;
	edge_client_leave(e, b->client);
	c->busy = NULL;
	b->next = e->free_busy;
	e->free_busy = b;
	e->n_busy--;
	if (c->narrow)
		TAILQ_REMOVE(&e->narrow, b, narrow);
	edge_leave_soon(b);
	edge_leave_freeing(e, b);
	c->stalled = c->narrow = false;
}

/* Gives the busy part back if nothing is under way. */
static void connections_rest(struct edge *e, struct edge_connection *c)
{
	const struct edge_busy *b = c->busy;

	if (b == NULL || b->first != NULL || b->out != NULL || c->narrow)
		return;
	if (unlikely(b->tls != NULL) && edge_tls_is_busy(b))
		return;
	/* A connection that closes does not read the rest of what it holds. */
	if (!c->closing && (b->placement.held != NULL || b->placement.stream.got != 0 ||
			    b->placement.stream.position != b->in_order))
		return;
	c->position = b->in_order;
	c->idle_ms = e->stack.now_ms;
	c->requests = b->placement.stream.requests;
	connections_free_busy(e, c);
}

/* --- TIME-WAIT ---------------------------------------------------------------------------------
 */

struct edge_wait *edge_wait_of(const struct edge *e, const struct flow *flow)
{
	struct edge_wait *w = &e->wait[flow->connection & ~EDGE_WAITS];

	return w->handle == conntrack_handle(e->lc->ct, flow) ? w : NULL;
}

static void connections_forget_oldest(struct edge *e)
{
	struct edge_wait *w = &e->wait[e->first_wait];
	struct flow *flow = conntrack_flow_get(e->lc->ct, w->handle);

	if (flow != NULL && flow->state == FLOW_TCP_WAIT)
		conntrack_flow_remove(e->lc->ct, flow);
	w->handle = 0;
	e->first_wait = (e->first_wait + 1) % e->waits;
	e->n_wait--;
}

static void connections_wait(struct edge *e, struct flow *flow, const struct tcp_time_wait *wait)
{
	uint32_t place;

	if (e->n_wait == e->waits)
		connections_forget_oldest(e);
	place = (e->first_wait + e->n_wait++) % e->waits;
	e->wait[place] = (struct edge_wait){
		.handle = conntrack_handle(e->lc->ct, flow),
		.until_ms = e->stack.now_ms + e->wait_ms,
		.begun_ms = e->stack.now_ms,
		.wait = *wait,
	};
	flow->connection = EDGE_WAITS | place;
	flow->state = FLOW_TCP_WAIT;
	conntrack_touch(flow, e->lc->now_ms);
}

void edge_wait_restart(struct edge *e, struct edge_wait *w, struct flow *flow)
{
	/* It moves when its place comes up: a client that repeats its FIN takes no other's place.
	 */
	w->begun_ms = e->stack.now_ms;
	conntrack_touch(flow, e->lc->now_ms);
}

/* The oldest began anew meanwhile: it becomes the youngest. False: it did not. */
static bool connections_wait_again(struct edge *e)
{
	struct edge_wait w = e->wait[e->first_wait];
	struct flow *flow = conntrack_flow_get(e->lc->ct, w.handle);
	uint32_t place = (e->first_wait + e->n_wait) % e->waits;

	if (flow == NULL || w.begun_ms + e->wait_ms == w.until_ms ||
	    (int32_t)(w.begun_ms + e->wait_ms - e->stack.now_ms) <= 0)
		return false;
	w.until_ms = w.begun_ms + e->wait_ms;
	e->wait[e->first_wait].handle = 0;
	e->first_wait = (e->first_wait + 1) % e->waits;
	e->wait[place] = w;
	flow->connection = EDGE_WAITS | place;
	return true;
}

static void connections_expire_waits(struct edge *e)
{
	for (unsigned int i = 0; i < CONNECTIONS_BUDGET && e->n_wait > 0; i++) {
		if ((int32_t)(e->wait[e->first_wait].until_ms - e->stack.now_ms) > 0)
			return;
		if (!connections_wait_again(e))
			connections_forget_oldest(e);
	}
}

/* --- the end ------------------------------------------------------------------------------------
 */

/* The state is CLOSED or TIME-WAIT, or the flow has expired. It is not on the list of those due. */
static void connections_end(struct edge *e, struct edge_connection *c)
{
	struct flow *flow = edge_flow(e, c);
	struct tcp_time_wait wait;

	edge_set_opening(e, c, false);
	edge_opener_leave(e, c);
	if (unlikely(e->lc->lb->access != NULL) && !c->buried)
		edge_access_lost(e, c);
	if (unlikely(e->lc->trace != NULL))
		trace_connection(e->lc, c->handle, TRACE_CLOSED, c->tcp.state == TCP_TIME_WAIT, 0);
	if (flow != NULL && c->tcp.state == TCP_TIME_WAIT) {
		tcp_time_wait_enter(&c->tcp, e->stack.now_ms, &wait);
		connections_wait(e, flow, &wait);
	} else if (flow != NULL) {
		/* Requests that a worker has are cancelled when their flow is found gone. */
		conntrack_flow_remove(e->lc->ct, flow);
	}
	if (c->busy != NULL)
		connections_free_busy(e, c);
	if (unlikely(c->secured))
		edge_tls_forget(e, c);
	tcp_release(&e->stack, &c->tcp);
	tcp_wheel_remove(&e->wheel, edge_number(e, c));
	c->handle = 0;
	e->free_connection[e->n_free++] = edge_number(e, c);
	e->n_open--;
	e->open[c->service]--;
}

static void connections_drop_incomplete(struct edge *e, struct edge_busy *b)
{
	struct edge_request **at = &b->first, *r;

	while ((r = *at) != NULL) {
		if (r->sent || r->answered || edge_request_is_complete(r)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		b->n_requests--;
		edge_let_go(b, r->bytes != NULL);
		edge_drop_answer(e, b, r);
		if (unlikely(r->rows != NULL))
			edge_rows_leave(e, r, true);
		edge_reserve(b, -r->reserved);
		edge_request_free(e, r);
	}
	b->last = at;
}

void edge_close_now(struct edge *e, struct edge_connection *c)
{
	c->closing = true;
	if (c->busy != NULL) {
		connections_drop_incomplete(e, c->busy);
		c->busy->placement.stream.position = STREAM_CLOSED;
	}
	edge_touch(e, c);
}

void edge_close(struct edge *e, struct edge_connection *c)
{
	struct edge_busy *b = c->busy;

	if (b == NULL || b->placement.framing->drain == NULL || c->ended)
		return edge_close_now(e, c);
	edge_streams_end_watches(e, b);
	b->placement.framing->drain(&b->placement.stream);
	edge_emit_answers(e, c);
}

/* --- timers and turns ---------------------------------------------------------------------------
 */

/* Packets of requests that there is room for where <left> are left for all: a client that holds
 * little may have more. */
static __rte_noinline uint32_t connections_last_room(const struct edge *e,
						     const struct edge_client *client, int32_t left)
{
	uint32_t room = RTE_MAX(left, 0);

	if (!edge_client_is_small(e, client) || e->held >= e->budget)
		return room;
	return RTE_MAX(room,
		       RTE_MIN(e->small - client->held - client->reserved, e->budget - e->held));
}

/*
 * Bytes that the client may send on one more connection, if it fills packets; at most <most>. Each
 * gets two segments as long as there is room for two: if they were divided among all, none of
 * many connections could go on.
 */
static uint64_t connections_share(const struct edge *e, const struct edge_connection *c,
				  uint64_t most)
{
	const struct edge_client *client = c->busy->client;
	uint32_t share = edge_half(e->share), its = edge_requests_of(client);
	int32_t room = edge_half(e->budget) - edge_requests_of_all(e);
	uint32_t packets;

	if (its >= share)
		return 0;
	if (unlikely(room < (int32_t)e->small))
		room = connections_last_room(e, client, room);
	packets = RTE_MIN(share - its, (uint32_t)room);
	/* A division is seldom needed. */
	if ((uint64_t)packets * c->tcp.mss >= most * client->users)
		return most;
	packets = RTE_MAX(packets / client->users, RTE_MIN(packets, 2u));
	return RTE_MIN((uint64_t)packets * c->tcp.mss, most);
}

static void connections_narrow(struct edge *e, struct edge_connection *c, bool narrow)
{
	if (narrow == c->narrow)
		return;
	c->narrow = narrow;
	if (narrow)
		TAILQ_INSERT_TAIL(&e->narrow, c->busy, narrow);
	else
		TAILQ_REMOVE(&e->narrow, c->busy, narrow);
}

/*
 * Opens windows that were closed for want of memory, as far as there is some again: their clients
 * are silent, and would ask after seconds. Once per ms, some of them; the others have their turn
 * later.
 */
static void connections_widen(struct edge *e)
{
	struct edge_busy *last = TAILQ_LAST(&e->narrow, edge_busy_list), *b = NULL;

	if (e->widened_ms == e->stack.now_ms)
		return;
	e->widened_ms = e->stack.now_ms;
	for (unsigned int left = CONNECTIONS_BUDGET; b != last && left > 0; left--) {
		struct edge_connection *c;

		b = TAILQ_FIRST(&e->narrow);
		c = b->connection;
		connections_narrow(e, c, false);
		if (connections_share(e, c, b->window) >= RTE_MIN(2u * c->tcp.mss, b->window))
			edge_touch(e, c);
		else
			connections_narrow(e, c, true);
	}
}

bool edge_resume(struct lcore *lc, unsigned int *visits)
{
	struct edge *e = lc->edge;

	edge_begin_turn(e);
	*visits += edge_run_timers(e);
	*visits += !TAILQ_EMPTY(&e->others) + !TAILQ_EMPTY(&e->turns) + !TAILQ_EMPTY(&e->rows);
	if (e->n_wait > 0)
		connections_expire_waits(e);
	if (unlikely(edge_next_rewrite(e) != NULL)) {
		edge_resume_rewrites(e);
		++*visits;
	}
	if (unlikely(!TAILQ_EMPTY(&e->rows)))
		edge_rows_run(e);
	if (unlikely(e->tls != NULL))
		*visits += edge_tls_resume(e);
	edge_resume_stalled(e);
	connections_widen(e);
	return lc->burst.n > 0 || e->n_cancels > 0;
}

bool edge_take_cancel(struct lcore *lc, uint64_t *handle, uint16_t *service, uint64_t *tag,
		      bool *told)
{
	struct edge *e = lc->edge;

	if (e->n_cancels == 0)
		return false;
	*handle = e->cancel[--e->n_cancels].handle;
	*service = e->cancel[e->n_cancels].service;
	*tag = e->cancel[e->n_cancels].tag;
	*told = e->cancel[e->n_cancels].told;
	return true;
}

/* All that was begun is answered, and the client sends no more. */
static bool connections_may_close(const struct edge_connection *c)
{
	return c->closing && !c->tcp.fin_queued && tcp_is_synchronized(&c->tcp) &&
	       (c->busy == NULL || c->busy->first == NULL || unlikely(c->tls_ended));
}

/* Of a connection with TLS: what may be sent now is encrypted, and its end is said before TCP's. */
static __rte_noinline void connections_write_tls(struct edge *e, struct edge_connection *c)
{
	if (c->busy != NULL)
		edge_tls_write(e, c);
	if (connections_may_close(c) && edge_tls_close(e, c))
		tcp_close(&c->tcp);
}

/*
 * The window that the connection uses: twice the bytes that came in a round trip, once per round
 * trip. One that is limited by its window so has twice the next time, and what is offered to many
 * that are slow is not much.
 */
static inline __attribute__((always_inline)) void connections_measure(const struct edge *e,
								      struct edge_connection *c)
{
	uint32_t us = RTE_MAX(c->tcp.srtt_us, (uint32_t)CONNECTIONS_ROUND_US);
	struct edge_busy *b = c->busy;
	uint64_t used, least;

	if (e->stack.now_us - b->round_us < us)
		return;
	used = 2 * (edge_came(b) - b->round_position);
	least = RTE_MAX(b->window / 2, e->first_window);
	/* A division is seldom needed. */
	if (used > least && e->stack.now_us - b->round_us >= 2 * us)
		used = used * us / (e->stack.now_us - b->round_us);
	b->window = RTE_MIN(RTE_MAX(used, least), e->window);
	b->round_us = e->stack.now_us;
	b->round_position = edge_came(b);
}

/* Bytes of a request that has its place, and the last record's beside its own. */
static inline __attribute__((always_inline)) uint64_t connections_missing(const struct edge_busy *b)
{
	uint64_t missing = edge_large_missing(b);

	return likely(b->tls == NULL) || missing == 0 ? missing : missing + CONNECTIONS_RECORD;
}

/* Offers the client what can be taken beside what is held. Bytes of a request that has its place
 * need no memory. Inlined where most are offered something. */
static inline __attribute__((always_inline)) void connections_grant(struct edge *e,
								    struct edge_connection *c)
{
	struct edge_busy *b = c->busy;
	uint64_t held, most, bytes;
	bool narrow;

	if (b == NULL || unlikely(c->faulty))
		return;
	if (edge_came(b) != b->round_position)
		connections_measure(e, c);
	held = b->placement.held_bytes + b->unwritten;
	if (unlikely(b->tls != NULL))
		held += edge_tls_held(b);
	if (c->stalled || held >= b->window) {
		connections_narrow(e, c, false);
		return tcp_grant(&c->tcp, 0);
	}
	most = b->window - held;
	bytes = connections_share(e, c, most);
	if (bytes < most)
		bytes = RTE_MAX(bytes, RTE_MIN(most, connections_missing(b)));
	tcp_grant(&c->tcp, bytes);
	/* Is there too little for an update? */
	narrow = edge_window_is_closed(c) && c->tcp.rcv_limit - c->tcp.rcv_edge < c->tcp.mss;
	e->stack.counters.windows_closed += narrow && !c->narrow;
	connections_narrow(e, c, narrow);
}

/* Between requests a client is offered more when half of what it was offered is used up: what it
 * may be offered takes long to find out. */
static inline bool connections_is_wide(const struct edge_connection *c)
{
	uint32_t left = c->tcp.rcv_edge - c->tcp.rcv_nxt;
	const struct edge_busy *b = c->busy;

	return b == NULL || (left >= 2u * c->tcp.mss && left > b->window / 2 &&
			     b->placement.stream.position == b->in_order && likely(b->tls == NULL));
}

/* Work of an end, and of a request that is open then. */
#define CONNECTIONS_END_WORK     16u
#define CONNECTIONS_REQUEST_WORK 16u

/*
 * The connection is gone. What it has is given back in this turn, if there is time, and nothing
 * that takes long; else in one of the next ones: until then no segment and no reply finds it.
 */
static void connections_bury(struct edge *e, struct edge_connection *c)
{
	struct flow *flow = edge_flow(e, c);
	struct edge_busy *b = c->busy;

	if (b == NULL || b->first == NULL || c->tcp.state == TCP_TIME_WAIT)
		return connections_end(e, c);
	if (!edge_rows_end_all(b) && edge_may_work(e, e->ends_left)) {
		edge_work(e, &e->ends_left,
			  CONNECTIONS_END_WORK + CONNECTIONS_REQUEST_WORK * b->n_requests);
		return connections_end(e, c);
	}
	e->goes_on = true;
	if (unlikely(e->lc->lb->access != NULL) && !c->buried)
		edge_access_lost(e, c);
	c->buried = true;
	if (flow != NULL)
		conntrack_flow_remove(e->lc->ct, flow);
	c->closing = true;
	b->placement.stream.position = STREAM_CLOSED;
	edge_stall(e, c, false);
	edge_touch(e, c);
}

/* All that was due has been sent. */
static void connections_sent(struct edge *e, struct edge_connection *c)
{
	uint32_t ms;

	if (edge_is_over(c))
		return connections_bury(e, c);
	connections_rest(e, c);
	if (tcp_due(&c->tcp, &ms))
		edge_set_timer(e, c, ms);
}

/* The next turn has as much time again. */
static void connections_end_turn(struct edge *e)
{
	/* It looks at what is left. */
	if (unlikely(e->tls != NULL))
		edge_tls_end_turn(e);
	if (unlikely(e->text_used))
		edge_rewrite_end_turn(e);
	edge_rows_end_turn(e);
	e->ends_left = EDGE_WORK_LEAST;
	e->goes_on |= e->resumes_on;
	e->resumed = e->bursts = 0;
	e->resumes_on = false;
}

/* Some of those that have had their part of a turn have one of this, behind all others: the next
 * one of each of some clients, so that one with many delays itself. */
static __rte_noinline void connections_go_on(struct edge *e)
{
	struct edge_client *client;
	struct edge_connection *c;

	for (unsigned int i = 0; i < EDGE_LONG && (client = TAILQ_FIRST(&e->due_more)) != NULL;
	     i++) {
		c = STAILQ_FIRST(&client->more);
		STAILQ_REMOVE_HEAD(&client->more, due);
		TAILQ_REMOVE(&e->due_more, client, more_turn);
		if (!STAILQ_EMPTY(&client->more))
			TAILQ_INSERT_TAIL(&e->due_more, client, more_turn);
		c->goes_on = false;
		STAILQ_INSERT_TAIL(&e->due, c, due);
	}
	e->goes_on = !TAILQ_EMPTY(&e->due_more);
}

/* The others acknowledge what came for them, and offer their clients as much again: with many,
 * their turn to send is far away. */
static __rte_noinline void connections_acknowledge(struct edge *e, unsigned int *sent)
{
	while (e->n_touched > 0) {
		struct edge_connection *c = e->touched[--e->n_touched];

		c->noted = false;
		if (!c->goes_on)
			continue;
		edge_select(e, c->service);
		if (!connections_is_wide(c))
			connections_grant(e, c);
		edge_emit(e, c, sent);
	}
}

unsigned int edge_transmit(struct lcore *lc)
{
	struct edge *e = lc->edge;
	struct edge_list due = STAILQ_HEAD_INITIALIZER(due);
	unsigned int sent = 0, blocked = 0;
	struct edge_connection *c;

	e->goes_on = false;
	if (unlikely(e->n_graves > 0))
		edge_free_buried(e, CONNECTIONS_BURIED);
	if (unlikely(!TAILQ_EMPTY(&e->freeing)))
		edge_free_acknowledged(e);
	if (unlikely(e->tls != NULL))
		edge_tls_write_on(e);
	if (unlikely(!TAILQ_EMPTY(&e->due_more)))
		connections_go_on(e);
	/* Those that cannot send all join the list again. */
	STAILQ_CONCAT(&due, &e->due);
	while ((c = STAILQ_FIRST(&due)) != NULL) {
		edge_select(e, c->service);
		if (unlikely(c->secured))
			connections_write_tls(e, c);
		else if (connections_may_close(c))
			tcp_close(&c->tcp);
		STAILQ_REMOVE_HEAD(&due, due);
		c->is_due = false;
		if (!connections_is_wide(c))
			connections_grant(e, c);
		if (tcp_is_quiet(&c->tcp) || edge_emit(e, c, &sent)) {
			connections_sent(e, c);
			continue;
		}
		edge_touch(e, c);
		/* Without packet memory no connection can send; without room, those of other ports.
		 */
		if (txq_room(&lc->tx[c->path.port]) > 0 || ++blocked == CONNECTIONS_BUDGET)
			break;
	}
	STAILQ_CONCAT(&due, &e->due);
	STAILQ_CONCAT(&e->due, &due);
	if (unlikely(e->n_touched > 0))
		connections_acknowledge(e, &sent);
	connections_end_turn(e);
	return sent;
}

bool edge_must_stay_awake(const struct lcore *lc)
{
	return lc->edge != NULL && lc->edge->tls != NULL && edge_tls_must_go_on(lc->edge);
}

bool edge_is_session(const struct lcore *lc, const struct flow *flow, uint32_t hash)
{
	/* Its connection may have ended while the request waited. */
	return flow->connection != 0 && flow->state != FLOW_TCP_WAIT &&
	       edge_connection_of(lc->edge, flow)->hash != hash;
}

void edge_drain(struct lcore *lc)
{
	struct edge *e = lc->edge;

	if (e == NULL)
		return;
	STAILQ_INIT(&e->due);
	TAILQ_INIT(&e->due_more);
	e->n_touched = 0;
	for (uint32_t i = 1; e->connection != NULL && i <= e->connections; i++)
		if (e->connection[i].handle != 0)
			connections_end(e, &e->connection[i]);
	edge_rows_drain(e);
	edge_free_buried(e, UINT32_MAX);
}

const struct tcp_counters *edge_counters(const struct lcore *lc)
{
	return lc->edge == NULL ? NULL : &lc->edge->stack.counters;
}
