/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words on a GPU: a warp for each row looks for the end of the next word, 32 bytes at a time,
 * and copies it.
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "models/words_cuda.h"

#define WARP      32u
#define ALL_LANES 0xffffffffu

/* Where a reply is: what the model keeps of a row. */
struct words_row {
	uint64_t due_ns; /* of the next piece */
	uint32_t at;     /* byte of the text */
	uint32_t words;
	bool held; /* a reply is open */
};

struct words_cuda {
	struct words_options options;
	struct words_row *rows; /* device memory */
};

static __device__ uint64_t words_globaltimer_ns()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

/* First byte from <at> on that is a space, or that is none; <limit>: there is none before it. */
static __device__ uint32_t words_find(const uint8_t *text, uint32_t at, uint32_t limit, bool space)
{
	for (; at < limit; at += WARP) {
		uint32_t i = at + threadIdx.x;
		uint32_t found = __ballot_sync(ALL_LANES, i < limit && (text[i] == ' ') == space);

		if (found != 0)
			return at + __ffs(found) - 1;
	}
	return limit;
}

/* The words of the row for this run. */
struct words_piece {
	uint32_t length, more;
	int32_t status;
};

static __device__ struct words_piece words_say(const struct words_options *o,
					       struct words_row *place, const uint8_t *text,
					       uint32_t length, uint8_t *reply, uint64_t now)
{
	uint32_t limit = length - place->at > o->most ? place->at + o->most : length;
	uint32_t word = words_find(text, place->at, limit, false);
	uint32_t end = words_find(text, word, limit, true), n = end - place->at;

	if (place->words++ == o->fail_after)
		return (struct words_piece){.status = -EIO};
	for (uint32_t i = threadIdx.x; i < WORDS_LENGTH; i += WARP)
		reply[i] = (uint8_t)(n >> i * 8);
	for (uint32_t i = threadIdx.x; i < n; i += WARP)
		reply[WORDS_LENGTH + i] = text[place->at + i];
	place->at = end;
	place->due_ns = now + o->delay_us * 1000ull;
	return (struct words_piece){.length = WORDS_LENGTH + n, .more = end < length};
}

static __device__ struct words_piece words_turn(const struct words_options *o,
						const struct agent_model_gpu *gpu, uint32_t row,
						uint32_t state, struct words_row *place,
						uint64_t now)
{
	const uint8_t *request = (const uint8_t *)gpu->input + row * gpu->input_stride;
	uint8_t *reply = (uint8_t *)gpu->output + row * gpu->output_stride;
	uint32_t length;

	/* A row that is new while it is held was never told that its request is gone. */
	if (place->held != (state == AGENT_ROW_NEXT))
		return (struct words_piece){.status = -EPROTO};
	if (state == AGENT_ROW_NEXT && now < place->due_ns)
		return (struct words_piece){.more = 1}; /* not yet */
	length = *(const uint32_t *)request;
	if (length != gpu->lengths[row] - WORDS_LENGTH)
		return (struct words_piece){.status = -EINVAL};
	return words_say(o, place, request + WORDS_LENGTH, length, reply, now);
}

static __global__ void words_rows(struct words_cuda words, struct agent_model_gpu gpu)
{
	uint32_t row = blockIdx.x, state = row < *gpu.rows ? gpu.row_states[row] : AGENT_ROW_NONE;
	struct words_row place = words.rows[row];
	uint64_t now = __shfl_sync(ALL_LANES, words_globaltimer_ns(), 0); /* one for all lanes */
	struct words_piece piece = {};

	if (state == AGENT_ROW_NONE)
		return;
	if (state == AGENT_ROW_NEW && !place.held)
		place = (struct words_row){};
	if (state != AGENT_ROW_GONE)
		piece = words_turn(&words.options, &gpu, row, state, &place, now);
	place.held = piece.more;
	if (threadIdx.x != 0)
		return;
	words.rows[row] = place;
	gpu.reply_lengths[row] = piece.length;
	gpu.statuses[row] = piece.status;
	gpu.row_more[row] = piece.more;
}

extern "C" struct words_cuda *words_cuda_create(const struct words_options *options,
						uint32_t max_batch, char *error, size_t size)
{
	struct words_cuda *w = (struct words_cuda *)calloc(1, sizeof(*w));
	size_t bytes = max_batch * sizeof(struct words_row);
	cudaError_t ret = cudaErrorMemoryAllocation;

	if (w != NULL)
		ret = cudaMalloc((void **)&w->rows, bytes);
	if (ret == cudaSuccess)
		ret = cudaMemset(w->rows, 0, bytes);
	if (ret == cudaSuccess) {
		w->options = *options;
		return w;
	}
	snprintf(error, size, "no memory for rows on the GPU: %s", cudaGetErrorString(ret));
	words_cuda_destroy(w);
	return NULL;
}

extern "C" int words_cuda_capture(struct words_cuda *w, const struct agent_model_gpu *gpu,
				  char *error, size_t size)
{
	words_rows<<<gpu->max_batch, WARP, 0, (cudaStream_t)gpu->stream>>>(*w, *gpu);
	cudaError_t ret = cudaGetLastError();

	if (ret == cudaSuccess)
		return 0;
	snprintf(error, size, "%s", cudaGetErrorString(ret));
	return -EIO;
}

extern "C" void words_cuda_destroy(struct words_cuda *w)
{
	if (w == NULL)
		return;
	cudaFree(w->rows);
	free(w);
}
