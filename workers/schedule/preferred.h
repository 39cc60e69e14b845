/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Session affinity. A flow has a preferred worker: the one that has its prefix or KV cache
 * and gets its requests until it is saturated. These calls find it, check that it has room, and
 * choose another worker when it has none. Pure; the caller stores a flow's last worker.
 *
 * A worker is saturated when it has no credit, or when its outstanding requests exceed a batch and
 * <percent> of the table's mean: consistent hashing with bounded loads (Mirrokni, Thorup,
 * Zadimoghaddam, 2018). Less than a batch runs at once, so moving it would only cost caches.
 */
#ifndef WORKERS_PREFERRED_H
#define WORKERS_PREFERRED_H

#include "schedule/pick.h"

/* Outstanding requests of all workers of a table at one moment. One per lcore and service; starts
 * as zeros. */
struct preferred_load {
	uint64_t serial; /* of the table */
	uint64_t now;    /* the caller's clock when it was summed */
	uint32_t outstanding;
};

/*
 * The preferred worker of a flow with this hash: with maglev the worker that the hash names, on all
 * load balancers alike; else <last>, the worker of its last requests (or WORKER_NONE), as long as
 * it is in the table or awaited. WORKER_NONE: the flow has none.
 */
static inline uint16_t workers_preferred(const struct pick_table *table, uint32_t hash,
					 uint16_t last)
{
	if (table->policy == PICK_MAGLEV && table->n != 0)
		return table->entry[(uint64_t)hash * table->n_entries >> 32];
	return workers_pick_table_has(table, last) || workers_pick_table_awaits(table, last)
		       ? last
		       : WORKER_NONE;
}

/*
 * The preferred worker of a session that no state is kept for: the same for all requests with this
 * hash as long as it is in the table, and others' sessions stay where they are when it goes
 * (rendezvous hashing; with maglev its entry). WORKER_NONE: the table is empty.
 */
uint16_t workers_preferred_of_session(const struct pick_table *table, uint32_t hash);

/* True when <preferred> owes at most <percent> of the mean for its weight. Sums all workers once
 * per <now>, a time on any clock of the caller. */
bool workers_preferred_is_within(const struct pick_table *table, const struct pick_load *load,
				 uint16_t preferred, uint32_t percent, uint64_t now,
				 struct preferred_load *all);

/* True when <preferred>, a member of the table, is not saturated. <batch>: requests that it runs at
 * a time; <percent>: 0 for no bound but its credits. */
static inline bool workers_preferred_has_room(const struct pick_table *table,
					      const struct pick_load *load, uint16_t preferred,
					      uint32_t batch, uint32_t percent, uint64_t now,
					      struct preferred_load *all)
{
	if (load->credits[preferred] == 0)
		return false;
	return load->outstanding[preferred] < batch || percent == 0 ||
	       workers_preferred_is_within(table, load, preferred, percent, now, all);
}

/*
 * Choose a worker for a request whose <preferred> is saturated: the policy's pick, or <preferred>
 * if it has a credit and the compared workers owe no less. With maglev, the entries that further
 * hashes name are tried in order, so that a flow goes to the same few workers; if all are full, any
 * worker with a credit. WORKER_NONE: no worker has a credit.
 */
uint16_t workers_pick_elsewhere(const struct pick_table *table, struct pick_load *load,
				uint32_t hash, uint16_t preferred, struct pick_state *state);

#endif
