/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Framings that decide what is sent when, because their answers share the connection: the bytes of
 * an answer stay beside its request until the framing asks for them.
 */
#include "edge/edge_private.h"

/* Bytes that wait for acknowledgements, and pieces of a call: beyond them the rest waits. */
#define FRAMES_AHEAD 262144u
#define FRAMES_TURN  64

/* Bytes that the connection has and the client has not acknowledged, encrypted or not. */
static uint64_t frames_unsent(const struct edge_busy *b)
{
	return b->out_bytes + (unlikely(b->tls != NULL) ? edge_tls_unsent(b) : 0);
}

/* --- bytes of an answer ------------------------------------------------------------------------
 */

/* Takes the first packet of the answer out of it; no more than <most> bytes of it. NULL: no memory.
 */
static struct rte_mbuf *frames_take_packet(struct edge *e, struct edge_busy *b,
					   struct edge_request *r, uint32_t most)
{
	struct rte_mbuf *m = r->answer, *part;

	if (m->data_len > most) {
		part = edge_refer(e, m, rte_pktmbuf_mtod(m, const uint8_t *), (uint16_t)most);
		if (part == NULL)
			return NULL;
		/* The first packet of a chain counts the bytes of all. */
		m->data_off += most;
		m->data_len -= most;
		edge_hold_reply(b, 1);
		return part;
	}
	r->answer = m->next;
	r->answer_packets--;
	m->next = NULL;
	m->nb_segs = 1;
	m->pkt_len = m->data_len;
	return m;
}

/* <bytes> bytes of the answer join the send queue. False: no memory. */
static bool frames_send(struct edge *e, struct edge_connection *c, struct edge_request *r,
			uint32_t bytes)
{
	while (bytes > 0) {
		const struct rte_mbuf *whole = r->answer;
		struct rte_mbuf *m = frames_take_packet(e, c->busy, r, bytes);

		if (m == NULL)
			return false;
		if (m->data_len == 0) {
			rte_pktmbuf_free_seg(m);
			edge_let_reply_go(c->busy, 1);
			continue;
		}
		bytes -= m->data_len;
		r->answer_bytes -= m->data_len;
		c->busy->shut &= m != whole;
		edge_queue_held(e, c, m);
	}
	return true;
}

/* The rest of an answer that is over is freed. */
static void frames_drop(struct edge *e, struct edge_connection *c, struct edge_request *r)
{
	if (r->answer == NULL)
		return;
	edge_bury(e, r->answer);
	edge_let_answer_go(e, c->busy, r->answer_packets);
	r->answer = NULL;
	r->answer_packets = r->answer_bytes = 0;
}

/* --- pieces ------------------------------------------------------------------------------------
 */

/* Heads that follow each other, in packets of their own. */
struct frames_heads {
	struct rte_mbuf *first, *last;
};

static void frames_send_heads(struct edge *e, struct edge_connection *c, struct frames_heads *heads)
{
	if (heads->first != NULL)
		edge_queue(e, c, heads->first);
	*heads = (struct frames_heads){0};
}

static void frames_end(struct edge *e, struct edge_connection *c, struct edge_request *r,
		       const struct stream_emitted *out)
{
	r->over = true;
	frames_drop(e, c, r);
	if (!out->cancels)
		return;
	r->named = true;
	edge_cancel(c->busy, r);
}

/* False: no memory. */
static bool frames_take(struct edge *e, struct edge_connection *c, struct frames_heads *heads,
			const struct stream_emitted *out)
{
	struct edge_request *r = edge_request_find(c->busy, out->request);

	if (!edge_append_text(e, &heads->first, &heads->last, out->head_at, out->head))
		return false;
	if (r == NULL)
		return out->bytes == 0;
	if (out->bytes > 0) {
		frames_send_heads(e, c, heads);
		if (!frames_send(e, c, r, out->bytes))
			return false;
	}
	if (out->ends)
		frames_end(e, c, r, out);
	return true;
}

