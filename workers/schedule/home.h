/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows that have a home: the worker that keeps what it knows of them (a prefix or KV cache) and
 * gets their requests until it is saturated. Here is said where home is, whether there is room,
 * and who else takes a request when there is none. Pure; what a flow remembers is the caller's.
 *
 * Saturated is who has no credit, or owes at least a batch and more than so many percent of what a
 * worker of the table owes on average: a bound on loads as in consistent hashing with bounded loads
 * (Mirrokni, Thorup, Zadimoghaddam, 2018). Less than a batch waits for nobody, so spreading it
 * would only cost caches.
 */
#ifndef WORKERS_HOME_H
#define WORKERS_HOME_H

#include "workers.h"

/* What the workers of a table owe together, as of one moment. An lcore's own, per service. It
 * starts as zeros. */
struct home_load {
	uint64_t serial; /* of the table */
	uint64_t now;
	uint32_t outstanding;
};

/*
 * Home of a flow with this hash whose requests went to <last>, WORKER_NONE if there is no such
 * worker any more: <last> as long as it is in the table or may be back in a moment. With maglev it
 * is whom the hash names, on all load balancers alike. WORKER_NONE: it has none.
 */
static inline uint16_t workers_home(const struct pick_table *table, uint32_t hash, uint16_t last)
{
	if (table->policy == PICK_MAGLEV && table->n != 0)
		return table->entry[(uint64_t)hash * table->n_entries >> 32];
	return workers_pick_table_has(table, last) || workers_pick_table_awaits(table, last)
		       ? last
		       : WORKER_NONE;
}

/* Does <home> owe no more than <percent> of the mean, for its weight? Looks at all workers once per
 * <now>, any clock of the caller's. */
bool workers_home_is_within(const struct pick_table *table, const struct pick_load *load,
			    uint16_t home, uint32_t percent, uint64_t now, struct home_load *all);

/* May <home>, a member of the table, have another request? <batch>: what it takes at a time;
 * <percent>: 0 for no bound but its credits. */
static inline bool workers_home_has_room(const struct pick_table *table,
					 const struct pick_load *load, uint16_t home,
					 uint32_t batch, uint32_t percent, uint64_t now,
					 struct home_load *all)
{
	if (load->credits[home] == 0)
		return false;
	return load->outstanding[home] < batch || percent == 0 ||
	       workers_home_is_within(table, load, home, percent, now, all);
}

/*
 * Who takes a request that has no room at <home>: whom the policy picks, or <home> after all if it
 * has a credit and those who were looked at owe no less. With maglev it is one of the entries that
 * further hashes name, in their order, so that a flow goes to the same few; if they are full,
 * anybody. WORKER_NONE: nobody has a credit.
 */
uint16_t workers_pick_elsewhere(const struct pick_table *table, struct pick_load *load,
				uint32_t hash, uint16_t home, struct pick_state *state);

#endif
