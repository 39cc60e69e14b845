/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent's loop: wait_inputs -> gather -> model -> scatter -> send_outputs -> again. This header
 * is what the rest of the agent sees of it; loop_cpu.c runs it on a CPU thread, loop_cuda.c on a
 * GPU.
 */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/mlx5_post.h"
#include "models/model.h"
#include "ring.h"
#include "runtime/sleeper.h"

#define AGENT_LINKS_MAX 64
#define AGENT_HANG_MS   10000

/* One link as the loop sees it. Memory belongs to whoever made the link; see memory.h. */
struct agent_link {
	/* written by the load balancer */
	const struct ring_descriptor *descriptors;
	const uint8_t *slots;
	const uint64_t *cancels;
	uint32_t slot_count; /* power of two */
	uint32_t stride;
	/* written by the loop, read by the RNIC: slot i's reply lies at replies + i * reply_stride
	 */
	uint8_t *replies;
	uint32_t reply_stride;
	uint32_t lkey;
	/* where replies go */
	uint64_t remote_address;
	uint32_t remote_stride;
	uint32_t remote_rkey;
	struct mlx5_queue queue;
	bool doorbell_is_io; /* a NIC's register, not memory */
	/* the loop's own */
	uint64_t position; /* of the next descriptor */
	uint32_t heartbeats;
	uint32_t built;  /* WQEs that wait for the doorbell */
	uint32_t staged; /* those of requests that wait behind them (loop_cuda) */
	bool dead;       /* the queue pair failed: nothing more is posted */
};

/* The WRITE that says: still here. */
MLX5_FN struct mlx5_write agent_heartbeat(struct agent_link *link)
{
	struct mlx5_write write = {
		.remote_address = link->remote_address,
		.rkey = link->remote_rkey,
		.imm = RING_IMM_HEARTBEAT | (link->heartbeats++ & 0xfffff),
		.with_imm = true,
		.signal = true,
	};

	return write;
}

struct agent_loop_params {
	const struct agent_model *model;
	void *model_state;
	struct agent_model_shape shape;
	uint32_t max_reply;        /* longer replies end as errors: no client could get them */
	uint32_t max_batch;        /* at most shape.max_batch */
	uint32_t batch_timeout_us; /* wait this long for a batch to fill; 0 = take what is there */
	uint32_t heartbeat_ms;
	uint32_t hang_ms; /* who does not stop within this never will; 0: AGENT_HANG_MS */
	bool idle_sleep;
	unsigned int n_links;
	struct agent_link *links; /* the loop's while it runs */
	struct sleeper *sleeper;  /* whoever writes descriptors wakes it */
	/* Called after doorbells were rung, in case the RNIC sleeps; may be NULL. */
	void (*kick)(void *context);
	void *kick_context;
	int gpu; /* CUDA's number; loop_cuda only */
};

/* Counters of the loop; anybody may read them. */
struct agent_loop_stats {
	uint64_t batches, requests, errors, expired, cancelled, bad;
	uint64_t heartbeats;
	uint64_t dead_links;
	uint64_t longest_run_ns; /* of the model, one batch */
};

struct agent_loop;

struct agent_loop_ops {
	const char *name;
	uint32_t batch_max; /* requests; larger batches are cut */
	/* Start the loop: on a thread of its own, or on the GPU. Copies <params>. NULL with a
	 * sentence in <error>. */
	struct agent_loop *(*start)(const struct agent_loop_params *params, char *error,
				    size_t size);
	/* Stop it after its batch, or on a GPU the turns of its graph, and wait for it; the process
	 * ends when that takes longer than hang_ms, as nothing else would end it. NULL is fine. */
	void (*stop)(struct agent_loop *loop);
	void (*stats)(const struct agent_loop *loop, struct agent_loop_stats *out);
	/* Has it ended by itself? Then <why> says what broke, and this process cannot mend it. */
	bool (*failed)(const struct agent_loop *loop, char *why, size_t size);
};

extern const struct agent_loop_ops agent_loop_cpu;
extern const struct agent_loop_ops agent_loop_cuda;

/* GPUs that agent_loop_cuda can run on, or 0 and why in <why>. */
int agent_gpus(char *why, size_t size);
/* What the GPU is called, or "". */
void agent_gpu_name(int gpu, char *name, size_t size);

#endif
