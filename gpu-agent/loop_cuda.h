/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop on a GPU: what its host side (loop_cuda.c) and its kernels (loop_kernels.cu) share.
 *
 *   wait_gather   polls the rings until there is a batch, then copies it into the model's input
 *   the model     as its capture() recorded it
 *   scatter_send  copies replies to where the RNIC reads them, posts, launches the graph again
 *
 * One graph holds the three; it is launched once by the host and from then on by itself. Requests,
 * rings and queues lie in memory that both the GPU and the RNIC see; everything of this header but
 * gpu_shared lies on the GPU.
 */
#ifndef AGENT_LOOP_CUDA_H
#define AGENT_LOOP_CUDA_H

#include "loop.h"

#include <cuda_runtime_api.h>

/* A batch lies in the shared memory of one block while it is taken. */
#define GPU_BATCH_MAX 256
#define GPU_BLOCK     256 /* threads; no less than GPU_BATCH_MAX */
/* Payload is copied in pieces of this many bytes, one warp each. */
#define GPU_PIECE  512
#define GPU_NO_ROW UINT32_MAX

/* A request of the batch. */
struct gpu_request {
	uint64_t sequence, seen_ns;
	uint32_t slot, length, deadline_us, crc32;
	uint32_t link;
	uint32_t ahead; /* its WQE is the so many-th of its link's in this batch */
	uint32_t row;   /* of the model, or GPU_NO_ROW: is only answered */
	uint8_t status; /* enum ring_status */
	bool has_crc;
};

/* Read and written by host and GPU, in pinned host memory. */
struct gpu_shared {
	uint32_t stop; /* host: end after this batch */
	/* Of the GPU. */
	uint32_t launch_error; /* cudaError_t of the relaunch; the loop has ended */
	struct agent_loop_stats stats;
};

struct gpu_loop {
	/* fixed */
	uint32_t n_links, max_batch;
	uint32_t min_request, max_request, max_reply;
	uint64_t batch_timeout_ns, heartbeat_ns;
	struct agent_link *links;
	struct gpu_shared *shared;
	struct agent_model_gpu model;
	/* of this batch */
	struct gpu_request *request; /* [max_batch] */
	uint32_t *row_request;       /* [max_batch]: whose row this is */
	uint32_t *lengths;           /* [max_batch]: of rows, for the model */
	uint32_t n, rows;
	uint64_t start_ns;
	uint32_t any_crc;
	bool stopped;
	/* between blocks and batches */
	uint32_t turn;                /* batches done */
	uint32_t published;           /* turn + 1 once the batch is there for all blocks */
	uint32_t gathered, scattered; /* blocks that have */
	uint32_t first_link;
	uint64_t next_heartbeat;
	struct agent_loop_stats stats;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Put the kernel onto <stream>. */
cudaError_t gpu_wait_gather(struct gpu_loop *loop, unsigned int blocks, cudaStream_t stream);
cudaError_t gpu_scatter_send(struct gpu_loop *loop, unsigned int blocks, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
