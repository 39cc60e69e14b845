/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents that run their models in turn: one at a time, and who is first. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "runtime/clock.h"
#include "turns/turns.h"

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

		cr_assert_eq(turns_take(&other->turns, 0), 0);
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
		cr_assert_eq(turns_take(&own, 0), 0);
		other_start(&other, 1, &thread);
		while (!turns_are_wanted(&own))
			sched_yield();
		turns_give(&own);
		cr_assert_eq(turns_take(&own, 0), 0);
		cr_assert_eq(__atomic_load_n(&other.given, __ATOMIC_SEQ_CST), 1);
		turns_give(&own);
		pthread_join(thread, NULL);
		turns_close(&other.turns);
	}
}

#define MS  UINT64_C(1000000)
#define NOW (1000 * MS)

/* It asked <asked> ms ago, must be done in <due> (0: no deadline), and all it has takes <work>. */
static struct turns_offer offer(uint64_t asked, uint64_t due, uint64_t work, double worth)
{
	return (struct turns_offer){.said_ns = NOW,
				    .alive_ns = NOW,
				    .asked_ns = NOW - asked * MS,
				    .due_ns = due == 0 ? 0 : NOW + due * MS,
				    .work_ns = work * MS,
				    .run_ns = 20 * MS,
				    .worth = worth};
}

static int first(const struct turns_offer *offers, unsigned int n)
{
	return turns_first(offers, n, NOW, NOW);
}

Test(agent_turns, the_earliest_deadline_is_first_while_all_are_in_time)
{
	const struct turns_offer offers[] = {offer(1, 90, 20, 8), offer(9, 70, 10, 1),
					     offer(5, 80, 30, 4)};

	cr_assert_eq(first(offers, 3), 1);
	/* It begins later: not all are in time any more. */
	cr_assert_eq(turns_first(offers, 3, NOW + 11 * MS, NOW), 0);
}

Test(agent_turns, where_some_will_be_late_the_batch_that_is_worth_most_is_first)
{
	const struct turns_offer offers[] = {offer(1, 90, 20, 2), offer(9, 70, 10, 1),
					     offer(5, 80, 50, 4)};

	cr_assert_eq(first(offers, 3), 2);
}

Test(agent_turns, without_deadlines_they_run_in_the_order_in_which_they_ask)
{
	struct turns_offer offers[] = {offer(1, 0, 20, 9), offer(9, 0, 10, 1), offer(5, 0, 50, 4)};

	cr_assert_eq(first(offers, 3), 1);
	offers[1].said_ns = 0; /* it has had its turn */
	cr_assert_eq(first(offers, 3), 2);
}

Test(agent_turns, one_without_a_deadline_waits_for_those_that_asked_before_it)
{
	struct turns_offer offers[] = {offer(5, 90, 5, 9), offer(9, 0, 5, 1), offer(2, 40, 5, 1)};

	cr_assert_eq(first(offers, 3), 1);
	offers[1].asked_ns = NOW - 3 * MS;
	cr_assert_eq(first(offers, 3), 1, "the one of 2 ms ago has the earliest deadline");
	offers[2].due_ns = NOW + 95 * MS;
	cr_assert_eq(first(offers, 3), 0);
}

Test(agent_turns, nobody_is_passed_over_for_ever)
{
	struct turns_offer offers[] = {offer(1, 90, 200, 30), offer(159, 70, 30, 8)};

	cr_assert_eq(first(offers, 2), 0);
	/* Eight of the longest runs. */
	offers[1].asked_ns = NOW - 161 * MS;
	cr_assert_eq(first(offers, 2), 1);
}

Test(agent_turns, who_was_halted_does_not_hold_up_the_others)
{
	struct turns_offer offers[] = {offer(1, 90, 20, 1), offer(9, 20, 10, 9)};

	offers[1].said_ns = NOW - 2 * TURNS_FRESH_NS;
	cr_assert_eq(first(offers, 2), 0);
	/* Or the file is older than the clock. */
	offers[1].said_ns = NOW + 2 * TURNS_FRESH_NS;
	cr_assert_eq(first(offers, 2), 0);
	offers[0].said_ns = 0;
	cr_assert_eq(first(offers, 2), -1);
}

Test(agent_turns, what_a_file_of_another_time_says_is_not_believed)
{
	uint64_t now = clock_now_ns();

	turns_until(&own, now + 3600 * 1000 * MS);
	cr_assert_eq(turns_ends(&own, now), now);
	turns_until(&own, now - 1);
	cr_assert_eq(turns_ends(&own, now), now);
	turns_until(&own, now + MS / 2);
	cr_assert_eq(turns_ends(&own, now), now + MS / 2);
}

/* A machine that was started again has a clock that is behind what the file says. */
Test(agent_turns, a_long_run_before_a_restart_of_the_machine_makes_nobody_patient)
{
	struct turns_offer offers[] = {offer(900, 0, 20, 1), offer(899, 90, 20, 1), {0}};

	cr_assert_eq(first(offers, 2), 0);
	offers[2] = (struct turns_offer){.run_ns = 3600 * 1000 * MS, .alive_ns = 3600 * 1000 * MS};
	offers[1].asked_ns = NOW - 901 * MS;
	offers[0].due_ns = NOW + 10 * MS;
	cr_assert_eq(first(offers, 3), 1, "it has waited for more than eight runs");
}

Test(agent_turns, one_that_wants_nothing_sleeps_though_turns_have_ended)
{
	uint64_t now = clock_now_ns();

	cr_assert_eq(turns_take(&own, 0), 0);
	turns_give(&own);
	turns_want_no_more(&own, now);
	turns_sleep(&own, 50 * MS);
	cr_assert_geq(clock_now_ns() - now, 50 * MS);
}

