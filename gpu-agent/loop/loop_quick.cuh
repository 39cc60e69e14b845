/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu,
 * inlined.
 *
 * The shortcut "quick" for a small request that comes alone: as soon as warp 0 of block 0 sees its
 * mark, the other warps fetch it. While it crosses the bus, warp 0 takes it from the ring and
 * builds its WQE. After the model only the reply's bytes, its header and the doorbell are left. A
 * request that does not qualify goes the way of all batches. The state table is in loop_kernels.cu.
 *
 *   warp 0        sees the mark    takes, builds its WQE, publishes it
 *   other warps   wait         fetch ---------------- confirm, store
 *   barrier                  AHEAD                                 VERDICT
 */
#ifndef AGENT_LOOP_QUICK_CUH
#define AGENT_LOOP_QUICK_CUH

#include "loop/loop_ahead.cuh"

/* True when the batch is exactly the one request that is being fetched, or, if its model works in
 * place, confirmed. */
static __device__ bool is_quick(const struct gpu_loop *g, const struct turn *t)
{
	const struct gpu_request *r = &t->request[0];

	return (t->n == 1) & (t->rows == 1) & ((r->length <= QUICK_MAX) | g->model.in_place) &
	       !(r->flags & RING_HAS_CRC) & is_first_request(&t->first, t);
}

/* A reply as far as thread 0 knows it before the model has run. */
struct quick_reply {
	struct ring_reply *header;
	uint32_t length;
};

/* One thread: build the WQE before the model has run. False when the queue has no room, when the
 * reply is not known yet or is an error (errors are counted elsewhere), or when the block could not
 * copy the reply in one step. */
static __device__ bool quick_build(const struct gpu_loop *g, struct agent_link *link,
				   const struct gpu_request *r, struct quick_reply *reply)
{
	bool full = mlx5_room(&link->queue) < link->built;
	uint8_t status;

	reply->header = reply_header_at(link, r->slot);
	if (!g->reply_known | link->dead | full)
		return false;
	reply->length = reply_length(g, r, &status);
	if (status != RING_OK ||
	    (!r->in_place && !g->model.in_place &&
	     (reply->length > QUICK_REPLY_MAX || (uint64_t)g->model.output % 16 != 0)))
		return false;
	build_wqe(link, r, reply->length, status, 0);
	return true;
}

/* One thread: send the prebuilt reply. A barrier has made all its bytes visible. */
static __device__ void quick_post(struct block0 *b, struct agent_link *link, uint64_t start_ns,
				  uint64_t done_ns)
{
	mlx5_ring(&link->queue, 1);
	link->built = 0;
	count_batch(&b->carried.stats, 1, done_ns - start_ns);
}

/* One thread: leave the prebuilt reply to request <r> to the model, or to the next turn. Nothing is
 * written where the NIC reads replies: the request is not confirmed yet. */
static __device__ void quick_arm(const struct gpu_loop *g, const struct block0 *b,
				 const struct turn *t, const struct gpu_request *r,
				 const struct quick_reply *reply)
{
	const struct mlx5_queue *q = &b->links[r->link].queue;
	uint16_t producer = (uint16_t)(q->producer + 1);

	g->state->post = (struct agent_model_post){
		.header = (uint64_t *)reply->header,
		.bytes = g->model.in_place ? 0 : reply->length,
		.armed = AGENT_POST_ARMED,
		.one_fence = q->bell_counts,
		.doorbell = q->doorbell,
		.bell = mlx5_bell(q, producer),
		.record = &q->record[1],
		.counter = mlx5_be32(producer),
		.sequence = r->sequence,
		.seen_ns = r->seen_ns,
		.start_ns = t->start_ns,
		.sizes = reply_sizes(reply->length, b->carried.unread, 0),
	};
}

