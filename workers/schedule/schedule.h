/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The facade of the scheduling policies: the calls of a policy, the list of policies, and what they
 * share. Private to workers/.
 */
#ifndef WORKERS_SCHEDULE_H
#define WORKERS_SCHEDULE_H

#include "pool.h"
#include "schedule/pick.h"

struct schedule_policy {
	const char *name; /* as in the configuration file */
	/*
	 * Fill the policy's own arrays of <table>, whose common fields are filled; <member> holds
	 * its n workers in the same order. Control thread, before <table> is published. 0 or
	 * -ENOMEM. May be NULL.
	 */
	int (*prepare)(struct pick_table *table, const struct worker *const *member);
	/* Pick a worker; table->n is not 0. An lcore calls it per request. See workers_pick(). */
	uint16_t (*pick)(const struct pick_table *table, struct pick_load *load, uint32_t hash,
			 struct pick_state *state);
};

extern const struct schedule_policy schedule_round_robin;
extern const struct schedule_policy schedule_weighted;
extern const struct schedule_policy schedule_maglev;
extern const struct schedule_policy schedule_least_outstanding;
extern const struct schedule_policy schedule_power_of_two;
extern const struct schedule_policy schedule_earliest_finish;

/* cost.c: fill table->cost by the members' weights. */
int schedule_prepare_cost(struct pick_table *table, const struct worker *const *member);

static inline bool schedule_has_credit(const struct pick_load *load, uint16_t worker)
{
	return load->credits[worker] != 0;
}

/*
 * The first member with a credit from number <start> on, wrapping around; WORKER_NONE if none has.
 */
static inline uint16_t schedule_next(const struct pick_table *table, const struct pick_load *load,
				     uint32_t start)
{
	uint32_t block = start / WORKER_BLOCK % WORKER_BLOCKS, lane = start % WORKER_BLOCK;
	uint32_t first = table->member[block] & load->open[block];
	uint32_t later = first & ~0u << lane, blocks;

	if (later != 0)
		return block * WORKER_BLOCK + (uint32_t)__builtin_ctz(later);
	/* Visit the blocks after the start's block, then those before it; the start's block comes
	 * last, for its workers with lower numbers. */
	for (int round = 0; round < 2; round++) {
		uint64_t after = ~UINT64_C(0) << (block + 1);

		blocks = table->blocks & (uint32_t)(round == 0 ? after : ~after);
		for (; blocks != 0; blocks &= blocks - 1) {
			uint32_t b = (uint32_t)__builtin_ctz(blocks);
			uint32_t lanes = table->member[b] & load->open[b];

			if (lanes != 0)
				return b * WORKER_BLOCK + (uint32_t)__builtin_ctz(lanes);
		}
	}
	return WORKER_NONE;
}

#endif