Test(agent_turns, a_file_that_others_may_write_to_is_refused)
{
	struct turns other;
	char error[256] = "";

	cr_assert_eq(chmod(path, 0666), 0);
	cr_assert_eq(turns_open(&other, path, error, sizeof(error)), -EPERM);
	cr_assert_not_null(strstr(error, "other users may write to it"), "%s", error);
	cr_assert_eq(chmod(path, 0660), 0);
	cr_assert_eq(turns_open(&other, path, error, sizeof(error)), 0, "%s", error);
	turns_close(&other);
	if (geteuid() != 0)
		return;
	cr_assert_eq(chown(path, 12345, (gid_t)-1), 0);
	cr_assert_eq(turns_open(&other, path, error, sizeof(error)), -EPERM);
}

Test(agent_turns, a_turn_goes_to_the_one_that_is_first)
{
	struct turns other;
	char error[256];
	uint64_t now = clock_now_ns();
	struct turns_offer late = {.due_ns = now + 90 * MS, .work_ns = MS},
			   soon = {.due_ns = now + 50 * MS, .work_ns = MS};

	cr_assert_eq(turns_open(&other, path, error, sizeof(error)), 0);
	turns_want(&own, &late, now);
	turns_want(&other, &soon, now);
	cr_assert_eq(turns_try(&own, now), 0);
	cr_assert_eq(turns_try(&other, now), 1);
	turns_want(&own, &late, now);
	cr_assert_eq(turns_try(&own, now), 0, "two at a time");
	turns_give(&other);
	cr_assert_eq(turns_try(&own, now), 1);
	turns_give(&own);
	turns_close(&other);
}

Test(agent_turns, more_than_the_file_has_places_for_take_turns_too)
{
	static struct turns other[TURNS_MEMBERS + 1];
	char error[256];

	for (int i = 0; i <= TURNS_MEMBERS; i++)
		cr_assert_eq(turns_open(&other[i], path, error, sizeof(error)), 0);
	cr_assert_eq(other[TURNS_MEMBERS].member, -1);
	cr_assert_eq(turns_take(&own, 0), 0);
	turns_give(&own);
	for (int i = 0; i <= TURNS_MEMBERS; i++) {
		cr_assert_eq(turns_take(&other[i], 0), 0);
		turns_give(&other[i]);
		turns_close(&other[i]);
	}
}

Test(agent_turns, a_turn_ends_with_its_process)
{
	struct turns other;
	char error[256];

	cr_assert_eq(turns_open(&other, path, error, sizeof(error)), 0);
	cr_assert_eq(turns_take(&other, 0), 0);
	turns_close(&other);
	cr_assert_eq(turns_take(&own, 0), 0);
}

/* A process that wants a turn for what is most urgent of all, and takes it if <takes>. Returns when
 * it has said so. */
static pid_t process_start(bool takes)
{
	int done[2];
	pid_t pid;
	char byte;

	cr_assert_eq(pipe(done), 0);
	pid = fork();
	if (pid == 0) {
		struct turns_offer urgent = {.worth = 1000};
		uint64_t now = clock_now_ns();
		struct turns other;
		char error[256];

		if (turns_open(&other, path, error, sizeof(error)) != 0)
			_exit(1);
		urgent.due_ns = now + MS;
		urgent.work_ns = 100 * MS;
		turns_want(&other, &urgent, now);
		if (takes && turns_try(&other, now) != 1)
			_exit(1);
		if (write(done[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(done[0], &byte, 1), 1);
	close(done[0]);
	close(done[1]);
	return pid;
}

static void process_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(agent_turns, one_that_is_killed_in_its_turn_gives_it_back, .timeout = 20)
{
	pid_t pid = process_start(true);
	struct turns_offer mine = {.work_ns = MS};

	turns_want(&own, &mine, clock_now_ns());
	cr_assert_eq(turns_try(&own, clock_now_ns()), 0);
	process_end(pid);
	cr_assert_eq(turns_take(&own, 0), 0);
	turns_give(&own);
}

Test(agent_turns, one_that_is_halted_while_it_waits_holds_nobody_up_for_long, .timeout = 20)
{
	pid_t pid = process_start(false);

	/* It says nothing new, and would be first for ever. */
	cr_assert_eq(turns_take(&own, 0), 0);
	turns_give(&own);
	process_end(pid);
}

/* Others of the same user may write anything into the file. */
Test(agent_turns, whatever_offers_say_the_first_is_one_of_them)
{
	static struct turns_offer offers[TURNS_MEMBERS];

	srandom(7);
	for (int round = 0; round < 20000; round++) {
		uint8_t *bytes = (uint8_t *)offers;
		int one;

		for (size_t i = 0; i < sizeof(offers); i += 1 + random() % 32)
			bytes[i] = (uint8_t)random();
		for (int i = 0; i < TURNS_MEMBERS; i += 1 + random() % 8)
			offers[i].said_ns = NOW - random() % (long)(2 * TURNS_FRESH_NS);
		one = first(offers, TURNS_MEMBERS);
		cr_assert(one >= -1 && one < TURNS_MEMBERS);
		cr_assert(one < 0 || offers[one].said_ns + TURNS_FRESH_NS > NOW);
	}
}

Test(agent_turns, a_file_that_cannot_be_is_named)
{
	struct turns other;
	char error[256] = "";

	cr_assert_lt(turns_open(&other, "/none/of/it", error, sizeof(error)), 0);
	cr_assert_not_null(strstr(error, "/none/of/it"));
}
