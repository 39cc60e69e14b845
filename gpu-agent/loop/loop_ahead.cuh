/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A large request that comes first is in a hurry, too. As soon as the polling warp sees its mark,
 * the blocks that only copy bring its payload to the model's first row, where it will belong if
 * nothing speaks against it. Private to loop_kernels.cu.
 *
 *   first warp        sees a mark      takes, publishes
 *   another of its    tells
 *   other blocks           copy ------------------------- the rest of the batch
 */
#ifndef AGENT_LOOP_AHEAD_CUH
#define AGENT_LOOP_AHEAD_CUH

#include "loop/loop_gather.cuh"

/* Is it what was taken first? */
static __device__ bool is_first(const struct ahead *a, const struct turn *t)
{
	const struct gpu_request *r = &t->request[0];

	return t->n > 0 && a->link == r->link && a->slot == r->slot && a->length == r->length &&
	       a->position + 1 == r->sequence && r->stage == 0;
}

/* Block 0, at the beginning of a turn: nothing is lent, but may be. */
static __device__ void begin_lending(struct turn *t)
{
	if (threadIdx.x > 0)
		return;
	t->may_lend = true;
	t->first_fetched = false;
	t->lent.link = GPU_NO_LINK;
}

/* Block 0, one thread. What has nothing to run belongs where only taking tells. */
static __device__ void lend(const struct gpu_loop *g, struct turn *t, const uint8_t *payload)
{
	if (gridDim.x == 1 || g->in_place || !t->may_lend)
		return;
	t->may_lend = false;
	t->lent = t->ahead;
	g->state->ahead = payload;
	g->state->ahead_length = t->ahead.length;
	publish(g, t, PUBLISH_AHEAD, PUBLISH_LENT);
}

static __device__ bool is_lent(const struct turn *t)
{
	return t->lent.link != GPU_NO_LINK;
}

/* Is it the batch's first row? */
static __device__ bool was_worth_it(const struct turn *t)
{
	const struct gpu_request *r = &t->request[0];

	return is_lent(t) && is_first(&t->lent, t) && r->row == 0 && r->status == RING_OK;
}

/* Block 0: nobody may go on writing that row. */
static __device__ void take_back(const struct gpu_loop *g, struct turn *t)
{
	let_help(g, t, PUBLISH_MISS, PUBLISH_LENT);
	await_arrivals(g, t, ARRIVE_AHEAD);
	if (threadIdx.x == 0)
		t->lent.link = GPU_NO_LINK;
	__syncthreads();
}

/* A block that only copies. */
static __device__ void fetch_ahead(const struct gpu_loop *g, struct turn *t)
{
	struct span mine = {
		.from = g->state->ahead,
		.to = (uint8_t *)g->model.input,
		.length = g->state->ahead_length,
	};

	copy_spans(&t->spans, 1, mine, blockIdx.x - 1, gridDim.x - 1);
}

#endif
