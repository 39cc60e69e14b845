/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu,
 * inlined.
 *
 * The shortcut "ahead" for a large request that comes first: as soon as warp 0 of block 0 sees its
 * mark, the helpers copy its payload to the model's first row, where it will most likely belong.
 * The state table is in loop_kernels.cu.
 *
 *   block 0, warp 0    sees the mark      takes the batch, publishes it
 *   block 0, warp 1       starts the helpers
 *   helpers                   copy the first request ------------ copy the rest of the batch
 */
#ifndef AGENT_LOOP_AHEAD_CUH
#define AGENT_LOOP_AHEAD_CUH

#include "loop/loop_gather.cuh"

/* True when request <a> is the first of the batch that was taken. Compared without branches, as here
 * and where else a lone request waits for it: one load of shared memory after the other takes
 * longer than all of them together. */
static __device__ bool is_first_request(const struct first_seen *a, const struct turn *t)
{
	const struct gpu_request *r = &t->request[0];
	uint64_t other = (a->position + 1) ^ r->sequence;

	other |= (a->link ^ r->link) | (a->slot ^ r->slot) | (a->length ^ r->length);
	other |= (a->payload ^ r->payload) | r->stage;
	return (t->n > 0) & (other == 0);
}

/* Block 0, at the beginning of a turn: the helpers copy nothing ahead yet. */
static __device__ void ahead_reset(struct turn *t)
{
	if (threadIdx.x > 0)
		return;
	t->may_start_ahead = true;
	t->first_fetched = t->stored = false;
	t->ahead.link = GPU_NO_LINK;
}

/* Block 0, one thread: let the helpers copy <payload>. Not for a model that runs nothing: its
 * requests are copied to their replies' places, and only the taken request says which. Nor for one
 * that reads requests where they lie. */
static __device__ void ahead_start(const struct gpu_loop *g, struct turn *t, const uint8_t *payload)
{
	if (gridDim.x == 1 || g->in_place || g->model.in_place || !t->may_start_ahead)
		return;
	t->may_start_ahead = false;
	t->ahead = t->first;
	g->state->ahead = payload;
	g->state->ahead_length = t->first.length;
	publish_number(g, t, PUBLISH_AHEAD, PUBLISH_HAS_AHEAD);
}

static __device__ bool ahead_started(const struct turn *t)
{
	return t->ahead.link != GPU_NO_LINK;
}

/* True when the payload that the helpers copied ahead is the batch's first row. */
static __device__ bool ahead_hit(const struct turn *t)
{
	const struct gpu_request *r = &t->request[0];

	return ahead_started(t) && is_first_request(&t->ahead, t) && r->row == 0 &&
	       r->status == RING_OK;
}

/* Block 0: wait until no helper writes that row any more. */
static __device__ void ahead_withdraw(const struct gpu_loop *g, struct turn *t)
{
	publish_to_helpers(g, t, PUBLISH_MISS, PUBLISH_HAS_AHEAD);
	await_arrivals(g, t, ARRIVE_AHEAD);
	if (threadIdx.x == 0)
		t->ahead.link = GPU_NO_LINK;
	__syncthreads();
}

/* Helpers: copy the payload that block 0 announced to the model's first row. */
static __device__ void ahead_copy(const struct gpu_loop *g, struct turn *t)
{
	struct span mine = {
		.from = g->state->ahead,
		.to = (uint8_t *)g->model.input,
		.length = g->state->ahead_length,
	};

	copy_spans(&t->spans, 1, mine, blockIdx.x - 1, gridDim.x - 1);
}

#endif
