/* SPDX-License-Identifier: BSD-3-Clause */
#include "repeat.h"

#include <criterion/criterion.h>
#include <string.h>

/* Returns how often the same line is logged when it comes every 2 s from <from_ms> to <to_ms>. */
static unsigned int said(struct repeat *repeat, uint64_t from_ms, uint64_t to_ms)
{
	unsigned int n = 0;

	for (uint64_t now = from_ms; now < to_ms; now += 2000)
		n += repeat_is_due(repeat, "refused", now);
	return n;
}

Test(repeat, a_sentence_is_said_once_and_then_ever_more_seldom)
{
	struct repeat repeat = {0};

	cr_assert(repeat_is_due(&repeat, "refused", 1000));
	cr_assert_eq(said(&repeat, 3000, 61000), 0);
	cr_assert(repeat_is_due(&repeat, "refused", 61000));
	cr_assert_eq(repeat.times, 31);
	cr_assert_eq(repeat.first_ms, 1000);
	cr_assert_eq(said(&repeat, 63000, 181000), 0);
	cr_assert(repeat_is_due(&repeat, "refused", 181000));
}

Test(repeat, a_day_of_tries_is_some_thirty_lines)
{
	struct repeat repeat = {0};
	unsigned int n = said(&repeat, 0, 86400000);

	cr_assert_geq(n, 24);
	cr_assert_leq(n, 32);
}

Test(repeat, another_sentence_is_said_at_once)
{
	struct repeat repeat = {0};

	cr_assert(repeat_is_due(&repeat, "refused", 0));
	cr_assert(repeat_is_due(&repeat, "no answer", 1));
	cr_assert_eq(repeat.times, 1);
	cr_assert(repeat_is_due(&repeat, "refused", 2));
}

Test(repeat, a_long_sentence_is_the_same_as_itself)
{
	struct repeat repeat = {0};
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_assert(repeat_is_due(&repeat, text, 0));
	cr_assert_not(repeat_is_due(&repeat, text, 1));
}
