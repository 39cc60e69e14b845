/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests from streams: the framing finds them. The bytes of those that fit a packet are gathered,
 * and complete ones join the lcore's burst; large.c has the others. A request that lies in one
 * segment, and ends with it, stays where it is.
 */
#include "edge/edge_private.h"
#include "packet/notice.h"

static inline struct edge_request *requests_add(struct edge_busy *b, uint32_t number, uint64_t tag)
{
	struct edge *e = b->edge;
	struct edge_request *r = e->free_request; /* requests_ready() has seen to it */

	e->free_request = r->next;
	e->n_requests++;
	edge_prefetch_bytes(e->free_request, sizeof(*r));
	edge_zero(r, sizeof(*r));
	r->number = number;
	r->tag = tag;
	r->arrived = e->lc->now;
	r->hash = b->connection->hash;
	r->service = b->connection->service;
	r->reserved = edge_usual_reply(b);
	edge_reserve(b, r->reserved);
	*b->last = r;
	b->last = &r->next;
	b->n_requests++;
	return r;
}

void edge_request_free(struct edge *e, struct edge_request *r)
{
	if (unlikely(r->large != NULL))
		edge_large_end(e, r);
	if (unlikely(r->bytes != NULL))
		rte_pktmbuf_free(r->bytes);
	if (unlikely(r->answer != NULL))
		edge_bury(e, r->answer);
	while (unlikely(r->rewrite != NULL))
		edge_rewrite_end(e, r);
	if (unlikely(r->text != NULL))
		edge_bury(e, r->text);
	if (unlikely(r->rows != NULL))
		edge_rows_leave(e, r, false);
	if (unlikely(r->streams))
		edge_stream_end(e, r);
	if (unlikely(r->elsewhere))
		e->elsewhere[r->service]--;
	r->next = e->free_request;
	e->free_request = r;
	e->n_requests--;
}

/* TSC of the request's deadline; 0: none. */
static uint64_t requests_deadline(const struct lcore *lc, const struct lb_service_config *config,
				  uint32_t deadline_us)
{
	uint64_t us = deadline_us != 0 ? deadline_us : config->deadline_ms * UINT64_C(1000);

	return us == 0 ? 0 : lc->now + us * lc->lb->tsc_per_ms / 1000;
}

/* All bytes have come: the request joins the burst. Its packet is not held. */
static void requests_submit(struct edge_busy *b, struct edge_request *r)
{
	struct edge_connection *c = b->connection;
	struct lcore *lc = b->edge->lc;
	struct burst *out = &lc->burst;
	struct flow *flow = edge_flow(b->edge, c);
	unsigned int i = out->n;

	if (flow == NULL)
		return edge_expired(b->edge, c);
	r->bytes->data_len = r->bytes->pkt_len = r->size;
	out->packet[i] = r->bytes;
	out->flow[i] = flow;
	out->handle[i] = c->handle;
	out->service[i] = r->service;
	out->hash[i] = r->hash;
	out->path[i] = c->path;
	out->tag[i] = edge_tag(r);
	out->arrived[i] = r->arrived;
	out->deadline[i] = r->deadline;
	out->priority[i] = (struct priority){.level = r->priority};
	out->n++;
	r->bytes = NULL;
	r->sent = true;
	lc->service[r->service].stats.bytes_in += r->size;
}

void edge_request_submit(struct edge_busy *b, struct edge_request *r)
{
	edge_let_go(b, 1);
	requests_submit(b, r);
}

/* The framing has done with a request that was answered before. */
static void requests_over(struct edge_busy *b, struct edge_request *r)
{
	r->named = true;
	edge_advance(b->edge, b->connection);
}

void edge_request_fail(struct edge_busy *b, struct edge_request *r, uint8_t notice,
		       enum lb_drop reason)
{
	struct lcore *lc = b->edge->lc;

	/* A row that fails fails all. */
	if (unlikely(r->parent != NULL)) {
		if (!r->parent->answered)
			r->parent->failed_row = r->row;
		r = r->parent;
	}
	edge_large_end(b->edge, r);
	edge_let_go(b, r->bytes != NULL);
	rte_pktmbuf_free(r->bytes);
	r->bytes = NULL;
	if (r->answered)
		return;
	lc->stats.drop[reason]++;
	lc->service[r->service].stats.drops++;
	lc->service[r->service].stats.notices++;
	lc->stats.notices++;
	lc->stats.notice[notice % LB_NOTICE_CODES]++;
	edge_refuse(b->edge, b->connection, r, notice);
}

