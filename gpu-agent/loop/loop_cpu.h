/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop on a CPU thread: what its two kinds share. loop_cpu.c runs a batch at a time,
 * loop_steps.c models whose replies come in pieces.
 */
#ifndef AGENT_LOOP_CPU_H
#define AGENT_LOOP_CPU_H

#include <pthread.h>

#include "loop/cpu_link.h"
#include "turns/turns.h"

/* ns: the RNIC does not wake the loop when something was acknowledged. */
#define LOOP_PENDING_NS 200000

struct batch {
	uint32_t n;
	struct intake *request;
	struct agent_link **link;
	struct agent_model_item *item; /* the requests that run, without gaps */
	uint32_t *runs;                /* request number of each item */
	uint32_t n_runs;
	uint64_t start_ns, done_ns;
};

struct loop_steps;
struct loop_turns;

/* Owner: its thread. */
struct agent_loop {
	struct agent_loop_params params;
	struct batch batch;       /* of loop_cpu.c; */
	struct loop_steps *steps; /* or of loop_steps.c */
	struct loop_turns *by_turns; /* of loop_turns.c; NULL: nobody runs in turn with this loop */
	unsigned int first_link;     /* link that is polled first: behind the last one served */
	uint64_t next_heartbeat;
	uint32_t idle;
	struct turns turns; /* if <params> has a file */
	bool has_turn;
	int stop; /* atomic */
	pthread_t thread;
	struct agent_loop_stats stats;
};

static inline bool loop_cpu_stops(const struct agent_loop *loop)
{
	return __atomic_load_n(&loop->stop, __ATOMIC_ACQUIRE);
}

/* Post a WRITE, for which cpu_link_spare() has a WQE. False: the link is dead. */
bool loop_cpu_post(struct agent_loop *loop, struct agent_link *link,
		   const struct mlx5_write *write);

/*
 * Where other loops run in turn with this one: wait for the turn; the next one may run. Without
 * such loops nothing happens. <run_ns>: what a run of this one takes; <open>: as
 * loop_cpu_heartbeat(), which is called meanwhile.
 */
void loop_cpu_take_turn(struct agent_loop *loop, uint64_t run_ns, uint32_t open);
void loop_cpu_give_turn(struct agent_loop *loop);
/* The same by turns_try(): is it this loop's turn now? */
bool loop_cpu_try_turn(struct agent_loop *loop, uint64_t now);

/* Requests that wait unread in the rings. */
uint32_t loop_cpu_unread(const struct agent_loop *loop);

/* Takes requests of all rings, <max> at most; each in its turn goes first. Returns how many. */
uint32_t loop_cpu_take(struct agent_loop *loop, uint64_t now, struct intake *request,
		       struct agent_link **link, uint32_t max);

/* The heartbeat, if it is due. <open>: requests that were taken and are not answered. */
void loop_cpu_heartbeat(struct agent_loop *loop, uint64_t now, uint32_t open);

/*
 * There is nothing to do: spin, yield, or sleep for <ns> at most. <look> is called before it
 * sleeps, and says whether there is something to do after all.
 */
void loop_cpu_back_off(struct agent_loop *loop, uint64_t ns, bool (*look)(struct agent_loop *loop));

#endif
