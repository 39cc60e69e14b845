/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that will be read soon, asked for a line at a time while others are worked on. Asked for in
 * one go, as many lines as a packet has wait for the few places that a core has for lines on their
 * way, and so do the loads of whoever works meanwhile.
 */
#ifndef LB_FETCH_H
#define LB_FETCH_H

#include <stdint.h>

#define FETCH_LINE 64

struct fetch {
	const uint8_t *at, *end; /* equal: nothing is left to ask for */
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
