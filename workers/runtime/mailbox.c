/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/mailbox.h"

struct letter {
	mailbox_call call;
	void *owner, *argument;
	void *copy; /* the memory of <argument>, if it is the mailbox's */
};

int mailbox_init(struct mailbox *mailbox, struct sleeper *sleeper)
{
	*mailbox = (struct mailbox){.sleeper = sleeper};
	mailbox->letter = calloc(MAILBOX_SIZE, sizeof(*mailbox->letter));
	return mailbox->letter == NULL ? -ENOMEM : 0;
}

void mailbox_fini(struct mailbox *mailbox)
{
	for (unsigned int i = 0; mailbox->letter != NULL && i < MAILBOX_SIZE; i++)
		free(mailbox->letter[i].copy);
	free(mailbox->letter);
	mailbox->letter = NULL;
}

int mailbox_post(struct mailbox *mailbox, mailbox_call call, void *owner, void *argument,
		 size_t bytes)
{
	struct letter *letter = &mailbox->letter[mailbox->sent % MAILBOX_SIZE];
	void *copy = NULL;

	if (!__atomic_load_n(&mailbox->open, __ATOMIC_ACQUIRE)) {
		call(owner, argument);
		return 0;
	}
	if (mailbox_waiting(mailbox) == MAILBOX_SIZE)
		return -EAGAIN;
	if (bytes > 0) {
		copy = malloc(bytes);
		if (copy == NULL)
			return -ENOMEM;
		memcpy(copy, argument, bytes);
		argument = copy;
	}
	free(letter->copy); /* that call was made */
	*letter = (struct letter){call, owner, argument, copy};
	/* Release: the owner that sees the number sees the letter. */
	__atomic_store_n(&mailbox->sent, mailbox->sent + 1, __ATOMIC_RELEASE);
	sleeper_wake(mailbox->sleeper);
	return 0;
}

bool mailbox_await(const struct mailbox *mailbox, uint32_t number, unsigned int us)
{
	uint64_t end = clock_now_ns() + us * UINT64_C(1000);

	/* The owner answers within an iteration: a few us, unless it has to wake up. */
	while (!mailbox_made(mailbox, number)) {
		if (clock_now_ns() > end)
			return false;
		sched_yield();
	}
	return true;
}

bool mailbox_ask(struct mailbox *mailbox, mailbox_call call, void *owner, void *argument,
		 size_t bytes, unsigned int us)
{
	uint32_t before = mailbox->sent;

	if (mailbox_post(mailbox, call, owner, argument, bytes) < 0)
		return false;
	if (mailbox->sent == before)
		return true; /* it was made here */
	if (!mailbox_await(mailbox, mailbox->sent, us))
		return false;
	memcpy(argument, mailbox->letter[before % MAILBOX_SIZE].copy, bytes);
	return true;
}

void mailbox_send(struct mailbox *mailbox, mailbox_call call, void *owner, void *argument)
{
	while (mailbox_post(mailbox, call, owner, argument, 0) < 0)
		sched_yield();
	while (!mailbox_made(mailbox, mailbox->sent))
		sched_yield();
}

void mailbox_open(struct mailbox *mailbox)
{
	__atomic_store_n(&mailbox->open, 1, __ATOMIC_RELEASE);
}

void mailbox_wait_open(const struct mailbox *mailbox)
{
	while (!__atomic_load_n(&mailbox->open, __ATOMIC_ACQUIRE))
		sched_yield();
}

void mailbox_run(struct mailbox *mailbox)
{
	while (!mailbox_empty(mailbox)) {
		const struct letter *letter = &mailbox->letter[mailbox->made % MAILBOX_SIZE];

		letter->call(letter->owner, letter->argument);
		/* Release: who sees the number sees what the call has done. */
		__atomic_store_n(&mailbox->made, mailbox->made + 1, __ATOMIC_RELEASE);
	}
}

bool mailbox_empty(const struct mailbox *mailbox)
{
	return __atomic_load_n(&mailbox->sent, __ATOMIC_ACQUIRE) == mailbox->made;
}

void mailbox_close(struct mailbox *mailbox)
{
	/* Make the waiting calls, so that no caller waits for ever. */
	__atomic_store_n(&mailbox->open, 0, __ATOMIC_SEQ_CST);
	mailbox_run(mailbox);
}
