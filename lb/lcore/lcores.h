/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread's dealings with lcores, any of which may stand still (a halted CPU, a
 * debugger, a driver that hangs): which do, calls to them, and memory that is freed when none can
 * have it any more. Nothing here waits for an lcore longer than LCORES_WAIT_US, and for one that
 * stands still not twice. Control thread.
 */
#ifndef LB_LCORES_H
#define LB_LCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/mailbox.h"

struct lb;

/* us; an lcore that is given its CPU answers within a few. */
#define LCORES_WAIT_US 50000u

/* An lcore, as the control thread has seen it. */
struct lcore_seen {
	uint64_t polls;     /* at the last look */
	uint32_t since_ms;  /* when that number was first seen */
	uint32_t until_ms;  /* when it had last stood for a while, as of lb_now_ms(); 0: never */
	uint32_t stands_ms; /* for how long it has not ended a turn; 0: it goes on */
	bool late; /* it did not answer in time: it is not waited for again before it does */
};

/*
 * See which lcores go on, log which do not, and free what can be freed. Call every 10 to 50 ms.
 */
void lcores_tick(struct lb *lb);

/* For how long the lcore has stood still, ms; 0: it goes on, or has stood for less than a second.
 */
uint32_t lb_lcore_stands_ms(const struct lb *lb, unsigned int lcore);

/* True when none of them goes on. */
bool lb_all_stand(const struct lb *lb);

/* -EBUSY, with a sentence that names the lcore for which too many changes wait. */
int lcores_refuse(const struct lb *lb, char *error, size_t size);
/*
 * May one more change be made? 0; or -EBUSY, with a sentence that names the lcore which stands
 * still, when too many wait for it.
 */
int lcores_check(const struct lb *lb, char *error, size_t size);
/* The same where the change is no use before all lcores have it: none may stand still at all. */
int lcores_check_all(const struct lb *lb, char *error, size_t size);

/* An lcore that goes on, if there is one: for what any of them can do. */
unsigned int lcores_any(const struct lb *lb);

/*
 * Have the lcore make <call> with itself and <argument>, or a copy if <bytes> is not 0; see
 * mailbox_post(). Calls are made in their order. False: too many wait for it.
 */
bool lcores_post(struct lb *lb, unsigned int lcore, mailbox_call call, void *argument,
		 size_t bytes);
/* The same, and wait for a moment: true when the call was made, false when it is made later. */
bool lcores_tell(struct lb *lb, unsigned int lcore, mailbox_call call, void *argument,
		 size_t bytes);
/* Have the call write its answer to <argument>. False: there is none, see mailbox_ask(). */
bool lcores_ask(struct lb *lb, unsigned int lcore, mailbox_call call, void *argument, size_t bytes);

/* Wait until each lcore has ended the turn that it is in. False: one takes longer than a moment. */
bool lcores_pass(struct lb *lb);

/*
 * Free <what> by <destroy> when each lcore has made the calls that were posted before, and then has
 * ended the turn that it is in. The lcores got something else in its place before.
 */
void lcores_free_later(struct lb *lb, void (*destroy)(void *what), void *what);
/* Wait for a moment until all is freed that can be. True when nothing waits any more. */
bool lcores_settle(struct lb *lb);
/* May what is not a command replace more? */
bool lcores_has_room(const struct lb *lb);
/* The lcores have ended: free all that waits. */
void lcores_end(struct lb *lb);

#endif
