/* SPDX-License-Identifier: BSD-3-Clause */
#include <cerrno>
#include <cstdio>

#include "models/echo_cuda.h"
#include "models/model_post.h"

static __device__ uint64_t echo_globaltimer_ns()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

static __global__ void echo_delay(const uint32_t *rows, uint64_t batch_ns, uint64_t delay_ns)
{
	uint64_t end = echo_globaltimer_ns() + batch_ns + *rows * delay_ns;

	while (echo_globaltimer_ns() < end)
		;
}

/* Copies whole units of 16 bytes: strides of rows are multiples of 256. */
static __global__ void echo_copy(struct agent_model_gpu gpu)
{
	uint32_t row = blockIdx.y;

	if (row >= *gpu.rows)
		return;
	const uint4 *from = (const uint4 *)((const uint8_t *)gpu.input + row * gpu.input_stride);
	uint4 *to = (uint4 *)((uint8_t *)gpu.output + row * gpu.output_stride);

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i * 16 < gpu.lengths[row];
	     i += gridDim.x * blockDim.x)
		to[i] = from[i];
}

/* Copies where requests and replies lie, and sends a reply alone. Of a reply's last unit only its own
 * bytes are written. */
static __global__ void echo_copy_in_place(struct agent_model_gpu gpu)
{
	struct agent_model_post post = agent_model_post_read(gpu);
	uint32_t row = blockIdx.y, length = row < *gpu.rows ? gpu.lengths[row] : 0;
	const uint4 *from = (const uint4 *)gpu.requests[row];
	uint4 *to = (uint4 *)gpu.replies[row];

	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i * 16 < length;
	     i += gridDim.x * blockDim.x) {
		uint4 unit = from[i];

		if (i * 16 + 16 <= length)
			to[i] = unit;
		else
			for (uint32_t b = 0; b < length % 16; b++)
				((uint8_t *)&to[i])[b] = ((const uint8_t *)&unit)[b];
	}
	agent_model_post_send(gpu, post);
}

extern "C" int echo_cuda_copy(const struct agent_model_gpu *gpu, char *error, size_t size)
{
	uint32_t blocks = gpu->input_stride / 4096 + 1;
	/* Where bytes cross the bus both ways, fewer blocks are faster with many of them. */
	uint32_t most = gpu->in_place && gpu->input_stride >= 512 << 10 ? 32 : 64;

	dim3 grid(blocks < most ? blocks : most, gpu->max_batch);

	(gpu->in_place ? echo_copy_in_place
		       : echo_copy)<<<grid, 256, 0, (cudaStream_t)gpu->stream>>>(*gpu);
	cudaError_t ret = cudaGetLastError();

	if (ret == cudaSuccess)
		return 0;
	snprintf(error, size, "%s", cudaGetErrorString(ret));
	return -EIO;
}

extern "C" int echo_cuda_delay(const struct agent_model_gpu *gpu, uint32_t batch_us,
			       uint32_t delay_us, char *error, size_t size)
{
	echo_delay<<<1, 1, 0, (cudaStream_t)gpu->stream>>>(gpu->rows, batch_us * 1000ull,
							   delay_us * 1000ull);
	cudaError_t ret = cudaGetLastError();

	if (ret == cudaSuccess)
		return 0;
	snprintf(error, size, "%s", cudaGetErrorString(ret));
	return -EIO;
}
