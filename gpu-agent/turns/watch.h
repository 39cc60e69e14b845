/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that looks into rings while the loop's own thread is in its model, and notes when each
 * request came: a deadline counts from then, and not from when the model has returned.
 *
 * watch_begin() and all below it are for the loop's thread.
 */
#ifndef AGENT_WATCH_H
#define AGENT_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "ring.h"

/* How often it looks. */
#define WATCH_LOOK_NS UINT64_C(200000)

struct watched {
	const struct ring_descriptor *descriptors;
	uint64_t slots;     /* a power of two */
	uint64_t from, to;  /* positions of which it knows when they came */
	uint64_t *since_ns; /* by position modulo <slots> */
};

struct watch {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t woken;
	bool looks, ends;
	unsigned int n;
	struct watched *ring;
};

/* Start the thread, with <n> rings that watch_add() names. 0, -ENOMEM or -EAGAIN. */
int watch_start(struct watch *watch, unsigned int n);
void watch_stop(struct watch *watch);

/* Before the first watch_begin(). 0 or -ENOMEM. */
int watch_add(struct watch *watch, unsigned int ring, const struct ring_descriptor *descriptors,
	      uint32_t slots);

/* The loop will take nothing from its rings until watch_end(); <position>[i] is next in ring i. */
void watch_begin(struct watch *watch, const uint64_t position[]);
void watch_end(struct watch *watch);

/* When the request at <position> came, if it came before the last watch_end(); else <now>. */
uint64_t watch_since(const struct watch *watch, unsigned int ring, uint64_t position, uint64_t now);

#endif
