/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>

#include <rte_errno.h>
#include <rte_ring.h>

#include "runtime/mailbox.h"

#define SIZE 16

struct letter {
	mailbox_call call;
	void *owner, *argument;
	int done; /* atomic */
};

int mailbox_init(struct mailbox *mailbox, const char *name, struct sleeper *sleeper)
{
	mailbox->ring = rte_ring_create(name, SIZE, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	mailbox->sleeper = sleeper;
	mailbox->open = 0;
	return mailbox->ring == NULL ? -rte_errno : 0;
}

void mailbox_fini(struct mailbox *mailbox)
{
	rte_ring_free(mailbox->ring);
	mailbox->ring = NULL;
}

void mailbox_send(struct mailbox *mailbox, mailbox_call call, void *owner, void *argument)
{
	struct letter letter = {.call = call, .owner = owner, .argument = argument};

	if (!__atomic_load_n(&mailbox->open, __ATOMIC_ACQUIRE)) {
		call(owner, argument);
		return;
	}
	while (rte_ring_sp_enqueue(mailbox->ring, &letter) != 0)
		sched_yield();
	sleeper_wake(mailbox->sleeper);
	/* The owner answers within an iteration: a few us, unless it has to wake up. */
	while (!__atomic_load_n(&letter.done, __ATOMIC_ACQUIRE))
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
	struct letter *letter;

	while (rte_ring_sc_dequeue(mailbox->ring, (void **)&letter) == 0) {
		letter->call(letter->owner, letter->argument);
		__atomic_store_n(&letter->done, 1, __ATOMIC_RELEASE);
	}
}

bool mailbox_empty(const struct mailbox *mailbox)
{
	return rte_ring_empty(mailbox->ring);
}

void mailbox_close(struct mailbox *mailbox)
{
	/* Make the waiting calls, so that no caller waits for ever. */
	__atomic_store_n(&mailbox->open, 0, __ATOMIC_SEQ_CST);
	mailbox_run(mailbox);
}
