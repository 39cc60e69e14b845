/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule/home.h"
#include "schedule/schedule.h"

/* Workers compared with a home that has a credit, at most. */
#define TRIES 8

static float home_cost(const struct pick_table *table, uint16_t worker)
{
	return table->cost != NULL ? table->cost[worker] : 1;
}

/* Sum the outstanding requests of the table's workers, once per <now>. */
static void home_load_sum(const struct pick_table *table, const struct pick_load *load,
			  uint64_t now, struct home_load *all)
{
	all->serial = table->serial;
	all->now = now;
	all->outstanding = 0;
	for (unsigned int i = 0; i < table->n; i++)
		all->outstanding += load->outstanding[table->worker[i]];
}

bool workers_home_is_within(const struct pick_table *table, const struct pick_load *load,
			    uint16_t home, uint32_t percent, uint64_t now, struct home_load *all)
{
	float owed = (float)load->outstanding[home] * home_cost(table, home);

	if (all->serial != table->serial || all->now != now)
		home_load_sum(table, load, now, all);
	return owed * table->capacity * 100 <= (float)percent * (float)all->outstanding;
}

static bool home_worker_owes_less(const struct pick_table *table, const struct pick_load *load,
				  uint16_t worker, uint16_t home)
{
	return (float)load->outstanding[worker] * home_cost(table, worker) <
	       (float)load->outstanding[home] * home_cost(table, home);
}

/* True when the policy compares all workers, so that none is better than its choice. */
static bool home_policy_compares_all(const struct pick_table *table)
{
	return table->policy == PICK_LEAST_OUTSTANDING || table->policy == PICK_EARLIEST_FINISH;
}

/*
 * A worker of the policy's choice that owes less than <home>, or <home> when TRIES picks find none.
 * <home> WORKER_NONE: the policy's first choice.
 */
static uint16_t home_pick_better(const struct pick_table *table, struct pick_load *load,
				 uint32_t hash, uint16_t home, struct pick_state *state)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		uint16_t worker = workers_pick(table, load, hash, state);

		if (home == WORKER_NONE || worker == WORKER_NONE ||
		    home_policy_compares_all(table) ||
		    home_worker_owes_less(table, load, worker, home))
			return worker;
	}
	return home;
}

/*
 * Maglev's next choice for a flow: entries named by further hashes, from a generator of full period
 * (Numerical Recipes).
 */
static uint16_t home_pick_candidate(const struct pick_table *table, const struct pick_load *load,
				    uint32_t hash, uint16_t home)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		uint16_t worker;

		hash = hash * 1664525u + 1013904223u;
		worker = table->entry[(uint64_t)hash * table->n_entries >> 32];
		if (load->credits[worker] != 0 &&
		    (home == WORKER_NONE || home_worker_owes_less(table, load, worker, home)))
			return worker;
	}
	return home != WORKER_NONE ? home : schedule_next(table, load, hash % WORKERS_MAX);
}

uint16_t workers_pick_elsewhere(const struct pick_table *table, struct pick_load *load,
				uint32_t hash, uint16_t home, struct pick_state *state)
{
	if (table->n == 0)
		return WORKER_NONE;
	if (!workers_pick_table_has(table, home) || load->credits[home] == 0)
		home = WORKER_NONE;
	return table->policy == PICK_MAGLEV ? home_pick_candidate(table, load, hash, home)
					    : home_pick_better(table, load, hash, home, state);
}