static void requests_no_memory(struct edge_busy *b, struct edge_request *r)
{
	edge_request_fail(b, r, LB_NOTICE_BUSY, LB_DROP_NO_MBUF);
}

static inline void requests_begin(struct edge_busy *b, struct edge_request *r,
				  const struct stream_begin *begin)
{
	const struct lcore *lc = b->edge->lc;
	const struct lb_service_config *config;

	if (unlikely(begin->service > 0 && begin->service - 1 != r->service)) {
		r->service = begin->service - 1;
		r->elsewhere = true;
		b->edge->elsewhere[r->service]++;
	}
	config = lcore_service_config(lc, r->service);
	if (unlikely(begin->session != 0))
		r->hash = begin->session;
	r->size = begin->size;
	r->deadline = requests_deadline(lc, config, begin->deadline_us);
	r->priority = RTE_MAX(begin->priority, config->priority);
	if (unlikely(begin->streams))
		edge_stream_begin(b, r);
	if (unlikely(begin->rows > 1))
		return edge_rows_begin(b, r, begin);
	if (unlikely(r->size > b->edge->gather_max) && !edge_large_begin(b, r))
		requests_no_memory(b, r);
}

/* Of a request that the framing may have sent something about. */
static struct edge_request *requests_of(struct edge_busy *b, uint32_t number, uint64_t tag)
{
	struct edge_request *r = edge_request_find(b, number);

	if (r == NULL)
		return requests_add(b, number, tag);
	r->tag = tag;
	return r;
}

/* Its bytes are the next of the stream. */
static void requests_whole(struct edge_busy *b, const struct stream_action *action)
{
	struct edge_request *r = requests_add(b, action->request, action->whole.begin.tag);

	requests_begin(b, r, &action->whole.begin);
	if (unlikely(r->answered))
		return requests_over(b, r);
	r->named = true;
}

bool edge_request_gather(struct edge_busy *b, struct edge_request *r)
{
	if (r->bytes == NULL && !r->answered) {
		r->bytes = rte_pktmbuf_alloc(b->edge->lc->packets);
		edge_hold(b, r->bytes != NULL);
	}
	if (r->bytes != NULL)
		return true;
	requests_no_memory(b, r);
	return false;
}

static void requests_try_submit(struct edge_busy *b, struct edge_request *r)
{
	if (edge_request_is_complete(r) && r->bytes != NULL && !r->answered)
		edge_request_submit(b, r);
}

static void requests_end(struct edge_busy *b, const struct stream_action *action)
{
	struct edge_request *r = edge_request_find(b, action->request);

	if (r == NULL)
		return;
	if (r->answered)
		return requests_over(b, r);
	r->named = true;
	if (r->large != NULL)
		return edge_large_named(b, r, action->size);
	if (unlikely(r->rows != NULL))
		return;
	r->size = action->size;
	requests_try_submit(b, r);
}

static void requests_refuse(struct edge_busy *b, const struct stream_action *action)
{
	struct edge_request *r = requests_of(b, action->request, action->refuse.tag);

	if (r->answered)
		return requests_over(b, r);
	r->named = true;
	edge_request_fail(b, r, action->refuse.notice, action->refuse.reason);
}

static struct edge_request *requests_find_tag(const struct edge_busy *b, uint64_t tag)
{
	for (struct edge_request *r = b->first; r != NULL; r = r->next)
		if (r->tag == tag && !r->answered)
			return r;
	return NULL;
}

void edge_cancel(struct edge_busy *b, struct edge_request *r)
{
	struct edge *e = b->edge;

	if (!r->sent || r->rows != NULL)
		edge_request_fail(b, r, LB_NOTICE_CANCELLED, LB_DROP_CANCELLED);
	else
		e->cancel[e->n_cancels++] = (struct edge_cancel){
			.handle = b->connection->handle, .tag = r->number, .service = r->service};
}

static void requests_cancel(struct edge_busy *b, uint64_t tag)
{
	struct edge_request *r = requests_find_tag(b, tag);

	if (r == NULL)
		b->edge->lc->stats.drop[LB_DROP_CANCEL_UNKNOWN]++;
	else
		edge_cancel(b, r);
}

