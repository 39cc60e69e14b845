/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which workers answer so much worse than the others that requests are better off elsewhere. Pure:
 * whoever keeps the counters asks once per window, of all workers that serve the same model.
 */
#ifndef WORKERS_OUTLIER_H
#define WORKERS_OUTLIER_H

#include <stdint.h>

/* What one worker did within a window. */
struct outlier_window {
	uint64_t replies, errors; /* errors: of these, with a status that is the worker's fault */
	uint64_t total_ns;        /* sum over replies */
};

struct outlier_rules {
	/*
	 * Errors of replies beyond which a worker is out, if the median of all is below half of
	 * that: where most workers fail, requests are to blame. 0: never.
	 */
	uint32_t error_percent;
	uint32_t latency_factor; /* its mean beyond this many times the median of means; 0: never */
	uint32_t replies_min;    /* fewer say nothing */
};

enum outlier_verdict { OUTLIER_NONE, OUTLIER_ERRORS, OUTLIER_LATENCY };

/*
 * Judge each of <n> windows into <verdict>. At most half of the workers are out at a time, those
 * counted that are out already (<out> of them, not among the n); the worst go first.
 */
void outlier_judge(const struct outlier_rules *rules, const struct outlier_window *window,
		   unsigned int n, unsigned int out, enum outlier_verdict *verdict);

#endif
