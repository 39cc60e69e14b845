/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls between threads: of an owner that stands still, too. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "runtime/mailbox.h"

struct owner {
	struct sleeper sleeper;
	struct mailbox mailbox;
	unsigned int n;
	int value[MAILBOX_SIZE + 8];
	int end; /* atomic */
};

static struct owner owner;

static void begin(void)
{
	cr_assert_eq(sleeper_init(&owner.sleeper), 0);
	cr_assert_eq(mailbox_init(&owner.mailbox, &owner.sleeper), 0);
}

static void finish(void)
{
	mailbox_fini(&owner.mailbox);
	sleeper_fini(&owner.sleeper);
}

static void note(void *of, void *value)
{
	struct owner *o = of;

	o->value[o->n++] = *(int *)value;
}

static void twice(void *of, void *value)
{
	note(of, value);
	*(int *)value *= 2;
}

TestSuite(runtime_mailbox, .init = begin, .fini = finish, .timeout = 30);

Test(runtime_mailbox, while_the_owner_does_not_run_the_caller_makes_the_calls)
{
	int value = 4;

	cr_assert_eq(mailbox_post(&owner.mailbox, note, &owner, &value, sizeof(value)), 0);
	cr_expect(mailbox_ask(&owner.mailbox, twice, &owner, &value, sizeof(value), 1000));
	cr_expect_eq(value, 8);
	mailbox_send(&owner.mailbox, note, &owner, &value);
	cr_expect_eq(owner.n, 3);
	cr_expect_eq(mailbox_waiting(&owner.mailbox), 0);
}

Test(runtime_mailbox, an_owner_that_stands_still_makes_the_calls_later_in_their_order_on_copies)
{
	mailbox_open(&owner.mailbox);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(mailbox_post(&owner.mailbox, note, &owner, &i, sizeof(i)), 0);
	cr_expect_eq(owner.n, 0);
	cr_expect_eq(mailbox_waiting(&owner.mailbox), 3);
	cr_expect_not(mailbox_made(&owner.mailbox, mailbox_last(&owner.mailbox)));
	mailbox_run(&owner.mailbox);
	cr_expect(mailbox_made(&owner.mailbox, mailbox_last(&owner.mailbox)));
	cr_assert_eq(owner.n, 3);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(owner.value[i], i);
}

Test(runtime_mailbox, nobody_waits_for_an_answer_longer_than_is_said)
{
	int value = 21;

	mailbox_open(&owner.mailbox);
	cr_expect_not(mailbox_ask(&owner.mailbox, twice, &owner, &value, sizeof(value), 2000));
	cr_expect_eq(value, 21);
	mailbox_run(&owner.mailbox); /* on memory of the mailbox's own */
	cr_expect_eq(value, 21);
	cr_expect_eq(owner.n, 1);
}

Test(runtime_mailbox, so_many_calls_wait_and_no_more)
{
	mailbox_open(&owner.mailbox);
	for (int round = 0; round < 2; round++) {
		owner.n = 0;
		for (int i = 0; i < (int)MAILBOX_SIZE; i++)
			cr_assert_eq(mailbox_post(&owner.mailbox, note, &owner, &i, sizeof(i)), 0);
		cr_expect_eq(mailbox_post(&owner.mailbox, note, &owner, &round, sizeof(round)),
			     -EAGAIN);
		mailbox_run(&owner.mailbox);
		cr_assert_eq(owner.n, MAILBOX_SIZE);
		cr_expect_eq(owner.value[MAILBOX_SIZE - 1], MAILBOX_SIZE - 1);
	}
}

static void *run(void *context)
{
	mailbox_open(&owner.mailbox);
	while (!__atomic_load_n(&owner.end, __ATOMIC_ACQUIRE)) {
		mailbox_run(&owner.mailbox);
		sched_yield();
	}
	mailbox_close(&owner.mailbox);
	return NULL;
}

Test(runtime_mailbox, an_owner_that_runs_answers)
{
	pthread_t thread;
	int value;

	pthread_create(&thread, NULL, run, NULL);
	mailbox_wait_open(&owner.mailbox);
	for (int i = 0; i < 1000; i++) {
		value = i;
		cr_assert(mailbox_ask(&owner.mailbox, twice, &owner, &value, sizeof(value),
				      10000000));
		cr_assert_eq(value, 2 * i);
	}
	value = 7;
	mailbox_send(&owner.mailbox, twice, &owner, &value);
	cr_expect_eq(value, 14);
	__atomic_store_n(&owner.end, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	cr_expect_eq(owner.n, 1001);
}
