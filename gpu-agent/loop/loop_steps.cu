/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The turn of the loop on a GPU for a model whose replies come in pieces. What loop_steps.c does on
 * a CPU: a request has a row of the batch until its reply is complete; each turn sends the pieces
 * that the model has made, lets requests join the free rows, and goes on as soon as the model has
 * something to do. One block; thread i has row i.
 *
 *   row     is left for
 *
 *   free    open: a request was taken
 *   open    ran: the model runs with it, for the first time, again, or to be told that it is gone
 *           due: it was bad, late, cancelled or of a dead link before the model knew of it
 *   ran     due: there is a piece to send, or the end of a request that is gone
 *           open: the model has nothing to send yet
 *   due     open, or free behind the last piece: the piece was posted
 *
 * The model makes a piece in its own output, so it runs on while the piece before it is on its way.
 * But both are sent from the same reply buffer: a piece is due until that one was acknowledged, or
 * its link is dead, and the row waits for it. No other row does.
 */
#include "loop/loop_gather.cuh"

/* The block's, beside struct turn and struct block0. */
struct steps {
	uint32_t free[GPU_BATCH_MAX / WARP]; /* masks of the free rows */
	uint32_t n_open;                     /* rows before the poll */
	uint32_t rows;                       /* behind the last row that runs */
	uint32_t crc_length;                 /* of the request that is checked */
	bool crc_wanted;
	bool stop;
};

/* --- what the model has made -------------------------------------------------------------------
 */

/* The reply ends without more bytes. */
static __device__ void steps_end(struct gpu_row *row, uint8_t status, uint64_t start_ns,
				 uint64_t done_ns)
{
	row->due = row->last = true;
	row->stepped = false;
	row->length = 0;
	row->status = status;
	row->start_ns = start_ns;
	row->done_ns = done_ns;
}

/* The model has said in its last run what becomes of the row. */
static __device__ void steps_settle(const struct gpu_loop *g, const struct gpu_steps *s,
				    struct gpu_row *row, uint64_t start_ns, uint64_t done_ns)
{
	const struct agent_model_gpu *m = &g->model;
	uint32_t i = threadIdx.x, length;
	uint8_t status;

	if (!row->ran)
		return;
	row->ran = false;
	if (row->ending != RING_OK)
		return steps_end(row, row->ending, start_ns, done_ns);
	if (m->statuses != NULL && m->statuses[i] != 0)
		return steps_end(row, RING_ERROR, start_ns, done_ns);
	length = reply_length(g, &row->request, &status);
	row->stepped = m->row_more[i] != 0;
	/* No place for this piece, or for the end behind it. */
	if (status != RING_OK || (row->stepped && row->chunks + 1 >= s->max_pieces)) {
		row->ending = RING_ERROR;
		return;
	}
	row->due = length > 0 || !row->stepped;
	row->last = !row->stepped;
	row->length = length;
	row->status = RING_OK;
	row->start_ns = start_ns;
	row->done_ns = done_ns;
}

/* --- requests ----------------------------------------------------------------------------------
 */

/* Warp 0: the heartbeat, the stop word, and requests for the free rows. */
static __device__ void steps_poll(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				  struct steps *x)
{
	uint32_t shift = poll_shift(g), stop = 0, missed, left, before, first = t->n;
	uint64_t now = __shfl_sync(ALL_LANES, globaltimer_ns(), 0);

	if (now >= b->carried.next_heartbeat)
		post_heartbeats(g, b, t, now);
	do {
		before = t->n;
		missed = left = 0;
		for (uint32_t base = 0; base < g->n_links; base += DESCRIPTORS_PER_POLL >> shift) {
			uint32_t result = poll_descriptors(g, b, t, base, shift, now, &stop, false,
							   true);

			missed |= result & (POLL_MORE | POLL_LEFT);
			left += result >> POLL_SHIFT;
		}
	} while (missed & POLL_MORE && t->n > before && t->n < g->max_batch);
	stop = __any_sync(ALL_LANES, stop);
	__syncwarp();
	if (threadIdx.x != 0)
		return;
	x->stop = stop;
	t->left_some = missed != 0;
	b->carried.unread = unread_left(b->carried.unread, t->n - first, missed, left);
	if (t->n > first)
		look_behind(g, b, t);
}

