/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu and
 * loop_stage.cu, inlined.
 *
 * How block 0 and its helpers, the blocks that only copy, tell each other how far they are.
 */
#ifndef AGENT_LOOP_HELPERS_CUH
#define AGENT_LOOP_HELPERS_CUH

#include "loop/loop_device.cuh"

/*
 * Block 0 and the helpers tell each other how far they are by two numbers, which are counted from
 * the beginning of the graph.
 *
 *   block 0 publishes, per turn    a request to copy ahead; that it was copied in vain; the batch.
 *                                  The first two may be left out, and the number skips them.
 *                      per stage   the requests that it has taken
 *   a helper reports,  per turn    it has sent; it has copied ahead; it has gathered
 *                      per stage   it has copied the replies held back; it has staged; counted
 * apart, as a stage has fewer blocks
 */
enum { PUBLISH_AHEAD = 1, PUBLISH_MISS, PUBLISH_BATCH, PUBLISH_STAGED, PUBLICATIONS = 4 };
enum { ARRIVE_SENT = 1, ARRIVE_AHEAD, ARRIVE_GATHERED };
enum { ARRIVE_HELD = 1, ARRIVE_STAGED };
/* Flags in the bits below the number. */
#define PUBLISH_SHIFT     2
#define PUBLISH_HAS_AHEAD 1u /* the helpers copy the first request ahead, or have done so */
#define PUBLISH_DONE      2u /* nothing is left to copy in this turn */

/* A helper: report <times> steps done. */
static __device__ void report_arrival(uint32_t *arrived, uint32_t times = 1)
{
	__syncthreads();
	if (threadIdx.x == 0) {
		fence_gpu();
		atomicAdd(arrived, times);
	}
}

/* Report steps at the end of the kernel, which is fence enough, because only the next turn reads
 * the count. */
static __device__ void report_arrival_at_exit(const struct gpu_loop *g, uint32_t times)
{
	if (threadIdx.x == 0)
		atomicAdd(&g->state->arrived, times);
}

/* Block 0: wait until every helper has reported <each> steps. */
static __device__ void await_steps(const uint32_t *arrived, uint32_t each)
{
	__syncthreads();
	if (gridDim.x == 1)
		return;
	if (threadIdx.x == 0)
		await_helpers(arrived, each);
	__syncthreads();
}

/* Steps that a helper has reported when it is done with <arrival> of this turn. */
static __device__ uint32_t steps_until(const struct turn *t, uint32_t arrival)
{
	return ARRIVE_GATHERED * t->before + arrival;
}

/* Block 0 of a turn: wait until every helper has reported <arrival>. */
static __device__ void await_arrivals(const struct gpu_loop *g, const struct turn *t,
				      uint32_t arrival)
{
	await_steps(&g->state->arrived, steps_until(t, arrival));
}

/* Block 0: true when the helpers may copy ahead. Not for a model that runs nothing: its requests are
 * copied to their replies' places, and only the taken request says which. Nor for one that reads
 * requests where they lie. */
static __device__ bool may_start_ahead(const struct gpu_loop *g, const struct turn *t)
{
	return gridDim.x > 1 && !g->in_place && !g->model.in_place && t->may_start_ahead;
}

/* Number <what> of this turn, with <flags>. */
static __device__ uint32_t publication(const struct turn *t, uint32_t what, uint32_t flags)
{
	return (PUBLICATIONS * t->before + what) << PUBLISH_SHIFT | flags;
}

/* Block 0, one thread: release number <what> with <flags>, and with it all that was written before.
 * Each number carries the payload to copy ahead, as a helper may have missed the first number. */
static __device__ void publish_number(const struct gpu_loop *g, const struct turn *t, uint32_t what,
				      uint32_t flags)
{
	struct gpu_published p = t->published;

	p.number = publication(t, what, flags);
	release_gpu(&g->state->published, p);
}

/* Block 0: publish number <what> after a barrier of the block. */
static __device__ void publish_to_helpers(const struct gpu_loop *g, const struct turn *t,
					  uint32_t what, uint32_t flags)
{
	if (gridDim.x == 1)
		return;
	__syncthreads();
	if (threadIdx.x == 0)
		publish_number(g, t, what, flags);
}

/* A helper: wait until number <what> or a later one is published. Returns the number and its flags;
 * turn.published has them, and what is copied ahead. */
static __device__ uint32_t await_published(const struct gpu_loop *g, struct turn *t, uint32_t what)
{
	if (threadIdx.x == 0) {
		uint32_t least = publication(t, what, 0);
		struct gpu_published seen;

		do
			seen = acquire_gpu(&g->state->published);
		while (seen.number < least);
		t->published = seen;
	}
	__syncthreads();
	return t->published.number;
}

#endif
