/* SPDX-License-Identifier: BSD-3-Clause */
/* Strangers on the agents' port: the limits that they meet, and that they take nothing from others.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "server/handshake_limit.h"
#include "server/log_limit.h"

#define START 1000000

static struct handshake_limit limit;
static struct handshake_source *loser; /* displaced by the last that entered */

static struct sockaddr_in host(uint32_t n)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(0x0a000000 + n)};
}

static struct handshake_source *enter(uint32_t n, uint64_t now_ms)
{
	struct sockaddr_in address = host(n);

	return handshake_limit_enter(&limit, (struct sockaddr *)&address, now_ms, &loser);
}

static struct handshake_source *enter_v6(const char *text)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6};

	cr_assert_eq(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
	return handshake_limit_enter(&limit, (struct sockaddr *)&address, START, &loser);
}

Test(control_handshake_limit, lets_a_whole_host_of_workers_in_again_and_again)
{
	for (int i = 0; i < 5000; i++) {
		struct handshake_source *s = enter(1, START);

		cr_assert_not_null(s, "%d", i);
		handshake_limit_leave(&limit, s, HANDSHAKE_PROVEN, START);
	}
	cr_assert_eq(limit.pending, 0);
}

static void fill(uint32_t n, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		cr_assert_not_null(enter(n, START), "%u", i);
}

Test(control_handshake_limit, one_source_may_have_all_and_then_no_more)
{
	struct handshake_source *first = enter(1, START);

	fill(1, HANDSHAKE_PENDING_MAX - 1);
	cr_assert_null(enter(1, START));
	cr_assert_null(loser);
	handshake_limit_leave(&limit, first, HANDSHAKE_PROVEN, START);
	cr_assert_not_null(enter(1, START));
}

Test(control_handshake_limit, when_it_is_full_whoever_has_less_takes_from_whoever_has_most)
{
	struct handshake_source *modest = enter(2, START), *greedy = enter(1, START);

	fill(1, HANDSHAKE_PENDING_MAX - 2);
	cr_assert_null(enter(1, START));
	cr_assert_null(loser, "the greediest takes from nobody");
	cr_assert_eq(enter(2, START), modest);
	cr_assert_eq(loser, greedy);
	cr_assert_not_null(enter(3, START));
	cr_assert_eq(loser, greedy);
}

Test(control_handshake_limit, in_a_flood_from_many_sources_a_new_one_still_gets_in)
{
	for (uint32_t n = 0; n < HANDSHAKE_PENDING_MAX; n++)
		cr_assert_not_null(enter(n, START));
	cr_assert_not_null(enter(HANDSHAKE_PENDING_MAX, START));
	cr_assert_not_null(loser);
}

Test(control_handshake_limit, shuts_out_who_failed_often_and_opens_again_with_time)
{
	for (int i = 0; i < HANDSHAKE_SOURCE_FAILURES; i++) {
		struct handshake_source *s = enter(1, START);

		cr_assert_not_null(s, "%d", i);
		handshake_limit_leave(&limit, s, HANDSHAKE_FAILED, START);
	}
	cr_assert_null(enter(1, START));
	cr_assert_null(enter(1, START + 1000 / HANDSHAKE_SOURCE_REFILL - 10));
	cr_assert_not_null(enter(2, START));
	cr_assert_not_null(enter(1, START + 1000 / HANDSHAKE_SOURCE_REFILL + 10));
}

Test(control_handshake_limit, a_flood_does_not_shut_out_for_long_after_it)
{
	struct handshake_source *s = enter(1, START);

	fill(1, HANDSHAKE_PENDING_MAX - 1);
	for (int i = 0; i < HANDSHAKE_PENDING_MAX; i++)
		handshake_limit_leave(&limit, s, HANDSHAKE_FAILED, START);
	cr_assert_null(enter(1, START + 1000));
	cr_assert_not_null(
		enter(1, START + 1000 * (HANDSHAKE_SOURCE_FAILURES + 2) / HANDSHAKE_SOURCE_REFILL));
}

