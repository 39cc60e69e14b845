/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole connections over bad networks, by seed:
 *
 *    tcp_sim_test [RUNS [FIRST_SEED]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* A port that cuts packets changes nothing: the same segments at the same times. */
static int run_extended(struct sim_params *params, const struct sim_result *alone,
			uint64_t *extended)
{
	struct sim_result result;
	int ret;

	params->extends = true;
	ret = sim_run(params, &result);
	*extended += result.extended;
	result.extended = 0;
	/* A segment that has no record is asked for once more, at the end of a packet. */
	result.counters.no_memory = alone->counters.no_memory;
	if (ret != 0 || memcmp(&result, alone, sizeof(result)) == 0)
		return ret;
	fprintf(stderr, "seed %lu takes another course when a port cuts its packets\n",
		(unsigned long)params->seed);
	return -1;
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 1, failed = 0;
	uint64_t segments = 0, out_of_order = 0, retransmits = 0, timeouts = 0, undone = 0;
	uint64_t extended = 0;

	for (unsigned long i = 0; i < runs && failed < 20; i++) {
		struct sim_params params;
		struct sim_result result;

		sim_params_random(first + i, &params);
		failed += sim_run(&params, &result) != 0 ||
			  run_extended(&params, &result, &extended) != 0;
		segments += result.segments;
		out_of_order += result.placed_out_of_order;
		retransmits += result.counters.retransmits;
		timeouts += result.counters.timeouts;
		undone += result.counters.undone;
	}
	printf("%lu runs, %lu failed, %lu segments, %lu bytes placed out of order, "
	       "%lu retransmits, %lu timeouts, %lu undone, %lu packets of several segments\n",
	       runs, failed, (unsigned long)segments, (unsigned long)out_of_order,
	       (unsigned long)retransmits, (unsigned long)timeouts, (unsigned long)undone,
	       (unsigned long)extended);
	return failed > 0 || extended == 0;
}
