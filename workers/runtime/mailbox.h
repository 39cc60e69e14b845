/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a call on the thread that owns an object. The caller puts the call into the owner's mailbox
 * and wakes the owner, which makes the calls in their order between two iterations of its loop.
 * That keeps every queue pair and table single-threaded without a lock on the packet path.
 *
 * An owner may stand still (a halted CPU, a debugger): a caller with other work posts its calls, or
 * asks for a limited time.
 */
#ifndef RUNTIME_MAILBOX_H
#define RUNTIME_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/sleeper.h"

/* Calls that wait at most; a power of two. */
#define MAILBOX_SIZE 4096u

struct letter;

struct mailbox {
	struct letter *letter;   /* MAILBOX_SIZE */
	struct sleeper *sleeper; /* the owner's */
	int open;                /* atomic: the owner's loop runs */
	uint32_t sent;           /* atomic: calls so far; the caller's */
	uint32_t made;           /* atomic: those of them that were made; the owner's */
};

typedef void (*mailbox_call)(void *owner, void *argument);

/* Create a mailbox. 0 or -ENOMEM. */
int mailbox_init(struct mailbox *mailbox, struct sleeper *sleeper);
/* The owner's loop does not run any more. */
void mailbox_fini(struct mailbox *mailbox);

/*
 * One caller at a time. While the owner's loop does not run, the caller makes each call itself,
 * because it is the only thread then.
 *
 * mailbox_post(): have the owner make <call> later; with <bytes>, on a copy of <argument>, which
 * the mailbox frees. 0, or -EAGAIN: no call more can wait now, or -ENOMEM.
 */
int mailbox_post(struct mailbox *mailbox, mailbox_call call, void *owner, void *argument,
		 size_t bytes);
/*
 * mailbox_ask(): have the owner make <call> on a copy of <argument>, and copy the result back.
 * False when it was not made within <us>: it is made later, and nobody hears of the result; or when
 * it could not be posted.
 */
bool mailbox_ask(struct mailbox *mailbox, mailbox_call call, void *owner, void *argument,
		 size_t bytes, unsigned int us);
/* mailbox_send(): have the owner make <call>; returns when it is done, however long that takes. */
void mailbox_send(struct mailbox *mailbox, mailbox_call call, void *owner, void *argument);

/* The number of the last call that was posted, for mailbox_made(). */
static inline uint32_t mailbox_last(const struct mailbox *mailbox)
{
	return mailbox->sent;
}

/* Were this call, and all before it, made? What they wrote is visible then. Caller. */
static inline bool mailbox_made(const struct mailbox *mailbox, uint32_t number)
{
	return (int32_t)(__atomic_load_n(&mailbox->made, __ATOMIC_ACQUIRE) - number) >= 0;
}

/* Calls that wait. Caller. */
static inline uint32_t mailbox_waiting(const struct mailbox *mailbox)
{
	return mailbox->sent - __atomic_load_n(&mailbox->made, __ATOMIC_ACQUIRE);
}

/* Wait for that, <us> at most. False when it took longer. */
bool mailbox_await(const struct mailbox *mailbox, uint32_t number, unsigned int us);

/* Wait until the owner's loop runs. */
void mailbox_wait_open(const struct mailbox *mailbox);

/* Owner: start taking calls, make the waiting calls, check for waiting calls, stop taking calls. */
void mailbox_open(struct mailbox *mailbox);
void mailbox_run(struct mailbox *mailbox);
bool mailbox_empty(const struct mailbox *mailbox);
void mailbox_close(struct mailbox *mailbox);

#endif
