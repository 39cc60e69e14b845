/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A turn of the loop on a GPU. Block 0 polls, takes and posts, and has the links to itself; the
 * other blocks only help to copy.
 */
#include "loop_quick.cuh"
#include "loop_stage.cuh"

/* One of the blocks that only copy. */
static __device__ void help_gather(const struct gpu_loop *g, struct turn *t, uint32_t published,
				   uint32_t *arrivals)
{
	if (threadIdx.x == 0)
		while (acquire_gpu(&g->state->published) != published)
			;
	__syncthreads();
	read_batch(g, t);
	if (!t->quick)
		gather(g, t, g->links);
	arrive(g, arrivals);
}

static __device__ void wait_gather(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				   uint32_t published, uint32_t *arrivals)
{
	struct quarter half;

	for (;;) {
		if (threadIdx.x < WARP)
			take_quickly(g, k, t, *arrivals);
		else
			help_quickly(g, k, t);
		__syncthreads();
		if (t->stopped || t->rows > 0)
			break;
		/* Nothing to run: answer, and go on waiting. */
		uint64_t now = now_ns();

		send_batch(g, k, t->request, t->n, 0,
			   threadIdx.x < t->n ? t->request[threadIdx.x].status : RING_OK, now, now);
		__syncthreads();
	}
	if (t->quick) {
		let_help(g, published);
		arrive(g, arrivals);
		return;
	}
	if (g->in_place)
		settle_places(g, k, t);
	await_arrivals(g, *arrivals);
	publish_batch(g, t);
	let_help(g, published);
	/* A thread that seldom copies says when. */
	if (threadIdx.x == GPU_BLOCK - 1)
		g->state->start_ns = t->start_ns = now_ns();
	half = read_half(k, t);
	gather(g, t, k->links);
	arrive(g, arrivals);
	confirm(g, k, t, half, *arrivals);
	check_crcs(g, t, *arrivals);
}

static __device__ void scatter(const struct gpu_loop *g, struct turn *t,
			       const struct agent_link *links, uint32_t *length, uint8_t *status)
{
	uint32_t i = threadIdx.x;
	struct span mine = {};

	*length = 0;
	*status = RING_OK;
	if (i < t->n) {
		const struct gpu_request *r = &t->request[i];

		*length = reply_length(g, r, status);
		mine.length = r->in_place ? 0 : *length;
		mine.from = (const uint8_t *)g->model.output + r->row * g->model.output_stride;
		mine.to = reply_of(&links[r->link], r->slot) + sizeof(struct ring_reply);
	}
	spans_set(&t->spans, t->n, mine);
	spans_copy(&t->spans, t->n, blockIdx.x, gridDim.x);
}

static __device__ void scatter_send(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				    struct quarter early, uint32_t *arrivals)
{
	uint32_t length;
	uint8_t status;

	if (leaves_quickly(g, t, &length)) {
		arrive(g, arrivals);
		send_quickly(g, k, t, length, early);
		return;
	}
	if (threadIdx.x == GPU_BLOCK - 1)
		t->done_ns = now_ns();
	scatter(g, t, k->links, &length, &status);
	arrive(g, arrivals);
	await_arrivals(g, *arrivals);
	if (t->n > 0)
		send_batch(g, k, t->request, t->n, length, status, t->start_ns, t->done_ns);
	__syncthreads();
}

/* The end of a graph, where all is sent: all over again, unless the host said stop. */
static __device__ void relaunch(const struct gpu_loop *g, const struct turn *t)
{
	cudaError_t error;

	g->state->n = 0;
	g->state->published = 0;
	g->state->arrived = 0;
	if (t->stopped)
		return;
	error = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
	if (error != cudaSuccess)
		g->shared->launch_error = error;
}

static __global__ void __launch_bounds__(GPU_BLOCK)
	turn(const __grid_constant__ struct gpu_loop g, uint32_t what, uint32_t turns,
	     uint32_t before)
{
	__shared__ struct turn t;
	__shared__ struct keeper k;
	/* Until here each turn of this graph had each block arrive twice, and each stage once. */
	uint32_t arrivals = (g.staged != NULL ? 3 : 2) * before * (gridDim.x - 1), length;
	struct quarter early = {};
	uint8_t status;

	if (what & GPU_SEND && blockIdx.x == 0)
		early = read_early(&g);
	if (blockIdx.x == 0)
		fetch(&g, &k);
	read_batch(&g, &t);
	if (blockIdx.x > 0) {
		if (what & GPU_SEND && !t.stopped) {
			if (!leaves_quickly(&g, &t, &length))
				scatter(&g, &t, g.links, &length, &status);
			arrive(&g, &arrivals);
		}
		if (what & GPU_WAIT && !t.stopped)
			help_gather(&g, &t, 2 * before + 1, &arrivals);
		return;
	}
	if (threadIdx.x == 0) /* nobody else looks at it */
		t.quick_left = turns;
	for (; turns > 0 && !t.stopped; turns--) {
		if (what & GPU_SEND)
			scatter_send(&g, &k, &t, early, &arrivals);
		if (what & GPU_WAIT)
			wait_gather(&g, &k, &t, 2 * before + 1, &arrivals);
	}
	/* A quick reply waits for nobody; but who comes late must not count in the next graph. */
	if (!(what & GPU_WAIT) && !t.stopped)
		await_arrivals(&g, arrivals);
	put_back(&g, &k);
	if (!(what & GPU_WAIT) && threadIdx.x == 0)
		relaunch(&g, &t);
}

extern "C" cudaError_t gpu_turn(const struct gpu_loop *loop, unsigned int blocks, unsigned int what,
				unsigned int turns, unsigned int before, cudaStream_t stream)
{
	turn<<<blocks, GPU_BLOCK, 0, stream>>>(*loop, what, turns, before);
	return cudaGetLastError();
}

extern "C" cudaError_t gpu_stage(const struct gpu_loop *loop, unsigned int blocks,
				 unsigned int before, cudaStream_t stream)
{
	stage<<<blocks, GPU_BLOCK, 0, stream>>>(*loop, before);
	return cudaGetLastError();
}
