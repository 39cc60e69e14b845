/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/arrivals.h"

#include <math.h>

#define STEP 0x9e3779b97f4a7c15ull

/* The splitmix64 generator: a counter through a mixing function. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void draw_init(struct draw *draw, uint64_t seed, uint64_t stream)
{
	draw->state = mix(mix(seed + STEP) ^ mix(~stream));
}

uint64_t draw_next(struct draw *draw)
{
	return mix(draw->state += STEP);
}

double draw_fraction(struct draw *draw)
{
	return (double)((draw_next(draw) >> 11) + 1) / 9007199254740992.0; /* 2^53 */
}

double draw_exponential(struct draw *draw, double mean)
{
	return -mean * log(draw_fraction(draw));
}

void arrivals_init(struct arrivals *arrivals, double rate, bool even, uint64_t seed,
		   uint64_t stream)
{
	*arrivals = (struct arrivals){.mean_ns = 1e9 / rate, .even = even};
	draw_init(&arrivals->draw, seed, stream);
	/*
	 * Even arrivals begin at a random time of their first interval: several threads must not
	 * send at once.
	 */
	arrivals->next_ns = even ? arrivals->mean_ns * draw_fraction(&arrivals->draw) : 0;
	if (!even)
		arrivals_take(arrivals);
}

uint64_t arrivals_next_ns(const struct arrivals *arrivals)
{
	return (uint64_t)arrivals->next_ns;
}

void arrivals_take(struct arrivals *arrivals)
{
	arrivals->next_ns += arrivals->even ? arrivals->mean_ns
					    : draw_exponential(&arrivals->draw, arrivals->mean_ns);
}