/* Warp 0: take a batch. If it is quick, prepare everything but its payload. */
static __device__ void quick_take(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				  struct quick_reply *reply)
{
	struct gpu_request *r = &t->request[0];
	bool quick, aged, asks;

	aged = take_batch(g, b, t);
	quick = is_quick(g, t);
	/* The fetching warps read the cancel word of a quick request, as soon as it is seen; but one
	 * that has waited for others in vain may be cancelled meanwhile. Cancel words of other small
	 * requests cross the bus beside their payloads: to ask first would cost more than a row in
	 * vain. */
	asks = aged && !quick && g->max_request <= QUICK_MAX;
	if (t->needs_recheck || (aged && !asks && !quick) ||
	    (aged && quick && g->batch_timeout_ns > CANCEL_AGE_NS)) {
		__syncwarp(); /* all lanes have read the first request and <rows> */
		choose_rows(g, b, t, aged);
		__syncwarp();
		quick = is_quick(g, t);
		asks = false;
	}
	__syncwarp();
	if (threadIdx.x == 0) {
		t->quick = quick;
		t->asks = asks;
		t->prebuilt = t->answer_now = false;
		r->in_place = quick && may_be_in_place(g, r);
		if (quick) {
			t->start_ns = g->state->start_ns = globaltimer_ns();
			t->prebuilt = quick_build(g, &b->links[r->link], r, reply) &&
				      (!r->in_place || t->answers_left > 0);
			t->answer_now = t->prebuilt && r->in_place;
			t->header = reply->header;
			if (t->prebuilt && !t->answer_now)
				quick_arm(g, b, t, r, reply);
		}
	}
	__syncwarp();
	/* The rest of the turn changes nothing of it: publish and store it while the payload is on its
	 * way. */
	if (quick && !t->answer_now) {
		publish_quick(g, t, b);
		if (threadIdx.x == 0)
			t->stored = true;
	}
}

/*
 * 0, made of all these loads in a way that the compiler does not know: grids have one dimension. What
 * it is part of can only be computed when all of them are on their way. Without that ptxas, when it
 * is short of registers, compares the descriptor before it loads the cancel word, and that before it
 * loads the payload, in the same registers: three trips across the bus instead of one.
 */
template <uint32_t loads>
static __device__ __forceinline__ uint32_t unknown_zero(const struct bytes16 piece[loads],
							 uint64_t word)
{
	uint32_t all = (uint32_t)word;

#pragma unroll
	for (uint32_t i = 0; i < loads; i++)
		all ^= (uint32_t)piece[i].low;
	return all & blockIdx.y;
}

/*
 * One warp's part of fetching a request of at most <loads> * QUICK_STEP bytes, or of none if
 * <length> is 0. Two lanes of a warp that <confirms> read the halves of the descriptor, and a third
 * the cancel word if it <asks>. True when these differ from what was announced: then nothing was
 * stored. All loads are on their way before one is waited for; so no branch may lie between them,
 * at whose end the warp would wait.
 */
template <uint32_t loads>
static __device__ bool quick_bring(const struct agent_link *link, const struct first_seen *a,
				   bool confirms, bool asks, const uint8_t *from, uint8_t *to,
				   uint32_t length)
{
	uint32_t at = (threadIdx.x - WARP) * 16, lane = threadIdx.x % WARP;
	struct bytes16 piece[loads], half;
	uint64_t cancelled;
	uint32_t zero;
	bool other;

	half = read_quarter(descriptor_at(link, a->position), lane, confirms && lane < 2);
	asks = asks && lane == 2;
	cancelled = relaxed_sys(&link->cancels[asks ? a->slot : 0], asks);
#pragma unroll
	for (uint32_t i = 0; i < loads; i++)
		piece[i] = read_16(from + at + i * QUICK_STEP, at + i * QUICK_STEP < length);
	/* No comparison begins before the last load: see unknown_zero(). */
	zero = unknown_zero<loads>(piece, cancelled);
	half = (struct bytes16){half.low ^ zero, half.high ^ zero};
	cancelled ^= zero;
	/* All lanes compare, so that all have waited for the loads. */
	other = half.low != a->half[lane % 2].low || half.high != a->half[lane % 2].high;
	other = lane < 2 ? confirms && other : asks && cancelled == a->position + 1;
	if (__any_sync(ALL_LANES, other))
		return true;
#pragma unroll
	for (uint32_t i = 0; i < loads; i++)
		if (at + i * QUICK_STEP < length)
			store_some(to + at + i * QUICK_STEP, piece[i],
				   length - at - i * QUICK_STEP);
	return false;
}

