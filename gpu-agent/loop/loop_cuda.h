/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop on a GPU: what its host side (loop_cuda.c) and its kernels (loop_kernels.cu) share.
 *
 *   turn        sends the outputs of the batch that the model is done with: copies replies to where
 *               the RNIC reads them, posts; then polls the rings until there is a batch again, and
 *               copies it into the model's input
 *   the model   as its capture() recorded it
 *   stage       beside the model, where requests are large: takes what has come meanwhile, and
 *               copies it next to the model's input, so that the bus is busy while the model is
 *
 * One graph holds a few turns, each followed by the model, and a last one that only sends and
 * launches the graph again: the host launches it once. A model that has nothing to run (echo) needs
 * no graph between turns: then one kernel goes on turning.
 *
 * Requests, rings and queues lie in memory that both the GPU and the RNIC see.
 */
#ifndef AGENT_LOOP_CUDA_H
#define AGENT_LOOP_CUDA_H

#include "loop/loop.h"

#include <cuda_runtime_api.h>

/* A batch lies in the shared memory of one block while it is taken. */
#define GPU_BATCH_MAX 128
#define GPU_BLOCK     256 /* threads; no less than 2 * GPU_BATCH_MAX */
/* Payload is copied in pieces of this many bytes, one warp each. */
#define GPU_PIECE   512
#define GPU_NO_ROW  UINT32_MAX
#define GPU_NO_SLOT UINT32_MAX
#define GPU_NO_LINK UINT32_MAX

/* A request of the batch. */
struct gpu_request {
	uint64_t sequence, seen_ns;
	uint32_t slot, length, deadline_us, crc32;
	uint32_t link;
	uint32_t ahead; /* its WQE is the so many-th of its link's in this batch */
	uint32_t row;   /* of the model, or GPU_NO_ROW: is only answered */
	uint32_t flags; /* of the descriptor */
	uint32_t stage; /* 0, or 1 + where its payload was staged */
	uint8_t status; /* enum ring_status */
	bool in_place;  /* is gathered to where its reply leaves from */
};

/* Read and written by host and GPU, in pinned host memory. */
struct gpu_shared {
	uint32_t stop; /* host: end after this batch */
	/* Of the GPU. */
	uint32_t launch_error; /* cudaError_t of the relaunch; the loop has ended */
	struct agent_loop_stats stats;
};

/* What block 0 takes into its own memory and puts back. */
struct gpu_kept {
	struct agent_loop_stats stats;
	uint64_t first_link; /* links take turns at being looked at first */
	uint64_t next_heartbeat, last_look;
};

/* A batch, as one turn leaves it to the next. */
struct gpu_batch {
	uint32_t n, rows; /* requests, and those of them that the model runs; it reads <rows> */
	bool stopped;
	/* The first request's payload was where it belongs before the others' (loop_ahead.cuh). */
	bool first_fetched;
	/* loop_quick.cuh */
	bool quick;                /* all of it is one small request */
	bool built;                /* and its WQE and its reply's header are there */
	uint32_t bytes;            /* then so many of the reply are still to be written */
	struct ring_reply *header; /* and done_ns there */
};

/* Of the loop between turns, on the GPU. */
struct gpu_state {
	struct gpu_batch batch;
	uint32_t n_staged; /* requests that a stage took, for the turn behind it */
	uint64_t start_ns; /* of the batch */
	/* Between block 0 and those that only copy, in one graph (loop_gather.cuh). */
	uint32_t published, arrived;
	const uint8_t *ahead; /* payload to be copied before its request was taken */
	uint32_t ahead_length;
	struct gpu_kept kept;
};

/* Fixed for the loop's life; a parameter of every kernel. Pointers are to the GPU's memory. */
struct gpu_loop {
	uint32_t n_links, max_batch;
	uint32_t min_request, max_request, max_reply;
	uint64_t batch_timeout_ns, heartbeat_ns;
	bool in_place; /* nothing to run, and the reply is the request */
	bool foreseen; /* a reply's length is known before the model has run, and none fails */
	struct agent_link *links;
	struct gpu_state *state;
	struct gpu_request *request; /* [max_batch] */
	struct gpu_request *staged;  /* [max_batch]; NULL: nothing is staged */
	uint8_t *stage; /* their payloads, as far apart as the model's rows were made */
	size_t stage_stride;
	uint32_t *lengths;         /* [max_batch]: of rows, for the model */
	struct gpu_shared *shared; /* pinned */
	struct agent_model_gpu model;
};

/* What a turn does; the last of a graph only sends. */
#define GPU_SEND 1u
#define GPU_WAIT 2u

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks of turns that a GPU runs at the same time, if nothing else runs there: they wait for each
 * other. 0: it cannot tell. The current device's. */
unsigned int gpu_turn_blocks(void);

/* Put <turns> turns without a model between them onto <stream>; with more than one block only one.
 * <before>: how many waited before it in the same graph. */
cudaError_t gpu_turn(const struct gpu_loop *loop, unsigned int blocks, unsigned int what,
		     unsigned int turns, unsigned int before, cudaStream_t stream);

/* Put a stage onto <stream>: what has come by then is taken and copied while the model runs. It is
 * in the same graph and as wide as its turns, between number <before> and the next. */
cudaError_t gpu_stage(const struct gpu_loop *loop, unsigned int blocks, unsigned int before,
		      cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
