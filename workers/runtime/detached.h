/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts detached threads, for calls that may block for long: a name server, a disk. */
#ifndef RUNTIME_DETACHED_H
#define RUNTIME_DETACHED_H

/*
 * Run <run> with <context> in a detached thread. Objects that it shares with its starter need a
 * count of users. All signals are blocked in it. 0 or -errno.
 */
int detached_start(void *(*run)(void *context), void *context);

#endif
