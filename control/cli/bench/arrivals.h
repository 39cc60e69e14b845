/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The times at which an open loop's requests are due, and random numbers. A pure function of a
 * seed, so that a run can be repeated, and predicted by the simulation (cli/size).
 */
#ifndef BENCH_ARRIVALS_H
#define BENCH_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

/* A stream of random numbers. */
struct draw {
	uint64_t state;
};

/* Streams of one <seed> with different numbers are independent. */
void draw_init(struct draw *draw, uint64_t seed, uint64_t stream);
uint64_t draw_next(struct draw *draw);
/* Uniform, above 0 and at most 1. */
double draw_fraction(struct draw *draw);
/* Exponentially distributed, with mean <mean>. */
double draw_exponential(struct draw *draw, double mean);

struct arrivals {
	struct draw draw;
	double mean_ns, next_ns; /* ns; the next arrival since the start */
	bool even;               /* constant intervals instead of Poisson arrivals */
};

/* <rate> is per second, above 0. */
void arrivals_init(struct arrivals *arrivals, double rate, bool even, uint64_t seed,
		   uint64_t stream);
/* ns from the start to the next arrival; arrivals_take() advances to the one after it. */
uint64_t arrivals_next_ns(const struct arrivals *arrivals);
void arrivals_take(struct arrivals *arrivals);

#endif
