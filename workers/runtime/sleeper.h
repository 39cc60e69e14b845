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

#include "runtime/clock.h"

#define SLEEPER_FDS_MAX 64

struct sleeper {
	int asleep; /* atomic */
	unsigned int n;
	struct pollfd fds[SLEEPER_FDS_MAX]; /* fds[0] is the event */
	bool blind;                         /* some port cannot wake us: sleep only briefly */
	uint64_t crowded_until;             /* ns, CLOCK_MONOTONIC: others want this CPU */
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
 * Back-off of an idle polling loop: first polls on, then yields the CPU, then sleeps. Yielding
 * keeps latency where there is nobody to yield to. Where there is, a thread that yields in a loop
 * is put behind the others again and again (Linux 6.18 takes a time slice each time): 64 times in a
 * row took 0.3 s next to one busy thread, and 1 s next to three. Sleeping costs nothing there.
 */
#define SLEEPER_SPINS  64
#define SLEEPER_YIELDS 64
/* A yield that took longer met somebody; for so long after it none is tried. */
#define SLEEPER_CROWDED_NS 200000
#define SLEEPER_SHUN_NS    1000000000ull

enum sleeper_step { SLEEPER_SPIN, SLEEPER_YIELD, SLEEPER_SLEEP };

/* What to do after so many turns without work. */
enum sleeper_step sleeper_step(const struct sleeper *s, unsigned int idle_polls);
void sleeper_yield(struct sleeper *s);

#endif
