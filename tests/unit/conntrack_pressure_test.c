/* SPDX-License-Identifier: BSD-3-Clause */
/* A flood against the flow table: which flows it may displace, and which it may not. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "conntrack_fixture.h"
#include "internal.h"

TestSuite(conntrack_pressure, .init = fixture_eal);

#define RECLAIM_MS 1000u

static struct conntrack *table(uint32_t capacity, uint32_t per_source)
{
	struct conntrack_params params = fixture_params("t", capacity);

	params.reclaim_after_ms = RECLAIM_MS;
	params.new_flows_per_source = per_source;
	return conntrack_create(&params);
}

static void answer(struct flow *flow)
{
	conntrack_event(flow, FLOW_EVENT_TO_CLIENT);
}

static void establish(struct flow *flow)
{
	answer(flow);
	conntrack_event(flow, FLOW_EVENT_FROM_CLIENT);
}

static uint64_t reclaimed(const struct conntrack *ct)
{
	struct conntrack_stats stats;

	conntrack_stats_read(ct, &stats);
	return stats.reclaimed;
}

Test(conntrack_pressure, a_full_table_gives_up_its_oldest_unanswered_flow)
{
	struct conntrack *ct = table(10, 0);

	for (uint32_t n = 0; n < 10; n++)
		fixture_insert(ct, n, n * 100);
	cr_assert_not_null(fixture_insert(ct, 10, 2000));
	cr_assert_null(fixture_find(ct, 0));
	for (uint32_t n = 1; n <= 10; n++)
		cr_assert_not_null(fixture_find(ct, n), "%u", n);
	cr_assert_eq(reclaimed(ct), 1);
	conntrack_destroy(ct);
}

Test(conntrack_pressure, unanswered_flows_go_before_answered_ones)
{
	struct conntrack *ct = table(10, 0);

	for (uint32_t n = 0; n < 10; n++)
		fixture_insert(ct, n, n);
	answer(fixture_find(ct, 0));
	answer(fixture_find(ct, 1));
	cr_assert_not_null(fixture_insert(ct, 10, 2000));
	cr_assert_not_null(fixture_find(ct, 0));
	cr_assert_not_null(fixture_find(ct, 1));
	for (uint32_t n = 2; n < 10; n++)
		if (fixture_find(ct, n) != NULL)
			answer(fixture_find(ct, n));
	answer(fixture_find(ct, 10));
	cr_assert_not_null(fixture_insert(ct, 11, 2000));
	cr_assert_null(fixture_find(ct, 0), "all are answered: the oldest goes");
	conntrack_destroy(ct);
}

Test(conntrack_pressure, established_flows_never_go)
{
	struct conntrack *ct = table(1000, 0);

	for (uint32_t n = 0; n < 1000; n++)
		establish(fixture_insert(ct, n, 0));
	for (uint32_t n = 1000; n < 3000; n++) {
		errno = 0;
		cr_assert_null(fixture_insert(ct, n, ESTABLISHED_MS - 1));
		cr_assert_eq(errno, ENOSPC);
	}
	for (uint32_t n = 0; n < 1000; n++)
		cr_assert_not_null(fixture_find(ct, n));
	/* they expire in time, although searches for refused flows have visited them */
	cr_assert_eq(conntrack_expire(ct, ESTABLISHED_MS + WHEEL_TICK_MS, NO_BUDGET), 1000);
	conntrack_destroy(ct);
}

Test(conntrack_pressure, who_just_spoke_is_left_in_peace)
{
	struct conntrack *ct = table(10, 0);

	for (uint32_t n = 0; n < 10; n++)
		fixture_insert(ct, n, 0);
	for (uint32_t n = 0; n < 10; n++)
		conntrack_touch(fixture_find(ct, n), 1500);
	cr_assert_null(fixture_insert(ct, 10, 1500 + RECLAIM_MS - 1));
	cr_assert_not_null(fixture_insert(ct, 10, 1500 + RECLAIM_MS));
	conntrack_destroy(ct);
}

