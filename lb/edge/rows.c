/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Batches: a client's request of several rows is as many requests for the walk, which workers may
 * answer in any order. Their replies, in the order of rows, are the reply of the whole. One that
 * fails ends all. A batch that ends early is taken apart in the next turn, as its rows may be in
 * the lists that are walked through now.
 */
#include "edge/edge_private.h"

#include <errno.h>

#include <rte_malloc.h>

#include "packet/notice.h"

int edge_rows_init(struct edge *e)
{
	TAILQ_INIT(&e->rows);
	TAILQ_INIT(&e->free_rows);
	e->rows_memory = rte_zmalloc("rows", EDGE_ROWS * sizeof(*e->rows_memory), 0);
	if (e->rows_memory == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < EDGE_ROWS; i++)
		TAILQ_INSERT_TAIL(&e->free_rows, &e->rows_memory[i], entry);
	return 0;
}

void edge_rows_fini(struct edge *e)
{
	rte_free(e->rows_memory);
}

/* There is something to do in the next turn. */
static void rows_wake(struct edge *e, struct edge_rows *w)
{
	if (w->waits)
		return;
	w->waits = true;
	TAILQ_INSERT_TAIL(&e->rows, w, entry);
}

/* --- requests ----------------------------------------------------------------------------------
 */

static struct edge_request *rows_add(struct edge *e, struct edge_request *parent, uint32_t size,
				     uint32_t row)
{
	struct edge_request *r = e->free_request;

	e->free_request = r->next;
	e->n_requests++;
	*r = (struct edge_request){.number = parent->number,
				   .tag = parent->tag,
				   .row = row,
				   .parent = parent,
				   .size = size,
				   .named = true,
				   .arrived = parent->arrived,
				   .deadline = parent->deadline,
				   .hash = parent->hash,
				   .service = parent->service,
				   .priority = parent->priority};
	return r;
}

bool edge_rows_begin(struct edge_busy *b, struct edge_request *r, uint32_t rows)
{
	struct edge *e = b->edge;
	struct edge_rows *w = TAILQ_FIRST(&e->free_rows);

	if (w == NULL)
		return false;
	TAILQ_REMOVE(&e->free_rows, w, entry);
	*w = (struct edge_rows){
		.busy = b, .request = r, .size = (uint32_t)(r->size / rows), .left = rows};
	r->rows = w;
	while (w->n < rows && e->free_request != NULL) {
		struct edge_request *row = rows_add(e, r, w->size, w->n + 1);

		w->row[w->n++] = row;
		if (w->size > e->gather_max && !edge_large_begin(b, row))
			return false;
	}
	return w->n == rows;
}

struct edge_request *edge_rows_at(struct edge_request *r, uint64_t offset)
{
	const struct edge_rows *w = r->rows;

	return likely(w == NULL) || offset / w->size >= w->n ? r : w->row[offset / w->size];
}

/* Bytes of one row. False: no memory, and the request has failed. */
static bool rows_put(struct edge_busy *b, struct edge_request *row, uint64_t offset,
		     struct edge_piece *p, const uint8_t *bytes, uint32_t length)
{
	if (row->large != NULL) {
		if (p != NULL ? edge_large_place(b, row, offset, p, bytes, length)
			      : edge_large_produce(b, row, offset, bytes, length))
			return true;
		edge_request_fail(b, row, LB_NOTICE_BUSY, LB_DROP_NO_MBUF);
		return false;
	}
	if (!edge_request_gather(b, row))
		return false;
	memcpy(rte_pktmbuf_mtod_offset(row->bytes, uint8_t *, offset), bytes, length);
	row->placed += length;
	if (edge_request_is_complete(row))
		rows_wake(b->edge, row->parent->rows);
	return true;
}

void edge_rows_place(struct edge_busy *b, struct edge_request *r, uint64_t offset,
		     struct edge_piece *p, const uint8_t *bytes, uint32_t length)
{
	uint32_t size = r->rows->size;

	r->placed += length;
	while (length > 0) {
		uint64_t at = offset % size;
		uint32_t n = (uint32_t)RTE_MIN((uint64_t)length, size - at);

		/* Without memory the request has failed, and its rows end. */
		if (!rows_put(b, r->rows->row[offset / size], at, p, bytes, n))
			return;
		offset += n;
		bytes += n;
		length -= n;
	}
}

