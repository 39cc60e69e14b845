/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "conntrack_fixture.h"
#include "internal.h"

TestSuite(conntrack_expire, .init = fixture_eal);

/* Start values of the clock: each case runs from several, some of which make it wrap. */
static const uint32_t clocks[] = {
	0, 1, 31, 1000000007, INT32_MAX - 2000u, UINT32_MAX - 2000u, UINT32_MAX};
#define CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

Test(conntrack_expire, a_silent_flow_ends_within_a_tick_of_its_deadline)
{
	for (unsigned int i = 0; i < CLOCKS; i++) {
		struct conntrack *ct = fixture_table("t", 10);
		uint32_t start = clocks[i], t;
		struct conntrack_stats stats;

		fixture_insert(ct, 1, start);
		for (t = 0; fixture_find(ct, 1) != NULL; t++)
			conntrack_expire(ct, start + t, NO_BUDGET);
		t--;
		cr_assert(t >= ONE_WAY_MS && t < ONE_WAY_MS + WHEEL_TICK_MS, "clock %u: %u ms",
			  start, t);
		conntrack_stats_read(ct, &stats);
		cr_assert_eq(stats.expired, 1);
		cr_assert_eq(stats.removed, 0);
		cr_assert_eq(stats.live, 0);
		conntrack_destroy(ct);
	}
}

Test(conntrack_expire, the_first_call_may_come_at_any_time)
{
	for (unsigned int i = 0; i < CLOCKS; i++) {
		struct conntrack *ct = fixture_table("t", 10);

		fixture_insert(ct, 1, clocks[i] - ONE_WAY_MS - WHEEL_TICK_MS);
		cr_assert_eq(conntrack_expire(ct, clocks[i], NO_BUDGET), 1, "clock %u", clocks[i]);
		conntrack_destroy(ct);
	}
}

Test(conntrack_expire, a_flow_that_speaks_lives_on)
{
	for (unsigned int i = 0; i < CLOCKS; i++) {
		struct conntrack *ct = fixture_table("t", 10);
		uint32_t now = clocks[i], last = 0;
		struct flow *flow = fixture_insert(ct, 1, now);

		for (unsigned int turn = 0; turn < 1000; turn++) {
			now += 40;
			if (turn % 100 == 0) {
				conntrack_touch(flow, now);
				last = now;
			}
			cr_assert_eq(conntrack_expire(ct, now, NO_BUDGET), 0, "clock %u", now);
		}
		cr_assert_eq(conntrack_expire(ct, last + ONE_WAY_MS - 1, NO_BUDGET), 0);
		cr_assert_eq(conntrack_expire(ct, last + ONE_WAY_MS + WHEEL_TICK_MS, NO_BUDGET), 1);
		conntrack_destroy(ct);
	}
}

Test(conntrack_expire, young_flows_take_another_timeout_of_their_service_at_once)
{
	const uint32_t shorter[FLOW_STATES] = {[FLOW_UDP_ONE_WAY] = 1000};
	struct conntrack *ct = fixture_table("t", 10);

	fixture_insert(ct, 1, 0);
	cr_assert_eq(conntrack_timeouts_set(ct, 0, shorter), 0);
	cr_assert_eq(conntrack_expire(ct, 999, NO_BUDGET), 0);
	cr_assert_eq(conntrack_expire(ct, 1000 + WHEEL_TICK_MS, NO_BUDGET), 1);
	conntrack_destroy(ct);
}