/* The attacker keeps a few flows of his own, at the head of every queue, from being silent. */
Test(conntrack_pressure, flows_that_keep_speaking_do_not_shield_those_behind_them)
{
	struct conntrack *ct = table(100, 0);

	for (uint32_t n = 0; n < 100; n++)
		fixture_insert(ct, n, n < 12 ? 0 : 1);
	for (uint32_t n = 0; n < 12; n++)
		conntrack_touch(fixture_find(ct, n), 2000);
	for (uint32_t n = 100; n < 188; n++)
		cr_assert_not_null(fixture_insert(ct, n, 2000), "%u", n);
	cr_assert_null(fixture_insert(ct, 188, 2000), "all left have just spoken");
	conntrack_destroy(ct);
}

/*
 * Only the last of 250 services has flows that may go. A search looks at 16 queues and clears them
 * of established flows, so a few come before one that finds something.
 */
Test(conntrack_pressure, a_flow_is_found_whatever_service_it_has)
{
	struct conntrack *ct = table(1000, 0);
	unsigned int refused = 0;

	for (uint32_t n = 0; n < 1000; n++) {
		struct flow_key key = fixture_key(n);
		struct flow *flow = conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key),
							  FLOW_UDP_ONE_WAY, n < 250 ? n : 250, 0);

		if (n < 250)
			establish(flow);
	}
	for (uint32_t n = 1000; n < 1500; n++)
		refused += fixture_insert(ct, n, 1500) == NULL;
	cr_assert_leq(refused, 250 / 16 + 1);
	conntrack_destroy(ct);
}

/* More flows per second than the table holds, for ten timeouts, beside a few established ones. */
Test(conntrack_pressure, a_spoofed_flood_costs_established_flows_nothing)
{
	enum { CAPACITY = 5000, GOOD = 1000, PER_MS = 20 };
	struct conntrack *ct = table(CAPACITY, 0);
	uint32_t next = GOOD, admitted = 0;

	for (uint32_t n = 0; n < GOOD; n++)
		establish(fixture_insert(ct, n, 0));
	for (uint32_t now = 1; now < 10 * ONE_WAY_MS; now++) {
		struct flow *flow = fixture_find(ct, now % GOOD);

		cr_assert_not_null(flow, "lost at %u", now);
		conntrack_touch(flow, now);
		for (unsigned int i = 0; i < PER_MS; i++)
			admitted += fixture_insert(ct, next++, now) != NULL;
		conntrack_expire(ct, now, 128);
	}
	for (uint32_t n = 0; n < GOOD; n++)
		cr_assert_not_null(fixture_find(ct, n));
	cr_assert_gt(reclaimed(ct), 100000, "the flood turned over");
	/* 4000 places, each free again after a second */
	cr_assert_gt(admitted, 4000u * 40);
	conntrack_destroy(ct);
}

Test(conntrack_pressure, a_source_opens_so_many_flows_a_second_and_no_more)
{
	struct conntrack *ct = table(10000, 100);
	struct flow_key key = fixture_key4(1);
	struct conntrack_stats stats;
	unsigned int opened = 0;

	for (uint32_t now = 0; now < 10000; now++) {
		key.src_port = htons((uint16_t)(1024 + now));
		errno = 0;
		if (conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY, 0,
					  now) != NULL)
			opened++;
		else
			cr_assert_eq(errno, EDQUOT);
	}
	/* a full bucket, and ten seconds of its rate */
	cr_assert(opened >= 1099 && opened <= 1101, "%u", opened);
	conntrack_stats_read(ct, &stats);
	cr_assert_eq(stats.refused_source, 10000 - opened);
	cr_assert_eq(stats.refused, 0);
	conntrack_destroy(ct);
}

