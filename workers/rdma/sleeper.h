/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a polling thread sleeps without missing work: it waits on the descriptors of its ports (those
 * that have one) and on an event that other threads raise. The order that makes it safe:
 *
 *   sleeper                       waker
 *   sleeper_prepare()             make work visible
 *   look for work once more       sleeper_wake()
 *   sleeper_wait() or _cancel()
 *
 * Owner: the sleeping thread; sleeper_wake() is for everybody.
 */
#ifndef RDMA_SLEEPER_H
#define RDMA_SLEEPER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define SLEEPER_FDS_MAX 64

struct sleeper {
	int asleep; /* atomic */
	unsigned int n;
	struct pollfd fds[SLEEPER_FDS_MAX]; /* fds[0] is the event */
	bool blind;                         /* some port cannot wake us: sleep only briefly */
};

/* Longest sleep next to a port without a descriptor. */
#define SLEEPER_BLIND_NS 100000

/* 0 or -errno. */
int sleeper_init(struct sleeper *s);
void sleeper_fini(struct sleeper *s);
/* Wake when <fd> is readable. -ENOSPC when there are too many. */
int sleeper_add(struct sleeper *s, int fd);

void sleeper_prepare(struct sleeper *s);
void sleeper_cancel(struct sleeper *s);
/* Sleep until something happens, at most <ns>. */
void sleeper_wait(struct sleeper *s, uint64_t ns);
void sleeper_wake(struct sleeper *s);

/*
 * Back-off of an idle polling loop: first polls on, then yields the CPU, then sleeps. Measured on
 * two shared cores, yielding first keeps latency and stops starving the neighbours.
 */
#define SLEEPER_SPINS  64
#define SLEEPER_YIELDS 64

enum sleeper_step { SLEEPER_SPIN, SLEEPER_YIELD, SLEEPER_SLEEP };

static inline enum sleeper_step sleeper_step(unsigned int idle_turns)
{
	if (idle_turns < SLEEPER_SPINS)
		return SLEEPER_SPIN;
	return idle_turns < SLEEPER_SPINS + SLEEPER_YIELDS ? SLEEPER_YIELD : SLEEPER_SLEEP;
}

#endif
