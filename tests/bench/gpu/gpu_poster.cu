/* SPDX-License-Identifier: BSD-3-Clause */
#include <cuda_runtime.h>

#include "gpu/gpu_poster.h"

#define WRITERS  256 /* threads that write one poster's payload */
#define STUCK_NS 2000000000ull

static __device__ uint64_t now_ns()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
	return t;
}

/* Lane 0: wait for room for <batch> WQEs. False: it does not come. */
static __device__ bool await_room(struct mlx5_queue *q, uint32_t batch, struct gpu_poster *p)
{
	uint64_t start, now;

	if (mlx5_room(q) >= batch)
		return true;
	start = now = now_ns();
	while (mlx5_room(q) < batch && now - start < STUCK_NS) {
		mlx5_cq_poll(q, NULL);
		now = now_ns();
	}
	p->waited_ns += now - start;
	p->stuck |= mlx5_room(q) < batch;
	return mlx5_room(q) >= batch;
}

static __device__ void write_payload(const struct gpu_poster *p, uint16_t first, uint32_t batch,
				     uint32_t bytes)
{
	uint32_t slots = p->queue.wqe_count;

	for (uint32_t k = 0; k < batch; k++) {
		ulonglong2 *to = (ulonglong2 *)(p->payload +
						(uint64_t)((first + k) & (slots - 1)) * bytes);

		for (uint32_t i = threadIdx.x; i < bytes / 16; i += blockDim.x)
			to[i] = make_ulonglong2(first, i);
	}
}

/* The first warp of a block posts; all its threads write the payload, if there is one. */
static __global__ void post_for(struct gpu_poster *posters, uint32_t bytes, uint32_t batch,
				uint64_t ns)
{
	__shared__ uint16_t producer;
	__shared__ int goes;
	struct gpu_poster p = posters[blockIdx.x];
	struct mlx5_queue q = p.queue;
	struct mlx5_write w = {};
	uint32_t slots = q.wqe_count;

	w.remote_address = 0x7f0000000000ull;
	w.length = bytes;
	w.with_imm = true;
	p.posted = p.waited_ns = p.stuck = 0;
	p.begin_ns = now_ns();
	for (;;) {
		if (threadIdx.x == 0) {
			goes = now_ns() - p.begin_ns < ns && await_room(&q, batch, &p);
			producer = q.producer;
		}
		__syncthreads();
		if (!goes)
			break;
		q.producer = producer;
		if (p.payload != NULL) {
			write_payload(&p, q.producer, batch, bytes);
			__syncthreads();
		}
		if (threadIdx.x >= 32)
			continue;
#pragma unroll 1 /* a batch of one is what it looks like */
		for (uint32_t i = threadIdx.x; i < batch; i += 32) {
			uint32_t slot = (q.producer + i) & (slots - 1);

			w.local_address = p.local_address + (uint64_t)slot * bytes;
			w.signal = slot % (slots / 4) == slots / 4 - 1;
			mlx5_wqe_build(&q, i, &w);
		}
		__syncwarp();
		if (threadIdx.x == 0) {
			mlx5_ring(&q, batch);
			p.posted += batch;
		}
	}
	if (threadIdx.x != 0)
		return;
	p.end_ns = now_ns();
	posters[blockIdx.x] = p;
}

int gpu_poster_run(struct gpu_poster *posters, uint32_t n, uint32_t bytes, uint32_t batch,
		   uint64_t ns)
{
	post_for<<<n, posters[0].payload != NULL ? WRITERS : 32>>>(posters, bytes, batch, ns);
	return cudaDeviceSynchronize() == cudaSuccess ? 0 : -1;
}

/* --- doorbells ---------------------------------------------------------------------------------
 */

static __global__ void ring_and_wait(struct gpu_bells *b, int mmio, uint32_t n, uint32_t *took)
{
	uint64_t start, seen;

	for (uint32_t i = 1; i <= n; i++) {
		start = now_ns();
		if (mmio)
			mlx5_doorbell_store(&b->bell, i);
		else
			asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(&b->bell),
				     "l"((uint64_t)i)
				     : "memory");
		do
			asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
				     : "=l"(seen)
				     : "l"(&b->echo)
				     : "memory");
		while (seen != i && now_ns() - start < STUCK_NS);
		took[i - 1] = (uint32_t)(now_ns() - start);
		if (seen != i)
			return;
	}
}

int gpu_poster_bells(struct gpu_bells *bells, int mmio, uint32_t n, uint32_t *took)
{
	ring_and_wait<<<1, 1>>>(bells, mmio, n, took);
	return cudaDeviceSynchronize() == cudaSuccess ? 0 : -1;
}
