/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The facade between the host side of the loop on a GPU (loop_cuda.c) and its kernels.
 *
 *   turn        loop_kernels.cu: sends the replies of the batch that the model is done with (copies
 *               them to where the RNIC reads them, posts); then polls the rings until there is a
 *               batch again, and copies it into the model's input
 *   the model   as its capture() recorded it
 *   stage       loop_stage.cu: beside the model, where requests are large; takes what has come
 *               meanwhile and copies it next to the model's input, so that the bus is busy while
 *               the model is. Where replies are large and requests wait, it sends those of the
 *               batch before, which the turn has put aside
 *
 * One graph holds a few turns, each followed by the model, and a last one that only sends and
 * launches the graph again: the host launches it once. A model that has nothing to run (echo) needs
 * no graph between turns: one kernel runs many turns.
 *
 * A model with batches of several sizes has a graph for each: the model of that size, with a stage
 * beside it, and one turn, which launches the graph of the next batch's size.
 *
 * A model whose replies come in pieces has a turn of its own, in loop_steps.cu: no shortcuts, one
 * block, and requests keep their rows from turn to turn.
 *
 * Requests, rings and queues lie in memory that both the GPU and the RNIC see.
 */
#ifndef AGENT_LOOP_CUDA_H
#define AGENT_LOOP_CUDA_H

#include "loop/loop.h"
#include "models/model_post.h"

#include <cuda_runtime_api.h>

/* Requests; a batch lies in the shared memory of one block while it is taken. */
#define GPU_BATCH_MAX 128
#define GPU_BLOCK     256 /* threads; no less than 2 * GPU_BATCH_MAX */
/* Bytes; payload is copied in pieces of this size, one warp each. */
#define GPU_PIECE 512
/* A request that comes alone is fetched by all warps but one of one block, and its reply written by
 * all of them; a thread has this many 16-byte loads in flight (loop_quick.cuh). */
#define QUICK_LOADS       5
#define QUICK_LOADS_FEW   2 /* that most of them need */
#define QUICK_REPLY_LOADS 4
#define QUICK_STEP        ((GPU_BLOCK - 32) * 16)    /* bytes */
#define QUICK_MAX         (QUICK_LOADS * QUICK_STEP) /* of the longest request */
#define QUICK_REPLY_STEP  (GPU_BLOCK * 16)
#define QUICK_REPLY_MAX   (QUICK_REPLY_LOADS * QUICK_REPLY_STEP) /* of the longest reply */
/* Turns of one kernel without a model between them, and batches that any kernel answers in its
 * poll; after these, other work on the GPU gets a chance. */
#define GPU_KERNEL_TURNS  4096
#define GPU_NO_ROW        UINT32_MAX
#define GPU_NO_SLOT       UINT32_MAX
#define GPU_NO_LINK       UINT32_MAX

/* A request of the batch. */
struct gpu_request {
	uint64_t sequence, seen_ns;
	uint32_t slot, length, deadline_us, crc32;
	uint32_t payload, reply; /* offsets, in units of RING_ALIGNMENT */
	uint32_t link;
	uint32_t ahead;       /* index of its WQE among those of its link in this batch */
	uint32_t row;         /* row in the model's buffers; GPU_NO_ROW: it is only answered */
	uint32_t flags;       /* flags of the descriptor */
	uint32_t waited_us;   /* before it was seen */
	uint32_t stage;       /* 0, or 1 + index of its staged payload */
	uint32_t reply_bytes; /* of a reply that is held back */
	uint8_t status;       /* enum ring_status */
	bool in_place;        /* its payload is copied to the place of its reply */
};

/* Read and written by host and GPU, in pinned host memory. */
struct gpu_shared {
	uint32_t stop; /* host: end after this batch */
	/* Written by the GPU. */
	uint32_t launch_error; /* cudaError_t of the relaunch; the loop has ended */
	struct agent_loop_stats stats;
};

/* State of the loop that block 0 copies into its shared memory, and stores when its kernel ends. */
struct gpu_carried {
	struct agent_loop_stats stats;
	uint32_t first_link; /* number of the link that is polled first; the next one each time */
	uint32_t unread; /* requests known to wait in the rings since the last batch was taken */
	uint64_t next_heartbeat, last_poll;
	uint64_t next_ask; /* when the poll reads the host's words again, if rings are not the
			      host's */
	uint64_t wide; /* 1: the last batch was large, so the next poll begins with poll_wide() */
};

/* A batch, as one turn leaves it to the next. The shortcuts (quick, ahead, staged) and who writes
 * these fields: the table in loop_kernels.cu. */
struct gpu_batch {
	uint32_t n, rows; /* requests; the model runs <rows> of them, and reads that field */
	bool stopped;
	/* The first request's payload was copied ahead of the others'. */
	bool first_fetched;
	/* Fields of the shortcut "quick". */
	bool quick;    /* the batch is one small request, which is in the model's input */
	bool prebuilt; /* its WQE and its reply's header are built before the model has run */
	struct ring_reply *header; /* of a batch of one request: where its reply's header goes */
};

