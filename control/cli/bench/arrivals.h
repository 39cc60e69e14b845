/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Due times of requests of an open loop, and their random draws: a pure function of a seed, so that
 * a run can be repeated, and predicted by the simulation (cli/size).
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
/* Above 0, at most 1. */
double draw_fraction(struct draw *draw);
/* Exponentially distributed, with this mean. */
double draw_exponential(struct draw *draw, double mean);

struct arrivals {
	struct draw draw;
	double mean_ns, next_ns; /* since the start */
	bool even;               /* the same time between any two, instead of Poisson */
};

/* <rate> per second, above 0. */
void arrivals_init(struct arrivals *arrivals, double rate, bool even, uint64_t seed,
		   uint64_t stream);
/* Time of the next arrival; arrivals_take() advances to the one after it. */
uint64_t arrivals_next_ns(const struct arrivals *arrivals);
void arrivals_take(struct arrivals *arrivals);

#endif