Test(control_handshake_limit, a_host_where_one_gets_in_is_not_shut_out_for_the_others)
{
	for (int i = 0; i < 10 * HANDSHAKE_SOURCE_FAILURES; i++) {
		struct handshake_source *s = enter(1, START);

		cr_assert_not_null(s, "%d", i);
		handshake_limit_leave(
			&limit, s,
			i % HANDSHAKE_SOURCE_FAILURES ? HANDSHAKE_FAILED : HANDSHAKE_PROVEN, START);
	}
}

Test(control_handshake_limit, who_gives_up_is_not_charged)
{
	for (int i = 0; i < 10 * HANDSHAKE_SOURCE_FAILURES; i++) {
		struct handshake_source *s = enter(1, START);

		cr_assert_not_null(s, "%d", i);
		handshake_limit_leave(&limit, s, HANDSHAKE_GIVEN_UP, START);
	}
}

Test(control_handshake_limit, a_failure_in_a_while_never_shuts_out)
{
	uint64_t now = START;

	for (int i = 0; i < 1000; i++, now += 1000 / HANDSHAKE_SOURCE_REFILL + 10) {
		struct handshake_source *s = enter(1, now);

		cr_assert_not_null(s, "%d", i);
		handshake_limit_leave(&limit, s, HANDSHAKE_FAILED, now);
	}
}

Test(control_handshake_limit, ipv6_hosts_cannot_be_many_by_changing_the_last_half)
{
	char text[64];

	for (int i = 0; i < HANDSHAKE_SOURCE_FAILURES; i++) {
		struct handshake_source *s;

		snprintf(text, sizeof(text), "2001:db8::%x", i + 1);
		s = enter_v6(text);
		cr_assert_not_null(s, "%s", text);
		handshake_limit_leave(&limit, s, HANDSHAKE_FAILED, START);
	}
	cr_assert_null(enter_v6("2001:db8::ffff"));
	cr_assert_not_null(enter_v6("2001:db8:0:1::1"));
}

Test(control_handshake_limit, an_ipv4_source_is_the_same_through_a_socket_of_both_kinds)
{
	cr_assert_eq(enter(1, START), enter_v6("::ffff:10.0.0.1"));
	cr_assert_neq(enter(2, START), enter_v6("::ffff:10.0.0.1"));
}

Test(control_handshake_limit, finds_a_place_for_a_new_source_after_any_number_of_others)
{
	struct handshake_source *held = enter(0, START);

	for (uint32_t n = 1; n < 10 * HANDSHAKE_SOURCES; n++) {
		struct handshake_source *s = enter(n, START + n);

		cr_assert_not_null(s, "%u", n);
		cr_assert_neq(s, held);
		handshake_limit_leave(&limit, s, HANDSHAKE_FAILED, START + n);
	}
	cr_assert_eq(limit.pending, 1);
	handshake_limit_leave(&limit, held, HANDSHAKE_PROVEN, START);
}

Test(log_limit, writes_a_few_lines_at_once_and_then_one_a_second)
{
	struct log_limit lines = {0};
	unsigned long unlogged = 99;

	for (int i = 0; i < LOG_LIMIT_BURST; i++) {
		cr_assert(log_limit_passes(&lines, 100000, &unlogged));
		cr_assert_eq(unlogged, 0);
	}
	for (int i = 0; i < 7; i++)
		cr_assert_not(log_limit_passes(&lines, 100000 + i, &unlogged));
	cr_assert_not(log_limit_passes(&lines, 100999, &unlogged));
	cr_assert(log_limit_passes(&lines, 101000, &unlogged));
	cr_assert_eq(unlogged, 8, "%lu", unlogged);
	cr_assert_not(log_limit_passes(&lines, 101001, &unlogged));
}
