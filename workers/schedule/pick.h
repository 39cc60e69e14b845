/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table that lcores pick a service's worker from, and the policies by which they pick.
 *
 * Threads: the control thread creates tables from the pool. Lcores read struct pick_table, which is
 * immutable once published; the load balancer swaps the pointer, and frees the old table when QSBR
 * shows that no lcore reads it.
 */
#ifndef WORKERS_PICK_H
#define WORKERS_PICK_H

#include <stdbool.h>
#include <stdint.h>

#include "load.h"
#include "worker_set.h"

struct pick_groups;
struct worker_pool;

enum pick_policy {
	PICK_ROUND_ROBIN,
	PICK_WEIGHTED,
	PICK_MAGLEV,
	PICK_LEAST_OUTSTANDING,
	PICK_POWER_OF_TWO,
	PICK_EARLIEST_FINISH,
	PICK_POLICIES,
};
const char *pick_policy_name(enum pick_policy policy);

/* The active workers of one service, in the order of their numbers. Immutable once published. */
struct pick_table {
	enum pick_policy policy;
	uint16_t n;
	uint16_t soon;                  /* suspect and probing workers that may join it soon */
	uint64_t serial;                /* unique among this process's tables; never 0 */
	uint32_t blocks;                /* bit b: block b of load.h has members */
	uint32_t member[WORKER_BLOCKS]; /* one bit per worker number */
	/* Silent workers whose flows wait for them. Filled by the caller before it publishes. */
	struct worker_set away;
	/* Arrays that the policy prepares; NULL where it prepares none. */
	float *cost;    /* by worker number: of one outstanding request, less for heavier workers */
	float capacity; /* the sum of 1 / cost; n where costs are the same */
	uint16_t *entry; /* worker numbers, by hash (maglev) or turn (weighted) */
	uint32_t n_entries;
	struct pick_groups *groups; /* places of workers, see groups.h; NULL: any will do */
	uint16_t worker[];
};

/*
 * Create a table of the active workers in <in>; it may have none. <soon> is the table's field.
 * Keeps no pointer into the pool. NULL with errno ENOMEM.
 */
struct pick_table *workers_pick_table_create(struct worker_pool *pool, const struct worker_set *in,
					     uint16_t soon, enum pick_policy policy);
void workers_pick_table_destroy(struct pick_table *table);
/* Entries of maglev's tables, a prime. Only tests set it, to a smaller prime. */
extern uint32_t workers_maglev_size;

/*
 * One lcore's state of picks for one service. It starts as zeros and outlives tables; only
 * workers_pick() reads and writes it.
 */
struct pick_state {
	uint64_t serial; /* of the table that the rest describes */
	uint64_t seen;   /* pick_load.changes at the last pick */
	uint64_t random;
	uint32_t turn;          /* worker number or entry where the next round-robin step starts */
	uint32_t stale;         /* one bit per block: its key and lanes are out of date */
	uint32_t least, blocks; /* the smallest of all keys; one bit per block that has it */
	uint32_t key[WORKER_BLOCKS];   /* the smallest key of each block */
	uint32_t lanes[WORKER_BLOCKS]; /* one bit per worker of the block that has that key */
};

/*
 * Pick the worker for a request of a flow with this hash. WORKER_NONE if the named worker (maglev)
 * or every worker (other policies) has no credit. <load> and <state> are the lcore's own;
 * earliest-finish also writes guesses into <load> for workers that have not answered yet.
 */
uint16_t workers_pick(const struct pick_table *table, struct pick_load *load, uint32_t hash,
		      struct pick_state *state);

/* True when <worker> is in the table. For flows that stay with their worker. */
static inline bool workers_pick_table_has(const struct pick_table *table, uint16_t worker)
{
	return worker < WORKERS_MAX &&
	       table->member[worker / WORKER_BLOCK] >> worker % WORKER_BLOCK & 1;
}

/* True when <worker> is silent, but its flows should still wait for it. */
static inline bool workers_pick_table_awaits(const struct pick_table *table, uint16_t worker)
{
	return worker < WORKERS_MAX && worker_set_has(&table->away, worker);
}

#endif
