/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Picks the worker with a credit that would answer first, by its outstanding requests and its
 * measured speed (load.h). It ignores weights, because speed is measured.
 */
#include "schedule/smallest.h"

/* Guess when no worker is measured. Only equality matters. */
#define GUESS_NS 1e6f

/*
 * Guess the times of workers that have not answered yet: the mean of the others. A guess of zero
 * would flood such a worker until its first answer; a high one would keep requests away from it.
 */
static void earliest_finish_guess(const struct pick_table *table, struct pick_load *load)
{
	float run = 0, gap = 0;
	unsigned int known = 0;

	for (unsigned int i = 0; i < table->n; i++) {
		uint16_t worker = table->worker[i];

		if (load->meter[worker].measured) {
			run += load->run_ns[worker];
			gap += load->gap_ns[worker];
			known++;
		}
	}
	for (unsigned int i = 0; i < table->n; i++) {
		uint16_t worker = table->worker[i];

		if (load->meter[worker].measured)
			continue;
		load->run_ns[worker] = known != 0 ? run / (float)known : GUESS_NS;
		load->gap_ns[worker] = known != 0 ? gap / (float)known : GUESS_NS;
		load_note(load, worker, 0);
	}
}

static uint16_t earliest_finish_pick(const struct pick_table *table, struct pick_load *load,
				     uint32_t hash, struct pick_state *state)
{
	const struct lanes_keys keys = {load->run_ns, load->gap_ns};

	if (__builtin_expect(state->serial != table->serial, 0))
		earliest_finish_guess(table, load);
	return smallest_pick(table, load, keys, state, false);
}

const struct schedule_policy schedule_earliest_finish = {
	.name = "earliest-finish",
	.pick = earliest_finish_pick,
};