/* Requests that are over leave. Returns whether answers wait. */
static bool frames_free(struct edge *e, struct edge_connection *c)
{
	struct edge_request *r, *next;
	bool waits = false;

	for (r = c->busy->first; r != NULL; r = next) {
		next = r->next;
		/* Of one that closes, the client says nothing any more that could let it go on. */
		r->over |= c->ended && c->closing && r->answered && frames_unsent(c->busy) == 0;
		waits |= r->answer != NULL;
		if (!r->over || !edge_request_is_over(r))
			continue;
		frames_drop(e, c, r);
		edge_request_leave(e, c->busy, r);
	}
	if (c->busy->first == NULL)
		c->idle_ms = e->stack.now_ms;
	return waits;
}

/* Answers wait for the client's windows: a window that is opened for a whole packet, or an answer,
 * begins its time anew, and nothing else does. */
static void frames_shut(struct edge *e, struct edge_busy *b, bool shut)
{
	if (shut && !b->shut)
		edge_begin_wait(e, b);
	b->shut = shut;
}

static void frames_close(struct edge *e, struct edge_connection *c,
			 const struct stream_emitted *out)
{
	if (out->fault)
		edge_count_drop(e, c, LB_DROP_HTTP2_FAULT);
	c->faulty |= out->fault;
	edge_close_now(e, c);
}

/* Not more than the client takes, or has room for. */
static bool frames_may_send(const struct edge *e, const struct edge_busy *b)
{
	uint64_t unsent = frames_unsent(b);

	return unsent < FRAMES_AHEAD && (unsent == 0 || b->client->replies < e->share);
}

void edge_emit_answers(struct edge *e, struct edge_connection *c)
{
	struct edge_busy *b = c->busy;
	struct frames_heads heads = {0};
	unsigned int left = FRAMES_TURN;
	bool may_send = true, waits;
	struct stream_emitted out;

	/* A request that is cancelled here ends in here, too. And a connection that is reset for
	 * want of memory has lost bytes that the framing would ask for. */
	if (b->emits || unlikely(c->tcp.rst_now || edge_is_over(c)))
		return;
	b->emits = true;
	while (left > 0 && e->n_cancels < EDGE_CANCELS && (may_send = frames_may_send(e, b)) &&
	       b->placement.framing->emit(&b->placement.stream, &out)) {
		left -= out.head > 0;
		if (!frames_take(e, c, &heads, &out)) {
			e->lc->stats.drop[LB_DROP_NO_MBUF]++;
			tcp_abort(&c->tcp);
			break;
		}
		if (out.closes)
			frames_close(e, c, &out);
	}
	frames_send_heads(e, c, &heads);
	b->emits = false;
	b->held_back = left == 0 || !may_send;
	/* It would be told why, and takes nothing. */
	if (unlikely(c->faulty && !may_send))
		tcp_abort(&c->tcp);
	waits = frames_free(e, c);
	/* The walk takes some cancels at a time, and then the rest is asked for. */
	if (unlikely(e->n_cancels == EDGE_CANCELS))
		edge_stall(e, c, true);
	else if (left > 0 && may_send)
		frames_shut(e, b, waits);
	edge_touch(e, c);
}

/* --- the owner's answers to the framing --------------------------------------------------------
 */

/* It is asked for each part of a frame, and changes for the worse only when a request begins. */
static inline bool frames_have_room(struct edge *e, const struct edge_busy *b)
{
	uint32_t requests = b->placement.stream.requests;

	if (!e->room_known || e->room_requests != requests) {
		e->room_there = edge_has_reply_room(e, b) && b->n_requests < e->pipeline;
		e->room_requests = requests;
		e->room_known = true;
	}
	return e->room_there;
}

bool edge_frames_ready(struct edge *e, const struct edge_busy *b)
{
	struct kserve_room *room = e->kserve;

	room->may_begin = frames_have_room(e, b) && kserve_room_may_ask(room);
	return room->text_left > 0 && kserve_room_may_refuse(room) && e->free_request != NULL &&
	       e->lc->burst.n < LB_BURST - 1 && e->n_cancels < EDGE_CANCELS;
}

bool edge_frames_are_idle(const struct edge_connection *c)
{
	const struct edge_busy *b = c->busy;

	return b->placement.framing->emit != NULL && b->first == NULL && frames_unsent(b) == 0;
}
