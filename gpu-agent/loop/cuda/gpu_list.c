/* SPDX-License-Identifier: BSD-3-Clause */
#include "loop/cuda/gpu_list.h"

#include <cuda_runtime.h>
#include <stdio.h>

int agent_gpus(char *why, size_t size)
{
	int n = 0;
	cudaError_t ret = cudaGetDeviceCount(&n);

	if (ret != cudaSuccess)
		n = 0;
	if (n == 0)
		snprintf(why, size, "%s",
			 ret == cudaErrorInsufficientDriver
				 ? "no NVIDIA driver, or one older than this CUDA"
			 : ret == cudaSuccess ? "no GPU"
					      : cudaGetErrorString(ret));
	cudaGetLastError();
	return n;
}

void agent_gpu_name(int gpu, char *name, size_t size)
{
	struct cudaDeviceProp properties;

	name[0] = '\0';
	if (cudaGetDeviceProperties(&properties, gpu) == cudaSuccess)
		snprintf(name, size, "%s", properties.name);
}

bool agent_gpu_bus(int gpu, char *bus, size_t size)
{
	if (cudaDeviceGetPCIBusId(bus, (int)size, gpu) == cudaSuccess)
		return true;
	cudaGetLastError();
	return false;
}

bool agent_gpu_memory(int gpu, uint64_t *free_mb, uint64_t *total_mb)
{
	size_t left, all;

	if (cudaSetDevice(gpu) != cudaSuccess || cudaMemGetInfo(&left, &all) != cudaSuccess) {
		cudaGetLastError();
		return false;
	}
	*free_mb = left >> 20;
	*total_mb = all >> 20;
	return true;
}
