/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tcp/wheel.h"

#define ENTRIES 2000

static struct tcp_wheel wheel;
static void *memory;
static uint32_t deadline[ENTRIES];
static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 20) % below);
}

static void wheel_test_init(void)
{
	memory = malloc(tcp_wheel_bytes(ENTRIES));
	cr_assert_not_null(memory);
}

static void wheel_test_fini(void)
{
	free(memory);
}

TestSuite(tcp_wheel, .init = wheel_test_init, .fini = wheel_test_fini);

/* Lets time pass to <now>; returns how many were taken, of them those in time in <*good>. */
static unsigned int run_to(uint32_t now, unsigned int *early)
{
	unsigned int n = 0;
	uint32_t number;

	tcp_wheel_advance(&wheel, now);
	while ((number = tcp_wheel_take(&wheel)) != 0) {
		uint32_t i = number - 1;

		n++;
		if ((int32_t)(deadline[i] - now) > 0) {
			(*early)++;
			tcp_wheel_set(&wheel, number, deadline[i]);
		} else {
			deadline[i] = 0;
		}
	}
	return n;
}

/* Against an array: nothing is late, whatever the step, across the clock's wrap. */
Test(tcp_wheel, model)
{
	for (unsigned int seed = 1; seed <= 30; seed++) {
		uint32_t now = 0u - 20000 - 3000 * seed;
		unsigned int early = 0, n = 0;

		state = seed * 88172645463325252;
		tcp_wheel_init(&wheel, ENTRIES, now, memory);
		for (unsigned int i = 0; i < ENTRIES; i++)
			deadline[i] = 0;
		for (unsigned int step = 0; step < 3000; step++) {
			uint32_t i = draw(ENTRIES), ahead = 1 + draw(draw(2) ? 3000 : 400000);

			deadline[i] = (now + ahead) | 1; /* not 0 */
			tcp_wheel_set(&wheel, i + 1, deadline[i]);
			if (draw(20) == 0) {
				i = draw(ENTRIES);
				tcp_wheel_remove(&wheel, i + 1);
				deadline[i] = 0;
			}
			now += draw(4) == 0 ? draw(20000) : draw(30);
			n += run_to(now, &early);
			if (step % 50 == 0)
				for (unsigned int k = 0; k < ENTRIES; k++)
					cr_assert(deadline[k] == 0 ||
							  (int32_t)(deadline[k] - now) > 0,
						  "%u is late by %d", k,
						  (int32_t)(now - deadline[k]));
		}
		cr_assert_gt(n, 1000);
	}
}

Test(tcp_wheel, later_deadlines_cost_nothing)
{
	unsigned int early = 0;

	tcp_wheel_init(&wheel, ENTRIES, 1000, memory);
	deadline[0] = 2000;
	tcp_wheel_set(&wheel, 1, 2000);
	for (uint32_t i = 0; i < 500; i++) {
		deadline[0] = 2000 + i;
		tcp_wheel_set(&wheel, 1, deadline[0]);
	}
	cr_expect_eq(wheel.n, 1);
	cr_expect_eq(run_to(1999, &early), 0);
	cr_expect_eq(run_to(2000, &early), 1);
	cr_expect_eq(early, 1);
	cr_expect_eq(run_to(2499, &early), 1);
	cr_expect_eq(wheel.n, 0);
}

Test(tcp_wheel, an_entry_at_rest_is_visited_rarely)
{
	unsigned int early = 0, visits = 0;

	tcp_wheel_init(&wheel, ENTRIES, 0, memory);
	deadline[0] = 60 * 60 * 1000;
	tcp_wheel_set(&wheel, 1, deadline[0]);
	for (uint32_t now = 1; now <= deadline[0] && deadline[0] != 0; now++)
		visits += run_to(now, &early);
	cr_expect_eq(visits, 1);
	cr_expect_eq(early, 0);
}

/* An owner that sleeps for as long as it is told misses nothing. */
Test(tcp_wheel, left)
{
	uint32_t now = 0u - 30000, sleeps = 0, early = 0;

	state = 88172645463325252;
	tcp_wheel_init(&wheel, ENTRIES, now, memory);
	cr_assert_eq(tcp_wheel_left(&wheel, 50), 50);
	for (unsigned int i = 0; i < 100; i++) {
		deadline[i] = (now + 1 + draw(60000)) | 1;
		tcp_wheel_set(&wheel, i + 1, deadline[i]);
	}
	while (wheel.n > 0) {
		uint32_t left = tcp_wheel_left(&wheel, 50);

		cr_assert_leq(left, 50);
		now += left > 0 ? left : 1;
		for (unsigned int i = 0; i < 100; i++)
			if (tcp_wheel_waits(&wheel, i + 1))
				cr_assert_geq((int32_t)(deadline[i] - now), 0);
		run_to(now, &early);
		sleeps++;
	}
	cr_assert_leq(sleeps, 60000 / 50 + 100 + early + 1);
}
