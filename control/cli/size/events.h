/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of a simulation: a heap by time; events of the same time leave in the order of adding. */
#ifndef SIZE_EVENTS_H
#define SIZE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event {
	double at_us;
	uint64_t order; /* set by events_add() */
	uint32_t kind, subject;
};

struct events {
	struct event *heap;
	size_t n, room;
	uint64_t added;
};

void events_fini(struct events *events);
/* Returns -ENOMEM on failure. */
int events_add(struct events *events, double at_us, uint32_t kind, uint32_t subject);
/* Take the first event. False when there is none. */
bool events_next(struct events *events, struct event *first);

#endif