static void requests_send_of(struct edge_busy *b, const struct stream_action *action)
{
	struct edge_request *r = edge_request_find(b, action->request);

	if (r == NULL)
		r = requests_add(b, action->request, action->bytes.tag);
	if (unlikely(action->bytes.watches)) {
		r->watches = true;
		edge_stream_begin(b, r);
	}
	edge_answer_text(b->edge, b->connection, r, action->bytes.at, action->bytes.length,
			 action->bytes.ends);
}

static void requests_send(struct edge_busy *b, const struct stream_action *action)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(b->edge->lc->control);
	uint8_t *at = m == NULL ? NULL : (uint8_t *)rte_pktmbuf_append(m, action->bytes.length);

	if (at == NULL) {
		rte_pktmbuf_free(m);
		b->edge->lc->stats.drop[LB_DROP_NO_MBUF]++;
		return tcp_abort(&b->connection->tcp);
	}
	memcpy(at, action->bytes.at, action->bytes.length);
	edge_queue(b->edge, b->connection, m);
}

static void requests_copy(struct edge_busy *b, struct edge_request *r, uint64_t offset,
			  const uint8_t *bytes, uint32_t length)
{
	if (!edge_request_gather(b, r))
		return;
	memcpy(rte_pktmbuf_mtod_offset(r->bytes, uint8_t *, offset), bytes, length);
	r->placed += length;
	requests_try_submit(b, r);
}

/* Bytes of a batch: those of each row of a tensor have places of their own. */
static void requests_produce_rows(struct edge_busy *b, struct edge_request *r,
				  const struct stream_action *action)
{
	uint32_t each = action->bytes.each, left = action->bytes.length, n;
	const uint8_t *bytes = action->bytes.at;
	uint64_t offset = action->bytes.offset;

	if (each == 0)
		return edge_rows_place(b, r, offset, NULL, bytes, left);
	for (; left > 0 && !r->answered; left -= n, offset += n, bytes += n) {
		n = RTE_MIN(left, (uint32_t)(each - offset % each));
		edge_rows_place(b, r,
				offset / each * action->bytes.row + action->bytes.within +
					offset % each,
				NULL, bytes, n);
	}
}

static void requests_produce(struct edge_busy *b, const struct stream_action *action)
{
	struct edge_request *r = edge_request_find(b, action->request);

	if (r == NULL || r->answered)
		return;
	if (unlikely(r->rows != NULL))
		return requests_produce_rows(b, r, action);
	if (r->large == NULL)
		return requests_copy(b, r, action->bytes.offset, action->bytes.at,
				     action->bytes.length);
	if (!edge_large_produce(b, r, action->bytes.offset, action->bytes.at, action->bytes.length))
		requests_no_memory(b, r);
}

static void requests_close(struct edge_busy *b, uint8_t reason)
{
	if (reason != 0)
		edge_count_drop(b->edge, b->connection, reason);
	b->connection->faulty |= reason == LB_DROP_HTTP2_FAULT;
	edge_close_now(b->edge, b->connection);
}

/* Actions that are seldom, where a framing has others. */
static __rte_noinline void requests_act_other(void *context, const struct stream_action *action)
{
	struct edge_busy *b = context;

	switch (action->kind) {
	case STREAM_BEGIN:
		requests_begin(b, requests_of(b, action->request, action->begin.tag),
			       &action->begin);
		return;
	case STREAM_PRODUCE:
		return requests_produce(b, action);
	case STREAM_END:
		return requests_end(b, action);
	case STREAM_REFUSE:
		return requests_refuse(b, action);
	case STREAM_CANCEL:
		return requests_cancel(b, action->tag);
	case STREAM_SEND:
		return action->bytes.of_request ? requests_send_of(b, action)
						: requests_send(b, action);
	case STREAM_CLOSE:
		return requests_close(b, action->reason);
	default:
		return;
	}
}

static void requests_act(void *context, const struct stream_action *action)
{
	if (likely(action->kind == STREAM_REQUEST))
		requests_whole(context, action);
	else
		requests_act_other(context, action);
}

