/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "outlier.h"

static const struct outlier_rules rules = {
	.error_percent = 50, .latency_factor = 5, .replies_min = 20};

static struct outlier_window window(uint64_t replies, uint64_t errors, uint64_t mean_us)
{
	return (struct outlier_window){replies, errors, replies * mean_us * 1000};
}

Test(outlier, one_that_fails_while_others_do_not_is_out)
{
	struct outlier_window w[] = {window(100, 0, 10), window(100, 51, 10), window(100, 2, 10)};
	enum outlier_verdict v[3];

	outlier_judge(&rules, w, 3, 0, v);
	cr_expect_eq(v[0], OUTLIER_NONE);
	cr_expect_eq(v[1], OUTLIER_ERRORS);
	cr_expect_eq(v[2], OUTLIER_NONE);
}

Test(outlier, when_most_fail_the_requests_are_to_blame)
{
	struct outlier_window w[] = {window(100, 90, 10), window(100, 95, 10), window(100, 0, 10)};
	enum outlier_verdict v[3];

	outlier_judge(&rules, w, 3, 0, v);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(v[i], OUTLIER_NONE);
}

Test(outlier, few_replies_say_nothing)
{
	struct outlier_window w[] = {window(100, 0, 10), window(19, 19, 10), window(100, 0, 10)};
	enum outlier_verdict v[3];

	outlier_judge(&rules, w, 3, 0, v);
	cr_expect_eq(v[1], OUTLIER_NONE);
}

Test(outlier, one_that_is_far_slower_is_out)
{
	struct outlier_window w[] = {window(100, 0, 10), window(100, 0, 51), window(100, 0, 12),
				     window(100, 0, 49)};
	enum outlier_verdict v[4];

	outlier_judge(&rules, w, 4, 0, v);
	cr_expect_eq(v[1], OUTLIER_NONE, "the median is 12 us");
	w[1] = window(100, 0, 61);
	outlier_judge(&rules, w, 4, 0, v);
	cr_expect_eq(v[1], OUTLIER_LATENCY);
	cr_expect_eq(v[3], OUTLIER_NONE);
}

Test(outlier, at_most_half_are_out_and_the_worst_go_first)
{
	struct outlier_window w[] = {window(100, 0, 10),  window(100, 60, 10), window(100, 0, 10),
				     window(100, 80, 10), window(100, 0, 10),  window(100, 70, 10)};
	enum outlier_verdict v[6];

	outlier_judge(&rules, w, 6, 2, v);
	cr_expect_eq(v[3], OUTLIER_ERRORS);
	cr_expect_eq(v[5], OUTLIER_ERRORS);
	cr_expect_eq(v[1], OUTLIER_NONE, "with the two that are out already, half are");
}

Test(outlier, the_only_worker_is_never_out)
{
	struct outlier_window w = window(100, 100, 1000000);
	enum outlier_verdict v;

	outlier_judge(&rules, &w, 1, 0, &v);
	cr_expect_eq(v, OUTLIER_NONE);
	outlier_judge(&rules, &w, 0, 3, &v);
}

Test(outlier, zero_turns_a_rule_off)
{
	const struct outlier_rules off = {.replies_min = 1};
	struct outlier_window w[] = {window(100, 0, 10), window(100, 100, 9999),
				     window(100, 0, 10)};
	enum outlier_verdict v[3];

	outlier_judge(&off, w, 3, 0, v);
	cr_expect_eq(v[1], OUTLIER_NONE);
}
