/* SPDX-License-Identifier: BSD-3-Clause */
/* Picks each worker in turn; a worker without a credit loses its turn. */
#include "schedule/schedule.h"

static uint16_t round_robin_pick(const struct pick_table *table, struct pick_load *load,
				 uint32_t hash, struct pick_state *state)
{
	uint16_t worker = schedule_next(table, load, state->turn);

	if (worker != WORKER_NONE)
		state->turn = worker + 1;
	return worker;
}

const struct schedule_policy schedule_round_robin = {
	.name = "round-robin",
	.pick = round_robin_pick,
};
