/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Picks the worker with fewer outstanding requests for its weight, of two random ones
 * (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 1996). So lcores and load
 * balancers that do not see each other's requests do not all choose the same idle worker.
 */
#include "schedule/schedule.h"

/* Draw two different positions of a table of n. The hash makes lcores draw different ones. */
static void power_of_two_draw(struct pick_state *state, uint32_t hash, uint32_t n, uint32_t *one,
			      uint32_t *other)
{
	/* The multiplier is Knuth's for 64 bits (MMIX); the high bits are the random ones. */
	state->random = (state->random + hash) * UINT64_C(6364136223846793005) +
			UINT64_C(1442695040888963407);
	*one = (uint32_t)(state->random >> 48) * n >> 16;
	*other = (uint32_t)(state->random >> 32 & 0xffff) * (n - 1) >> 16;
	*other += *other >= *one;
}

/* The worker at <position> if it has a credit, else the next one that has. */
static uint16_t power_of_two_eligible(const struct pick_table *table, const struct pick_load *load,
				      uint32_t position)
{
	uint16_t worker = table->worker[position];

	return schedule_has_credit(load, worker) ? worker : schedule_next(table, load, worker);
}

static float power_of_two_owed(const struct pick_table *table, const struct pick_load *load,
			       uint16_t worker)
{
	return (float)(load->outstanding[worker] + 1) * table->cost[worker];
}

static uint16_t power_of_two_pick(const struct pick_table *table, struct pick_load *load,
				  uint32_t hash, struct pick_state *state)
{
	uint32_t one, other;
	uint16_t a, b;

	power_of_two_draw(state, hash, table->n, &one, &other);
	a = power_of_two_eligible(table, load, one);
	if (a == WORKER_NONE)
		return WORKER_NONE;
	b = power_of_two_eligible(table, load, other);
	return power_of_two_owed(table, load, b) < power_of_two_owed(table, load, a) ? b : a;
}

const struct schedule_policy schedule_power_of_two = {
	.name = "power-of-two",
	.prepare = schedule_prepare_cost,
	.pick = power_of_two_pick,
};
