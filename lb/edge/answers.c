/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies to the send queues of connections. Their bytes stay in the packets that the worker sent;
 * the framing's heads lie in mbufs between them. Where a framing wants answers in the order of
 * requests, those that come early wait beside their request.
 */
#include "edge/edge_private.h"
#include "packet/notice.h"

/* The client's time to acknowledge a packet begins. */
void edge_begin_wait(struct edge *e, struct edge_busy *b)
{
	b->progress_ms = e->stack.now_ms;
	if (TAILQ_NEXT(b, sending) == NULL)
		return;
	TAILQ_REMOVE(&e->sending, b, sending);
	TAILQ_INSERT_TAIL(&e->sending, b, sending);
}

/* The connection sends <bytes> of the chain as they are. They are held. */
static inline void answers_queue_raw(struct edge *e, struct edge_connection *c,
				     struct rte_mbuf *head, struct rte_mbuf *tail, uint32_t bytes)
{
	struct edge_busy *b = c->busy;

	if (b->out == NULL) {
		/* They may have waited long for the answer of an older request. */
		edge_begin_wait(e, b);
		b->out = head;
		b->out_seq = c->tcp.snd_end;
		b->front_seq = b->out_seq;
		b->at = b->marked = NULL;
		b->unmarked = 0;
	} else {
		b->out_tail->next = head;
	}
	b->out_tail = tail;
	b->out_bytes += bytes;
	tcp_queue(&c->tcp, bytes);
}

/* The connection sends <bytes> of the chain of <packets>. They are held. */
static inline void answers_queue_chain(struct edge *e, struct edge_connection *c,
				       struct rte_mbuf *head, struct rte_mbuf *tail,
				       uint32_t packets, uint32_t bytes)
{
	if (unlikely(c->secured))
		edge_tls_queue(e, c, head, tail, packets, bytes);
	else
		answers_queue_raw(e, c, head, tail, bytes);
}

void edge_queue_chain(struct edge *e, struct edge_connection *c, struct rte_mbuf *head,
		      struct rte_mbuf *tail, uint32_t bytes)
{
	answers_queue_raw(e, c, head, tail, bytes);
}

static inline void answers_hold(struct edge *e, struct edge_busy *b, uint32_t packets)
{
	if (b->replies == 0) {
		b->progress_ms = e->stack.now_ms;
		TAILQ_INSERT_TAIL(&e->sending, b, sending);
	}
	edge_hold_reply(b, packets);
}

/* The client has acknowledged whole packets. */
static inline void answers_let_go(struct edge *e, struct edge_busy *b, uint32_t packets)
{
	edge_let_reply_go(b, packets);
	/* Answers to its PINGs, for example, are none that the client takes. */
	if (unlikely(b->shut) && b->replies > 0)
		return;
	TAILQ_REMOVE(&e->sending, b, sending);
	b->progress_ms = e->stack.now_ms;
	if (b->replies > 0)
		TAILQ_INSERT_TAIL(&e->sending, b, sending);
}

void edge_release_answer(struct edge *e, struct edge_busy *b, uint32_t packets)
{
	edge_let_reply_go(b, packets);
	if (packets > 0 && b->replies == 0)
		TAILQ_REMOVE(&e->sending, b, sending);
}

void edge_drop_answer(struct edge *e, struct edge_busy *b, struct edge_request *r)
{
	edge_bury(e, r->answer);
	edge_release_answer(e, b, r->answer_packets);
	r->answer = NULL;
	r->answer_packets = r->answer_bytes = 0;
}

void edge_hold_answer(struct edge *e, struct edge_busy *b, uint32_t packets)
{
	answers_hold(e, b, packets);
}

void edge_let_answer_go(struct edge *e, struct edge_busy *b, uint32_t packets)
{
	answers_let_go(e, b, packets);
}

void edge_queue(struct edge *e, struct edge_connection *c, struct rte_mbuf *m)
{
	answers_hold(e, c->busy, m->nb_segs);
	answers_queue_chain(e, c, m, rte_pktmbuf_lastseg(m), m->nb_segs, m->pkt_len);
	edge_touch(e, c);
}

void edge_queue_held(struct edge *e, struct edge_connection *c, struct rte_mbuf *m)
{
	answers_queue_chain(e, c, m, m, 1, m->data_len);
}

