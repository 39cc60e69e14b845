/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The EAL's interrupt thread, on which handlers of drivers run, and the end of the EAL: that thread
 * outlives rte_eal_cleanup(), which frees what it reads whenever a driver has taken a handler back,
 * as memif does when its ports close. Main thread.
 */
#ifndef RUNTIME_EAL_END_H
#define RUNTIME_EAL_END_H

#include <stdbool.h>

/* ms; a handler on the interrupt thread that takes longer is stuck. */
#define INTERRUPT_THREAD_MS 2000

/*
 * Hold the interrupt thread from now on, so that handlers of memifs run only in rounds that are
 * asked for. Other handlers run at once, as long as no memif has anything. False when it does not
 * come. Until eal_end().
 */
bool eal_interrupt_hold(void);
/*
 * Have the interrupt thread handle what it finds, once: true when it is held again. False when it
 * is not within <ms>: then handlers may be running until a later call returns true.
 */
bool eal_interrupt_round(unsigned int ms);

/*
 * Have the interrupt thread make a call, between two handlers, and wait for its end. Events that
 * the thread had fetched before are handled before. False when it does not come to it.
 */
bool eal_interrupt_call(void (*call)(void *argument), void *argument);

/*
 * Halt the interrupt thread for good, then clean up the EAL; leave it as it is where that thread is
 * stuck. After all ports were closed; the process is about to end.
 */
void eal_end(void);

#endif
