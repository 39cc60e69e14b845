/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prefetches of bytes that will be read soon, one cache line at a time between other work. A core
 * has few line fill buffers: requests for all lines of a packet at once would wait for them, and
 * the loads of the other work would wait, too.
 */
#ifndef LB_FETCH_H
#define LB_FETCH_H

#include <stdint.h>

#define FETCH_LINE 64

struct fetch {
	const uint8_t *at, *end; /* equal: nothing is left to prefetch */
};

static inline void fetch_line(struct fetch *f)
{
	if (f->at < f->end) {
		__builtin_prefetch(f->at);
		f->at += FETCH_LINE;
	}
}

static inline void fetch_rest(struct fetch *f)
{
	const uint8_t *at = f->at, *end = f->end;

	for (; at < end; at += FETCH_LINE)
		__builtin_prefetch(at);
	f->at = at;
}

#endif
