/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule/preferred.h"
#include "schedule/schedule.h"

/* Workers compared with a preferred one that has a credit, at most. */
#define TRIES 8

/* How much worker <worker> is wanted. */
static uint32_t preferred_score(uint32_t hash, uint16_t worker)
{
	uint64_t x = ((uint64_t)hash << 16 | worker) * 0x9e3779b97f4a7c15;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	return (uint32_t)(x >> 32);
}

uint16_t workers_preferred_of_session(const struct pick_table *table, uint32_t hash)
{
	uint16_t best = WORKER_NONE;
	uint32_t most = 0;

	if (table->policy == PICK_MAGLEV)
		return workers_preferred(table, hash, WORKER_NONE);
	for (unsigned int i = 0; i < table->n; i++) {
		uint32_t score = preferred_score(hash, table->worker[i]);

		if (best == WORKER_NONE || score > most ||
		    (score == most && table->worker[i] < best)) {
			best = table->worker[i];
			most = score;
		}
	}
	return best;
}

static float preferred_cost(const struct pick_table *table, uint16_t worker)
{
	return table->cost != NULL ? table->cost[worker] : 1;
}

/* Sum the outstanding requests of the table's workers, once per <now>. */
static void preferred_load_sum(const struct pick_table *table, const struct pick_load *load,
			       uint64_t now, struct preferred_load *all)
{
	all->serial = table->serial;
	all->now = now;
	all->outstanding = 0;
	for (unsigned int i = 0; i < table->n; i++)
		all->outstanding += load->outstanding[table->worker[i]];
}

bool workers_preferred_is_within(const struct pick_table *table, const struct pick_load *load,
				 uint16_t preferred, uint32_t percent, uint64_t now,
				 struct preferred_load *all)
{
	float owed = (float)load->outstanding[preferred] * preferred_cost(table, preferred);

	if (all->serial != table->serial || all->now != now)
		preferred_load_sum(table, load, now, all);
	return owed * table->capacity * 100 <= (float)percent * (float)all->outstanding;
}

static bool preferred_worker_owes_less(const struct pick_table *table, const struct pick_load *load,
				       uint16_t worker, uint16_t preferred)
{
	return (float)load->outstanding[worker] * preferred_cost(table, worker) <
	       (float)load->outstanding[preferred] * preferred_cost(table, preferred);
}

/* True when the policy compares all workers, so that none is better than its choice. */
static bool preferred_policy_compares_all(const struct pick_table *table)
{
	return table->policy == PICK_LEAST_OUTSTANDING || table->policy == PICK_EARLIEST_FINISH;
}

/*
 * Let the policy pick until a worker owes less than <preferred>; returns <preferred> when TRIES
 * picks find none. With <preferred> WORKER_NONE: the policy's first choice.
 */
static uint16_t preferred_pick_better(const struct pick_table *table, struct pick_load *load,
				      uint32_t hash, uint16_t preferred, struct pick_state *state)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		uint16_t worker = workers_pick(table, load, hash, state);

		if (preferred == WORKER_NONE || worker == WORKER_NONE ||
		    preferred_policy_compares_all(table) ||
		    preferred_worker_owes_less(table, load, worker, preferred))
			return worker;
	}
	return preferred;
}

/*
 * Maglev's next choice for a flow: entries named by further hashes, from a generator of full period
 * (Numerical Recipes).
 */
static uint16_t preferred_pick_candidate(const struct pick_table *table,
					 const struct pick_load *load, uint32_t hash,
					 uint16_t preferred)
{
	for (unsigned int i = 0; i < TRIES; i++) {
		uint16_t worker;

		hash = hash * 1664525u + 1013904223u;
		worker = table->entry[(uint64_t)hash * table->n_entries >> 32];
		if (load->credits[worker] != 0 &&
		    (preferred == WORKER_NONE ||
		     preferred_worker_owes_less(table, load, worker, preferred)))
			return worker;
	}
	return preferred != WORKER_NONE ? preferred
					: schedule_next(table, load, hash % WORKERS_MAX);
}

uint16_t workers_pick_elsewhere(const struct pick_table *table, struct pick_load *load,
				uint32_t hash, uint16_t preferred, struct pick_state *state)
{
	if (table->n == 0)
		return WORKER_NONE;
	if (!workers_pick_table_has(table, preferred) || load->credits[preferred] == 0)
		preferred = WORKER_NONE;
	return table->policy == PICK_MAGLEV
		       ? preferred_pick_candidate(table, load, hash, preferred)
		       : preferred_pick_better(table, load, hash, preferred, state);
}
