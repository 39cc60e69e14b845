/* SPDX-License-Identifier: BSD-3-Clause */
/* Picks the worker with a credit and the fewest outstanding requests for its weight; equal ones
 * take turns. */
#include "schedule/smallest.h"

static uint16_t least_outstanding_pick(const struct pick_table *table, struct pick_load *load,
				       uint32_t hash, struct pick_state *state)
{
	const struct lanes_keys keys = {table->cost, table->cost};

	return smallest_pick(table, load, keys, state, true);
}

const struct schedule_policy schedule_least_outstanding = {
	.name = "least-outstanding",
	.prepare = schedule_prepare_cost,
	.pick = least_outstanding_pick,
};
