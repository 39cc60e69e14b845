/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hundreds of workers in one process, for the bench `pool`: the agent's own sessions, queue pairs
 * and software RNIC, all behind one DPDK port, but one thread for all their loops, which takes the
 * time that a model would and uses no CPU for it. pool_loop.c is that loop, pool_churn.c changes
 * the workers, pool_workers.c is the program.
 */
#ifndef BENCH_POOL_WORKERS_H
#define BENCH_POOL_WORKERS_H

#include <event2/event.h>

#include "agent.h"
#include "cli/bench/arrivals.h"

#define POOL_WORKERS_MAX 1024

/* The model of a worker: its loop's state. */
struct pool_model {
	double batch_us, each_us;
	bool exponential; /* exponentially distributed around their mean; otherwise constant */
	uint32_t hung;    /* atomic: the loop stands still, its connection does not */
	struct draw draw;
};

enum pool_state { POOL_AWAY, POOL_SERVING, POOL_LEAVING };

struct pool_worker {
	struct pool *pool;
	struct agent_setup setup;
	struct agent_session *session;
	struct pool_model model;
	enum pool_state state;
};

struct pool_options {
	struct agent_options agent;
	uint64_t workers, slow, events, seed, lcores;
	double batch_us, each_us, slow_factor, seconds;
	bool exponential, roll, hang;
	const char *control, *service;
	uint64_t max_request;
};

struct pool {
	struct pool_options options;
	struct event_base *base;
	struct rnic *rnic;
	struct pool_worker worker[POOL_WORKERS_MAX];
	uint64_t start_ns, registered_ns;
	/* churn */
	struct event *next_event;
	struct draw draw;
	uint64_t happened, joins, leaves, kills, hangs;
	unsigned int rolling; /* the next one of a rolling restart */
};

/* --- pool_loop.c ---------------------------------------------------------------------------------
 */

extern const struct agent_loop_ops pool_loop;

/* The thread of all loops, before the first and after the last worker. */
int pool_loop_open(void);
void pool_loop_close(void);

/* --- pool_workers.c ------------------------------------------------------------------------------
 */

/* Begins to register; -ENOMEM. */
int pool_join(struct pool_worker *worker);
/* Drains and leaves; or goes at once, as if killed. */
void pool_leave(struct pool_worker *worker);
void pool_kill(struct pool_worker *worker);

/* Prints a line of JSON about one event, of <worker> or, when that is NULL, of all. */
void pool_say(const struct pool *pool, const char *event, const struct pool_worker *worker);

/* --- pool_churn.c --------------------------------------------------------------------------------
 */

/* Everybody serves: from now on, things happen to them. "done" is said after the last. */
void pool_churn_start(struct pool *pool);
/* <worker> has left. */
void pool_churn_left(struct pool_worker *worker);

#endif
