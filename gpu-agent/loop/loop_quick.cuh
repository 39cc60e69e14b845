/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu,
 * inlined.
 *
 * The shortcut "quick" for a small request that comes alone: as soon as warp 0 of block 0 sees its
 * mark, the other warps fetch it. While it crosses the bus, warp 0 takes it from the ring and
 * builds its WQE and the header of its reply. After the model only the reply's bytes, its time and
 * the doorbell are left. A request that does not qualify goes the way of all batches. The state
 * table is in loop_kernels.cu.
 *
 *   warp 0        sees the mark    takes, builds               writes the header, rings
 *   other warps   wait         fetch ------------------- confirm, store
 *   barrier                  AHEAD                   VERDICT                  block
 */
#ifndef AGENT_LOOP_QUICK_CUH
#define AGENT_LOOP_QUICK_CUH

#include "loop/loop_ahead.cuh"

/* 16-byte loads that a thread has in flight. */
#define QUICK_LOADS 2
#define QUICK_STEP  ((GPU_BLOCK - WARP) * 16)  /* bytes that the fetching warps load at once */
#define QUICK_MAX   (QUICK_LOADS * QUICK_STEP) /* bytes of the longest quick request */

/* True when the batch is exactly the one request that is being fetched. */
static __device__ bool is_quick(const struct turn *t)
{
	const struct gpu_request *r = &t->request[0];

	return t->n == 1 && t->rows == 1 && r->length <= QUICK_MAX && !(r->flags & RING_HAS_CRC) &&
	       is_first_request(&t->first, t);
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
	uint8_t status;

	if (!g->reply_known || link->dead || mlx5_room(&link->queue) < link->built)
		return false;
	reply->header = reply_header_at(link, r->slot);
	reply->length = reply_length(g, r, &status);
	if (status != RING_OK || (!r->in_place && (reply->length > GPU_BLOCK * 16 ||
						   (uint64_t)g->model.output % 16 != 0)))
		return false;
	build_wqe(link, r, reply->length, status, 0);
	return true;
}

/* One thread: send the prebuilt reply. A barrier has made all its bytes visible. */
static __device__ void quick_post(struct block0 *b, struct agent_link *link,
				  struct ring_reply *header, uint64_t start_ns, uint64_t done_ns)
{
	header->done_ns = done_ns;
	mlx5_ring(&link->queue, 1);
	link->built = 0;
	count_batch(&b->carried.stats, 1, done_ns - start_ns);
}

/* Warp 0: take a batch. If it is quick, prepare everything but its payload. */
static __device__ void quick_take(const struct gpu_loop *g, struct block0 *b, struct turn *t,
				  struct quick_reply *reply)
{
	struct gpu_request *r = &t->request[0];
	bool quick;

	take_batch(g, b, t);
	__syncwarp();
	if (threadIdx.x == 0)
		r->in_place = may_be_in_place(g, r);
	__syncwarp();
	quick = is_quick(t);
	__syncwarp();
	if (threadIdx.x == 0) {
		t->quick = quick;
		t->prebuilt = t->answer_now = false;
		r->in_place = quick && r->in_place;
		if (quick) {
			t->start_ns = g->state->start_ns = globaltimer_ns();
			t->prebuilt = quick_build(g, &b->links[r->link], r, reply);
			t->answer_now = t->prebuilt && r->in_place && t->answers_left > 0;
			t->header = reply->header;
			t->bytes = r->in_place ? 0 : reply->length;
		}
		if (quick && !t->answer_now)
			publish_batch(g, t);
	}
	barrier_sync<BARRIER_VERDICT>();
}

/* The other warps of block 0: fetch the request while warp 0 takes it. <differs> becomes true when
 * the descriptor differs from what the request was taken for. Returns true when the helpers copy
 * the request ahead and it is the batch's first row. */
