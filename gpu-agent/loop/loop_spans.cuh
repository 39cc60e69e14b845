/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu and
 * loop_stage.cu, inlined.
 *
 * Copying many requests of any length with all warps of a grid.
 */
#ifndef AGENT_LOOP_SPANS_CUH
#define AGENT_LOOP_SPANS_CUH

#include "loop/loop_cuda.h"

#define WARP      32u
#define ALL_LANES 0xffffffffu
#define COPY_DEEP 4 /* pieces that a warp has on their way */

struct span {
	const uint8_t *from;
	uint8_t *to;
	uint32_t length;
};

struct spans {
	struct span span[GPU_BATCH_MAX];
	uint32_t first[GPU_BATCH_MAX + 1]; /* first piece of each span; last entry: all pieces */
	uint32_t warp_sum[GPU_BLOCK / WARP];
};

/* Number the pieces of all spans. The whole block calls it; thread i passes span i, or one of
 * length 0. */
static __device__ void spans_set(struct spans *s, uint32_t n, struct span mine)
{
	uint32_t i = threadIdx.x, lane = i % WARP, warp = i / WARP;
	uint32_t pieces = i < n ? (mine.length + GPU_PIECE - 1) / GPU_PIECE : 0, sum = pieces;

	if (n == 1) { /* the batch of a client that wants low latency */
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

struct bytes16 {
	uint64_t low, high;
};

/* Load 16 bytes, or zeros unless <wanted>. Call it for data that the RNIC wrote only after this
 * block saw the mark. It is a predicated load, not a branch: a thread waits for it only where its
 * value is used. */
static __device__ __forceinline__ struct bytes16 read_16(const void *at, bool wanted = true)
{
	struct bytes16 v = {};

	asm volatile("{\n\t.reg .pred p;\n\t"
		     "setp.ne.u32 p, %3, 0;\n\t"
		     "@p ld.global.v2.u64 {%0, %1}, [%2];\n\t}"
		     : "+l"(v.low), "+l"(v.high)
		     : "l"(at), "r"((uint32_t)wanted)
		     : "memory");
	return v;
}

/* Load <n> bytes, 16 at most, from an unaligned address, by loads that do not wait for each other. */
static __device__ __noinline__ struct bytes16 load_bytes(const uint8_t *from, uint32_t n)
{
	struct bytes16 v = {};

#pragma unroll
	for (uint32_t i = 0; i < 16; i++)
		if (i < n)
			*(i < 8 ? &v.low : &v.high) |= (uint64_t)from[i] << i % 8 * 8;
	return v;
}

static __device__ void store_some(uint8_t *to, struct bytes16 v, uint32_t n)
{
	if (n >= 16 && (uint64_t)to % 16 == 0) {
		*(ulonglong2 *)to = make_ulonglong2(v.low, v.high);
		return;
	}
#pragma unroll 1
	for (uint32_t i = 0; i < n && i < 16; i++)
		to[i] = (uint8_t)((i < 8 ? v.low : v.high) >> i % 8 * 8);
}

/* A lane's part of a piece; 16 bytes at most, 0: none. */
struct unit {
	const uint8_t *from;
	uint8_t *to;
	uint32_t bytes;
};

static __device__ struct unit unit_of(const struct spans *s, uint32_t n, uint32_t piece)
{
	uint32_t low = 0, high = n, at; /* first[low] <= piece < first[high] */
	const struct span *span;

	if (piece >= s->first[n])
		return (struct unit){};
#pragma unroll 1
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (s->first[middle] <= piece)
			low = middle;
		else
			high = middle;
	}
	span = &s->span[low];
	at = (piece - s->first[low]) * GPU_PIECE + threadIdx.x % WARP * 16;
	return (struct unit){
		.from = span->from + at,
		.to = span->to + at,
		.bytes = at >= span->length ? 0 : min(span->length - at, 16),
	};
}

/*
 * Copy the <block>th of <blocks> equal shares. Thread i of each block passes span i, or one of length
 * 0. A warp has <deep> pieces on their way. Many blocks fill the bus with one each, and are slower
 * with more; few blocks, or the GPU's own memory, want several.
 */
template <uint32_t deep>
static __device__ void copy_shares(struct spans *s, uint32_t n, struct span mine, uint32_t block,
				   uint32_t blocks)
{
	uint32_t warps = blocks * blockDim.x / WARP;
	struct unit unit[deep];
	struct bytes16 v[deep];

	if (n == 0)
		return;
	spans_set(s, n, mine);
#pragma unroll 1
	for (uint32_t piece = (block * blockDim.x + threadIdx.x) / WARP; piece < s->first[n];
	     piece += deep * warps) {
#pragma unroll
		for (uint32_t i = 0; i < deep; i++)
			unit[i] = unit_of(s, n, piece + i * warps);
#pragma unroll
		for (uint32_t i = 0; i < deep; i++)
			v[i] = read_16(unit[i].from,
				       unit[i].bytes > 0 && (uint64_t)unit[i].from % 16 == 0);
#pragma unroll
		for (uint32_t i = 0; i < deep; i++) {
			if ((uint64_t)unit[i].from % 16 != 0)
				v[i] = load_bytes(unit[i].from, unit[i].bytes);
			store_some(unit[i].to, v[i], unit[i].bytes);
		}
	}
}

static __device__ void copy_spans(struct spans *s, uint32_t n, struct span mine, uint32_t block,
				  uint32_t blocks)
{
	copy_shares<1>(s, n, mine, block, blocks);
}

/*
 * A row that is copied by all blocks but block 0, which has other things to do: where the thread's
 * first unit lies. Threads take units of 16 bytes in turn, so that a warp copies a piece.
 */
static __device__ uint32_t row_unit()
{
	return ((blockIdx.x - 1) * GPU_BLOCK + threadIdx.x) * 16;
}

/* Copy the thread's share of a row from an aligned address; <first> is its first unit, loaded
 * already. */
static __device__ void copy_row(uint8_t *to, const uint8_t *from, uint32_t length,
				struct bytes16 first)
{
	uint32_t at = row_unit(), step = (gridDim.x - 1) * GPU_BLOCK * 16;

	if (at < length)
		store_some(to + at, first, length - at);
#pragma unroll 1
	for (at += step; at < length; at += step)
		store_some(to + at, read_16(from + at), length - at);
}

static __device__ void copy_deep(struct spans *s, uint32_t n, struct span mine, uint32_t block,
				 uint32_t blocks)
{
	copy_shares<COPY_DEEP>(s, n, mine, block, blocks);
}

/* Load one word per thread of <n> elements. The thread waits for it only where it is used. */
template <typename T> static __device__ uint64_t load_word(const T *from, uint32_t n)
{
	uint64_t word = 0;

	static_assert(sizeof(T) % 8 == 0, "copied by words");
	asm volatile("{\n\t.reg .pred p;\n\t"
		     "setp.ne.u32 p, %2, 0;\n\t"
		     "@p ld.global.u64 %0, [%1];\n\t}"
		     : "+l"(word)
		     : "l"((const uint64_t *)from + threadIdx.x),
		       "r"((uint32_t)(threadIdx.x < n * sizeof(T) / 8))
		     : "memory");
	return word;
}

/* Store that word, and copy those beyond the block's number of threads. Here and below no loop is
 * unrolled: most are done after one step, and code that is jumped over makes the jump slower. */
template <typename T>
static __device__ void store_words(T *to, const T *from, uint32_t n, uint64_t word)
{
	if (threadIdx.x < n * sizeof(T) / 8)
		((uint64_t *)to)[threadIdx.x] = word;
#pragma unroll 1
	for (uint32_t i = threadIdx.x + GPU_BLOCK; i < n * (uint32_t)(sizeof(T) / 8);
	     i += GPU_BLOCK)
		((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

/* A lane's word of an element that a warp copies in one step, and where it goes. */
template <typename T> static __device__ uint64_t lane_word(const T *from)
{
	static_assert(sizeof(T) % 8 == 0 && sizeof(T) / 8 <= WARP, "a word a lane");
	return threadIdx.x < sizeof(T) / 8 ? ((const uint64_t *)from)[threadIdx.x] : 0;
}

template <typename T> static __device__ void store_lane_word(T *to, uint64_t word)
{
	if (threadIdx.x < sizeof(T) / 8)
		((uint64_t *)to)[threadIdx.x] = word;
}

/* Copy <n> elements by words, with <threads> threads. */
template <typename T>
static __device__ void copy_words(T *to, const T *from, uint32_t n, uint32_t threads = GPU_BLOCK)
{
	static_assert(sizeof(T) % 8 == 0, "copied by words");
#pragma unroll 1
	for (uint32_t i = threadIdx.x; i < n * (uint32_t)(sizeof(T) / 8); i += threads)
		((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}

#endif