Test(conntrack_expire, established_flows_take_a_longer_timeout_and_a_shorter_when_the_old_is_due)
{
	const uint32_t longer[FLOW_STATES] = {[FLOW_UDP_ESTABLISHED] = 2 * ESTABLISHED_MS};
	const uint32_t shorter[FLOW_STATES] = {[FLOW_UDP_ESTABLISHED] = 1000};
	struct conntrack *ct = fixture_table("t", 10);
	uint32_t t = 0;

	for (uint32_t n = 1; n <= 2; n++) {
		struct flow *flow = fixture_insert(ct, n, 0);

		conntrack_event(flow, FLOW_EVENT_TO_CLIENT);
		conntrack_event(flow, FLOW_EVENT_FROM_CLIENT);
	}
	/* moves both to the wheel */
	cr_assert_eq(conntrack_expire(ct, ONE_WAY_MS + 1, NO_BUDGET), 0);
	cr_assert_eq(conntrack_timeouts_set(ct, 0, longer), 0);
	cr_assert_eq(conntrack_expire(ct, 2 * ESTABLISHED_MS - 1, NO_BUDGET), 0);
	cr_assert_eq(conntrack_timeouts_set(ct, 0, shorter), 0);
	for (t = 2 * ESTABLISHED_MS; conntrack_count(ct) > 0; t++)
		conntrack_expire(ct, t, NO_BUDGET);
	cr_assert_leq(t, 2 * ESTABLISHED_MS + 2 * WHEEL_TICK_MS);
	conntrack_destroy(ct);
}

Test(conntrack_expire, timeouts_of_no_service_and_those_that_are_too_long_are_refused)
{
	const uint32_t good[FLOW_STATES] = {[FLOW_UDP_ONE_WAY] = 1};
	const uint32_t bad[FLOW_STATES] = {
		[FLOW_UDP_ONE_WAY] = 1, [FLOW_UDP_ANSWERED] = CONNTRACK_TIMEOUT_MAX_MS + 1};
	struct conntrack *ct = fixture_table("t", 10);

	cr_expect_eq(conntrack_timeouts_set(ct, CONNTRACK_SERVICES_MAX, good), -EINVAL);
	cr_expect_eq(conntrack_timeouts_set(ct, 0, bad), -EINVAL);
	fixture_insert(ct, 1, 0);
	cr_expect_eq(conntrack_expire(ct, ONE_WAY_MS - 1, NO_BUDGET), 0);
	conntrack_destroy(ct);
}

Test(conntrack_expire, a_client_that_speaks_again_gets_the_longer_timeout)
{
	struct conntrack *ct = fixture_table("t", 10);
	struct flow *flow = fixture_insert(ct, 1, 0);

	conntrack_event(flow, FLOW_EVENT_TO_CLIENT);
	conntrack_event(flow, FLOW_EVENT_FROM_CLIENT);
	conntrack_touch(flow, 10);
	cr_assert_eq(conntrack_expire(ct, 10 + ESTABLISHED_MS - 1, NO_BUDGET), 0);
	cr_assert_eq(conntrack_expire(ct, 10 + ESTABLISHED_MS + WHEEL_TICK_MS, NO_BUDGET), 1);
	conntrack_destroy(ct);
}

Test(conntrack_expire, each_service_has_its_own_timeouts_and_zero_means_as_service_0)
{
	struct conntrack_params params = fixture_params("t", 10);
	static const uint32_t expected[3] = {ONE_WAY_MS, 100, ONE_WAY_MS};
	struct conntrack *ct;

	params.timeout_ms[255][FLOW_UDP_ONE_WAY] = 100;
	params.timeout_ms[7][FLOW_UDP_ESTABLISHED] = 1;
	ct = conntrack_create(&params);
	for (unsigned int i = 0; i < 3; i++) {
		static const uint16_t service[3] = {0, 255, 7};
		struct flow_key key = fixture_key(i);
		uint32_t now = i * 100000;

		conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY,
				      service[i], now);
		cr_assert_eq(conntrack_expire(ct, now + expected[i] - 1, NO_BUDGET), 0);
		cr_assert_eq(conntrack_expire(ct, now + expected[i] + WHEEL_TICK_MS, NO_BUDGET), 1);
	}
	conntrack_destroy(ct);
}