/* The other warps of block 0: fetch the announced request to where it belongs if it is quick, while
 * warp 0 takes it; nothing else lies there. True in a warp that has read another descriptor than
 * the one that was announced, or that it is cancelled. */
static __device__ bool quick_fetch(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				   bool behind)
{
	const struct first_seen *a = &t->first;
	bool last = threadIdx.x >= GPU_BLOCK - WARP, confirms, asks, fits, small;
	uint32_t warp_at = (threadIdx.x / WARP - 1) * WARP * 16, length;
	const uint8_t *from;
	uint8_t *to;

	if (behind)
		post_behind(g, b, t, steps_until(t, ARRIVE_SENT));
	await_announcement(t, behind);
	fits = a->link != GPU_NO_LINK;
	small = fits && a->length <= QUICK_MAX;
	const struct agent_link *link = &b->links[fits ? a->link : 0];
	from = payload_at(link, fits ? a->payload : 0);
	to = g->in_place ? reply_at(link, fits ? a->slot : 0) + sizeof(struct ring_reply)
			 : (uint8_t *)g->model.input;
	length = small && !(g->in_place && a->length > g->max_reply) ? a->length : 0;
	/* Confirm and ask with as few warps as possible, as loads of one line wait for each other.
	 * In the reply's own place each warp writes only what it has confirmed itself. A large
	 * request is confirmed by the last warp. */
	asks = small ? threadIdx.x < 2 * WARP : fits && last;
	confirms = asks || (small && g->in_place && warp_at < length);
	return length > QUICK_LOADS_FEW * QUICK_STEP
		       ? quick_bring<QUICK_LOADS>(link, a, confirms, asks, from, to, length)
		       : quick_bring<QUICK_LOADS_FEW>(link, a, confirms, asks, from, to, length);
}

/* Thread 0: a request whose descriptor or cancel word <differs> is no longer quick and takes the
 * whole turn, unless it was cancelled. */
static __device__ void quick_withdraw(const struct gpu_loop *g, const struct block0 *b,
				      struct turn *t)
{
	struct gpu_request *r = &t->request[0];

	t->quick = t->prebuilt = t->stored = r->in_place = false;
	g->state->post.armed = AGENT_POST_NONE;
	recheck(g, b, r, true);
	if (r->status == RING_OK)
		return;
	r->row = GPU_NO_ROW;
	t->rows = 0;
}

/* Thread 0: answer a quick request on which nothing runs. */
static __device__ void quick_answer(struct block0 *b, struct turn *t,
				    const struct quick_reply *reply)
{
	const struct gpu_request *r = &t->request[0];
	uint64_t now = globaltimer_ns();

	write_header(reply->header, r, reply->length, b->carried.unread, t->start_ns, now);
	quick_post(b, &b->links[r->link], t->start_ns, now);
	t->answers_left--;
}

/* Results of quick_wait(). */
enum quick_result { QUICK_DONE, QUICK_NOT, QUICK_NOT_HIT };

/* Block 0: wait for a batch. QUICK_DONE: it is quick, and gathered already; so far no other thread
 * needs to know. Otherwise it is a batch, or the wait was stopped; QUICK_NOT_HIT, in some thread:
 * the payload that the helpers copied ahead is the batch's first row. <behind>: the batch before is
 * still to be posted. */
static __device__ enum quick_result quick_wait(const struct gpu_loop *g, struct block0 *b,
					       struct turn *t, bool behind)
{
	struct quick_reply reply = {};
	bool differs, any_differs;