/* Is the range a whole request at the end of a packet that nothing else holds? */
static bool requests_stays(const struct edge_request *r, const struct rte_mbuf *m, uint64_t offset,
			   const uint8_t *bytes, uint32_t length)
{
	return r->bytes == NULL && offset == 0 && length == r->size &&
	       rte_mbuf_refcnt_read(m) == 1 &&
	       bytes + length == rte_pktmbuf_mtod_offset(m, const uint8_t *, m->data_len);
}

static void requests_place(void *context, uint32_t request, uint64_t offset,
			   const struct placement_piece *piece, const uint8_t *bytes,
			   uint32_t length)
{
	struct edge_piece *p = (struct edge_piece *)piece;
	struct edge_busy *b = context;
	struct edge_request *r = edge_request_find(b, request);

	if (r == NULL || r->answered)
		return;
	if (unlikely(r->rows != NULL))
		return edge_rows_place(b, r, offset, p, bytes, length);
	if (r->large != NULL) {
		if (!edge_large_place(b, r, offset, p, bytes, length))
			requests_no_memory(b, r);
		return;
	}
	if (!requests_stays(r, p->m, offset, bytes, length))
		return requests_copy(b, r, offset, bytes, length);
	r->bytes = p->m; /* held as before */
	p->m = NULL;
	rte_pktmbuf_adj(r->bytes, bytes - rte_pktmbuf_mtod(r->bytes, const uint8_t *));
	r->placed = length;
	requests_try_submit(b, r);
}

static void requests_release(void *context, struct placement_piece *piece)
{
	struct edge_piece *p = (struct edge_piece *)piece;
	struct edge_busy *b = context;

	if (p->m != NULL) {
		rte_pktmbuf_free(p->m);
		edge_let_go(b, 1);
	}
	p->piece.next = (struct placement_piece *)b->edge->free_piece;
	b->edge->free_piece = p;
	b->edge->n_pieces++;
}

/* Of a framing that reads text: in the middle of a request there is nothing more to set aside. */
static __rte_noinline bool requests_text_ready(struct edge *e, const struct edge_busy *b)
{
	const struct stream *s = &b->placement.stream;

	if (b->placement.framing->emit != NULL)
		return edge_frames_ready(e, b);
	if (!kserve_room_ready(e->kserve, s) || e->free_request == NULL ||
	    e->lc->burst.n >= LB_BURST - 1)
		return false;
	return kserve_room_is_inside(s) ||
	       (edge_has_reply_room(e, b) && b->n_requests < e->pipeline);
}

/* A header may begin a request, which may be complete at once. A client that does not read its
 * replies gets no more of them. */
static bool requests_ready(void *context)
{
	const struct edge_busy *b = context;
	struct edge *e = b->edge;

	if (unlikely(b->placement.framing->rewrite != NULL))
		return requests_text_ready(e, b);
	return edge_has_reply_room(e, b) && b->n_requests < e->pipeline &&
	       e->free_request != NULL && e->lc->burst.n < LB_BURST - 1 &&
	       e->n_cancels < EDGE_CANCELS;
}

bool edge_take_whole(struct edge *e, struct edge_connection *c, struct rte_mbuf *m,
		     const uint8_t *bytes)
{
	const struct lb_service_config *config = lcore_service_config(e->lc, c->service);
	const struct stream_settings settings = {.max_request = config->max_request};
	uint32_t length = rte_pktmbuf_mtod(m, const uint8_t *) + m->data_len - bytes, header;
	struct edge_busy *b = c->busy;
	struct placement *p = &b->placement;
	struct edge_request *r;
	struct stream_begin begin;

	if (p->framing->whole == NULL || p->held != NULL || length > e->gather_max ||
	    rte_mbuf_refcnt_read(m) > 1 || !requests_ready(b))
		return false;
	header = p->framing->whole(&p->stream, &settings, bytes, length, &begin);
	if (header == 0)
		return false;
	b->in_order = p->stream.position;
	r = requests_add(b, p->stream.requests - 1, begin.tag);
	requests_begin(b, r, &begin);
	rte_pktmbuf_adj(m, bytes + header - rte_pktmbuf_mtod(m, const uint8_t *));
	r->bytes = m;
	r->placed = r->size;
	r->named = true;
	requests_submit(b, r);
	return true;
}

const struct placement_ops edge_placement_ops = {
	.ready = requests_ready,
	.act = requests_act,
	.place = requests_place,
	.release = requests_release,
};
