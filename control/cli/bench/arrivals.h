/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When requests of an open loop are due, and what is drawn for each: a pure function of a seed, so
 * that a run can be repeated, and predicted by the simulation (control/size).
 */
#ifndef BENCH_ARRIVALS_H
#define BENCH_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

/* A stream of random numbers. */
struct draw {
	uint64_t state;
};

/* Streams of one <seed> with different numbers have nothing to do with each other. */
void draw_init(struct draw *draw, uint64_t seed, uint64_t stream);
uint64_t draw_next(struct draw *draw);
/* Above 0, at most 1. */
double draw_fraction(struct draw *draw);
/* With this mean, and no memory. */
double draw_exponential(struct draw *draw, double mean);

struct arrivals {
	struct draw draw;
	double mean_ns, next_ns; /* since the start */
	bool even;               /* the same time between any two, instead of Poisson */
};

/* <rate> per second, above 0. */
void arrivals_init(struct arrivals *arrivals, double rate, bool even, uint64_t seed,
		   uint64_t stream);
/* The time of the next one; arrivals_take() goes on to the one behind it. */
uint64_t arrivals_next_ns(const struct arrivals *arrivals);
void arrivals_take(struct arrivals *arrivals);

#endif
