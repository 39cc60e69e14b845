/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>

#include "conntrack_fixture.h"

TestSuite(conntrack_dump, .init = fixture_eal);

Test(conntrack_dump, pages_show_every_live_flow_once)
{
	struct conntrack *ct = fixture_table("t", 100);

	for (uint32_t n = 0; n < 60; n++)
		fixture_insert(ct, n, n);
	for (uint32_t n = 0; n < 60; n += 4)
		conntrack_flow_remove(ct, fixture_find(ct, n));

	for (unsigned int page = 1; page < 70; page++) {
		struct flow_info info[70];
		uint32_t cursor = 0, total = 0;
		bool seen[60] = {false};

		while (cursor != CONNTRACK_DUMP_END) {
			unsigned int n = conntrack_dump(ct, &cursor, info, page);

			cr_assert_leq(n, page);
			for (unsigned int i = 0; i < n; i++) {
				uint32_t who = info[i].created;

				cr_assert(who % 4 != 0 && !seen[who]);
				seen[who] = true;
				cr_assert_eq(conntrack_flow_get(ct, info[i].handle),
					     fixture_find(ct, who));
			}
			total += n;
		}
		cr_assert_eq(total, 45);
		cr_assert_eq(total, conntrack_count(ct));
	}
	conntrack_destroy(ct);
}

Test(conntrack_dump, an_empty_table_and_a_wild_cursor_show_nothing)
{
	struct conntrack *ct = fixture_table("t", 100);
	struct flow_info info;
	uint32_t cursor = 0;

	cr_assert_eq(conntrack_dump(ct, &cursor, &info, 1), 0);
	cr_assert_eq(cursor, CONNTRACK_DUMP_END);
	fixture_insert(ct, 1, 0);
	for (cursor = UINT32_MAX; cursor > UINT32_MAX - 3; cursor = cursor - 1) {
		uint32_t wild = cursor;

		cr_assert_eq(conntrack_dump(ct, &wild, &info, 1), 0);
		cr_assert_eq(wild, CONNTRACK_DUMP_END);
	}
	cursor = 0;
	cr_assert_eq(conntrack_dump(ct, &cursor, &info, 0), 0);
	cr_assert_eq(conntrack_dump(ct, &cursor, &info, 1), 1);
	conntrack_destroy(ct);
}

struct watch {
	const struct conntrack *ct;
	bool stop;
	uint64_t copies, wrong, overfull, dumps;
};

/* Flow n is born at n, so a copy that mixes two flows shows. */
static void *watch_run(void *context)
{
	struct watch *watch = context;
	struct flow_info info[32];

	while (!__atomic_load_n(&watch->stop, __ATOMIC_ACQUIRE)) {
		uint32_t cursor = 0;

		while (cursor != CONNTRACK_DUMP_END) {
			unsigned int n = conntrack_dump(watch->ct, &cursor, info, 32);

			for (unsigned int i = 0; i < n; i++) {
				struct flow_key key = fixture_key(info[i].created);

				watch->copies++;
				watch->wrong += memcmp(&info[i].key, &key, sizeof(key)) != 0 ||
						(info[i].handle >> 32) % 2 == 0;
			}
		}
		watch->overfull += conntrack_count(watch->ct) > 64;
		__atomic_store_n(&watch->dumps, watch->dumps + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

Test(conntrack_dump, another_thread_sees_whole_flows_while_the_owner_churns, .timeout = 60)
{
	struct conntrack *ct = fixture_table("t", 64);
	struct watch watch = {.ct = ct};
	pthread_t thread;
	uint32_t n = 0;

	cr_assert_eq(pthread_create(&thread, NULL, watch_run, &watch), 0);
	while (n < 2000000 || __atomic_load_n(&watch.dumps, __ATOMIC_ACQUIRE) < 100) {
		struct flow *flow = fixture_insert(ct, n, n);

		n++;
		if (flow == NULL)
			cr_assert_eq(conntrack_count(ct), 64);
		else if (n % 3 == 0)
			conntrack_flow_remove(ct, flow);
		conntrack_expire(ct, n + ONE_WAY_MS - 32, 4);
	}
	__atomic_store_n(&watch.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	cr_assert_gt(watch.copies, 0);
	cr_assert_eq(watch.wrong, 0, "%lu of %lu copies", watch.wrong, watch.copies);
	cr_assert_eq(watch.overfull, 0);
	conntrack_destroy(ct);
}
