/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time up to which all arrived packets were taken from the receive rings. Timers that wait for
 * a packet compare with this time, not with the clock: when the scheduler or the machine halted the
 * thread, the packet is not missing but in a ring, behind others.
 *
 * Owner: the thread that polls the rings; it calls drained_poll() once per iteration.
 */
#ifndef RUNTIME_DRAINED_H
#define RUNTIME_DRAINED_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Full bursts that empty a ring of all that was in it before, because rings are first in, first
 * out: 4096 packets in bursts of 32. So timers also run where a ring is never empty.
 */
#define DRAINED_BURSTS 128

struct drained {
	uint64_t at;   /* TSC: all that arrived before was taken */
	uint64_t mark; /* becomes <at> after <left> more full bursts */
	uint32_t left;
};

/*
 * Note that an iteration that began at <now> has polled every ring. <all>: each ring had less than
 * a burst, so that none has packets left.
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