static void answers_unlink(struct edge_busy *b, struct edge_request *r)
{
	struct edge_request **at = &b->first;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	if (b->last == &r->next)
		b->last = at;
	b->n_requests--;
}

void edge_request_leave(struct edge *e, struct edge_busy *b, struct edge_request *r)
{
	answers_unlink(b, r);
	edge_request_free(e, r);
}

static inline void answers_advance(struct edge *e, struct edge_connection *c)
{
	struct edge_busy *b = c->busy;
	struct edge_request **at = &b->first, *r;

	if (unlikely(b->placement.framing->emit != NULL))
		return edge_emit_answers(e, c);
	while ((r = *at) != NULL) {
		if (edge_has_turn(b, r) && r->answer != NULL) {
			answers_queue_chain(e, c, r->answer, r->answer_tail, r->answer_packets,
					    r->answer_bytes);
			r->answer = NULL;
			r->answer_packets = r->answer_bytes = 0;
		}
		if (edge_has_turn(b, r) && edge_request_is_over(r)) {
			answers_unlink(b, r);
			edge_request_free(e, r);
		} else if (b->placement.framing->in_order) {
			return;
		} else {
			at = &r->next;
		}
	}
}

void edge_advance(struct edge *e, struct edge_connection *c)
{
	answers_advance(e, c);
}

/* May <length> bytes be written in front of the packet's? Not if others refer to its memory. */
static bool answers_has_room(const struct rte_mbuf *m, uint16_t length)
{
	return m != NULL && RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1 &&
	       rte_pktmbuf_headroom(m) >= length;
}

/* An mbuf with nothing in it, in front of <bytes>, which may be NULL. Takes <bytes>. NULL: no
 * memory. */
static __rte_noinline struct rte_mbuf *answers_lead(struct edge *e, struct rte_mbuf *bytes)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->lc->control);

	if (m != NULL && bytes != NULL && bytes->pkt_len > 0) {
		m->next = bytes;
		m->pkt_len = bytes->pkt_len;
		m->nb_segs += bytes->nb_segs;
	} else {
		rte_pktmbuf_free(bytes);
	}
	return m;
}

/* A head with packets of its own: one that is longer than control packets are. Takes <bytes>, which
 * may be NULL. */
static __rte_noinline struct rte_mbuf *answers_add_long_head(struct edge *e, struct rte_mbuf *bytes,
							     const uint8_t *head, uint16_t length)
{
	struct rte_mbuf *m = NULL, *tail = NULL;

	if (!edge_append_text(e, &m, &tail, head, length)) {
		rte_pktmbuf_free(m);
		m = NULL;
	}
	if (m == NULL || bytes == NULL || bytes->pkt_len == 0) {
		rte_pktmbuf_free(bytes);
		return m;
	}
	tail->next = bytes;
	m->nb_segs += bytes->nb_segs;
	m->pkt_len += bytes->pkt_len;
	return m;
}

/*
 * Puts <head> in front of <bytes>: in the worker's packet if that is possible. An mbuf more per
 * reply until the client has acknowledged it would soon empty their pool. A head of odd length
 * begins a packet, because the headers in front of it must lie at even addresses.
 */
static __rte_always_inline struct rte_mbuf *answers_add_head(struct edge *e, struct rte_mbuf *bytes,
							     const uint8_t *head, uint16_t length)
{
	struct rte_mbuf *m = bytes;

	if (unlikely(length % 2 != 0))
		return answers_add_long_head(e, bytes, head, length);
	if (!answers_has_room(bytes, length)) {
		if (unlikely(length > RTE_PKTMBUF_HEADROOM))
			return answers_add_long_head(e, bytes, head, length);
		m = answers_lead(e, bytes);
	}
	if (m != NULL)
		memcpy(rte_pktmbuf_prepend(m, length), head, length);
	return m;
}

/*
 * Writes the framing's heads around <bytes>, which may be NULL, and queues the result with its
 * request. Takes <bytes>. False: no memory.
 */
static __rte_always_inline bool answers_write(struct edge *e, struct edge_connection *c,
					      struct edge_request *r, struct stream_reply *reply,
					      struct rte_mbuf *bytes)
{
	struct edge_busy *b = c->busy;
	uint8_t head[STREAM_HEAD_MAX];
	struct stream_piece piece;
	struct rte_mbuf *m;