/* Read all completions. Thread l does link l. */
static __device__ void steps_reap(const struct gpu_loop *g, struct block0 *b)
{
	struct agent_link *link = &b->links[threadIdx.x % AGENT_LINKS_MAX];
	uint32_t before;

	if (threadIdx.x >= g->n_links)
		return;
	link->built = 0; /* what the poll has counted: WQEs are built for pieces, not requests */
	do {
		before = link->queue.cq_index;
		reap_completion(b, link);
	} while (link->queue.cq_index != before);
}

static __device__ void steps_check_crcs(const struct gpu_loop *g, struct steps *x,
					struct gpu_row *row, bool joins)
{
	const struct gpu_request *r = &row->request;
	bool wanted = joins && r->status == RING_OK && r->flags & RING_HAS_CRC;

	if (!__syncthreads_or(wanted))
		return;
	for (uint32_t i = 0; i < g->max_batch; i++) {
		if (threadIdx.x == i) {
			x->crc_wanted = wanted;
			x->crc_length = r->length;
		}
		__syncthreads();
		if (x->crc_wanted) {
			uint32_t sum =
				crc32_of((uint8_t *)g->model.input + i * g->model.input_stride,
					 x->crc_length);

			if (threadIdx.x == i && sum != r->crc32)
				row->request.status = RING_BAD;
		}
		__syncthreads();
	}
}

/* The requests that the poll has taken join the free rows, the lowest first, and their payloads are
 * copied to the model's input. */
static __device__ void steps_join(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				  struct steps *x, struct gpu_row *row)
{
	uint32_t i = threadIdx.x, warp = i / WARP, lower = (1u << i % WARP) - 1, rank;
	bool free = i < g->max_batch && !row->open, joins;
	uint32_t mask = __ballot_sync(ALL_LANES, free);
	struct span mine = {};

	if (t->n == x->n_open)
		return;
	if (warp < GPU_BATCH_MAX / WARP && i % WARP == 0)
		x->free[warp] = mask;
	__syncthreads();
	rank = __popc(mask & lower);
	for (uint32_t w = 0; w < warp && w < GPU_BATCH_MAX / WARP; w++)
		rank += __popc(x->free[w]);
	joins = free && rank < t->n - x->n_open;
	if (joins) {
		*row = (struct gpu_row){.request = t->request[x->n_open + rank]};
		row->request.row = i;
		/* Half of the descriptor may have been older than its mark. */
		reread_descriptor(g, &b->links[row->request.link], &row->request);
		joins = row->open = row->request.slot != GPU_NO_SLOT;
		if (!joins)
			atomicAdd((unsigned long long *)&b->carried.stats.bad, 1);
	}
	if (joins && row->request.status == RING_OK)
		mine = input_of(g, b->links, &row->request);
	copy_spans(&t->spans, g->max_batch, mine, 0, 1);
	__syncthreads();
	steps_check_crcs(g, x, row, joins);
}

/* Has it to end early? What the model has made last is sent all the same. */
static __device__ void steps_end_early(const struct block0 *b, struct gpu_row *row)
{
	const struct gpu_request *r = &row->request;
	const struct agent_link *link = &b->links[r->link];
	uint64_t now;

	if (!row->open || (row->due && row->last))
		return;
	if (row->ending == RING_OK) {
		if (link->dead)
			row->ending = RING_CANCELLED;
		else if (r->status != RING_OK)
			row->ending = r->status;
		else if (relaxed_sys(&link->cancels[r->slot]) == r->sequence)
			row->ending = RING_CANCELLED;
		else if (!row->stepped && is_expired(r)) /* later its client cancels it */
			row->ending = RING_EXPIRED;
	}
	if (row->ending == RING_OK)
		return;
	row->due = false; /* nobody wants it */
	now = globaltimer_ns();
	if (!row->stepped)
		steps_end(row, row->ending, now, now);
}

/* --- pieces ------------------------------------------------------------------------------------
 */

