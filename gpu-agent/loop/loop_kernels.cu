/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A turn of the loop on a GPU. Block 0 polls, takes and posts, and has the links to itself; the
 * other blocks only help to copy.
 */
#include "loop/loop_quick.cuh"
#include "loop/loop_stage.cuh"

/* One of the blocks that only copy. */
static __device__ void help_gather(const struct gpu_loop *g, struct turn *t)
{
	uint32_t heard = await_published(g, t, PUBLISH_AHEAD);
	bool lent = heard & PUBLISH_LENT;

	if (lent) {
		fetch_ahead(g, t);
		heard = await_published(g, t, PUBLISH_MISS);
	}
	if (heard & PUBLISH_DONE) {
		leave(g, 2);
		return;
	}
	if (lent) {
		arrive(g);
		await_published(g, t, PUBLISH_BATCH);
	}
	/* A quick batch comes here only behind what was lent in vain. */
	read_batch(g, t, NULL);
	if (!t->quick)
		gather(g, t, g->links);
	arrive(g, lent ? 1 : 2);
}

static __device__ void wait_gather(const struct gpu_loop *g, struct keeper *k, struct turn *t)
{
	uint32_t flags;
	struct bytes16 half;
	bool worth_it;

	begin_lending(t);
	await_arrivals(g, t, ARRIVE_SENT);
	for (;;) {
		worth_it = __syncthreads_or(take_quickly(g, k, t));
		if (worth_it && threadIdx.x == 0)
			t->first_fetched = true;
		else if (!worth_it && is_lent(t))
			take_back(g, t);
		if (t->stopped || t->rows > 0)
			break;
		/* Nothing to run: answer, and go on waiting. */
		uint8_t status = threadIdx.x < t->n ? t->request[threadIdx.x].status : RING_OK;
		uint64_t now = now_ns();

		build_batch(g, k, t->request, t->n, 0, status, now, now);
		__syncthreads();
		ring_batch(g, k);
		count(&k->kept.stats, t->n, status, 0);
		__syncthreads();
	}
	if (t->quick) {
		let_help(g, t, PUBLISH_BATCH, PUBLISH_DONE);
		return;
	}
	if (g->in_place)
		settle_places(g, k, t);
	publish_batch(g, t);
	flags = is_lent(t) ? PUBLISH_LENT : 0;
	if (worth_it && t->n == 1 && !t->any_crc)
		flags |= PUBLISH_DONE;
	let_help(g, t, PUBLISH_BATCH, flags);
	/* A thread that seldom copies says when. */
	if (threadIdx.x == GPU_BLOCK - 1)
		g->state->start_ns = t->start_ns = now_ns();
	half = read_half(k, t);
	gather(g, t, k->links);
	if (any_differs(t, half))
		gather_again(g, k, t);
	if (t->any_crc)
		check_crcs(g, t);
}

/* Replies, to where the RNIC reads them; where there are other blocks the first has other work. */
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
	if (gridDim.x == 1)
		copy_spans(&t->spans, t->n, mine, 0, 1);
	else if (blockIdx.x > 0)
		copy_spans(&t->spans, t->n, mine, blockIdx.x - 1, gridDim.x - 1);
}

static __device__ void scatter_send(const struct gpu_loop *g, struct keeper *k, struct turn *t,
				    struct bytes16 early)
{
	uint64_t done_ns = now_ns();
	uint32_t length;
	uint8_t status;

	if (t->built) {
		send_quickly(k, t, early, done_ns);
		return;
	}
	scatter(g, t, k->links, &length, &status);
	if (t->n > 0)
		build_batch(g, k, t->request, t->n, length, status, t->start_ns, done_ns);
	await_arrivals(g, t, ARRIVE_SENT);
	if (t->n > 0) {
		ring_batch(g, k);
		count(&k->kept.stats, t->n, status, done_ns - t->start_ns);
	}
	__syncthreads();
}

/* The end of a graph, where all is sent: all over again, unless the host said stop. */
static __device__ void relaunch(const struct gpu_loop *g, const struct turn *t)
{
	cudaError_t error;

	/* Other blocks may not have read yet that it is stopped. */
	if (t->stopped)
		return;
	g->state->batch = (struct gpu_batch){};
	g->state->published = 0;
	g->state->arrived = 0;
	error = cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
	if (error != cudaSuccess)
		g->shared->launch_error = error;
}

static __global__ void __launch_bounds__(GPU_BLOCK, 2)
	turn(const __grid_constant__ struct gpu_loop g, uint32_t what, uint32_t turns,
	     uint32_t before)
{
	__shared__ struct turn t;
	__shared__ struct keeper k;
	uint32_t length;
	struct bytes16 early = {};
	uint8_t status;

	if (what & GPU_SEND && blockIdx.x == 0)
		early = read_early(&g);
	if (threadIdx.x == 0)
		t.before = before;
	read_batch(&g, &t, &k);
	if (blockIdx.x > 0) {
		if (what & GPU_SEND && !t.stopped) {
			if (!t.built)
				scatter(&g, &t, g.links, &length, &status);
			arrive(&g);
		}
		if (what & GPU_WAIT && !t.stopped)
			help_gather(&g, &t);
		return;
	}
	if (threadIdx.x == 0) /* nobody else looks at it */
		t.quick_left = turns;
	for (; turns > 0 && !t.stopped; turns--) {
		if (what & GPU_SEND)
			scatter_send(&g, &k, &t, early);
		if (what & GPU_WAIT)
			wait_gather(&g, &k, &t);
	}
	/* A quick reply waits for nobody; but who comes late must not count in the next graph. */
	if (!(what & GPU_WAIT) && !t.stopped)
		await_arrivals(&g, &t, ARRIVE_SENT);
	put_back(&g, &k);
	if (!(what & GPU_WAIT) && threadIdx.x == 0)
		relaunch(&g, &t);
}

extern "C" unsigned int gpu_turn_blocks(void)
{
	int device, processors, per_processor;

	if (cudaGetDevice(&device) != cudaSuccess ||
	    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) !=
		    cudaSuccess ||
	    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, turn, GPU_BLOCK, 0) !=
		    cudaSuccess)
		return 0;
	return (unsigned int)(processors * per_processor);
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
