/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The posting routine on a GPU: a kernel builds WQEs and rings in pinned host memory; the host must
 * find the same bytes as it builds itself. Built wherever nvcc is, run where a GPU is (else exit 77).
 */
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

#include "rdma/mlx5_post.h"
#include "ring.h"

#define WQES 64

static struct mlx5_write write_of(uint32_t i)
{
	struct mlx5_write w = {};

	w.remote_address = 0x7f1100000000ull + i * 4096;
	w.local_address = 0x7faa00000000ull + i * 64;
	w.rkey = 0x180ee1 + i;
	w.lkey = 0x180ee7;
	w.length = i % 7 == 0 ? 0 : 100 + i;
	w.imm = ring_imm(i, RING_OK, 0);
	w.with_imm = true;
	w.signal = i % 16 == 15;
	return w;
}

/* A warp builds, one lane rings, as the loop will. */
__global__ void post(struct mlx5_queue q, const struct mlx5_write *writes, uint32_t n)
{
	for (uint32_t i = threadIdx.x; i < n; i += 32)
		mlx5_wqe_build(&q, i, &writes[i]);
	__syncwarp();
	if (threadIdx.x == 0)
		mlx5_ring(&q, n);
}

/* Each lane has a queue of its own, as the links of a loop do; all ring together. */
__global__ void post_together(const struct mlx5_queue *queues, const struct mlx5_write *write)
{
	struct mlx5_queue q = queues[threadIdx.x];

	mlx5_wqe_build(&q, 0, write);
	mlx5_ring(&q, 1);
}

template <typename T> static T *pinned(size_t n)
{
	void *p = nullptr;

	if (cudaHostAlloc(&p, n * sizeof(T), cudaHostAllocMapped) != cudaSuccess)
		return nullptr;
	memset(p, 0, n * sizeof(T));
	return (T *)p;
}

#define LANES 64

/* False when some lane's doorbell or record is not what the host would write. */
static bool rings_together(const struct mlx5_write *write)
{
	struct mlx5_queue *queues = pinned<struct mlx5_queue>(LANES);
	struct mlx5_wqe *wqes = pinned<struct mlx5_wqe>(LANES);
	uint32_t *records = pinned<uint32_t>(2 * LANES), record[2] = {};
	uint64_t *bells = pinned<uint64_t>(LANES), bell = 0;
	struct mlx5_wqe wqe;

	for (uint32_t i = 0; i < LANES; i++) {
		queues[i].wqes = &wqes[i];
		queues[i].wqe_count = 1;
		queues[i].record = &records[2 * i];
		queues[i].doorbell = &bells[i];
		queues[i].qpn = 0x100 + i;
		queues[i].producer = queues[i].consumer = (uint16_t)(7 * i);
	}
	post_together<<<1, LANES>>>(queues, write);
	if (cudaDeviceSynchronize() != cudaSuccess)
		return false;
	for (uint32_t i = 0; i < LANES; i++) {
		struct mlx5_queue q = queues[i];

		q.wqes = &wqe;
		q.record = record;
		q.doorbell = &bell;
		mlx5_wqe_build(&q, 0, write);
		mlx5_ring(&q, 1);
		if (bells[i] != bell || records[2 * i + 1] != record[1])
			return false;
	}
	return true;
}

int main()
{
	struct mlx5_wqe *gpu_wqes, *host_wqes;
	uint32_t *gpu_record, *host_record;
	uint64_t *gpu_bell, *host_bell;
	struct mlx5_write *writes;
	struct mlx5_queue q = {};
	int devices = 0;

	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
		printf("skipped: no GPU\n");
		return 77;
	}
	gpu_wqes = pinned<struct mlx5_wqe>(WQES);
	host_wqes = pinned<struct mlx5_wqe>(WQES);
	gpu_record = pinned<uint32_t>(2);
	host_record = pinned<uint32_t>(2);
	gpu_bell = pinned<uint64_t>(1);
	host_bell = pinned<uint64_t>(1);
	writes = pinned<struct mlx5_write>(WQES);
	q.wqe_count = WQES;
	q.qpn = 0xabcd;
	q.producer = q.consumer = 0xfff0; /* so that the counter wraps on the way */
	for (uint32_t i = 0; i < WQES; i++)
		writes[i] = write_of(i);

	q.wqes = gpu_wqes;
	q.record = gpu_record;
	q.doorbell = gpu_bell;
	post<<<1, 32>>>(q, writes, WQES);
	if (cudaDeviceSynchronize() != cudaSuccess) {
		printf("failed: %s\n", cudaGetErrorString(cudaGetLastError()));
		return 1;
	}
	q.wqes = host_wqes;
	q.record = host_record;
	q.doorbell = host_bell;
	for (uint32_t i = 0; i < WQES; i++)
		mlx5_wqe_build(&q, i, &writes[i]);
	mlx5_ring(&q, WQES);
	if (memcmp(gpu_wqes, host_wqes, WQES * sizeof(*gpu_wqes)) != 0 ||
	    gpu_record[1] != host_record[1] || *gpu_bell != *host_bell) {
		printf("failed: the GPU built other bytes than the host\n");
		return 1;
	}
	if (!rings_together(&writes[1])) {
		printf("failed: doorbells of lanes that ring together: %s\n",
		       cudaGetErrorString(cudaGetLastError()));
		return 1;
	}
	printf("passed: %d WQEs, one doorbell, the same bytes from GPU and host\n", WQES);
	return 0;
}
