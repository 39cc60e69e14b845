/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a call on the thread that owns an object. The caller puts the call into the owner's mailbox,
 * wakes the owner, and waits until the owner has made the call between two iterations of its loop.
 * That keeps every queue pair and table single-threaded without a lock on the packet path.
 */
#ifndef RUNTIME_MAILBOX_H
#define RUNTIME_MAILBOX_H

#include <stdbool.h>

#include "runtime/sleeper.h"

struct rte_ring;

struct mailbox {
	struct rte_ring *ring;
	struct sleeper *sleeper; /* the owner's */
	int open;                /* atomic: the owner's loop runs */
};

typedef void (*mailbox_call)(void *owner, void *argument);

/* Create a mailbox; <name> is unique in the process. 0 or -errno. */
int mailbox_init(struct mailbox *mailbox, const char *name, struct sleeper *sleeper);
void mailbox_fini(struct mailbox *mailbox);

/*
 * Have the owner make <call>; returns when it is done. One caller at a time. While the owner's loop
 * does not run, the caller makes the call itself, because it is the only thread then.
 */
void mailbox_send(struct mailbox *mailbox, mailbox_call call, void *owner, void *argument);

/* Wait until the owner's loop runs. */
void mailbox_wait_open(const struct mailbox *mailbox);

/* Owner: start taking calls, make the waiting calls, check for waiting calls, stop taking calls. */
void mailbox_open(struct mailbox *mailbox);
void mailbox_run(struct mailbox *mailbox);
bool mailbox_empty(const struct mailbox *mailbox);
void mailbox_close(struct mailbox *mailbox);

#endif
