/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model for tests on GPUs that echoes, until it fails as a bug in a kernel would. Argument: FILE,AT. The
 * first process that finds FILE empty writes its number there, and its run number AT stores to an address
 * that is none; every other process echoes for ever. (An agent's worker opens its model twice: first to see
 * whether it has a CUDA side.)
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "models/model.h"

#define REQUEST_MAX 1472

struct trap {
	unsigned long long at; /* 0: never */
};

static __device__ unsigned long long trap_runs;

static __global__ void trap_run(struct agent_model_gpu gpu, unsigned long long at)
{
	uint32_t row = blockIdx.x;

	if (row == 0 && threadIdx.x == 0 && at != 0 && ++trap_runs == at)
		*(volatile uint32_t *)64 = 1;
	if (row >= *gpu.rows)
		return;
	const uint4 *from = (const uint4 *)((const uint8_t *)gpu.input + row * gpu.input_stride);
	uint4 *to = (uint4 *)((uint8_t *)gpu.output + row * gpu.output_stride);

	for (uint32_t i = threadIdx.x; i * 16 < gpu.lengths[row]; i += blockDim.x)
		to[i] = from[i];
}

/* True in the one process that traps. */
static bool is_chosen(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char own[16], found[16] = "";
	bool chosen;

	if (fd < 0)
		return false;
	snprintf(own, sizeof(own), "%d", getpid());
	flock(fd, LOCK_EX);
	if (read(fd, found, sizeof(found) - 1) == 0)
		chosen = write(fd, own, strlen(own)) == (ssize_t)strlen(own);
	else
		chosen = strcmp(found, own) == 0;
	close(fd);
	return chosen;
}

static int trap_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		     void **state, char *error, size_t error_size)
{
	struct trap *trap = (struct trap *)calloc(1, sizeof(*trap));
	const char *comma = strchr(arguments, ',');
	char path[256];

	if (trap == NULL || comma == NULL) {
		snprintf(error, error_size, "FILE,AT is missing");
		free(trap);
		return -EINVAL;
	}
	snprintf(path, sizeof(path), "%.*s", (int)(comma - arguments), arguments);
	if (is_chosen(path))
		trap->at = strtoull(comma + 1, NULL, 10);
	shape->max_request = shape->max_reply = REQUEST_MAX;
	shape->max_batch = max_batch;
	*state = trap;
	return 0;
}

static int trap_capture(void *state, struct agent_model_gpu *gpu, char *error, size_t error_size)
{
	struct trap *trap = (struct trap *)state;

	gpu->reply_lengths = gpu->lengths;
	gpu->statuses = NULL;
	trap_run<<<gpu->max_batch, 128, 0, (cudaStream_t)gpu->stream>>>(*gpu, trap->at);
	cudaError_t ret = cudaGetLastError();

	if (ret == cudaSuccess)
		return 0;
	snprintf(error, error_size, "%s", cudaGetErrorString(ret));
	return -EIO;
}

static void trap_close(void *state)
{
	free(state);
}

static void trap_describe(const void *state, struct agent_model_description *description)
{
	description->n_inputs = description->n_outputs = 1;
	description->input[0] = {"input0", "UINT8", 1, {-1}};
	description->output[0] = {"output0", "UINT8", 1, {-1}};
}

/* On a CPU it does not run. */
static void trap_run_on_cpu(void *state, struct agent_model_item *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		items[i].status = -ENOTSUP;
}

extern "C" __attribute__((visibility("default"))) const struct agent_model agent_model = {
	AGENT_MODEL_ABI, "trap", trap_open, trap_run_on_cpu, trap_close, trap_capture, trap_describe,
};