Test(conntrack_pressure, a_source_over_its_limit_keeps_its_flows)
{
	struct conntrack *ct = table(10000, 10);
	struct flow_key key = fixture_key4(1);

	for (uint32_t n = 0; n < 1000; n++) {
		key.src_port = htons((uint16_t)(1024 + n));
		conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY, 0, 0);
	}
	cr_assert_eq(conntrack_count(ct), 10);
	key.src_port = htons(1024 + 5);
	cr_assert_not_null(
		conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY, 0, 0));
	cr_assert_eq(conntrack_count(ct), 10);
	conntrack_destroy(ct);
}

/* A thousand sources far over the limit, and then ten thousand that each open one flow. */
Test(conntrack_pressure, others_hardly_suffer_from_sources_over_their_limit)
{
	struct conntrack *ct = table(200000, 10);
	struct flow_key key = fixture_key4(0);
	unsigned int refused = 0;

	for (uint32_t n = 0; n < 100000; n++) {
		key.src.s6_addr32[3] = htonl(0x0a000000 + n % 1000);
		key.src_port = htons((uint16_t)(1 + n / 1000));
		conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY, 0, 0);
	}
	for (uint32_t n = 0; n < 10000; n++) {
		key.src.s6_addr32[3] = htonl(0x0b000000 + n);
		refused += conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key),
						 FLOW_UDP_ONE_WAY, 0, 0) == NULL;
	}
	/* both buckets taken by others: (1000 / 16384)^2 of 10,000 are 37 */
	cr_assert_lt(refused, 80, "%u", refused);
	conntrack_destroy(ct);
}

Test(conntrack_pressure, addresses_of_one_ipv6_network_are_one_source)
{
	struct conntrack *ct = table(1000, 10);
	struct flow_key key = fixture_key6(0);

	for (uint32_t n = 0; n < 100; n++) {
		key.src.s6_addr32[3] = htonl(n);
		conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY, 0, 0);
	}
	cr_assert_eq(conntrack_count(ct), 10);
	key.src.s6_addr32[1] ^= 1;
	cr_assert_not_null(
		conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key), FLOW_UDP_ONE_WAY, 0, 0));
	conntrack_destroy(ct);
}

static uint64_t detours_of(const struct conntrack *ct)
{
	struct conntrack_stats stats;

	conntrack_stats_read(ct, &stats);
	return stats.detours;
}

/*
 * The attacker knows the function and picks, under a seed of his own, keys that all go to one
 * bucket. Under ours they go everywhere.
 */
Test(conntrack_pressure, keys_aimed_at_one_bucket_miss_it)
{
	enum { CAPACITY = 20000, AIMED = 10000 };
	struct conntrack_params params = fixture_params("guess", CAPACITY);
	struct conntrack *guess = conntrack_create(&params), *ct;
	uint32_t inserted = 0;

	params.name = "real";
	params.seed[1]++;
	ct = conntrack_create(&params);
	for (uint32_t n = 0; inserted < AIMED; n++) {
		struct flow_key key = fixture_key4(n);

		/* the highest bits choose the bucket: one of 1024 parts of the table */
		if (conntrack_hash(guess, &key) >> 22 != 0)
			continue;
		cr_assert_not_null(conntrack_flow_insert(ct, &key, conntrack_hash(ct, &key),
							 FLOW_UDP_ONE_WAY, 0, 0));
		inserted++;
	}
	cr_assert_lt(detours_of(ct), AIMED / 100);
	conntrack_destroy(guess);
	conntrack_destroy(ct);
}

/* At the limit of its load a table of any seed finds nearly all flows in their own bucket. */
Test(conntrack_pressure, a_full_table_takes_few_detours)
{
	struct conntrack *ct = table(100000, 0);

	for (uint32_t n = 0; n < 100000; n++)
		cr_assert_not_null(fixture_insert(ct, n, 0));
	cr_assert_lt(detours_of(ct), 100000 / 10);
	conntrack_destroy(ct);
}
