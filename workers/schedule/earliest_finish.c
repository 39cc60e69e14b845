/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker that would answer first, by what it owes and how fast it was (load.h), of those with a
 * credit. Weights are not asked: speed is measured.
 */
#include "schedule/smallest.h"

/* Of all that nothing is known of: what counts is that it is the same. */
#define GUESS_NS 1e6f

/*
 * Who has not answered yet is taken for an average one. If it were free, it would be flooded until
 * its first answer comes; if it were slow, it would get nothing to show that it is not.
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