static __device__ void steps_count(struct agent_loop_stats *stats, uint8_t status)
{
	uint64_t *by = status == RING_ERROR       ? &stats->errors
		       : status == RING_EXPIRED   ? &stats->expired
		       : status == RING_CANCELLED ? &stats->cancelled
		       : status == RING_BAD       ? &stats->bad
						  : NULL;

	atomicAdd((unsigned long long *)&stats->requests, 1);
	if (by != NULL)
		atomicAdd((unsigned long long *)by, 1);
}

/* The WQE of the piece. The last one of a link asks for a CQE, which is one for all before it. */
static __device__ void steps_build(struct agent_link *link, const struct gpu_row *row,
				   uint32_t ahead)
{
	const struct gpu_request *r = &row->request;
	struct mlx5_write write = {
		.remote_address = link->remote_address + (uint64_t)r->reply * RING_ALIGNMENT +
				  (uint64_t)row->chunks * link->chunk,
		.local_address = (uint64_t)reply_at(link, r->slot),
		.rkey = link->remote_rkey,
		.lkey = link->lkey,
		.length = (uint32_t)sizeof(struct ring_reply) + row->length,
		.imm = ring_imm(r->slot, row->status, !row->last),
		.with_imm = true,
		.signal = ahead + 1 == link->built,
	};

	mlx5_wqe_build(&link->queue, ahead, &write);
}

/* The piece was posted, or its link is dead. */
static __device__ void steps_sent(struct block0 *b, struct gpu_row *row, bool posted)
{
	row->due = false;
	row->chunks++;
	row->pending = posted;
	row->open = !row->last;
	if (row->last)
		steps_count(&b->carried.stats, row->status);
}

/* Post the pieces that are due: those for which the queue has room, and whose reply buffer is free.
 */
static __device__ void steps_send(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				  struct gpu_row *row)
{
	const struct gpu_request *r = &row->request;
	struct agent_link *link = &b->links[r->link];
	uint32_t i = threadIdx.x, ahead = 0, n, open = __syncthreads_count(row->open);
	struct span mine = {};
	bool sends;

	row->pending =
		row->pending && !link->dead && (int16_t)(link->queue.consumer - row->wqe) <= 0;
	if (row->due && link->dead)
		steps_sent(b, row, false);
	sends = row->due && !row->pending;
	if (sends) {
		ahead = atomicAdd(&link->built, 1);
		sends = ahead < mlx5_room(&link->queue);
		row->wqe = sends ? (uint16_t)(link->queue.producer + ahead) : row->wqe;
	}
	n = __syncthreads_count(sends);
	if (i < g->n_links) {
		b->links[i].built = min(b->links[i].built, mlx5_room(&b->links[i].queue));
		b->open[i] = b->links[i].built > 0;
	}
	if (n == 0)
		return;
	if (sends) {
		mine.from = (const uint8_t *)g->model.output + i * g->model.output_stride;
		mine.to = reply_at(link, r->slot) + sizeof(struct ring_reply);
		mine.length = row->length;
	}
	copy_spans(&t->spans, g->max_batch, mine, 0, 1);
	__syncthreads();
	if (sends) {
		write_header(reply_header_at(link, r->slot), r, row->length,
			     open - n + b->carried.unread, row->start_ns, row->done_ns,
			     row->chunks);
		steps_build(link, row, ahead);
	}
	__syncthreads();
	ring_batch(g, b);
	if (sends)
		steps_sent(b, row, true);
}

/* --- a turn ------------------------------------------------------------------------------------
 */

/* The row's state in the next run. When the loop <stops> the model frees what it has. */
static __device__ enum agent_row steps_choose(const struct gpu_row *row, bool stops)
{
	if (!row->open || (stops && !row->stepped))
		return AGENT_ROW_NONE;
	if (stops)
		return AGENT_ROW_GONE;
	if (row->due)
		return AGENT_ROW_NONE;
	if (row->ending != RING_OK)
		return AGENT_ROW_GONE;
	return row->stepped ? AGENT_ROW_NEXT : AGENT_ROW_NEW;
}

