/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of what both processes counted in a measured span, over all threads.
 */
#ifndef BENCH_WIRE_SUMS_H
#define BENCH_WIRE_SUMS_H

#include "wire/wire.h"

/* Both processes' counters at about one time; each says its own. */
struct wire_sample {
	struct wire_answer gen, lb;
};

struct wire_sums {
	double seconds;
	double requests;             /* as the generator counts them; of TCP: segments */
	double lb_requests, replies; /* as the load balancer does */
	double resent;               /* segments that clients sent again */
	double lb_busy, turns, packets_in, stage[LB_STAGES];
	double lb_share, lb_cpu, gen_share, gen_cpu; /* of the threads' time */
	double gen_busiest; /* <gen_share> of the thread that has most to do */
};

void wire_sums_take(struct wire_sums *s, const struct wire_options *o, const struct wire_load *load,
		    const struct wire_sample *before, const struct wire_sample *after);
/* Bytes of a frame, or their mean. */
double wire_sums_frame(const struct wire_load *load);
/* Did a thread get less of its CPU than it asked for, which is all of it? */
bool wire_sums_disturbed(const struct wire_options *o, const struct wire_sample *before,
			 const struct wire_sample *after);

#endif
