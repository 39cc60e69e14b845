/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole connections over bad networks, by seed:
 *
 *    tcp_sim_test [RUNS [FIRST_SEED]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 1, failed = 0;
	uint64_t segments = 0, out_of_order = 0, retransmits = 0, timeouts = 0, undone = 0;

	for (unsigned long i = 0; i < runs && failed < 20; i++) {
		struct sim_params params;
		struct sim_result result;

		sim_params_random(first + i, &params);
		failed += sim_run(&params, &result) != 0;
		segments += result.segments;
		out_of_order += result.placed_out_of_order;
		retransmits += result.counters.retransmits;
		timeouts += result.counters.timeouts;
		undone += result.counters.undone;
	}
	printf("%lu runs, %lu failed, %lu segments, %lu bytes placed out of order, "
	       "%lu retransmits, %lu timeouts, %lu undone\n",
	       runs, failed, (unsigned long)segments, (unsigned long)out_of_order,
	       (unsigned long)retransmits, (unsigned long)timeouts, (unsigned long)undone);
	return failed > 0;
}
