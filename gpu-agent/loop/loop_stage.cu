/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel of the shortcut "staged". It runs beside the model: it takes the requests that have
 * come since the running batch was taken, and copies their payloads across the bus to a buffer on
 * the GPU. The next turn copies them from there at the GPU's own speed. It never waits for
 * requests, because the next turn would wait for it. Before, it sends the replies of the last batch
 * if the turn has put them aside. The state table is in loop_kernels.cu.
 *
 * Only block 0 has the links; no turn runs at the same time. The running batch stays as it is: its
 * replies are posted first, so WQEs of staged requests are counted apart (agent_link.staged).
 */
#include "loop/loop_gather.cuh"

/* Block 0: wait until every helper of the stage has reported <arrival>; the stages of a graph are
 * as many as its turns. */
static __device__ void await_stage(const struct gpu_loop *g, const struct turn *t, uint32_t arrival)
{
	await_steps(&g->state->stage_arrived, ARRIVE_STAGED * t->before + arrival);
}

/* Warp 0: take what is there, without waiting. WQEs of the running batch are put aside meanwhile, to
 * where they count as needed. */
static __device__ void take_staged(const struct gpu_loop *g, struct block0 *b, struct turn *t)
{
	uint32_t lane = threadIdx.x, running;

	for (uint32_t l = lane; l < g->n_links; l += WARP) {
		b->links[l].staged = b->links[l].built;
		b->links[l].built = 0;
	}
	if (lane == 0) {
		t->n = 0;
		t->soonest_us = UINT32_MAX;
		t->first_fetched = false;
	}
	__syncwarp();
	poll_until_batch(g, b, t, false);
	__syncwarp();
	for (uint32_t l = lane; l < g->n_links; l += WARP) {
		running = b->links[l].staged;
		b->links[l].staged = b->links[l].built;
		b->links[l].built = running;
	}
	for (uint32_t i = lane; i < t->n; i += WARP)
		t->request[i].stage = t->request[i].status == RING_OK ? i + 1 : 0;
}

static __device__ void publish_staged(const struct gpu_loop *g, const struct turn *t)
{
	uint32_t i = threadIdx.x;

	if (i < t->n)
		g->staged[i] = t->request[i];
	if (i == 0)
		g->state->n_staged = t->n;
}

static __device__ void copy_staged(const struct gpu_loop *g, struct turn *t,
				   const struct agent_link *links)
{
	const struct gpu_request *r = &t->request[threadIdx.x];
	struct span mine = {};

	if (threadIdx.x < t->n && r->stage != 0)
		mine = (struct span){
			.from = payload_at(&links[r->link], r->payload),
			.to = g->stage + (r->stage - 1) * g->stage_stride,
			.length = r->length,
		};
	copy_deep(&t->spans, t->n, mine, blockIdx.x, gridDim.x);
}

/* Block 0: a request whose descriptor differs from what it was taken for counts as not staged, and
 * is read again. */
static __device__ void confirm_staged(const struct gpu_loop *g, const struct block0 *b,
				      struct turn *t, struct bytes16 half)
{
	struct gpu_request *r = &t->request[threadIdx.x];

	if (!any_differs(t, half))
		return;
	/* The helpers have read <staged>, so it may be written. */
	await_stage(g, t, ARRIVE_STAGED);
	if (threadIdx.x < t->n) {
		reread_descriptor(g, &b->links[r->link], r);
		r->stage = 0;
		g->staged[threadIdx.x] = *r;
	}
}

