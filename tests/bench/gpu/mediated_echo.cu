/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CPU-mediated peer of the GPU's loop behind a load balancer, of the strongest kind for small
 * requests: a plug-in for the agent's loop on a CPU thread, which launches one kernel per batch. It
 * reads requests and writes replies where they lie, in pinned memory, and sets a flag that the
 * thread polls. It echoes, as the plug-in echo does with kernel=1,in_place=1. Argument:
 * max_request=BYTES.
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>

#include "models/model.h"
extern "C" {
#include "mediated_pin.h"
}

#define ROWS_MAX 128
#define BLOCK    256

struct mediated_row {
	const uint8_t *from;
	uint8_t *to;
	uint32_t length;
};

/* The kernel's parameter: so the GPU needs no trip across the bus for it. */
struct mediated_rows {
	struct mediated_row row[ROWS_MAX];
};

struct mediated_echo {
	cudaStream_t stream;
	struct mediated_pins pins;
	uint32_t *arrived;       /* blocks that are done; on the GPU */
	volatile uint32_t *flag; /* pinned: number of the last batch that is done */
	uint32_t batch;
	struct mediated_rows rows;
};

static __global__ void mediated_copy(const __grid_constant__ struct mediated_rows rows,
				     uint32_t *arrived, volatile uint32_t *flag, uint32_t batch)
{
	const struct mediated_row &row = rows.row[blockIdx.x];

	if (((uint64_t)row.from | (uint64_t)row.to) % 16 == 0)
		for (uint32_t i = threadIdx.x; i < row.length / 16; i += BLOCK)
			((uint4 *)row.to)[i] = ((const uint4 *)row.from)[i];
	else
		for (uint32_t i = threadIdx.x; i < row.length / 16 * 16; i += BLOCK)
			row.to[i] = row.from[i];
	if (threadIdx.x < row.length % 16)
		row.to[row.length / 16 * 16 + threadIdx.x] =
			row.from[row.length / 16 * 16 + threadIdx.x];
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	__threadfence_system();
	if (gridDim.x > 1) {
		if (atomicAdd(arrived, 1) != gridDim.x - 1)
			return;
		*arrived = 0;
		__threadfence_system();
	}
	*flag = batch;
}

static int mediated_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
			 void **state, char *error, size_t error_size)
{
	struct mediated_echo *m = (struct mediated_echo *)calloc(1, sizeof(*m));
	uint32_t max_request = 1472;
	cudaError_t ret;

	if (m == NULL)
		return -ENOMEM;
	if (arguments[0] != '\0' && sscanf(arguments, "max_request=%u", &max_request) != 1) {
		snprintf(error, error_size, "'%s' is not max_request=BYTES", arguments);
		free(m);
		return -EINVAL;
	}
	ret = cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking);
	if (ret == cudaSuccess)
		ret = cudaMalloc(&m->arrived, sizeof(*m->arrived));
	if (ret == cudaSuccess)
		ret = cudaMemset(m->arrived, 0, sizeof(*m->arrived));
	if (ret == cudaSuccess)
		ret = cudaHostAlloc((void **)&m->flag, sizeof(*m->flag), cudaHostAllocPortable);
	if (ret == cudaSuccess)
		ret = cudaDeviceSynchronize();
	if (ret != cudaSuccess) {
		snprintf(error, error_size, "%s", cudaGetErrorString(ret));
		free(m);
		return -EIO;
	}
	*m->flag = 0;
	shape->max_request = shape->max_reply = max_request;
	shape->max_batch = max_batch < ROWS_MAX ? max_batch : ROWS_MAX;
	*state = m;
	return 0;
}

/* Launch the batch, and wait for its end. */
static cudaError_t mediated_batch(struct mediated_echo *m, uint32_t n)
{
	cudaError_t ret;
	uint32_t looks = 0;

	m->batch++;
	mediated_copy<<<n, BLOCK, 0, m->stream>>>(m->rows, m->arrived, m->flag, m->batch);
	ret = cudaGetLastError();
	while (ret == cudaSuccess && __atomic_load_n(m->flag, __ATOMIC_ACQUIRE) != m->batch)
		/* A kernel that failed sets no flag. */
		if (++looks % 65536 == 0 && cudaStreamQuery(m->stream) != cudaErrorNotReady)
			ret = *m->flag == m->batch ? cudaSuccess : cudaErrorUnknown;
	return ret;
}

static void mediated_run(void *state, struct agent_model_item *items, uint32_t n)
{
	struct mediated_echo *m = (struct mediated_echo *)state;
	cudaError_t ret;

	for (uint32_t i = 0; i < n; i++) {
		mediated_pin(&m->pins, items[i].request);
		mediated_pin(&m->pins, items[i].reply);
		m->rows.row[i] = {(const uint8_t *)items[i].request, (uint8_t *)items[i].reply,
				  items[i].request_length};
	}
	ret = mediated_batch(m, n);
	for (uint32_t i = 0; i < n; i++) {
		items[i].reply_length = items[i].request_length;
		items[i].status = ret == cudaSuccess ? 0 : -EIO;
	}
}

static void mediated_describe(const void *state, struct agent_model_description *description)
{
	description->n_inputs = description->n_outputs = 1;
	description->input[0] = {"input0", "UINT8", 1, {-1}};
	description->output[0] = {"output0", "UINT8", 1, {-1}};
}

/* The process ends, and its context with it. */
static void mediated_close(void *state)
{
	free(state);
}

extern "C" __attribute__((visibility("default"))) const struct agent_model agent_model = {
	AGENT_MODEL_ABI, "mediated_echo", mediated_open, mediated_run, mediated_close, NULL, mediated_describe,
};