/* Go on until the model has something to do, or the loop stops. */
static __device__ enum agent_row steps_wait(const struct gpu_loop *g, struct block0 *b,
					    struct turn *t, struct steps *x, struct gpu_row *row)
{
	uint32_t published = UINT32_MAX; /* rows that were open then */
	enum agent_row state;

	do {
		uint32_t open = __syncthreads_count(row->open);

		if (threadIdx.x < WARP && open != published)
			publish_stats(g, b);
		published = open;
		if (threadIdx.x == 0)
			t->n = x->n_open = open;
		__syncthreads();
		if (threadIdx.x < WARP)
			steps_poll(g, b, t, x);
		__syncthreads();
		steps_reap(g, b);
		__syncthreads();
		count_unread(g, b, t, read_mark(g, b, t));
		steps_join(g, b, t, x, row);
		steps_end_early(b, row);
		steps_send(g, b, t, row);
		state = steps_choose(row, x->stop);
	} while (!__syncthreads_or(state != AGENT_ROW_NONE) && !x->stop);
	return state;
}

/* Tell the model and the next turn. */
static __device__ void steps_publish(const struct gpu_loop *g, const struct gpu_steps *s,
				     struct block0 *b, struct steps *x, struct gpu_row *row,
				     enum agent_row state)
{
	uint32_t i = threadIdx.x;

	if (i == 0)
		x->rows = 0;
	__syncthreads();
	if (state != AGENT_ROW_NONE)
		atomicMax(&x->rows, i + 1);
	if (state == AGENT_ROW_NEW)
		g->lengths[i] = row->request.length;
	row->ran = state != AGENT_ROW_NONE;
	if (i < g->max_batch) {
		s->states[i] = state;
		s->row[i] = *row;
	}
	__syncthreads();
	if (i == 0) {
		g->state->batch.rows = x->rows;
		g->state->batch.stopped = x->stop;
		g->state->start_ns = globaltimer_ns();
		b->carried.stats.batches += x->rows > 0;
	}
	store_carried(g, b, GPU_BLOCK);
}

static __global__ void __launch_bounds__(GPU_BLOCK)
	steps_turn(const __grid_constant__ struct gpu_loop g,
		   const __grid_constant__ struct gpu_steps s)
{
	__shared__ struct turn t;
	__shared__ struct block0 b;
	__shared__ struct steps x;
	uint64_t done_ns = globaltimer_ns(), start_ns = g.state->start_ns;
	uint32_t i = threadIdx.x;
	struct gpu_row row = {};

	if (g.state->batch.stopped) { /* the model was told in the last run */
		if (i < g.max_batch)
			s.states[i] = AGENT_ROW_NONE;
		if (i == 0)
			g.state->batch.rows = 0;
		return;
	}
	copy_words(b.links, g.links, g.n_links);
	copy_words(&b.carried, &g.state->carried, 1);
	if (i < g.max_batch)
		row = s.row[i];
	if (i == 0)
		t.posts_behind = t.unposted = t.short_ahead = false;
	__syncthreads();
	if (i == 0 && g.state->batch.rows > 0)
		b.carried.stats.longest_run_ns =
			max(b.carried.stats.longest_run_ns, done_ns - start_ns);
	steps_settle(&g, &s, &row, start_ns, done_ns);
	enum agent_row state = steps_wait(&g, &b, &t, &x, &row);
	steps_publish(&g, &s, &b, &x, &row, state);
}

static __global__ void steps_again(const __grid_constant__ struct gpu_loop g)
{
	if (!g.state->batch.stopped)
		launch_again(&g);
}

extern "C" cudaError_t gpu_steps_turn(const struct gpu_loop *loop, const struct gpu_steps *steps,
				      cudaStream_t stream)
{
	steps_turn<<<1, GPU_BLOCK, 0, stream>>>(*loop, *steps);
	return cudaGetLastError();
}

extern "C" cudaError_t gpu_steps_again(const struct gpu_loop *loop, cudaStream_t stream)
{
	steps_again<<<1, 1, 0, stream>>>(*loop);
	return cudaGetLastError();
}