/* The helpers copy the replies that the turn has put aside to where the RNIC reads them. */
static __device__ void copy_held(const struct gpu_loop *g, struct turn *t,
				 const struct agent_link *links, uint32_t n)
{
	const struct gpu_request *r = &t->request[threadIdx.x];
	struct span mine = {};

	if (threadIdx.x < n)
		mine = (struct span){
			.from = g->hold + threadIdx.x * g->hold_stride,
			.to = reply_at(&links[r->link], r->slot) + sizeof(struct ring_reply),
			.length = r->status == RING_OK ? r->reply_bytes : 0,
		};
	if (gridDim.x == 1)
		copy_deep(&t->spans, n, mine, 0, 1);
	else if (blockIdx.x > 0)
		copy_deep(&t->spans, n, mine, blockIdx.x - 1, gridDim.x - 1);
}

/* All blocks: send the replies that the turn has put aside. WQEs of the running batch are not built
 * yet; their number is put aside meanwhile. */
static __device__ void send_held(const struct gpu_loop *g, struct block0 *b, struct turn *t)
{
	uint32_t i = threadIdx.x, n = g->held != NULL ? g->state->n_held : 0, running = 0;
	struct gpu_request *r = &t->request[i];

	__syncthreads(); /* the block has read its copy of the batch */
	copy_words(t->request, g->held, n);
	__syncthreads();
	copy_held(g, t, blockIdx.x == 0 ? b->links : g->links, n);
	if (blockIdx.x > 0) {
		report_arrival(&g->state->stage_arrived);
		return;
	}
	if (n == 0)
		return;
	if (i < g->n_links) {
		running = b->links[i].built;
		b->links[i].built = b->links[i].held;
		b->links[i].held = 0;
	}
	__syncthreads();
	uint8_t status = i < n ? r->status : RING_OK;
	uint64_t start_ns = g->state->held_start_ns, done_ns = g->state->held_done_ns;

	build_batch(g, b, t, n, i < n ? r->reply_bytes : 0, status,
		    b->carried.unread + g->state->batch.n, start_ns, done_ns);
	await_stage(g, t, ARRIVE_HELD);
	ring_batch(g, b);
	count_replies(&b->carried.stats, n, status, done_ns - start_ns);
	if (i < g->n_links)
		b->links[i].built = running;
	if (i == 0)
		g->state->n_held = 0;
	__syncthreads();
}

static __global__ void __launch_bounds__(GPU_BLOCK)
	stage(const __grid_constant__ struct gpu_loop g, uint32_t before)
{
	__shared__ struct turn t;
	__shared__ struct block0 b;
	struct bytes16 half;

	if (threadIdx.x == 0) {
		t.before = before;
		t.posts_behind = t.unposted = t.short_ahead = false;
	}
	if (blockIdx.x == 0)
		read_batch(&g, &t, &b);
	__syncthreads();
	if (blockIdx.x == 0 && threadIdx.x == 0)
		look_behind(&g, &b, &t);
	send_held(&g, &b, &t);
	if (g.state->batch.stopped) {
		if (blockIdx.x == 0)
			store_carried(&g, &b, GPU_BLOCK);
		return;
	}
	if (blockIdx.x > 0) {
		await_published(&g, &t, PUBLISH_STAGED);
		if (threadIdx.x == 0)
			t.n = g.state->n_staged;
		__syncthreads();
		copy_words(t.request, g.staged, t.n);
		__syncthreads();
		copy_staged(&g, &t, g.links);
		report_arrival(&g.state->stage_arrived);
		return;
	}
	if (threadIdx.x < WARP)
		take_staged(&g, &b, &t);
	__syncthreads();
	publish_staged(&g, &t);
	publish_to_helpers(&g, &t, PUBLISH_STAGED, 0);
	half = read_half(&b, &t);
	copy_staged(&g, &t, b.links);
	confirm_staged(&g, &b, &t, half);
	__syncthreads();
	store_carried(&g, &b, GPU_BLOCK);
}

extern "C" cudaError_t gpu_stage(const struct gpu_loop *loop, unsigned int blocks,
				 unsigned int before, cudaStream_t stream)
{
	stage<<<blocks, GPU_BLOCK, 0, stream>>>(*loop, before);
	return cudaGetLastError();
}
