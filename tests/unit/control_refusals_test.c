/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/refusals.h"

#include <criterion/criterion.h>
#include <stdio.h>

static struct refusals refusals;

static void note(const char *peer, const char *model, const char *reason, uint64_t now_ms)
{
	refusals_note(&refusals, peer, "gpu0", model, reason, now_ms);
}

Test(refusals, tries_of_one_agent_for_one_reason_are_one_row)
{
	note("10.0.0.5:4001", "chat", "no service uses model 'chat'", 1000);
	note("10.0.0.5:4002", "chat", "no service uses model 'chat'", 3000);
	cr_assert_eq(refusals.n, 1);
	cr_assert_eq(refusals.total, 2);
	cr_assert_str_eq(refusals.row[0].peer, "10.0.0.5");
	cr_assert_eq(refusals.row[0].times, 2);
	cr_assert_eq(refusals.row[0].first_ms, 1000);
	cr_assert_eq(refusals.row[0].last_ms, 3000);
	note("[fd00::5]:4003", "chat", "no service uses model 'chat'", 3000);
	note("10.0.0.5:4004", "chat", "max_request: too small", 4000);
	cr_assert_eq(refusals.n, 3);
	cr_assert_str_eq(refusals.row[1].peer, "[fd00::5]");
}

Test(refusals, the_one_that_was_quiet_for_longest_makes_room)
{
	char reason[32];

	for (unsigned int i = 0; i < REFUSALS_MAX; i++) {
		snprintf(reason, sizeof(reason), "reason %u", i);
		note("10.0.0.5:1", "chat", reason, 1000 + i);
	}
	note("10.0.0.5:1", "chat", "reason 0", 5000);
	note("10.0.0.5:1", "chat", "one more", 6000);
	cr_assert_eq(refusals.n, REFUSALS_MAX);
	cr_assert_str_eq(refusals.row[0].reason, "reason 0");
	cr_assert_str_eq(refusals.row[1].reason, "one more");
	cr_assert_eq(refusals.row[1].times, 1);
	cr_assert_eq(refusals.total, REFUSALS_MAX + 2);
}

Test(refusals, the_latest_is_that_of_a_model_where_one_is_given)
{
	cr_assert_null(refusals_latest(&refusals, NULL));
	note("10.0.0.5:1", "chat", "first", 1);
	note("10.0.0.5:1", "chat", "second", 2);
	refusals_note(&refusals, "10.0.0.6:1", NULL, NULL, "TLS", 3);
	cr_assert_str_eq(refusals_latest(&refusals, "chat")->reason, "second");
	cr_assert_str_eq(refusals_latest(&refusals, NULL)->reason, "TLS");
	cr_assert_null(refusals_latest(&refusals, "other"));
	cr_assert_null(refusals_latest(NULL, NULL));
}

Test(refusals, without_a_place_nothing_is_noted)
{
	refusals_note(NULL, "10.0.0.5:1", "gpu0", "chat", "reason", 1);
}
