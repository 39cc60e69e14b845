/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests that wait at a worker, and the batch of them that is worth most. */
#include <criterion/criterion.h>

#include "turns/line.h"

#define MS UINT64_C(1000000)

static struct line line;
static struct takes takes;

/* Batches take 4 ms, and 2 for each request. */
static void setup(void)
{
	cr_assert_eq(line_init(&line, 64), 0);
	takes = (struct takes){0};
	for (uint32_t i = 0; i < 100; i++)
		takes_measure(&takes, 1 + i % 8, (4 + 2 * (1 + i % 8)) * MS, i * MS);
}

static void teardown(void)
{
	line_fini(&line);
}

TestSuite(agent_line, .init = setup, .fini = teardown);

static void add(uint64_t due_ms, uint32_t n)
{
	while (n-- > 0)
		line_add(&line, 0, due_ms == 0 ? LINE_NEVER : due_ms * MS, line.n);
}

/* The batch of at most 8 if it begins at <begin> ms. */
static struct line_batch choose(uint64_t begin)
{
	struct line_batch batch;

	cr_assert(line_choose(&line, &takes, 8, begin * MS, 30 * MS, &batch));
	return batch;
}

Test(agent_line, the_earliest_deadline_is_first_and_equal_ones_are_in_their_order)
{
	static const uint32_t order[] = {2, 0, 3, 1};

	line_add(&line, 0, 50, 0);
	line_add(&line, 0, LINE_NEVER, 1);
	line_add(&line, 0, 40, 2);
	line_add(&line, 0, 50, 3);
	for (uint32_t i = 0; i < 4; i++)
		cr_assert_eq(line.at[i].place, order[i]);
	line_remove(&line, 1, 2);
	cr_assert_eq(line.n, 2);
	cr_assert_eq(line.at[1].place, 1);
}

Test(agent_line, a_hundredth_of_the_time_is_for_the_way_back)
{
	cr_assert_eq(line_due(5 * MS, 100000), 104 * MS);
	cr_assert_eq(line_due(5 * MS, 0), LINE_NEVER);
}

Test(agent_line, a_batch_has_as_many_as_it_may)
{
	add(1000, 20);
	cr_assert_eq(choose(0).n, 8);
	cr_assert_eq(choose(0).first, 0);
}

Test(agent_line, a_batch_is_as_small_as_its_first_request_needs)
{
	add(11, 1);
	add(40, 20);
	/* 4 + 2 x 3 = 10 ms would do for the first; but the others are more without it. */
	cr_assert_eq(choose(0).first, 1);
	cr_assert_eq(choose(0).n, 8);
	line_remove(&line, 3, line.n - 3);
	cr_assert_eq(choose(0).first, 0);
	cr_assert_eq(choose(0).n, 3);
}

Test(agent_line, what_is_urgent_is_worth_more)
{
	struct line_batch many, urgent;

	add(500, 8);
	many = choose(0);
	line_remove(&line, 0, 8);
	add(25, 3);
	urgent = choose(0);
	cr_assert_gt(urgent.worth, many.worth);
	/* With no time to lose each is worth one; with as much as the wait, half. */
	line_remove(&line, 0, 3);
	add(6, 1);
	cr_assert_float_eq(choose(0).worth, 1, 0.01);
	line_remove(&line, 0, 1);
	add(36, 1);
	cr_assert_float_eq(choose(0).worth, 0.5, 0.01);
}

Test(agent_line, what_would_be_late_by_itself_is_known)
{
	add(5, 2);
	add(7, 1);
	add(0, 1);
	cr_assert_eq(line_late(&line, &takes, 0, 0), 0);
	cr_assert_eq(line_late(&line, &takes, 0, 2), 4, "none of the others is");
	cr_assert_eq(line_late(&line, &takes, 2 * MS, 2), 2);
	cr_assert_eq(line_late(&line, &takes, 1000 * MS, 3), 4, "it has no deadline");
}

Test(agent_line, what_has_waited_for_a_second_goes_before_what_is_urgent)
{
	uint64_t now = 5000 * MS;

	/* It came a second ago and has ten; others are due in 100 ms. */
	line_add(&line, now, now + 100 * MS, 0);
	line_add(&line, now - 950 * MS, now + 9000 * MS, 1);
	line_add(&line, now - 500 * MS, LINE_NEVER, 2);
	cr_assert_eq(line.at[0].place, 1);
	cr_assert_eq(line.at[1].place, 0);
	cr_assert_eq(line.at[2].place, 2);
	/* But it is not late, nor what is behind it in time with it. */
	cr_assert_eq(line_late(&line, &takes, now + 1000 * MS, 0), 1);
	cr_assert_eq(choose(5095).n, 1);
	cr_assert_eq(choose(5095).first, 0);
}

Test(agent_line, nothing_is_chosen_of_what_would_be_late)
{
	struct line_batch batch;

	add(5, 3);
	cr_assert_not(line_choose(&line, &takes, 8, 0, 30 * MS, &batch));
	line_remove(&line, 0, 3);
	cr_assert_not(line_choose(&line, &takes, 8, 0, 30 * MS, &batch));
}

Test(agent_line, where_nothing_is_known_all_may_run)
{
	struct line_batch batch;

	takes = (struct takes){0};
	add(1, 9);
	cr_assert(line_choose(&line, &takes, 8, 0, 30 * MS, &batch));
	cr_assert_eq(batch.n, 8);
}

Test(agent_line, its_work_is_that_of_full_batches_and_the_rest)
{
	cr_assert_eq(line_work(&line, &takes, 8), 0);
	add(0, 17);
	cr_assert_float_eq((double)line_work(&line, &takes, 8) / MS, 20 + 20 + 6, 0.1);
}
