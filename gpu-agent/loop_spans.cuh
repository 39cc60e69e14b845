/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying many requests of any length with all warps of a grid. Private to loop_kernels.cu.
 */
#ifndef AGENT_LOOP_SPANS_CUH
#define AGENT_LOOP_SPANS_CUH

#include "loop_cuda.h"

#define WARP      32u
#define ALL_LANES 0xffffffffu

struct span {
	const uint8_t *from;
	uint8_t *to;
	uint32_t length;
};

struct spans {
	struct span span[GPU_BATCH_MAX];
	uint32_t
		first[GPU_BATCH_MAX + 1]; /* piece that each begins with; the last: pieces in all */
	uint32_t warp_sum[GPU_BLOCK / WARP];
};

/* Thread i brings span i, or one without length. The whole block calls it. */
static __device__ void spans_set(struct spans *s, uint32_t n, struct span mine)
{
	uint32_t i = threadIdx.x, lane = i % WARP, warp = i / WARP;
	uint32_t pieces = i < n ? (mine.length + GPU_PIECE - 1) / GPU_PIECE : 0, sum = pieces;

	if (n == 1) { /* the usual batch of those who are in a hurry */
		if (i == 0) {
			s->span[0] = mine;
			s->first[0] = 0;
			s->first[1] = pieces;
		}
		__syncthreads();
		return;
	}
	for (uint32_t d = 1; d < WARP; d *= 2) {
		uint32_t before = __shfl_up_sync(ALL_LANES, sum, d);

		sum += lane >= d ? before : 0;
	}
	if (lane == WARP - 1)
		s->warp_sum[warp] = sum;
	__syncthreads();
	for (uint32_t w = 0; w < warp; w++)
		sum += s->warp_sum[w];
	if (i < n) {
		s->span[i] = mine;
		s->first[i] = sum - pieces;
		if (i == n - 1)
			s->first[n] = sum;
	}
	__syncthreads();
}

/* One warp, one piece: 16 bytes per lane where alignment allows. */
static __device__ void copy_piece(const struct span *s, uint32_t piece)
{
	uint32_t at = piece * GPU_PIECE + threadIdx.x % WARP * 16;
	uint32_t end = at + 16 < s->length ? at + 16 : s->length;
	uint64_t both = (uint64_t)s->from | (uint64_t)s->to;

	if (at + 16 <= s->length && both % 16 == 0) {
		*(uint4 *)(s->to + at) = *(const uint4 *)(s->from + at);
	} else if (both % 4 == 0) {
		for (; at + 4 <= end; at += 4)
			*(uint32_t *)(s->to + at) = *(const uint32_t *)(s->from + at);
	}
	if (at + 16 > end || both % 4 != 0)
		for (; at < end; at++)
			s->to[at] = s->from[at];
}

/* The share of this block, which is the <block>th of <blocks>. */
static __device__ void spans_copy(const struct spans *s, uint32_t n, uint32_t block,
				  uint32_t blocks)
{
	uint32_t warps = blocks * blockDim.x / WARP;

	if (n == 0)
		return;
	for (uint32_t piece = (block * blockDim.x + threadIdx.x) / WARP; piece < s->first[n];
	     piece += warps) {
		uint32_t low = 0, high = n; /* first[low] <= piece < first[high] */

		while (high - low > 1) {
			uint32_t middle = (low + high) / 2;

			if (s->first[middle] <= piece)
				low = middle;
			else
				high = middle;
		}
		copy_piece(&s->span[low], piece - s->first[low]);
	}
}

#endif