	for (;;) {
		differs = false;
		if (threadIdx.x < WARP)
			quick_take(g, b, t, &reply);
		else
			differs = quick_fetch(g, b, t, behind);
		behind = false;
		any_differs = barrier_or<BARRIER_VERDICT>(differs);
		if (!t->quick)
			return threadIdx.x >= GPU_BLOCK - WARP && !differs && ahead_hit(t)
				       ? QUICK_NOT_HIT
				       : QUICK_NOT;
		if (any_differs)
			break;
		if (!t->answer_now)
			return QUICK_DONE;
		if (threadIdx.x == 0)
			quick_answer(b, t, &reply);
		__syncwarp();
	}
	__syncthreads(); /* all have read <quick> */
	if (threadIdx.x == 0)
		quick_withdraw(g, b, t);
	return QUICK_NOT;
}

/* --- behind the model --------------------------------------------------------------------------
 */

/* A thread's part of a quick reply, and all else that quick_send() needs. */
struct quick_bytes {
	struct bytes16 part[QUICK_REPLY_LOADS];
	struct agent_model_post post;
};

/* Load it before it is known whether the batch is quick: the loads overlap the others at the
 * beginning of a turn. */
static __device__ struct quick_bytes quick_read_reply(const struct gpu_loop *g)
{
	const struct agent_model_gpu *m = &g->model;
	/* A model whose replies are as long as their requests has no room for longer ones. */
	uint32_t length =
		m->reply_lengths == NULL ? m->reply_length : min(g->max_request, g->max_reply);
	bool wanted = g->reply_known && !m->in_place && (uint64_t)m->output % 16 == 0;
	uint32_t at = threadIdx.x * 16;
	const uint8_t *from = (const uint8_t *)m->output + at;
	struct quick_bytes early = {};

	early.post = agent_model_post_load(&g->state->post, threadIdx.x == 0,
					   threadIdx.x == GPU_BLOCK - 1);
	early.part[0] = read_16(from, wanted && at < length);
	if (length > QUICK_REPLY_STEP) {
#pragma unroll
		for (uint32_t i = 1; i < QUICK_REPLY_LOADS; i++)
			early.part[i] = read_16(from + i * QUICK_REPLY_STEP,
						wanted && at + i * QUICK_REPLY_STEP < length);
	}
	return early;
}

/*
 * Block 0, at the beginning of its kernel: send the reply that the turn before has left, unless the
 * model has sent it. It needs <early> alone; what the turn needs beyond that may still be on its way.
 */
static __device__ void quick_send(const struct gpu_loop *g, const struct quick_bytes &early)
{
	struct agent_model_post p = early.post;
	uint32_t at = threadIdx.x * 16;
	uint8_t *to = (uint8_t *)p.header + sizeof(struct ring_reply);

	if (p.armed != AGENT_POST_ARMED)
		return;
#pragma unroll
	for (uint32_t i = 0; i < QUICK_REPLY_LOADS; i++, at += QUICK_REPLY_STEP)
		if (at < p.bytes)
			store_some(to + at, early.part[i], p.bytes - at);
	/* The last thread seldom has other bytes to write. */
	if (threadIdx.x == GPU_BLOCK - 1) {
		/* A stage has looked at the rings since. */
		if (g->staged != NULL)
			p.sizes = reply_sizes((uint32_t)p.sizes,
					      g->state->carried.unread + g->state->n_staged, 0);
		agent_model_post_header(p);
	}
	__syncthreads();
	if (threadIdx.x == 0) {
		agent_model_post_ring(p);
		g->state->post.armed = AGENT_POST_SENT;
	}
}

/* Block 0: count the prebuilt reply, which is sent. */
static __device__ void quick_sent(const struct gpu_loop *g, struct block0 *b, const struct turn *t,
				  uint64_t done_ns)
{
	struct agent_link *link = &b->links[t->request[0].link];

	if (threadIdx.x == 0) {
		link->queue.producer = (uint16_t)(link->queue.producer + 1);
		link->built = 0;
		count_batch(&b->carried.stats, 1, done_ns - t->start_ns);
		g->state->post.armed = AGENT_POST_NONE;
	}
	__syncthreads();
}

#endif
