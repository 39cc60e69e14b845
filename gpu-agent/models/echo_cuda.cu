/* SPDX-License-Identifier: BSD-3-Clause */
#include <cerrno>
#include <cstdio>

#include "echo_cuda.h"

static __device__ uint64_t now_ns()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

static __global__ void delay(const uint32_t *rows, uint64_t delay_ns)
{
	uint64_t end = now_ns() + *rows * delay_ns;

	while (now_ns() < end)
		;
}

extern "C" int echo_cuda_delay(const struct agent_model_gpu *gpu, uint32_t delay_us, char *error,
			       size_t size)
{
	delay<<<1, 1, 0, (cudaStream_t)gpu->stream>>>(gpu->rows, delay_us * 1000ull);
	cudaError_t ret = cudaGetLastError();

	if (ret == cudaSuccess)
		return 0;
	snprintf(error, size, "%s", cudaGetErrorString(ret));
	return -EIO;
}