Test(conntrack_expire, a_timeout_of_hours_takes_hours)
{
	for (unsigned int i = 0; i < CLOCKS; i++) {
		struct conntrack_params params = fixture_params("t", 10);
		const uint32_t hours = 5 * 3600 * 1000 + 17;
		struct conntrack *ct;
		uint32_t t = 0;

		params.timeout_ms[0][FLOW_UDP_ONE_WAY] = hours;
		ct = conntrack_create(&params);
		fixture_insert(ct, 1, clocks[i]);
		while (conntrack_expire(ct, clocks[i] + t, NO_BUDGET) == 0)
			t += 10;
		cr_assert(t >= hours && t < hours + WHEEL_TICK_MS + 10, "%u ms", t);
		conntrack_destroy(ct);
	}
}

Test(conntrack_expire, a_timeout_shorter_than_a_tick_ends_too)
{
	struct conntrack_params params = fixture_params("t", 10);
	struct conntrack *ct;

	params.timeout_ms[0][FLOW_UDP_ONE_WAY] = 1;
	ct = conntrack_create(&params);
	for (uint32_t now = 0; now < 1000; now += 7) {
		fixture_insert(ct, now, now);
		conntrack_expire(ct, now, NO_BUDGET);
		cr_assert_leq(conntrack_count(ct), 2 + WHEEL_TICK_MS / 7);
	}
	conntrack_destroy(ct);
}

Test(conntrack_expire, a_call_looks_at_no_more_flows_than_its_budget)
{
	struct conntrack *ct = fixture_table("t", 1000);

	for (uint32_t n = 0; n < 500; n++)
		fixture_insert(ct, n, n);
	cr_assert_eq(conntrack_expire(ct, 2 * ONE_WAY_MS, 0), 0);
	for (unsigned int turn = 0; turn < 50; turn++)
		cr_assert_eq(conntrack_expire(ct, 2 * ONE_WAY_MS, 10), 10);
	cr_assert_eq(conntrack_expire(ct, 2 * ONE_WAY_MS, 10), 0);
	cr_assert_eq(conntrack_count(ct), 0);
	conntrack_destroy(ct);
}

/* Moving a live flow on uses a unit of the budget, too: a busy table must not make a call long. */
Test(conntrack_expire, flows_that_live_on_use_the_budget)
{
	struct conntrack *ct = fixture_table("t", 1000);
	const uint32_t now = ONE_WAY_MS + WHEEL_TICK_MS;
	unsigned int calls = 0;

	for (uint32_t n = 0; n < 100; n++)
		conntrack_touch(fixture_insert(ct, n, 0), 4000);
	do {
		cr_assert_eq(conntrack_expire(ct, now, 30), 0);
		calls++;
	} while (ct->behind);
	cr_assert_eq(calls, 4, "30, 30, 30 and 10 looks");
	cr_assert_eq(conntrack_expire(ct, 4000 + now, NO_BUDGET), 100);
	conntrack_destroy(ct);
}

Test(conntrack_expire, what_the_budget_leaves_over_shows_as_lag_and_comes_next_time)
{
	struct conntrack *ct = fixture_table("t", 100);
	struct conntrack_stats stats;
	uint32_t now = ONE_WAY_MS + 700;

	for (uint32_t n = 0; n < 40; n++)
		fixture_insert(ct, n, n < 20 ? 0 : 500);
	cr_assert_eq(conntrack_expire(ct, now, 5), 5);
	conntrack_stats_read(ct, &stats);
	cr_assert_eq(stats.lag_ms, 700);
	cr_assert_eq(conntrack_expire(ct, now, 34), 34);
	conntrack_stats_read(ct, &stats);
	cr_assert(stats.lag_ms == 200 || stats.lag_ms == 700);
	cr_assert_eq(conntrack_expire(ct, now, 34), 1);
	conntrack_stats_read(ct, &stats);
	cr_assert_eq(stats.lag_ms, 0);
	conntrack_destroy(ct);
}

