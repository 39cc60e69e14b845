/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The facade of loop/: wait_inputs -> gather -> model -> scatter -> send_outputs -> again. The rest
 * of the agent sees only this header; loop_cpu.c runs the loop on a CPU thread, loop_cuda.c on a
 * GPU.
 */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/buckets.h"
#include "rdma/mlx5_post.h"
#include "models/model.h"
#include "ring.h"
#include "runtime/sleeper.h"

#define AGENT_LINKS_MAX 64
#define AGENT_HANG_MS   10000

/* One link as the loop sees it. Its memory belongs to the worker (link_memory.h). */
struct agent_link {
	/* written by the load balancer */
	const struct ring_descriptor *descriptors;
	const uint8_t *payloads; /* tiles, then the room: ring.h */
	const uint64_t *cancels;
	uint32_t slot_count; /* power of two */
	uint32_t stride;
	uint64_t room_at, room; /* the room's offset in the payload region; bytes, 0: none */
	/* written by the loop, read by the RNIC: the reply of slot i is at replies + i *
	 * reply_stride; for the RNIC at reply_address + i * reply_stride */
	uint8_t *replies;
	uint64_t reply_address;
	uint32_t reply_stride;
	uint32_t lkey;
	/* where replies go: a descriptor says at which offset */
	uint64_t remote_address;
	uint32_t remote_rkey;
	uint32_t chunk; /* bytes from chunk to chunk of a reply there */
	struct mlx5_queue queue;
	bool doorbell_is_io; /* a NIC's register, not memory */
	bool memory_on_gpu;  /* descriptors, payloads, cancels and replies are the GPU's own memory
			      */
	/* the loop's own */
	uint64_t position; /* of the next descriptor */
	uint64_t counted;  /* the descriptors before this position are there: the backlog */
	uint32_t built;    /* WQEs that were built, but not rung yet */
	uint32_t staged;   /* WQEs that requests will need: those taken and not answered (loop_cpu),
			      those of the next batch (loop_cuda) */
	uint32_t held;     /* WQEs of the batch whose replies are held back (loop_cuda) */
	bool dead;         /* the queue pair failed: post nothing more */
	struct ring_clock clock; /* tells how long requests have waited for the loop */
	uint64_t empty_ns;       /* when the ring was last seen without requests (loop_cpu) */
};

/* Build the WRITE of a heartbeat. It carries no data, only an immediate value with the backlog. */
MLX5_FN struct mlx5_write agent_heartbeat(const struct agent_link *link, uint32_t backlog)
{
	struct mlx5_write write = {
		.remote_address = link->remote_address,
		.rkey = link->remote_rkey,
		.imm = ring_imm_heartbeat(backlog),
		.with_imm = true,
		.signal = true,
	};

	return write;
}

struct agent_loop_params {
	const struct agent_model *model;
	void *model_state;
	struct agent_model_shape shape;
	uint32_t max_reply; /* bytes; a longer reply becomes an error reply, as no client could get
			       it */
	uint32_t max_batch; /* at most shape.max_batch */
	struct agent_buckets buckets; /* sizes of batches that the model runs; none: max_batch */
	uint32_t max_pieces;       /* of a reply: those that the load balancer has places for */
	uint32_t batch_timeout_us; /* wait this long for a batch to fill; 0: take what is there */
	uint32_t heartbeat_ms;
	uint32_t hang_ms; /* a loop that does not stop within this is taken for hung; 0:
			     AGENT_HANG_MS */
	bool idle_sleep;
	const char
		*turns; /* turns.h: the file of those that run in turn; NULL: none. loop_cpu only */
	unsigned int n_links;
	struct agent_link *links; /* owned by the loop while it runs */
	struct sleeper *sleeper;  /* the RNIC wakes it when it has written descriptors */
	/* Called after doorbells were rung, to wake an RNIC that sleeps; may be NULL. */
	void (*kick)(void *context);
	void *kick_context;
	int gpu; /* CUDA device number; loop_cuda only */
};

/* Counters of the loop; any thread may read them. */
struct agent_loop_stats {
	uint64_t batches, requests, errors, expired, cancelled, bad;
	uint64_t heartbeats; /* none while a batch runs */
	uint64_t backlog;    /* requests in hand at the last heartbeat */
	uint64_t dead_links;
	uint64_t longest_run_ns; /* of the model, one batch */
	/* batches that the model has run, by their size, and what all of a size took */
	uint64_t bucket_batches[AGENT_BUCKETS_MAX];
	uint64_t bucket_run_ns[AGENT_BUCKETS_MAX];
};

struct agent_loop;

struct agent_loop_ops {
	const char *name;
	uint32_t batch_max; /* requests; larger batches are cut */
	/* Start the loop on a thread of its own, or on the GPU. Copies <params>. NULL with a
	 * sentence in <error>. */
	struct agent_loop *(*start)(const struct agent_loop_params *params, char *error,
				    size_t size);
	/* Stop the loop after its batch (on a GPU: after the turns of its graph) and wait for it.
	 * Exits the process when that takes longer than hang_ms, as nothing else could end the
	 * loop. NULL is fine. */
	void (*stop)(struct agent_loop *loop);
	void (*stats)(const struct agent_loop *loop, struct agent_loop_stats *out);
	/* True when the loop has ended by itself. <why> says what broke; this process cannot repair
	 * it. */
	bool (*failed)(const struct agent_loop *loop, char *why, size_t size);
	/* True when a loop on <gpu> could post to <queue>, which is a device's: its doorbell is a
	 * register. What is NULL there is not tried. <why> gets the reason when not. NULL: this
	 * loop can ring every device. */
	bool (*can_ring)(int gpu, const struct mlx5_queue *queue, char *why, size_t size);
};

extern const struct agent_loop_ops agent_loop_cpu;
extern const struct agent_loop_ops agent_loop_cuda;

#endif
