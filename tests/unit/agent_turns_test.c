/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents that run their models in turn: one at a time, and nobody twice before one that waits. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "loop/turns.h"

static char path[64];
static struct turns own;

static void setup(void)
{
	char error[256];

	snprintf(path, sizeof(path), "/tmp/turns-%d", getpid());
	cr_assert_eq(turns_open(&own, path, error, sizeof(error)), 0, "%s", error);
}

static void teardown(void)
{
	turns_close(&own);
	unlink(path);
}

TestSuite(agent_turns, .init = setup, .fini = teardown);

struct other {
	struct turns turns;
	int rounds;
	int given; /* atomic: how often it had the turn */
};

static int inside, most; /* atomic: at a time */

static void *other_run(void *context)
{
	struct other *other = context;

	for (int i = 0; i < other->rounds; i++) {
		int now;

		cr_assert_eq(turns_take(&other->turns), 0);
		now = __atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		if (now > __atomic_load_n(&most, __ATOMIC_SEQ_CST))
			__atomic_store_n(&most, now, __ATOMIC_SEQ_CST);
		sched_yield();
		__atomic_add_fetch(&other->given, 1, __ATOMIC_SEQ_CST);
		__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
		turns_give(&other->turns);
	}
	return NULL;
}

static void other_start(struct other *other, int rounds, pthread_t *thread)
{
	char error[256];

	*other = (struct other){.rounds = rounds};
	cr_assert_eq(turns_open(&other->turns, path, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(pthread_create(thread, NULL, other_run, other), 0);
}

Test(agent_turns, one_at_a_time)
{
	static struct other other[3];
	pthread_t thread[3];

	for (int i = 0; i < 3; i++)
		other_start(&other[i], 200, &thread[i]);
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		turns_close(&other[i].turns);
		cr_assert_eq(other[i].given, 200);
	}
	cr_assert_eq(most, 1);
}

Test(agent_turns, nobody_has_a_second_turn_before_one_that_waits, .timeout = 60)
{
	static struct other other;
	pthread_t thread;

	for (int i = 0; i < 50; i++) {
		cr_assert_eq(turns_take(&own), 0);
		other_start(&other, 1, &thread);
		while (!turns_are_wanted(&own))
			sched_yield();
		turns_give(&own);
		cr_assert_eq(turns_take(&own), 0);
		cr_assert_eq(__atomic_load_n(&other.given, __ATOMIC_SEQ_CST), 1);
		turns_give(&own);
		pthread_join(thread, NULL);
		turns_close(&other.turns);
	}
}

Test(agent_turns, a_turn_ends_with_its_process)
{
	struct turns other;
	char error[256];

	cr_assert_eq(turns_open(&other, path, error, sizeof(error)), 0);
	cr_assert_eq(turns_take(&other), 0);
	turns_close(&other);
	cr_assert_eq(turns_take(&own), 0);
}

Test(agent_turns, a_file_that_cannot_be_is_named)
{
	struct turns other;
	char error[256] = "";

	cr_assert_lt(turns_open(&other, "/none/of/it", error, sizeof(error)), 0);
	cr_assert_not_null(strstr(error, "/none/of/it"));
}
