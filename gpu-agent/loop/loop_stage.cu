/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel of the shortcut "staged". It runs beside the model: it takes the requests that have
 * come since the running batch was taken, and copies their payloads across the bus to a buffer on
 * the GPU. The next turn copies them from there at the GPU's own speed. It never waits for
 * requests, because the next turn would wait for it. The state table is in loop_kernels.cu.
 *
 * Only block 0 has the links; no turn runs at the same time. The running batch stays as it is: its
 * replies are posted first, so WQEs of staged requests are counted apart (agent_link.staged).
 */
#include "loop/loop_gather.cuh"

/* Warp 0: take what is there, without waiting. WQEs of the running batch are put aside meanwhile.
 */
static __device__ void take_staged(const struct gpu_loop *g, struct block0 *b, struct turn *t)
{
	uint32_t lane = threadIdx.x, running[AGENT_LINKS_MAX / WARP];

	for (uint32_t l = lane, i = 0; l < g->n_links; l += WARP, i++) {
		running[i] = b->links[l].built;
		b->links[l].built = 0;
	}
	if (lane == 0) {
		t->n = 0;
		t->first_fetched = false;
	}
	__syncwarp();
	poll_until_batch(g, b, t, false);
	__syncwarp();
	for (uint32_t l = lane, i = 0; l < g->n_links; l += WARP, i++) {
		b->links[l].staged = b->links[l].built;
		b->links[l].built = running[i];
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
	copy_spans(&t->spans, t->n, mine, blockIdx.x, gridDim.x);
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
	await_arrivals(g, t, ARRIVE_STAGED);
	if (threadIdx.x < t->n) {
		reread_descriptor(g, &b->links[r->link], r);
		r->stage = 0;
		g->staged[threadIdx.x] = *r;
	}
}

static __global__ void __launch_bounds__(GPU_BLOCK)
	stage(const __grid_constant__ struct gpu_loop g, uint32_t before)
{
	__shared__ struct turn t;
	__shared__ struct block0 b;
	struct bytes16 half;

	if (threadIdx.x == 0)
		t.before = before;
	if (blockIdx.x == 0)
		read_batch(&g, &t, &b);
	if (g.state->batch.stopped)
		return;
	if (blockIdx.x > 0) {
		await_published(&g, &t, PUBLISH_STAGED);
		if (threadIdx.x == 0)
			t.n = g.state->n_staged;
		__syncthreads();
		copy_words(t.request, g.staged, t.n);
		__syncthreads();
		copy_staged(&g, &t, g.links);
		report_arrival(&g);
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
	store_carried(&g, &b);
}

extern "C" cudaError_t gpu_stage(const struct gpu_loop *loop, unsigned int blocks,
				 unsigned int before, cudaStream_t stream)
{
	stage<<<blocks, GPU_BLOCK, 0, stream>>>(*loop, before);
	return cudaGetLastError();
}