/* It moves to the wheel, where the nearest slot may be the one that comes due next. */
Test(conntrack_expire, a_young_flow_that_spoke_once_more_ends_within_a_tick_too)
{
	for (uint32_t spoke = 1; spoke < 3 * WHEEL_TICK_MS; spoke++) {
		struct conntrack *ct = fixture_table("t", 10);
		uint32_t now = 0;

		conntrack_touch(fixture_insert(ct, 1, 0), spoke);
		while (conntrack_expire(ct, now, NO_BUDGET) == 0)
			now++;
		cr_assert(now >= spoke + ONE_WAY_MS && now < spoke + ONE_WAY_MS + WHEEL_TICK_MS,
			  "spoke at %u, ended at %u", spoke, now);
		conntrack_destroy(ct);
	}
}

Test(conntrack_expire, after_a_long_pause_one_call_catches_up)
{
	static const uint32_t pauses[] = {WHEEL_LAP_MS - 1,         WHEEL_LAP_MS,
					  2 * WHEEL_LAP_MS - 1,     2 * WHEEL_LAP_MS,
					  7 * WHEEL_LAP_MS + 12345, 1u << 30};

	for (unsigned int i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
		for (unsigned int c = 0; c < CLOCKS; c++) {
			struct conntrack *ct = fixture_table("t", 100);

			for (uint32_t n = 0; n < 100; n++)
				fixture_insert(ct, n, clocks[c] + n * 1000);
			cr_assert_eq(
				conntrack_expire(ct, clocks[c] + 100000 + pauses[i], NO_BUDGET),
				100, "pause %u", pauses[i]);
			conntrack_destroy(ct);
		}
}

Test(conntrack_expire, an_idle_table_needs_no_turning)
{
	struct conntrack *ct = fixture_table("t", 10);

	for (unsigned int i = 0; i < 100; i++) {
		uint32_t now = i * 987654321;

		fixture_insert(ct, i, now);
		cr_assert_eq(conntrack_expire(ct, now + ONE_WAY_MS - 1, NO_BUDGET), 0);
		cr_assert_eq(conntrack_expire(ct, now + ONE_WAY_MS + WHEEL_TICK_MS, NO_BUDGET), 1);
	}
	conntrack_destroy(ct);
}

Test(conntrack_expire, a_clock_that_steps_back_a_little_ends_nothing)
{
	struct conntrack *ct = fixture_table("t", 10);

	fixture_insert(ct, 1, 100000);
	cr_assert_eq(conntrack_expire(ct, 101000, NO_BUDGET), 0);
	cr_assert_eq(conntrack_expire(ct, 99000, NO_BUDGET), 0);
	cr_assert_eq(conntrack_expire(ct, 100000 + ONE_WAY_MS + WHEEL_TICK_MS, NO_BUDGET), 1);
	conntrack_destroy(ct);
}

/* First, middle and last of one slot's list. */
Test(conntrack_expire, a_removed_flow_leaves_its_slot_whole)
{
	for (uint32_t removed = 0; removed < 5; removed++) {
		struct conntrack *ct = fixture_table("t", 10);

		for (uint32_t n = 0; n < 5; n++)
			fixture_insert(ct, n, 0);
		conntrack_flow_remove(ct, fixture_find(ct, removed));
		cr_assert_eq(conntrack_expire(ct, ONE_WAY_MS + WHEEL_TICK_MS, NO_BUDGET), 4);
		cr_assert_eq(conntrack_count(ct), 0);
		conntrack_destroy(ct);
	}
}

Test(conntrack_expire, a_shortened_timeout_ends_with_the_old_deadline_at_the_latest)
{
	struct conntrack_params params = fixture_params("t", 10);
	struct conntrack *ct;
	struct flow *flow;

	params.timeout_ms[0][FLOW_UDP_ANSWERED] = 1000;
	ct = conntrack_create(&params);
	flow = fixture_insert(ct, 1, 0);
	conntrack_event(flow, FLOW_EVENT_TO_CLIENT);
	cr_assert_eq(conntrack_expire(ct, 999, NO_BUDGET), 0);
	cr_assert_eq(conntrack_expire(ct, ONE_WAY_MS + WHEEL_TICK_MS, NO_BUDGET), 1);
	conntrack_destroy(ct);
}
