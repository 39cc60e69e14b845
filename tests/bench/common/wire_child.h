/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that a bench forks, each with a socket of its own to the parent, and ports between
 * them.
 */
#ifndef BENCH_WIRE_CHILD_H
#define BENCH_WIRE_CHILD_H

#include <stdint.h>
#include <sys/types.h>

struct wire_child {
	const char *name;
	pid_t pid;
	int socket; /* the parent's end; messages keep their bounds */
};

/* How errors of this process begin. */
void wire_name(const char *name);

/* Something is not as it must be: the process ends, and those that it forked. */
void wire_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Fork <run>, with its end of the socket. It is killed when this process ends. */
void wire_child_start(struct wire_child *c, const char *name,
		      void (*run)(const void *argument, int socket), const void *argument);
/* Tells the child that it may end, with success. */
void wire_child_let_go(const struct wire_child *c);
/* Wait for its end, which was asked for. */
void wire_child_end(const struct wire_child *c);

/* ms in which a link must be there. */
#define WIRE_LINK_MS 10000
/* The driver sets a port up on a thread of its own; a queue that is used meanwhile breaks. */
void wire_wait_for_link(uint16_t port);
/* CPU time of a thread, from its clock. */
uint64_t wire_cpu_ns(int clock);

#endif
