/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Up to when has everything that arrived been taken from the receive rings? Timers that wait for a
 * packet compare with this time instead of with the clock: a thread that stood still, because the
 * machine or the scheduler halted it, finds the packet in a ring, behind others, and not missing.
 *
 * Owner: the thread that polls the rings, which calls drained_poll() once per turn.
 */
#ifndef RDMA_DRAINED_H
#define RDMA_DRAINED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Full bursts after which all is taken that was in a ring before them, as rings are first in, first
 * out: 4096 packets in bursts of 32. So timers also run where a ring is never empty.
 */
#define DRAINED_BURSTS 128

struct drained {
	uint64_t at;   /* TSC; what arrived before was taken */
	uint64_t mark; /* <at> after so many more full bursts: */
	uint32_t left;
};

/*
 * A turn that began at <now> has polled every ring. <all>: each had less than a burst, so that
 * nothing is left in it.
 */
static inline void drained_poll(struct drained *d, uint64_t now, bool all)
{
	if (__builtin_expect(all, 1)) {
		d->at = d->mark = now;
		d->left = DRAINED_BURSTS;
	} else if (d->left > 0) {
		d->left--;
	} else {
		d->at = d->mark;
		d->mark = now;
		d->left = DRAINED_BURSTS;
	}
}

#endif
