/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that nobody joins, for a call that may block for long: a name server, a disk. */
#ifndef RUNTIME_DETACHED_H
#define RUNTIME_DETACHED_H

/*
 * Begin <run> with <context>; it ends by itself, and what it shares with its starter needs a count
 * of users. Signals stay with the threads that there are. 0 or -errno.
 */
int detached_start(void *(*run)(void *context), void *context);

#endif
