/* SPDX-License-Identifier: BSD-3-Clause */
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "gpu/gpu_post.h"
#include "rdma/mlx5_post.h"

#define WQES   4096
#define ROUNDS 1000
#define COPY   (256u << 20)

static __device__ uint64_t cycles()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
	return t;
}

/* A warp builds, lane 0 rings; cycles of each round. */
static __global__ void post(struct mlx5_queue q, uint32_t batch, uint64_t *took)
{
	struct mlx5_write w = {};

	w.remote_address = 0x7f0000000000ull;
	w.local_address = 0x7f0000001000ull;
	w.length = 64;
	w.with_imm = true;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = cycles();

#pragma unroll 1 /* a batch of one is what it looks like */
		for (uint32_t i = threadIdx.x; i < batch; i += 32)
			mlx5_wqe_build(&q, i, &w);
		__syncwarp();
		if (threadIdx.x == 0)
			mlx5_ring(&q, batch);
		q.producer = (uint16_t)__shfl_sync(~0u, q.producer, 0);
		if (threadIdx.x == 0)
			took[round] = cycles() - start;
	}
}

static void *pinned(size_t n)
{
	void *p = nullptr;

	return cudaHostAlloc(&p, n, cudaHostAllocMapped) == cudaSuccess ? memset(p, 0, n) : nullptr;
}

double gpu_post_us(unsigned int batch)
{
	struct mlx5_queue q = {};
	uint64_t *took = (uint64_t *)pinned(ROUNDS * sizeof(*took));
	int khz = 0;
	double us;

	q.wqes = (struct mlx5_wqe *)pinned(WQES * sizeof(*q.wqes));
	q.record = (uint32_t *)pinned(64);
	q.doorbell = (uint64_t *)pinned(64);
	q.wqe_count = WQES;
	cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
	if (took == nullptr || q.wqes == nullptr || q.record == nullptr || q.doorbell == nullptr)
		return -1;
	post<<<1, 32>>>(q, batch, took);
	if (cudaDeviceSynchronize() != cudaSuccess)
		return -1;
	std::nth_element(took, took + ROUNDS / 2, took + ROUNDS);
	us = took[ROUNDS / 2] * 1e3 / khz / batch;
	cudaFreeHost(took);
	cudaFreeHost(q.wqes);
	cudaFreeHost((void *)q.record);
	cudaFreeHost((void *)q.doorbell);
	return us;
}

double gpu_copy_gbytes(int to_device)
{
	void *host = pinned(COPY), *device = nullptr;
	cudaEvent_t from, to;
	float ms = 0, best = 1e9;

	if (host == nullptr || cudaMalloc(&device, COPY) != cudaSuccess)
		return -1;
	cudaEventCreate(&from);
	cudaEventCreate(&to);
	for (int i = 0; i < 5; i++) {
		cudaEventRecord(from);
		cudaMemcpyAsync(to_device ? device : host, to_device ? host : device, COPY,
				cudaMemcpyDefault);
		cudaEventRecord(to);
		if (cudaEventSynchronize(to) != cudaSuccess)
			return -1;
		cudaEventElapsedTime(&ms, from, to);
		best = ms < best ? ms : best;
	}
	cudaFreeHost(host);
	cudaFree(device);
	return COPY / best / 1e6;
}
