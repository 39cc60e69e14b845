/* SPDX-License-Identifier: BSD-3-Clause */
/* Which flow speaks next, and what its key is. */
#ifndef BENCH_DRAW_H
#define BENCH_DRAW_H

#include "conntrack.h"

struct draw {
	uint64_t random;
	uint32_t n;    /* flows to draw from */
	double zipf;   /* exponent, or 0: all alike */
	double spread; /* of the inverse distribution function */
};

void draw_init(struct draw *d, uint32_t n, double zipf);

/*
 * Anything in 0..n-1. With an exponent, a Pareto distribution cut off at <n> and rounded down to
 * ranks, which is Zipf's law but for the first few ranks; neighbours in rank are far apart in
 * number.
 */
uint32_t draw_next(struct draw *d);

/* Client number <n>: 64 ports per address, 10.0.0.0 or 2001:db8:: upwards. All to one service. */
struct flow_key draw_key(uint32_t n, enum flow_family family);

#endif
