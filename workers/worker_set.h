/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of workers by number: one bit per worker, in blocks of 32. */
#ifndef WORKERS_WORKER_SET_H
#define WORKERS_WORKER_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "worker_limits.h"

#define WORKER_BLOCK  32
#define WORKER_BLOCKS (WORKERS_MAX / WORKER_BLOCK)

struct worker_set {
	uint32_t block[WORKER_BLOCKS];
};

static inline bool worker_set_has(const struct worker_set *set, unsigned int number)
{
	return set->block[number / WORKER_BLOCK] >> number % WORKER_BLOCK & 1;
}

static inline void worker_set_add(struct worker_set *set, unsigned int number)
{
	set->block[number / WORKER_BLOCK] |= 1u << number % WORKER_BLOCK;
}

static inline void worker_set_join(struct worker_set *set, const struct worker_set *other)
{
	for (unsigned int i = 0; i < WORKER_BLOCKS; i++)
		set->block[i] |= other->block[i];
}

static inline unsigned int worker_set_count(const struct worker_set *set)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < WORKER_BLOCKS; i++)
		n += (unsigned int)__builtin_popcount(set->block[i]);
	return n;
}

#endif
