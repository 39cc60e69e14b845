/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets a polling thread sleep without missing work: it waits on the descriptors of its ports, where
 * they have one, and on an event that other threads raise. The order that makes it safe:
 *
 *   sleeper                       waker
 *   sleeper_prepare()             make work visible
 *   check for work once more      sleeper_wake()
 *   sleeper_wait() or _cancel()
 *
 * Owner: the sleeping thread; any thread may call sleeper_wake().
 */
#ifndef RUNTIME_SLEEPER_H
#define RUNTIME_SLEEPER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/clock.h"

#define SLEEPER_FDS_MAX 64

struct sleeper {
	int asleep; /* atomic */
	unsigned int n;
	struct pollfd fds[SLEEPER_FDS_MAX]; /* fds[0] is the event */
	bool blind;             /* a port cannot wake us: sleep SLEEPER_BLIND_NS at most */
	uint64_t crowded_until; /* ns, CLOCK_MONOTONIC: until then, do not yield */
};

/* Longest sleep in ns with a port that has no descriptor. */
#define SLEEPER_BLIND_NS 100000

/* 0 or -errno. */
int sleeper_init(struct sleeper *s);
void sleeper_fini(struct sleeper *s);
/* Also wake when <fd> is readable. 0, or -ENOSPC above SLEEPER_FDS_MAX. */
int sleeper_add(struct sleeper *s, int fd);

void sleeper_prepare(struct sleeper *s);
void sleeper_cancel(struct sleeper *s);
/* Sleep until a descriptor is readable or another thread wakes us, <ns> at most. */
void sleeper_wait(struct sleeper *s, uint64_t ns);
void sleeper_wake(struct sleeper *s);

/*
 * Back-off of an idle polling loop: polls without work first spin, then yield the CPU, then sleep.
 * Yielding keeps latency low on a CPU without other threads. On a shared CPU, each yield puts the
 * thread behind the others (Linux 6.18 takes a time slice each time): 64 yields took 0.3 s next to
 * one busy thread and 1 s next to three. So the thread sleeps there instead.
 */
#define SLEEPER_SPINS  64
#define SLEEPER_YIELDS 64
/* ns. A yield that took longer than SLEEPER_CROWDED_NS means a shared CPU: no yields for
 * SLEEPER_SHUN_NS. */
#define SLEEPER_CROWDED_NS 200000
#define SLEEPER_SHUN_NS    1000000000ull

enum sleeper_step { SLEEPER_SPIN, SLEEPER_YIELD, SLEEPER_SLEEP };

/* The next step after <idle_polls> polls without work. */
enum sleeper_step sleeper_step(const struct sleeper *s, unsigned int idle_polls);
void sleeper_yield(struct sleeper *s);

#endif