	piece = b->placement.framing->reply(&b->placement.stream, reply, head);
	if (likely(bytes != NULL || piece.head > 0)) {
		m = answers_add_head(e, bytes, head, piece.head);
		if (unlikely(m == NULL)) {
			/* The framing has said it: its connection ends, and it is not asked again.
			 */
			r->answered = true;
			return false;
		}
		edge_append(&r->answer, &r->answer_tail, m);
		answers_hold(e, b, m->nb_segs);
		r->answer_packets += m->nb_segs;
		r->answer_bytes += m->pkt_len;
		/* Pieces of a stream leave one by one: a usual reply is one of them. */
		if (unlikely(r->streams))
			r->reply_packets = RTE_MAX(r->reply_packets, m->nb_segs);
		else
			r->reply_packets += m->nb_segs;
	}
	/* Its packets are there: nothing is set aside for them any more. */
	edge_reserve(b, -r->reserved);
	r->reserved = 0;
	r->answered = !reply->more;
	if (r->answered && reply->notice == 0)
		edge_count_reply(c->busy, r->reply_packets);
	if (unlikely(piece.closes))
		edge_close(e, c);
	return true;
}

/* The same where replies do not pass that the worker wrote as they are. */
static __rte_noinline bool answers_write_other(struct edge *e, struct edge_connection *c,
					       struct edge_request *r, struct stream_reply *reply,
					       struct rte_mbuf *bytes)
{
	return answers_write(e, c, r, reply, bytes);
}

void edge_refuse(struct edge *e, struct edge_connection *c, struct edge_request *r, uint8_t code)
{
	struct stream_reply reply = {
		.request = r->number, .tag = r->tag, .notice = code, .failed = r->failed_row};

	edge_drop_chunks(e, c->busy, r);
	if (unlikely(r->rows != NULL))
		edge_rows_end(r);
	if (!answers_write_other(e, c, r, &reply, NULL)) {
		/* The client must not wait for an answer that never comes. */
		e->lc->stats.drop[LB_DROP_NO_MBUF]++;
		tcp_abort(&c->tcp);
	}
	edge_advance(e, c);
	edge_touch(e, c);
}

struct edge_request *edge_request_of(const struct lcore *lc, const struct flow *flow, uint64_t tag,
				     struct edge_connection **c)
{
	uint32_t row = tag >> 32;
	struct edge_request *r;

	/* A worker may say more about a request that was answered before the connection ended. */
	if (flow->connection == 0 || flow->state == FLOW_TCP_WAIT)
		return NULL;
	*c = edge_connection_of(lc->edge, flow);
	if ((*c)->busy == NULL)
		return NULL;
	r = edge_request_find((*c)->busy, (uint32_t)tag);
	if (likely(row == 0) || r == NULL)
		return r;
	return r->rows == NULL || row > r->rows->n ? NULL : r->rows->row[row - 1];
}

bool edge_notice(struct lcore *lc, const struct flow *flow, uint8_t code, uint64_t tag,
		 uint16_t *service)
{
	struct edge_connection *c;
	struct edge_request *r = edge_request_of(lc, flow, tag, &c);

	if (r == NULL || r->answered)
		return false;
	*service = r->service;
	if (unlikely(r->parent != NULL)) {
		/* No worker has to be told when the batch is taken apart. */
		r->answered = true;
		if (r->parent->answered)
			return false;
		r->parent->failed_row = r->row;
		r = r->parent;
	}
	edge_refuse(lc->edge, c, r, code);
	return true;
}

/* --- replies that are written anew -------------------------------------------------------------
 */

void edge_drop_chunks(struct edge *e, struct edge_busy *b, struct edge_request *r)
{
	while (r->rewrite != NULL) {
		edge_release_answer(e, b, r->rewrite->packets);
		edge_rewrite_end(e, r);
	}
	edge_stream_drop_text(e, b, r);
}

/* The reply cannot be sent. Of one in several chunks the worker need not send the rest. */
static void answers_fail(struct edge *e, struct edge_connection *c, struct edge_request *r,
			 uint8_t notice, enum lb_drop reason, bool more)
{
	if (more)
		edge_stream_cancel(c->busy, r);
	edge_request_fail(c->busy, r, notice, reason);
}