/* False: the burst is full. */
static bool rows_submit(struct edge *e, struct edge_rows *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		struct edge_request *row = w->row[i];

		if (row->bytes == NULL || row->sent || !edge_request_is_complete(row))
			continue;
		if (e->lc->burst.n >= LB_BURST - 1)
			return false;
		edge_request_submit(w->busy, row);
	}
	return true;
}

/* --- the end -----------------------------------------------------------------------------------
 */

void edge_rows_end(struct edge_request *r)
{
	r->rows->ends = true;
	rows_wake(r->rows->busy->edge, r->rows);
}

/* The worker that has the row is told, if there is room; without, its answer is dropped. */
static void rows_cancel(struct edge *e, const struct edge_rows *w, const struct edge_request *row)
{
	if (row->sent && !row->answered && e->n_cancels < EDGE_CANCELS)
		e->cancel[e->n_cancels++] =
			(struct edge_cancel){.handle = w->busy->connection->handle,
					     .tag = edge_tag(row),
					     .service = row->service};
}

void edge_rows_free(struct edge *e, struct edge_request *r, bool counted)
{
	struct edge_rows *w = r->rows;

	for (uint32_t i = 0; i < w->n; i++) {
		if (counted && w->row[i]->bytes != NULL)
			edge_let_go(w->busy, 1);
		edge_request_free(e, w->row[i]);
	}
	if (counted)
		edge_release_answer(e, w->busy, w->packets);
	if (w->waits)
		TAILQ_REMOVE(&e->rows, w, entry);
	TAILQ_INSERT_HEAD(&e->free_rows, w, entry);
	r->rows = NULL;
}

/* It was refused: its rows are taken apart. */
static void rows_finish(struct edge *e, struct edge_rows *w)
{
	struct edge_connection *c = w->busy->connection;

	for (uint32_t i = 0; i < w->n; i++)
		rows_cancel(e, w, w->row[i]);
	edge_rows_free(e, w->request, true);
	edge_advance(e, c);
	edge_touch(e, c);
}

void edge_rows_run(struct edge *e)
{
	struct edge_rows *w;

	while ((w = TAILQ_FIRST(&e->rows)) != NULL) {
		if (w->ends) {
			rows_finish(e, w);
			continue;
		}
		if (!rows_submit(e, w))
			return;
		TAILQ_REMOVE(&e->rows, w, entry);
		w->waits = false;
	}
}

/* --- replies -----------------------------------------------------------------------------------
 */

/* All rows are answered: one reply. */
static bool rows_join(struct edge *e, struct edge_connection *c, struct edge_request *r)
{
	struct edge_rows *w = r->rows;
	struct stream_reply reply = {
		.request = r->number, .tag = r->tag, .rows = w->n, .ends = w->end};
	struct rte_mbuf *head = NULL, *tail = NULL;
	uint32_t bytes = 0;

	edge_release_answer(e, w->busy, w->packets);
	for (uint32_t i = 0; i < w->n; i++) {
		struct rte_mbuf *m = w->row[i]->answer;

		bytes += m->pkt_len;
		w->end[i] = bytes;
		w->row[i]->answer = NULL;
		edge_append(&head, &tail, m);
	}
	head->pkt_len = reply.length = bytes;
	head->nb_segs = (uint16_t)w->packets;
	w->packets = 0;
	return edge_rewrite_reply(e, c, r, &reply, head);
}

bool edge_rows_reply(struct edge *e, struct edge_connection *c, struct edge_request *row,
		     struct rte_mbuf *m, bool more)
{
	struct edge_request *r = row->parent;
	struct edge_rows *w = r->rows;

	if (r->answered) {
		rte_pktmbuf_free(m);
		return false;
	}
	/* A row's reply is not a stream, and all have to be one chain. */
	if (more || w->packets + m->nb_segs > UINT16_MAX) {
		rte_pktmbuf_free(m);
		edge_request_fail(c->busy, row, LB_NOTICE_MODEL_ERROR, LB_DROP_REPLY_TOO_LARGE);
		return false;
	}
	row->answer = m;
	row->answered = true;
	w->packets += m->nb_segs;
	edge_hold_answer(e, c->busy, m->nb_segs);
	return --w->left > 0 || rows_join(e, c, r);
}
