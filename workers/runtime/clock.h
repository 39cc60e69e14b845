/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads CLOCK_MONOTONIC, which never steps, and the wall clock. */
#ifndef RUNTIME_CLOCK_H
#define RUNTIME_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ns of CLOCK_MONOTONIC. */
static inline uint64_t clock_now_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_now_us(void)
{
	return clock_now_ns() / 1000;
}

static inline uint64_t clock_now_ms(void)
{
	return clock_now_ns() / 1000000;
}

/* ns since 1970. */
static inline uint64_t clock_wall_ns(void)
{
	return clock_read_ns(CLOCK_REALTIME);
}

/* The time of <clock> that is <ms> from now, for calls that take an absolute time. */
static inline struct timespec clock_after_ms(clockid_t clock, uint64_t ms)
{
	uint64_t ns = clock_read_ns(clock) + ms * 1000000;

	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

#endif