/* The text of a chunk that is sent together with the next one's. */
static void answers_keep_text(struct edge *e, struct edge_busy *b, struct edge_request *r,
			      struct rte_mbuf *text, struct rte_mbuf *tail)
{
	if (text == NULL)
		return;
	r->text = text;
	r->text_tail = tail;
	r->text_packets = text->nb_segs;
	answers_hold(e, b, r->text_packets);
}

/* All of a chunk is written anew. */
static void answers_end_rewrite(struct edge *e, struct edge_connection *c, struct edge_request *r,
				struct stream_reply *reply, struct rte_mbuf *text)
{
	reply->length = text == NULL ? 0 : text->pkt_len;
	if (!answers_write_other(e, c, r, reply, text)) {
		e->lc->stats.drop[LB_DROP_NO_MBUF]++;
		tcp_abort(&c->tcp);
	}
	r->heard_ms = e->stack.now_ms;
	edge_advance(e, c);
	edge_touch(e, c);
}

/* Writes what may be written; at the end the reply is queued. */
static void answers_continue_rewrite(struct edge *e, struct edge_rewrite *w)
{
	struct edge_connection *c = w->connection;
	struct edge_request *r = w->request;
	struct rte_mbuf *text, *tail;
	struct stream_reply reply;
	int rc = edge_rewrite_run(e, w);
	bool waits;

	if (rc == 0)
		return;
	edge_release_answer(e, c->busy, w->packets + r->text_packets);
	r->text_packets = 0;
	reply = w->reply;
	text = w->text;
	tail = w->tail;
	waits = w->waits;
	if (rc < 0 || reply.notice != 0) {
		edge_rewrite_end(e, r);
		return answers_fail(e, c, r, rc < 0 ? LB_NOTICE_BUSY : reply.notice,
				    rc < 0 ? LB_DROP_NO_MBUF : LB_DROP_REPLY_MALFORMED, reply.more);
	}
	w->text = NULL;
	edge_rewrite_end(e, r);
	if (waits)
		answers_keep_text(e, c->busy, r, text, tail);
	else
		answers_end_rewrite(e, c, r, &reply, text);
}

void edge_resume_rewrites(struct edge *e)
{
	struct edge_rewrite *w;

	while (edge_may_work(e, e->write_left) && (w = edge_next_rewrite(e)) != NULL)
		answers_continue_rewrite(e, w);
}

/* Of a framing that writes replies anew: does this one pass as it is? Not in front of those that
 * wait. */
static __rte_noinline bool answers_keeps(struct edge *e, struct edge_connection *c,
					 const struct edge_request *r,
					 const struct stream_reply *reply)
{
	struct placement *p = &c->busy->placement;

	if (p->framing->keeps == NULL || r->rewrite != NULL || r->text != NULL ||
	    !TAILQ_EMPTY(&e->rewrites))
		return false;
	e->text_used = true;
	if (!p->framing->keeps(&p->stream, reply))
		return false;
	e->replied_ms[r->service] = e->stack.now_ms;
	return true;
}

__rte_noinline bool edge_rewrite_reply(struct edge *e, struct edge_connection *c,
				       struct edge_request *r, const struct stream_reply *reply,
				       struct rte_mbuf *m)
{
	uint32_t packets = m->nb_segs;

	if (!edge_rewrite_begin(e, c, r, reply, m)) {
		edge_bury(e, m);
		answers_fail(e, c, r, LB_NOTICE_BUSY, LB_DROP_NO_MBUF, reply->more);
		return false;
	}
	e->replied_ms[r->service] = e->stack.now_ms;
	answers_hold(e, c->busy, packets);
	/* Those that came before go first. */
	edge_resume_rewrites(e);
	return true;
}

void edge_answer_text(struct edge *e, struct edge_connection *c, struct edge_request *r,
		      const uint8_t *bytes, uint32_t length, bool ends)
{
	struct rte_mbuf *m = NULL, *tail = NULL;

	if (!edge_append_text(e, &m, &tail, bytes, length)) {
		rte_pktmbuf_free(m);
		e->lc->stats.drop[LB_DROP_NO_MBUF]++;
		return tcp_abort(&c->tcp);
	}
	edge_append(&r->answer, &r->answer_tail, m);
	answers_hold(e, c->busy, m->nb_segs);
	r->answer_packets += m->nb_segs;
	r->answer_bytes += m->pkt_len;
	if (ends) {
		edge_reserve(c->busy, -r->reserved);
		r->reserved = 0;
		r->answered = r->named = true;
	}
	edge_advance(e, c);
	edge_touch(e, c);
}

