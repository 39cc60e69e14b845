/* SPDX-License-Identifier: BSD-3-Clause */
/* How long batches take, as measured. */
#include <criterion/criterion.h>

#include "turns/takes.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

static struct takes takes;

static double expected_ms(uint32_t n)
{
	return (double)takes_expect(&takes, n) / MS;
}

Test(agent_takes, nothing_is_expected_before_a_batch_has_run)
{
	takes_measure(&takes, 0, 5 * MS, MS);
	cr_assert_eq(takes_expect(&takes, 8), 0);
}

Test(agent_takes, sizes_that_never_ran_lie_on_the_line)
{
	for (uint32_t i = 0; i < 50; i++)
		takes_measure(&takes, 4 + i % 5, (10 + 3 * (4 + i % 5)) * MS, i * MS);
	cr_assert_float_eq(expected_ms(1), 13, 0.2);
	cr_assert_float_eq(expected_ms(16), 58, 0.2);
}

Test(agent_takes, where_all_were_equally_large_smaller_ones_take_as_long)
{
	for (uint32_t i = 0; i < 50; i++)
		takes_measure(&takes, 8, 20 * MS, i * MS);
	cr_assert_float_eq(expected_ms(1), 20, 0.01);
	cr_assert_float_eq(expected_ms(8), 20, 0.01);
	cr_assert_float_eq(expected_ms(16), 40, 0.01);
}

Test(agent_takes, a_larger_batch_never_takes_less_and_none_takes_less_than_nothing)
{
	/* A fast large one and a slow small one; then a line that would begin below zero. */
	takes_measure(&takes, 1, 30 * MS, MS);
	takes_measure(&takes, 8, 10 * MS, 2 * MS);
	for (uint32_t n = 1; n < 32; n++)
		cr_assert_leq(takes_expect(&takes, n), takes_expect(&takes, n + 1));
	takes = (struct takes){0};
	for (uint32_t i = 0; i < 50; i++)
		takes_measure(&takes, i % 2 ? 4 : 8, i % 2 ? 1 * MS : 20 * MS, i * MS);
	cr_assert_gt(takes_expect(&takes, 1), 0);
	for (uint32_t n = 1; n < 32; n++)
		cr_assert_leq(takes_expect(&takes, n), takes_expect(&takes, n + 1));
}

Test(agent_takes, batches_that_differ_are_expected_to_take_longer)
{
	for (uint32_t i = 0; i < 100; i++)
		takes_measure(&takes, 8, (i % 2 ? 18 : 22) * MS, i * MS);
	cr_assert_float_eq(expected_ms(8), 24, 0.5);
	cr_assert_float_eq(takes.longest_ns / MS, 22, 1);
}

Test(agent_takes, a_change_is_learned_within_some_batches)
{
	for (uint32_t i = 0; i < 100; i++)
		takes_measure(&takes, 8, 10 * MS, i * MS);
	for (uint32_t i = 0; i < 150; i++)
		takes_measure(&takes, 8, 30 * MS, i * MS);
	cr_assert_float_eq(expected_ms(8), 30, 3);
}

Test(agent_takes, one_that_took_exceptionally_long_is_forgotten_when_nothing_runs)
{
	takes_measure(&takes, 8, 5 * S, 10 * S);
	cr_assert_not(takes_relax(&takes, 10 * S + 500 * MS));
	cr_assert_gt(takes_expect(&takes, 1), 0);
	cr_assert(takes_relax(&takes, 12 * S));
	cr_assert_eq(takes_expect(&takes, 1), 0);
	cr_assert_not(takes_relax(&takes, 12 * S), "it has forgotten already");
}
