/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent's loop: wait_inputs -> gather -> model -> scatter -> send_outputs -> again. This header
 * is what the rest of the agent sees of it; loop_cpu.c runs it on a CPU thread.
 */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlx5_post.h"
#include "model.h"
#include "ring.h"
#include "sleeper.h"

#define AGENT_LINKS_MAX 64

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
	/* the loop's own */
	uint64_t position; /* of the next descriptor */
	uint32_t heartbeats;
	uint32_t built; /* WQEs that wait for the doorbell */
	bool dead;      /* the queue pair failed: nothing more is posted */
};

struct agent_loop_params {
	const struct agent_model *model;
	void *model_state;
	struct agent_model_shape shape;
	uint32_t max_reply;        /* longer replies end as errors: no client could get them */
	uint32_t max_batch;        /* at most shape.max_batch */
	uint32_t batch_timeout_us; /* wait this long for a batch to fill; 0 = take what is there */
	uint32_t heartbeat_ms;
	bool idle_sleep;
	unsigned int n_links;
	struct agent_link *links; /* the loop's while it runs */
	struct sleeper *sleeper;  /* whoever writes descriptors wakes it */
	/* Called after doorbells were rung, in case the RNIC sleeps; may be NULL. */
	void (*kick)(void *context);
	void *kick_context;
};

/* Counters of the loop; anybody may read them. */
struct agent_loop_stats {
	uint64_t batches, requests, errors, expired, cancelled, bad;
	uint64_t heartbeats;
	uint64_t dead_links;
	uint64_t longest_run_ns; /* of the model, one batch */
};

struct agent_loop;

/* Start the loop on a thread of its own. NULL with errno. Copies <params>. */
struct agent_loop *agent_loop_start(const struct agent_loop_params *params);
/* Stop it within one batch and wait for it. */
void agent_loop_stop(struct agent_loop *loop);
void agent_loop_stats_read(const struct agent_loop *loop, struct agent_loop_stats *out);

#endif