/* The last word of block 0 to its helpers (loop_helpers.cuh), stored and loaded at once. */
struct gpu_published {
	uint32_t number; /* PUBLISH_*, and flags */
	/* With PUBLISH_HAS_AHEAD: a payload that they copy before its request is taken. */
	uint32_t ahead_length;
	const uint8_t *ahead;
} __attribute__((aligned(16)));

/* State of the loop between turns, in the GPU's memory. */
struct gpu_state {
	struct gpu_published published;
	struct gpu_batch batch;
	struct agent_model_post post; /* of a prebuilt reply that a turn leaves to the model */
	uint64_t n_staged;            /* requests that a stage took for the turn after it */
	uint64_t start_ns; /* of the batch */
	uint32_t n_held;   /* requests whose replies the next stage sends */
	uint64_t held_start_ns, held_done_ns;
	uint32_t arrived, stage_arrived; /* steps that helpers have reported, within one graph */
	struct gpu_carried carried;
};

/* Fixed for the loop's life; a parameter of every kernel. Pointers are to the GPU's memory. */
struct gpu_loop {
	uint32_t n_links, max_batch;
	uint32_t min_request, max_request, max_reply;
	uint64_t batch_timeout_ns, heartbeat_ns;
	bool in_place;    /* the model runs nothing: the reply is the request, in the same buffer */
	bool reply_known; /* a reply's length is known before the model has run, and none fails */
	struct agent_link *links;
	struct gpu_state *state;
	struct gpu_request *request; /* [max_batch] */
	struct gpu_request *staged;  /* [max_batch]; NULL: nothing is staged */
	uint8_t *stage;              /* their payloads, <stage_stride> bytes apart */
	size_t stage_stride;
	/* [max_batch] requests whose replies are held back, <hold_stride> bytes apart; NULL: none
	 */
	struct gpu_request *held;
	uint8_t *hold;
	size_t hold_stride;
	uint32_t *lengths; /* [max_batch] lengths by row, for the model */
	/* [max_batch] addresses by row, for a model that works in place (model.in_place) */
	const uint8_t **requests;
	uint8_t **replies;
	struct gpu_shared *shared; /* pinned */
	struct agent_model_gpu model;
	/* sizes of batches; where there are several, each has a graph (device memory) */
	struct agent_buckets buckets;
	cudaGraphExec_t *graphs;
};

/* A row of the batch of a model whose replies come in pieces. Owner: one thread of the turn. */
struct gpu_row {
	struct gpu_request request;
	uint64_t start_ns, done_ns; /* of the run that made the piece that is due */
	uint32_t length;            /* of that piece */
	uint32_t chunks;            /* that were sent */
	uint16_t wqe;               /* of the last one */
	bool open;                  /* the row holds a request */
	bool stepped;   /* the model knows of it, and has to be told when it ends early */
	bool ran;       /* the model runs with it */
	bool due;       /* a piece is to be sent; the next one is made after that */
	bool last;      /* it is the last one */
	bool pending;   /* the one before it is not acknowledged */
	uint8_t status; /* of the piece that is due, if it is the last one: enum ring_status */
	uint8_t ending; /* enum ring_status that it ends with early; RING_OK: it goes on */
};

/* A parameter of the turns of such a model, beside struct gpu_loop. Device memory. */
struct gpu_steps {
	uint32_t max_pieces;
	uint32_t *states;    /* [max_batch] enum agent_row: the model's <row_states> */
	struct gpu_row *row; /* [max_batch] */
};

/* Parts of a turn; the last one of a graph only sends. */
#define GPU_SEND 1u
#define GPU_WAIT 2u
/* The turn is the last one of the graph of one size of batch, and launches that of the next
 * batch's. Each of these graphs has up to one stage before its turn, whose <before> is 1, as if a
 * turn had been there; the first graph has only the turn, whose <before> is 0. */
#define GPU_CHOOSE 4u

#ifdef __cplusplus
extern "C" {
#endif

/* Number of a turn's blocks that the current GPU runs at the same time when nothing else runs on
 * it. A turn has no more blocks, because they wait for each other. 0: CUDA cannot tell. */
unsigned int gpu_turn_blocks(void);

/* Record one kernel of <turns> turns onto <stream>, without a model between them. With more than
 * one block, <turns> is 1. <before>: waiting turns before it in the same graph. */
cudaError_t gpu_turn(const struct gpu_loop *loop, unsigned int blocks, unsigned int what,
		     unsigned int turns, unsigned int before, cudaStream_t stream);

/* Record a stage onto <stream>: while the model runs, it takes and copies the requests that have
 * come by then. The stage is in the same graph as its turns and comes between turn <before> and the
 * next. */
cudaError_t gpu_stage(const struct gpu_loop *loop, unsigned int blocks, unsigned int before,
		      cudaStream_t stream);

/* Record a turn of a model whose replies come in pieces, and the kernel that launches the graph
 * again. */
cudaError_t gpu_steps_turn(const struct gpu_loop *loop, const struct gpu_steps *steps,
			   cudaStream_t stream);
cudaError_t gpu_steps_again(const struct gpu_loop *loop, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