static __device__ bool quick_fetch(const struct gpu_loop *g, const struct block0 *b, struct turn *t,
				   bool *differs)
{
	uint32_t at = (threadIdx.x - WARP) * 16, lane = threadIdx.x % WARP;
	const struct gpu_request *r = &t->request[0];
	const struct first_seen *a = &t->first;
	struct bytes16 piece[QUICK_LOADS], half;
	bool last = threadIdx.x >= GPU_BLOCK - WARP, mine, fits, small, other;
	const uint8_t *from;
	uint8_t *to;

	barrier_sync<BARRIER_AHEAD>();
	fits = a->link != GPU_NO_LINK;
	small = fits && a->length <= QUICK_MAX;
	const struct agent_link *link = &b->links[fits ? a->link : 0];
	from = payload_at(link, fits ? a->payload : 0);
	/* Confirm with as few warps as possible, as loads of one line wait for each other. In the
	 * reply's own place each warp writes only what it has confirmed itself. A large request is
	 * confirmed by the last warp, while the first of these starts the helpers. */
	if (small)
		mine = threadIdx.x < 2 * WARP || (g->in_place && at - lane * 16 < a->length);
	else
		mine = fits && last;
	mine = mine && lane < 2;
	half = read_quarter(descriptor_at(link, a->position), lane, mine);
#pragma unroll
	for (uint32_t i = 0; i < QUICK_LOADS; i++)
		piece[i] = read_16(from + at + i * QUICK_STEP,
				   small && at + i * QUICK_STEP < a->length);
	if (threadIdx.x == WARP && fits && !small)
		ahead_start(g, t, from);
	barrier_sync<BARRIER_VERDICT>();
	/* All lanes compare, so that all have waited for the load. */
	other = half_differs(r, half, lane);
	*differs = __any_sync(ALL_LANES, mine & other);
	if (!t->quick)
		return last && !*differs && ahead_hit(t);
	to = input_of(g, b->links, r).to;
#pragma unroll
	for (uint32_t i = 0; i < QUICK_LOADS; i++)
		if (!*differs && at + i * QUICK_STEP < r->length)
			store_some(to + at + i * QUICK_STEP, piece[i],
				   r->length - at - i * QUICK_STEP);
	return false;
}

/* Thread 0, once a quick request is stored: write its header, and answer it if no model runs. If
 * its descriptor <differs>, the request is no longer quick and takes the whole turn. */
static __device__ void quick_settle(struct block0 *b, struct turn *t,
				    const struct quick_reply *reply, bool differs)
{
	struct gpu_request *r = &t->request[0];

	if (differs) {
		t->quick = t->prebuilt = r->in_place = false;
		return;
	}
	if (t->prebuilt)
		write_header(reply->header, r, reply->length, b->carried.unread, t->start_ns,
			     t->start_ns);
	if (t->answer_now) {
		quick_post(b, &b->links[r->link], reply->header, t->start_ns, globaltimer_ns());
		t->answers_left--;
	}
}

/* Block 0: wait for a batch. On return a quick batch is gathered already, and answered already if
 * no model runs. Returns true in some thread when the payload that the helpers copied ahead is the
 * batch's first row. */
static __device__ bool quick_wait(const struct gpu_loop *g, struct block0 *b, struct turn *t)
{
	struct quick_reply reply = {};
	bool differs, answer_now, hit = false;

	do {
		differs = false;
		if (threadIdx.x < WARP)
			quick_take(g, b, t, &reply);
		else
			hit = quick_fetch(g, b, t, &differs);
		if (!t->quick)
			return hit;
		answer_now = t->answer_now;
		differs = __syncthreads_or(differs);
		if (threadIdx.x == 0)
			quick_settle(b, t, &reply, differs);
		__syncwarp();
	} while (answer_now && !differs);
	return false;
}

/* --- behind the model --------------------------------------------------------------------------
 */

/* Load the thread's 16 bytes of the reply before it is known whether the batch is quick: the load
 * overlaps the others at the beginning of a turn. */
static __device__ struct bytes16 quick_read_reply(const struct gpu_loop *g)
{
	const struct agent_model_gpu *m = &g->model;
	/* A model whose replies are as long as their requests has no room for longer ones. */
	uint32_t length =
		m->reply_lengths == NULL ? m->reply_length : min(g->max_request, g->max_reply);
	uint32_t at = threadIdx.x * 16;

	return read_16((const uint8_t *)m->output + at,
		       g->reply_known && (uint64_t)m->output % 16 == 0 && at < length);
}

/* Block 0: write the bytes of a prebuilt reply, and ring. */
static __device__ void quick_send(struct block0 *b, struct turn *t, struct bytes16 early,
				  uint64_t done_ns)
{
	uint32_t at = threadIdx.x * 16;

	if (at < t->bytes)
		store_some((uint8_t *)(t->header + 1) + at, early, t->bytes - at);
	__syncthreads();
	if (threadIdx.x == 0)
		quick_post(b, &b->links[t->request[0].link], t->header, t->start_ns, done_ns);
	__syncthreads();
}

#endif
