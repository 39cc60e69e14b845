/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How one thread has something done by the thread that owns the thing: it leaves a call in the
 * owner's mailbox, wakes the owner, and waits until the owner has made the call between two turns
 * of its loop. That keeps every queue pair and table single-threaded without a lock on the packet
 * path.
 */
#ifndef RDMA_MAILBOX_H
#define RDMA_MAILBOX_H

#include <stdbool.h>

#include "runtime/sleeper.h"

struct rte_ring;

struct mailbox {
	struct rte_ring *ring;
	struct sleeper *sleeper; /* of the owner */
	int open;                /* atomic: the owner's loop runs */
};

typedef void (*mailbox_call)(void *owner, void *argument);

/* <name> is unique in the process. 0 or -errno. */
int mailbox_init(struct mailbox *mailbox, const char *name, struct sleeper *sleeper);
void mailbox_fini(struct mailbox *mailbox);

/*
 * Have <call> made by the owner and return when it is done. One caller at a time. While the owner's
 * loop does not run, the caller makes the call itself: then it is the only thread there is.
 */
void mailbox_send(struct mailbox *mailbox, mailbox_call call, void *owner, void *argument);

/* Wait until the owner's loop runs. */
void mailbox_wait_open(const struct mailbox *mailbox);

/* Owner: the loop starts; it makes the calls that wait; it looks whether there are any; it ends. */
void mailbox_open(struct mailbox *mailbox);
void mailbox_run(struct mailbox *mailbox);
bool mailbox_empty(const struct mailbox *mailbox);
void mailbox_close(struct mailbox *mailbox);

#endif
