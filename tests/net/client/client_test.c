/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's pure parts; selftest.py runs the whole. */
#include "cli/bench/pattern.h"
#include "notice_build.h"
#include "runtime/endpoint.h"
#include "sizes.h"
#include "tally.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>

Test(client, percentiles_are_nearest_ranks)
{
	uint64_t sorted[1000];

	for (uint64_t i = 0; i < 1000; i++)
		sorted[i] = (i + 1) * 1000;
	cr_assert_eq(tally_percentile_us(sorted, 0, 0.5), 0);
	cr_assert_eq(tally_percentile_us(sorted, 1, 0.999), 1);
	cr_assert_eq(tally_percentile_us(sorted, 3, 0.5), 2);
	cr_assert_eq(tally_percentile_us(sorted, 100, 0.5), 50);
	cr_assert_eq(tally_percentile_us(sorted, 1000, 0.99), 990);
	cr_assert_eq(tally_percentile_us(sorted, 1000, 0.999), 999);
	cr_assert_eq(tally_percentile_us(sorted, 999, 0.999), 999);
}

Test(client, an_answer_is_timed_and_put_on_the_timeline)
{
	struct tally tally;
	struct record *record;

	cr_assert_eq(tally_init(&tally, 1), 0);
	tally.start_ns = tally.end_ns = 5000;
	record = tally_record(&tally, 100000);
	*record = (struct record){.ns = 6000, .state = RECORD_SENT};
	cr_assert_eq(tally_record(&tally, 99999)->state, RECORD_UNSENT);
	cr_assert_eq(tally_answer(&tally, record, 5000 + 300 * TALLY_STEP_NS), 0);
	cr_assert_eq(tally.timeline[300], 1);
	cr_assert_eq(tally.answered, 1);
	cr_assert_eq(record->ns, 300 * TALLY_STEP_NS - 1000);
	cr_assert_float_eq(tally_seconds(&tally), 30, 1e-9);
	tally_fini(&tally);
}

Test(client, sizes_hit_both_ends_at_once_and_all_between_in_time)
{
	static const uint32_t ranges[][2] = {{1, 1472}, {1, 1}, {8, 9}, {12, 100}, {1, 65507}};

	for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
		uint32_t min = ranges[r][0], max = ranges[r][1];
		static uint8_t seen[65508];
		struct sizes sizes;

		memset(seen, 0, sizeof(seen));
		sizes_init(&sizes, min, max);
		cr_assert_eq(sizes_at(&sizes, 0), min);
		cr_assert_eq(sizes_at(&sizes, 1), max);
		/* One lap more, because request 1 stands outside the order. */
		for (uint32_t i = 0; i < 2 * (max - min + 1); i++) {
			uint32_t size = sizes_at(&sizes, i);

			cr_assert(size >= min && size <= max);
			seen[size] = 1;
		}
		for (uint32_t size = min; size <= max; size++)
			cr_assert(seen[size], "%u of %u..%u", size, min, max);
	}
}

Test(client, patterns_follow_from_the_id_and_stay_in_bounds)
{
	uint8_t a[64], b[64];

	for (size_t length = 0; length < 40; length++) {
		memset(a, 0xaa, sizeof(a));
		memset(b, 0xaa, sizeof(b));
		pattern_fill(77, a, length);
		pattern_fill(77, b, length);
		cr_assert_eq(memcmp(a, b, sizeof(a)), 0);
		cr_assert_eq(a[length], 0xaa);
		pattern_fill(78, b, length);
		cr_assert(length < 4 || memcmp(a, b, length) != 0);
	}
}

Test(client, notices_are_told_from_replies)
{
	uint8_t datagram[NOTICE_SIZE + 1] = {0};

	for (int code = NOTICE_NONE + 1; code < NOTICE_CODES; code++) {
		notice_build((enum notice_code)code, NULL, 0, datagram);
		cr_assert_eq(notice_parse(datagram, NOTICE_SIZE), (enum notice_code)code);
	}
	cr_assert_eq(notice_parse(datagram, NOTICE_SIZE - 1), NOTICE_NONE);
	cr_assert_eq(notice_parse(datagram, NOTICE_SIZE + 1), NOTICE_NONE);
	/* The last eight bytes are the request's first ones: any value will do. */
	for (size_t i = 0; i < 8; i++) {
		notice_build(NOTICE_BUSY, (const uint8_t *)"request 1", 9, datagram);
		datagram[i] ^= 0x80;
		cr_assert_eq(notice_parse(datagram, NOTICE_SIZE), NOTICE_NONE, "byte %zu", i);
		cr_assert_arr_eq(datagram + NOTICE_ID_AT, "request ", 8);
	}
}

Test(client, addresses_have_a_port_and_brackets_around_colons)
{
	static const char *const bad[] = {
		"",      ":1",     "127.0.0.1",     "127.0.0.1:", "127.0.0.1:65536", "::1:1",
		"[::1]", "[::1:1", "[127.0.0.1]:1", "[]:1",       "127.1:x",         "a.b.c.d:1"};
	struct endpoint_address address;

	cr_assert_eq(endpoint_address_parse("127.0.0.1:9000", &address), 0);
	cr_assert_eq(address.socket.ss_family, AF_INET);
	cr_assert_eq(endpoint_address_parse("[2001:db8::1]:9000", &address), 0);
	cr_assert_eq(address.socket.ss_family, AF_INET6);
	cr_assert_eq(((struct sockaddr_in6 *)&address.socket)->sin6_port, htons(9000));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_neq(endpoint_address_parse(bad[i], &address), 0, "%s", bad[i]);
}
