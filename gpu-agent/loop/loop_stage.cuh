/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stage runs beside the model: what has come since the batch was taken is taken, too, and its
 * payload crosses the bus, to where the next turn copies it from at the GPU's own speed. It never
 * waits for requests: the turn behind it would wait for it. Private to loop_kernels.cu.
 *
 * Only block 0 has the links, and the turns before and behind it are not running. The batch that is
 * running stays as it is: its replies are posted first, so WQEs of staged requests are counted
 * apart.
 */
#ifndef AGENT_LOOP_STAGE_CUH
#define AGENT_LOOP_STAGE_CUH

#include "loop/loop_gather.cuh"

/* One warp. */
static __device__ void take_staged(const struct gpu_loop *g, struct keeper *k, struct turn *t)
{
	uint32_t lane = threadIdx.x, running[AGENT_LINKS_MAX / WARP];

	for (uint32_t l = lane, i = 0; l < g->n_links; l += WARP, i++) {
		running[i] = k->links[l].built;
		k->links[l].built = 0;
	}
	if (lane == 0) {
		t->n = 0;
		t->first_fetched = false;
	}
	__syncwarp();
	wait_inputs(g, k, t, false);
	__syncwarp();
	for (uint32_t l = lane, i = 0; l < g->n_links; l += WARP, i++) {
		k->links[l].staged = k->links[l].built;
		k->links[l].built = running[i];
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
			.from = links[r->link].slots + (uint64_t)r->slot * links[r->link].stride,
			.to = g->stage + (r->stage - 1) * g->stage_stride,
			.length = r->length,
		};
	copy_spans(&t->spans, t->n, mine, blockIdx.x, gridDim.x);
}

/* Block 0: what is not what it was taken for counts as not staged, and is read again. */
static __device__ void confirm_staged(const struct gpu_loop *g, const struct keeper *k,
				      struct turn *t, struct bytes16 half)
{
	struct gpu_request *r = &t->request[threadIdx.x];

	if (!any_differs(t, half))
		return;
	/* The other blocks have read what is written now. */
	await_arrivals(g, t, ARRIVE_STAGED);
	if (threadIdx.x < t->n) {
		read_again(g, &k->links[r->link], r);
		r->stage = 0;
		g->staged[threadIdx.x] = *r;
	}
}

static __global__ void __launch_bounds__(GPU_BLOCK)
	stage(const __grid_constant__ struct gpu_loop g, uint32_t before)
{
	__shared__ struct turn t;
	__shared__ struct keeper k;
	struct bytes16 half;

	if (threadIdx.x == 0)
		t.before = before;
	if (blockIdx.x == 0)
		read_batch(&g, &t, &k);
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
		arrive(&g);
		return;
	}
	if (threadIdx.x < WARP)
		take_staged(&g, &k, &t);
	__syncthreads();
	publish_staged(&g, &t);
	let_help(&g, &t, PUBLISH_STAGED, 0);
	half = read_half(&k, &t);
	copy_staged(&g, &t, k.links);
	confirm_staged(&g, &k, &t, half);
	put_back(&g, &k);
}

#endif
