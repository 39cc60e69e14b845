/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Batches: a client's request of several rows is as many requests for the walk, which workers may
 * answer in any order. Their replies, in the order of rows, are the reply of the whole. One that
 * fails ends all. A batch that ends early is taken apart in the next turn, as its rows may be in
 * the lists that are walked through now.
 *
 * A request of a few hundred bytes can have as many rows as a turn has time for. So batches take
 * turns, and what is done with rows in one turn is bounded.
 */
#include "edge/edge_private.h"

#include <errno.h>

#include <rte_malloc.h>

#include "packet/notice.h"

/* Work for a row: whose reply is joined, or that is freed; and one that is sent. */
#define ROWS_WORK   4
#define ROWS_SUBMIT 32
/* Bytes of a row's reply that is copied: of shorter ones a packet has some. */
#define ROWS_SHORT 256
/* Rows that a batch sends before others do. */
#define ROWS_TOGETHER 16u
/* A client may have so many batches at least. */
#define ROWS_BATCHES_MIN 4u
/* ms without a byte of one that is not complete: where others find no room it ends. */
#define ROWS_SLOW_MS 1000

int edge_rows_init(struct edge *e)
{
	TAILQ_INIT(&e->rows);
	TAILQ_INIT(&e->free_rows);
	TAILQ_INIT(&e->used_rows);
	e->rows_left = EDGE_WORK_LEAST;
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

void edge_rows_end_turn(struct edge *e)
{
	e->rows_left = EDGE_WORK_LEAST;
}

/* There is something to do in the next turn. */
static void rows_wake(struct edge *e, struct edge_rows *w)
{
	if (w->waits)
		return;
	w->waits = true;
	TAILQ_INSERT_TAIL(&e->rows, w, entry);
}

static void rows_sleep(struct edge *e, struct edge_rows *w)
{
	TAILQ_REMOVE(&e->rows, w, entry);
	w->waits = false;
}

/* --- room for batches ---------------------------------------------------------------------------
 */

/* The last eighth of the batches is for clients that have none. */
static bool rows_has_share(const struct edge *e, const struct edge_client *client, uint32_t rows)
{
	uint32_t batches = EDGE_ROWS * e->known->tcp.client_percent / 100;

	if (client->batches == 0)
		return true;
	return client->batches < RTE_MAX(batches, ROWS_BATCHES_MIN) &&
	       e->n_batches < EDGE_ROWS - EDGE_ROWS / 8 && client->rows + rows <= e->share;
}

/* A quarter of the requests is for those without rows. */
static bool rows_has_room(const struct edge *e, uint32_t rows)
{
	return !TAILQ_EMPTY(&e->free_rows) &&
	       (e->n_rows == 0 || e->n_rows + rows <= e->budget - e->budget / 4);
}

/* Others find no room: the oldest batch whose client has stopped in the middle ends. */
static void rows_press(struct edge *e)
{
	struct edge_rows *w;

	TAILQ_FOREACH (w, &e->used_rows, used) {
		if (w->busy == NULL || w->ends || edge_request_is_complete(w->request) ||
		    e->stack.now_ms - w->moved_ms < ROWS_SLOW_MS)
			continue;
		w->moved_ms = e->stack.now_ms;
		edge_count_drop(e, w->busy->connection, LB_DROP_TCP_SLOW);
		tcp_abort(&w->busy->connection->tcp);
		return edge_touch(e, w->busy->connection);
	}
}

/* Its rows have their replies, or are not waited for. */
static void rows_uncount(struct edge_rows *w)
{
	w->busy->client->rows -= w->n;
}

static void rows_give_back(struct edge *e, struct edge_rows *w)
{
	if (w->waits)
		rows_sleep(e, w);
	TAILQ_REMOVE(&e->used_rows, w, used);
	TAILQ_INSERT_HEAD(&e->free_rows, w, entry);
	e->n_batches--;
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

/* Where the bytes of a row begin in the request, and how many there are. */
static uint64_t rows_start(const struct edge_rows *w, uint32_t row)
{
	if (likely(!w->differ))
		return (uint64_t)w->size * row;
	return row == 0 ? 0 : w->end[row - 1];
}

static uint32_t rows_size(const struct edge_rows *w, uint32_t row)
{
	return likely(!w->differ) ? w->size : w->end[row] - (uint32_t)rows_start(w, row);
}

/* The row that has this byte of the request; or one behind the last. */
static uint64_t rows_with(const struct edge_rows *w, uint64_t offset)
{
	uint32_t from = 0, to = w->n;

	if (likely(!w->differ))
		return offset / w->size;
	while (from < to) {
		uint32_t middle = (from + to) / 2;

		if (w->end[middle] <= offset)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Takes over where rows end that differ in length. */
static void rows_copy_ends(struct edge *e, struct edge_rows *w, uint32_t rows)
{
	w->differ = true;
	memcpy(w->end, e->kserve->row_ends, rows * sizeof(w->end[0]));
	w->size = 0;
	for (uint32_t i = 0; i < rows; i++)
		w->size = RTE_MAX(w->size, rows_size(w, i));
}

/* False: no memory. What there was of it is the batch's. */
static bool rows_add_all(struct edge *e, struct edge_rows *w, uint32_t rows)
{
	while (w->n < rows && e->free_request != NULL) {
		uint32_t size = rows_size(w, w->n);
		struct edge_request *row = rows_add(e, w->request, size, w->n + 1);

		w->row[w->n++] = row;
		if (size > e->gather_max && !edge_large_begin(w->busy, row))
			break;
	}
	e->n_rows += w->n;
	w->busy->client->rows += w->n;
	return w->n == rows;
}

void edge_rows_begin(struct edge_busy *b, struct edge_request *r, const struct stream_begin *begin)
{
	uint32_t rows = begin->rows;
	struct edge *e = b->edge;
	struct edge_rows *w = TAILQ_FIRST(&e->free_rows);

	e->kserve->text_left -= (int32_t)(rows * KSERVE_ROW_WORK);
	if (!rows_has_share(e, b->client, rows))
		return edge_request_fail(b, r, LB_NOTICE_BUSY, LB_DROP_TCP_CLIENT);
	if (!rows_has_room(e, rows)) {
		rows_press(e);
		return edge_request_fail(b, r, LB_NOTICE_BUSY, LB_DROP_NO_MBUF);
	}
	TAILQ_REMOVE(&e->free_rows, w, entry);
	TAILQ_INSERT_TAIL(&e->used_rows, w, used);
	*w = (struct edge_rows){.used = w->used,
				.busy = b,
				.request = r,
				.handle = b->connection->handle,
				.size = (uint32_t)(r->size / rows),
				.left = rows,
				.moved_ms = e->stack.now_ms};
	w->last_ready = &w->ready;
	if (unlikely(begin->rows_differ))
		rows_copy_ends(e, w, rows);
	e->n_batches++;
	b->client->batches++;
	r->rows = w;
	if (!rows_add_all(e, w, rows))
		edge_request_fail(b, r, LB_NOTICE_BUSY, LB_DROP_NO_MBUF);
}

struct edge_request *edge_rows_at(struct edge_request *r, uint64_t offset)
{
	const struct edge_rows *w = r->rows;

	uint64_t row;

	if (likely(w == NULL))
		return r;
	row = rows_with(w, offset);
	return row >= w->n ? r : w->row[row];
}

/* All bytes of the row have come. */
static void rows_is_ready(struct edge *e, struct edge_rows *w, struct edge_request *row)
{
	row->next = NULL;
	*w->last_ready = row;
	w->last_ready = &row->next;
	rows_wake(e, w);
}

/* Bytes of one row. False: no memory, and the request has failed. */
static bool rows_put(struct edge_busy *b, struct edge_request *row, uint64_t offset,
		     struct edge_piece *p, const uint8_t *bytes, uint32_t length)
{
	struct edge_rows *w = row->parent->rows;
	bool first = row->bytes == NULL;

	if (row->large != NULL) {
		if (p != NULL ? edge_large_place(b, row, offset, p, bytes, length)
			      : edge_large_produce(b, row, offset, bytes, length))
			return true;
		edge_request_fail(b, row, LB_NOTICE_BUSY, LB_DROP_NO_MBUF);
		return false;
	}
	if (!edge_request_gather(b, row))
		return false;
	w->gathered += first;
	memcpy(rte_pktmbuf_mtod_offset(row->bytes, uint8_t *, offset), bytes, length);
	row->placed += length;
	if (edge_request_is_complete(row))
		rows_is_ready(b->edge, w, row);
	return true;
}

void edge_rows_place(struct edge_busy *b, struct edge_request *r, uint64_t offset,
		     struct edge_piece *p, const uint8_t *bytes, uint32_t length)
{
	const struct edge_rows *w = r->rows;
	uint32_t row = (uint32_t)rows_with(w, offset);

	r->placed += length;
	r->rows->moved_ms = b->edge->stack.now_ms;
	for (; length > 0; row++) {
		uint64_t at = offset - rows_start(w, row);
		uint32_t n = (uint32_t)RTE_MIN((uint64_t)length, rows_size(w, row) - at);

		/* Without memory the request has failed, and its rows end. */
		if (!rows_put(b, w->row[row], at, p, bytes, n))
			return;
		offset += n;
		bytes += n;
		length -= n;
	}
}

/* Some of the rows that are complete. False: the burst is full. */
static bool rows_submit(struct edge *e, struct edge_rows *w)
{
	for (unsigned int left = ROWS_TOGETHER;
	     left > 0 && w->ready != NULL && edge_may_work(e, e->rows_left); left--) {
		struct edge_request *row = w->ready;

		if (e->lc->burst.n >= LB_BURST - 1)
			return false;
		w->ready = row->next;
		if (w->ready == NULL)
			w->last_ready = &w->ready;
		w->gathered--;
		edge_work(e, &e->rows_left, ROWS_SUBMIT);
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

/* Gives back the places of rows in workers' memory, as far as there is time: <rows> of them. */
static void rows_end_places(struct edge *e, struct edge_rows *w, uint32_t rows)
{
	if (w->size <= e->gather_max)
		w->ended = w->n;
	for (; rows > 0 && w->ended < w->n; rows--) {
		edge_large_end(e, w->row[w->ended++]);
		edge_work(e, &e->rows_left, ROWS_WORK);
	}
}

void edge_rows_leave(struct edge *e, struct edge_request *r, bool counted)
{
	struct edge_rows *w = r->rows;

	r->rows = NULL;
	/* Those that are larger than a packet know their connection. */
	rows_end_places(e, w, UINT32_MAX);
	edge_bury(e, w->head);
	w->head = NULL;
	if (counted) {
		edge_let_go(w->busy, w->gathered);
		edge_release_answer(e, w->busy, w->packets);
	}
	rows_uncount(w);
	w->busy->client->batches--;
	w->busy = NULL;
	w->request = NULL;
	if (w->n == 0)
		rows_give_back(e, w);
	else
		rows_wake(e, w);
}

/* It was refused, or its connection is gone: its rows are taken apart. */
static void rows_finish(struct edge *e, struct edge_rows *w)
{
	struct edge_connection *c = w->busy->connection;

	while (w->ended < w->n) {
		if (!edge_may_work(e, e->rows_left))
			return;
		rows_end_places(e, w, 1);
	}
	edge_rows_leave(e, w->request, true);
	if (c->tcp.state != TCP_CLOSED)
		edge_advance(e, c);
	edge_touch(e, c);
}

bool edge_rows_end_all(struct edge_busy *b)
{
	bool any = false;

	for (struct edge_request *r = b->first; r != NULL; r = r->next) {
		if (r->rows == NULL || r->rows->size <= b->edge->gather_max)
			continue;
		/* Nothing that still comes of it is taken. */
		r->answered = true;
		edge_rows_end(r);
		any = true;
	}
	return any;
}

/* The worker that has the row is told. False: there is no room for that now. */
static bool rows_cancel(struct edge *e, const struct edge_rows *w, const struct edge_request *row)
{
	if (!row->sent || row->answered)
		return true;
	if (e->n_cancels == EDGE_CANCELS)
		return false;
	e->cancel[e->n_cancels++] = (struct edge_cancel){
		.handle = w->handle, .tag = edge_tag(row), .service = row->service};
	return true;
}

/* False: there is no room for cancels now. */
static bool rows_free(struct edge *e, struct edge_rows *w)
{
	for (; w->freed < w->n && edge_may_work(e, e->rows_left); w->freed++) {
		if (!rows_cancel(e, w, w->row[w->freed]))
			return false;
		edge_request_free(e, w->row[w->freed]);
		edge_work(e, &e->rows_left, ROWS_WORK);
		e->n_rows--;
	}
	if (w->freed == w->n)
		rows_give_back(e, w);
	return true;
}

/* --- replies -----------------------------------------------------------------------------------
 */

/* May a short reply be copied to the end of the packet? Others refer to none of both. */
static bool rows_fits(const struct rte_mbuf *tail, const struct rte_mbuf *m)
{
	return tail != NULL && m->nb_segs == 1 && m->data_len <= ROWS_SHORT &&
	       RTE_MBUF_DIRECT(tail) && rte_mbuf_refcnt_read(tail) == 1 &&
	       rte_pktmbuf_tailroom(tail) >= m->data_len;
}

/* The reply of a row behind those before it. A packet for each would take longer to be sent than
 * many short ones to be copied. */
static void rows_append(struct edge *e, struct edge_rows *w, struct rte_mbuf *m)
{
	if (!rows_fits(w->tail, m))
		return edge_append(&w->head, &w->tail, m);
	memcpy(rte_pktmbuf_mtod_offset(w->tail, uint8_t *, w->tail->data_len),
	       rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	w->tail->data_len += m->data_len;
	rte_pktmbuf_free(m);
	edge_release_answer(e, w->busy, 1);
	w->packets--;
}

/* Some of the replies, one behind the other. */
static void rows_join_some(struct edge *e, struct edge_rows *w)
{
	for (; w->joined < w->n && edge_may_work(e, e->rows_left); w->joined++) {
		struct rte_mbuf *m = w->row[w->joined]->answer;

		w->bytes += m->pkt_len;
		w->end[w->joined] = w->bytes;
		w->row[w->joined]->answer = NULL;
		rows_append(e, w, m);
		edge_work(e, &e->rows_left, ROWS_WORK);
	}
}

/* All rows are answered: one reply. False: there is no time to join all of them now. */
static bool rows_join(struct edge *e, struct edge_rows *w)
{
	struct edge_connection *c = w->busy->connection;
	struct edge_request *r = w->request;
	struct stream_reply reply = {
		.request = r->number, .tag = r->tag, .rows = w->n, .ends = w->end};
	struct rte_mbuf *head;

	rows_join_some(e, w);
	if (w->joined < w->n)
		return false;
	head = w->head;
	w->head = NULL;
	for (; w->freed < w->n; w->freed++)
		edge_request_free(e, w->row[w->freed]);
	edge_release_answer(e, w->busy, w->packets);
	head->pkt_len = reply.length = w->bytes;
	head->nb_segs = (uint16_t)w->packets;
	e->n_rows -= w->n;
	rows_uncount(w);
	w->packets = w->n = 0;
	edge_rewrite_reply(e, c, r, &reply, head);
	return true;
}

bool edge_rows_reply(struct edge *e, struct edge_connection *c, struct edge_request *row,
		     struct rte_mbuf *m, bool more)
{
	struct edge_request *r = row->parent;
	struct edge_rows *w = r->rows;

	if (r->answered) {
		edge_bury(e, m);
		return false;
	}
	/* A row's reply is not a stream, and all have to be one chain. */
	if (more || w->packets + m->nb_segs > UINT16_MAX ||
	    m->pkt_len > lcore_service_config(e->lc, r->service)->max_reply) {
		edge_bury(e, m);
		edge_request_fail(c->busy, row, LB_NOTICE_MODEL_ERROR, LB_DROP_REPLY_TOO_LARGE);
		return false;
	}
	row->answer = m;
	row->answered = true;
	w->packets += m->nb_segs;
	if (unlikely(c->busy->client->replies >= e->share))
		edge_press(e, c->busy->client);
	edge_hold_answer(e, c->busy, m->nb_segs);
	if (--w->left == 0)
		rows_wake(e, w);
	return true;
}

/* --- turns --------------------------------------------------------------------------------------
 */

/* It has the first turn of the next iteration. */
static bool rows_wait(struct edge *e, struct edge_rows *w)
{
	w->waits = true;
	TAILQ_INSERT_HEAD(&e->rows, w, entry);
	return false;
}

/* False: nothing more can be done now. */
static bool rows_go_on(struct edge *e, struct edge_rows *w)
{
	if (w->busy == NULL)
		return rows_free(e, w);
	if (w->ends) {
		rows_finish(e, w);
		return true;
	}
	rows_sleep(e, w);
	if (w->left == 0)
		return rows_join(e, w) || rows_wait(e, w);
	if (!rows_submit(e, w))
		return rows_wait(e, w);
	if (w->ready != NULL)
		rows_wake(e, w);
	return true;
}

void edge_rows_drain(struct edge *e)
{
	while (!TAILQ_EMPTY(&e->rows)) {
		e->rows_left = INT32_MAX;
		e->n_cancels = 0;
		edge_rows_run(e);
	}
}

void edge_rows_run(struct edge *e)
{
	struct edge_rows *w;

	while (edge_may_work(e, e->rows_left) && (w = TAILQ_FIRST(&e->rows)) != NULL &&
	       rows_go_on(e, w))
		;
}
