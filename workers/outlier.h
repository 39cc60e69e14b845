/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds workers that answer so much worse than the others that they should get no requests. Pure:
 * the caller has the counters and asks once per window, for all workers of one model.
 */
#ifndef WORKERS_OUTLIER_H
#define WORKERS_OUTLIER_H

#include <stdint.h>

/* Counters of one worker within a window of time. */
struct outlier_window {
	uint64_t replies, errors; /* errors: replies with a status that is the worker's fault */
	uint64_t total_ns;        /* sum of the replies' latencies */
};

struct outlier_rules {
	/*
	 * A worker is out above this share of errors, if the median of all workers is below half of
	 * it: where most workers fail, the requests are to blame. 0: never.
	 */
	uint32_t error_percent;
	uint32_t latency_factor; /* out above this many times the median of the means; 0: never */
	uint32_t replies_min;    /* workers with fewer replies are not judged */
};

enum outlier_verdict { OUTLIER_NONE, OUTLIER_ERRORS, OUTLIER_LATENCY };

/*
 * Judge <n> windows into <verdict>. At most half of all workers are out at a time, including <out>
 * workers that are out already and not among the <n>. The worst go first.
 */
void outlier_judge(const struct outlier_rules *rules, const struct outlier_window *window,
		   unsigned int n, unsigned int out, enum outlier_verdict *verdict);

#endif
