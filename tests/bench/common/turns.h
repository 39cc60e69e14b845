/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timed turns of the loop. Only lb_poll() is inside the clock; what it did stage by stage comes
 * from the lcore's own counters.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

#include "common/rig.h"

#define TURNS_MAX 4096
/*
 * A turn this many times longer than the median was not ours alone: the machine took the CPU away.
 * It is left out, and counted. A turn with housekeeping in it takes less than twice as long.
 */
#define TURNS_DISTURBED 6

struct turns {
	unsigned int n;
	uint32_t cycles[TURNS_MAX];
	uint32_t stage[TURNS_MAX][LB_STAGES];
};

/* Cycles per packet. */
struct cost {
	double total;
	double stage[LB_STAGES];
	unsigned int disturbed;
};

/* Turn the loop once, on the clock. */
void turns_turn(struct turns *turns, struct lcore *lc);
/* Makes one turn of those from <first> on. */
void turns_join(struct turns *turns, unsigned int first);
/* Start the clock and stop it around other work. */
static inline uint64_t turns_begin(void)
{
	return rte_rdtsc_precise();
}
void turns_end(struct turns *turns, uint64_t begin);

/* Mean over the turns that were not disturbed, each of which handled <packets>. Clears <turns>. */
struct cost turns_cost(struct turns *turns, unsigned int packets);

#endif
