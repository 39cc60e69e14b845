/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu,
 * inlined.
 *
 * The shortcut "ahead" for a large request that comes first: as soon as warp 0 of block 0 sees its
 * mark, it tells the helpers (announce_first()), which copy its payload to the model's first row,
 * where it will most likely belong. The state table is in loop_kernels.cu.
 *
 *   block 0, warp 0    sees the mark      takes the batch, publishes it
 *   helpers              copy the first request ----------------- copy the rest of the batch
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
	const uint8_t *from = t->published.ahead;
	uint8_t *to = (uint8_t *)g->model.input;
	uint32_t length = t->published.ahead_length, at = row_unit();
	struct bytes16 first = read_16(from + at, at < length);

	__syncthreads(); /* all have read what was published */
	copy_row(to, from, length, first);
}

#endif
