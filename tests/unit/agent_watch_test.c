/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests' times of arrival while the loop is in its model. */
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "runtime/clock.h"
#include "turns/watch.h"

#define SLOTS 8

static struct ring_descriptor ring[2][SLOTS];
static struct watch watch;
static bool late; /* a request comes right after the watch has read the clock for the first time */
static uint64_t came_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* In place of the C library's: what comes between two instructions of the watch's thread. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, t);

	if (clock == CLOCK_MONOTONIC && __atomic_exchange_n(&late, false, __ATOMIC_ACQ_REL)) {
		came_ns = now_ns();
		__atomic_store_n(&ring[0][6].sequence, 7, __ATOMIC_RELEASE);
	}
	return ret;
}

static void setup(void)
{
	memset(ring, 0, sizeof(ring));
	cr_assert_eq(watch_start(&watch, 2), 0);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(watch_add(&watch, i, ring[i], SLOTS), 0);
}

static void teardown(void)
{
	watch_stop(&watch);
}

TestSuite(agent_watch, .init = setup, .fini = teardown);

static void come(unsigned int of, uint64_t position)
{
	__atomic_store_n(&ring[of][position % SLOTS].sequence, position + 1, __ATOMIC_RELEASE);
}

/* Wait until the watch has seen what is before <position>. */
static void wait_for(unsigned int of, uint64_t position)
{
	uint64_t seen = 0;

	while (seen < position) {
		pthread_mutex_lock(&watch.lock);
		seen = watch.ring[of].to;
		pthread_mutex_unlock(&watch.lock);
	}
}

Test(agent_watch, it_knows_when_requests_came, .timeout = 20)
{
	const uint64_t from[] = {6, 100};
	uint64_t before, between, after;

	watch_begin(&watch, from);
	before = clock_now_ns();
	come(0, 6);
	wait_for(0, 7);
	between = clock_now_ns();
	come(0, 7);
	come(0, 8);
	come(1, 100);
	wait_for(0, 9);
	wait_for(1, 101);
	after = clock_now_ns();
	watch_end(&watch);
	cr_assert_geq(watch_since(&watch, 0, 6, 0), before);
	cr_assert_leq(watch_since(&watch, 0, 6, 0), between);
	cr_assert_geq(watch_since(&watch, 0, 8, 0), between);
	cr_assert_leq(watch_since(&watch, 0, 8, 0), after);
	cr_assert_geq(watch_since(&watch, 1, 100, 0), between);
}

/* The watch's thread may be halted before it looks. */
Test(agent_watch, no_request_came_before_it_was_there, .timeout = 20)
{
	const uint64_t from[] = {6, 100};

	watch_begin(&watch, from);
	__atomic_store_n(&late, true, __ATOMIC_RELEASE);
	wait_for(0, 7);
	watch_end(&watch);
	cr_assert_geq(watch_since(&watch, 0, 6, 0), came_ns);
}

Test(agent_watch, what_it_has_not_seen_comes_now, .timeout = 20)
{
	const uint64_t from[] = {6, 100};

	come(0, 5);
	watch_begin(&watch, from);
	come(0, 6);
	wait_for(0, 7);
	watch_end(&watch);
	cr_assert_eq(watch_since(&watch, 0, 5, 77), 77, "it came before");
	cr_assert_eq(watch_since(&watch, 0, 7, 77), 77, "it came after");
	cr_assert_eq(watch_since(&watch, 1, 100, 77), 77);
}

Test(agent_watch, a_full_ring_is_watched_once_around, .timeout = 20)
{
	const uint64_t from[] = {3, 0};

	watch_begin(&watch, from);
	for (uint64_t i = 3; i < 3 + SLOTS; i++)
		come(0, i);
	wait_for(0, 3 + SLOTS);
	watch_end(&watch);
	for (uint64_t i = 3; i < 3 + SLOTS; i++)
		cr_assert_neq(watch_since(&watch, 0, i, 77), 77);
}