bool edge_reply(struct lcore *lc, struct flow *flow, struct rte_mbuf *m, uint64_t tag,
		uint32_t chunk, bool more)
{
	struct edge_connection *c;
	struct edge_request *r = edge_request_of(lc, flow, tag, &c);
	struct stream_reply reply = {.chunk = chunk, .length = m->pkt_len, .more = more};

	if (r == NULL || r->answered) {
		edge_bury(lc->edge, m);
		return false;
	}
	if (unlikely(r->parent != NULL))
		return edge_rows_reply(lc->edge, c, r, m, more || chunk > 0);
	r->reply_bytes += m->pkt_len;
	if (r->reply_bytes > lcore_service_config(lc, r->service)->max_reply) {
		edge_bury(lc->edge, m);
		answers_fail(lc->edge, c, r, LB_NOTICE_MODEL_ERROR, LB_DROP_REPLY_TOO_LARGE, more);
		return false;
	}
	reply.request = r->number;
	reply.tag = r->tag;
	if (unlikely(c->busy->client->replies >= lc->edge->share))
		edge_press(lc->edge, c->busy->client);
	if (unlikely(c->busy->placement.framing->rewrite != NULL) &&
	    !answers_keeps(lc->edge, c, r, &reply))
		return edge_rewrite_reply(lc->edge, c, r, &reply, m);
	if (!answers_write(lc->edge, c, r, &reply, m)) {
		lc->stats.drop[LB_DROP_NO_MBUF]++;
		tcp_abort(&c->tcp);
	}
	answers_advance(lc->edge, c);
	edge_touch(lc->edge, c);
	return true;
}

/* Packets of a connection that are freed at once when they are acknowledged: those of a packet that
 * a port cuts. And in a turn, of those with more. */
#define ANSWERS_AT_ONCE 32u
#define ANSWERS_A_TURN  512u

/* Frees packets that the client has acknowledged, and returns how many. */
static inline uint32_t answers_free(const struct edge_connection *c, struct edge_busy *b)
{
	uint32_t packets = 0;

	while (b->out != NULL && packets < ANSWERS_AT_ONCE) {
		struct rte_mbuf *m = b->out;
		uint32_t acked = c->tcp.snd_una - b->out_seq;

		/* The number of our FIN is behind the last byte. */
		if (acked < m->data_len || (int32_t)acked < 0)
			break;
		b->out_seq += m->data_len;
		b->out_bytes -= m->data_len;
		b->out = m->next;
		if (unlikely(b->marked == m))
			b->marked = edge_mark(m)->next;
		if (b->at == m) {
			b->at = m->next;
			b->at_seq = b->out_seq;
		}
		rte_pktmbuf_free_seg(m);
		packets++;
	}
	return packets;
}

/* It has more, or perhaps: others have their part of the turn first. */
static __rte_noinline void answers_free_later(struct edge *e, struct edge_busy *b)
{
	if (b->frees)
		return;
	b->frees = true;
	TAILQ_INSERT_TAIL(&e->freeing, b, freeing);
}

void edge_leave_freeing(struct edge *e, struct edge_busy *b)
{
	if (likely(!b->frees))
		return;
	b->frees = false;
	TAILQ_REMOVE(&e->freeing, b, freeing);
}

void edge_acknowledged(struct edge *e, struct edge_connection *c)
{
	struct edge_busy *b = c->busy;
	uint32_t packets;

	if (b == NULL || b->out == NULL)
		return;
	packets = answers_free(c, b);
	if (packets > 0)
		answers_let_go(e, b, packets);
	if (unlikely(packets == ANSWERS_AT_ONCE) && b->out != NULL)
		answers_free_later(e, b);
	/* Answers that wait for windows of HTTP/2 go when these open. */
	if (unlikely(b->placement.framing->emit != NULL) &&
	    (b->held_back || c->ended || c->closing))
		edge_emit_answers(e, c);
}

void edge_free_acknowledged(struct edge *e)
{
	for (unsigned int left = ANSWERS_A_TURN / ANSWERS_AT_ONCE; left > 0; left--) {
		struct edge_busy *b = TAILQ_FIRST(&e->freeing);

		if (b == NULL)
			return;
		edge_leave_freeing(e, b);
		edge_acknowledged(e, b->connection);
		edge_touch(e, b->connection);
	}
}
