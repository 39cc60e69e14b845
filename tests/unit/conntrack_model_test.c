/* SPDX-License-Identifier: BSD-3-Clause */
/* A million random operations on the table and on a plain model of it. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <time.h>

#include "conntrack_model.h"

TestSuite(conntrack_model, .init = fixture_eal);

#define OPERATIONS 400000

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static struct conntrack_stats walk(uint64_t seed, uint32_t start)
{
	uint64_t state = seed;
	struct model model;

	model_init(&model, FIXTURE_TABLE, start);
	for (unsigned int i = 0; i < OPERATIONS; i++) {
		uint64_t random = random_next(&state) >> 16;
		uint8_t op[MODEL_OP_SIZE];
		const char *wrong;

		memcpy(op, &random, sizeof(op));
		wrong = model_step(&model, op);
		cr_assert_null((void *)wrong,
			       "seed %lu, start %u, operation %u (%02x %02x %02x %02x %02x): %s",
			       seed, start, i, op[0], op[1], op[2], op[3], op[4], wrong);
	}
	model_fini(&model);
	return model.expected;
}

static void walk_seeing_all(uint64_t seed, uint32_t start)
{
	struct conntrack_stats seen = walk(seed, start);

	/* too few refusals or expiries: the walk's numbers are badly chosen */
	cr_assert_gt(seen.refused, 200);
	cr_assert_gt(seen.reclaimed, 200);
	cr_assert_gt(seen.expired, 10000);
	cr_assert_gt(seen.removed, 1000);
}

Test(conntrack_model, a_walk_from_time_zero_agrees)
{
	walk_seeing_all(20261121, 0);
}

Test(conntrack_model, a_walk_across_the_wrap_of_the_clock_agrees)
{
	walk_seeing_all(42, UINT32_MAX - 20000000);
}

Test(conntrack_model, a_walk_across_the_sign_of_the_clock_agrees)
{
	walk_seeing_all(1971, INT32_MAX - 20000000u);
}

#define SEEDS 2

/* The seeds are the same each time; MODEL_SECONDS=600 goes on with new seeds for 600 s. */
Test(conntrack_model, walks_under_other_seeds_agree_for_as_long_as_asked, .timeout = 86400)
{
	const char *text = getenv("MODEL_SECONDS");
	time_t end = time(NULL) + (text != NULL ? atoi(text) : 0);
	uint64_t seed;

	for (seed = 1; seed <= SEEDS; seed++)
		walk(seed, (uint32_t)(seed * 2654435761u));
	for (seed = (uint64_t)time(NULL); time(NULL) < end; seed++)
		walk(seed, (uint32_t)(seed * 2654435761u));
}
