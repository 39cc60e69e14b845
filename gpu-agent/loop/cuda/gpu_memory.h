/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of a GPU that an RDMA device reads and writes: rings and payloads without a trip across
 * the host's memory. Main thread.
 */
#ifndef AGENT_GPU_MEMORY_H
#define AGENT_GPU_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A GPU maps its memory for other devices in units of this. */
#define GPU_MEMORY_UNIT ((size_t)65536)

struct gpu_memory {
	int gpu;
	void *allocation; /* the driver's; <at> lies in it */
	uint64_t at;      /* address in the GPU and in this process; a multiple of the unit */
	size_t size;      /* a multiple of the unit and of the host's page */
	int dmabuf_fd;    /* of all of it, from its start on; -1: the driver exports none */
};

/*
 * Allocate zeroed memory of <gpu>, <size> bytes or more, and export it as a dma-buf. Memory without
 * a dma-buf counts as success: nvidia-peermem may do without; <why> then says what the driver said.
 * 0, or -errno with a reason in <why>.
 */
int gpu_memory_create(struct gpu_memory *m, int gpu, size_t size, char *why, size_t why_size);
/* The RDMA device has forgotten it. Memory that was never created is ignored. */
void gpu_memory_destroy(struct gpu_memory *m);

/*
 * True when a kernel of <gpu> that sees a word which a NIC has written sees all that the NIC wrote
 * before: a ring's marks need that. (CUDA: cudaDevAttrGPUDirectRDMAWritesOrdering is OWNER or
 * more.) <why> gets the reason when it does not.
 */
bool gpu_memory_is_ordered(int gpu, char *why, size_t size);

#endif
