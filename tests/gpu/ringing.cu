/* SPDX-License-Identifier: BSD-3-Clause */
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "models/model_post.h"
#include "ringing.h"

#define REQUEST_MAX 20000

/* Pinned memory: written by the host, and by the kernel. */
struct ringing_words {
	uint32_t held;
	uint64_t ended;
};

struct ringing {
	uint32_t posts, blocks;
};

static struct ringing_words *words;

static __device__ uint64_t ringing_now()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

/* One thread of the grid: the run ends with this. */
static __device__ void ringing_end(volatile struct ringing_words *shared)
{
	uint64_t limit = ringing_now() + RINGING_LIMIT_MS * 1000000ull;

	while (shared->held != 0 && ringing_now() < limit)
		;
	shared->ended++;
	__threadfence_system();
}

static __global__ void ringing_run(struct agent_model_gpu gpu, struct ringing_words *shared,
				   uint32_t posts)
{
	struct agent_model_post post = agent_model_post_read(gpu);
	uint32_t row = blockIdx.y, length = row < *gpu.rows ? gpu.lengths[row] : 0;
	const uint8_t *from = (const uint8_t *)gpu.requests[row];
	uint8_t *to = (uint8_t *)gpu.replies[row];

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < length;
	     i += gridDim.x * blockDim.x)
		to[i] = from[i];
	if (posts)
		agent_model_post_send(gpu, post);
	if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
		ringing_end(shared);
}

static int ringing_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
			void **state, char *error, size_t error_size)
{
	struct ringing *r = (struct ringing *)calloc(1, sizeof(*r));

	if (r == NULL || sscanf(arguments, "%u,%u", &r->posts, &r->blocks) != 2 || r->blocks == 0 ||
	    (words == NULL &&
	     cudaHostAlloc((void **)&words, sizeof(*words),
			   cudaHostAllocMapped | cudaHostAllocPortable) != cudaSuccess)) {
		snprintf(error, error_size,
			 "POSTS,BLOCKS is missing, or there is no pinned memory");
		free(r);
		return -EINVAL;
	}
	words->held = 0;
	words->ended = 0;
	shape->max_request = shape->max_reply = REQUEST_MAX;
	shape->max_batch = max_batch;
	*state = r;
	return 0;
}

static int ringing_capture(void *state, struct agent_model_gpu *gpu, char *error, size_t error_size)
{
	const struct ringing *r = (const struct ringing *)state;

	gpu->reply_lengths = gpu->lengths;
	gpu->statuses = NULL;
	gpu->in_place = 1;
	ringing_run<<<dim3(r->blocks, gpu->max_batch), 128, 0, (cudaStream_t)gpu->stream>>>(
		*gpu, words, r->posts);
	cudaError_t ret = cudaGetLastError();

	if (ret == cudaSuccess)
		return 0;
	snprintf(error, error_size, "%s", cudaGetErrorString(ret));
	return -EIO;
}

/* On a CPU it does not run. */
static void ringing_run_on_cpu(void *state, struct agent_model_item *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		items[i].status = -ENOTSUP;
}

static void ringing_close(void *state)
{
	free(state);
}

void ringing_hold(void)
{
	__atomic_store_n(&words->held, 1, __ATOMIC_SEQ_CST);
}

void ringing_release(void)
{
	__atomic_store_n(&words->held, 0, __ATOMIC_SEQ_CST);
}

uint64_t ringing_ended(void)
{
	return __atomic_load_n(&words->ended, __ATOMIC_SEQ_CST);
}

const struct agent_model ringing_model = {
	AGENT_MODEL_ABI,    "ringing",     ringing_open,
	ringing_run_on_cpu, ringing_close, ringing_capture,
};
