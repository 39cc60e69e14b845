/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timers of an lcore's connections: an entry per connection, at its first deadline. Near ones
 * are in a wheel of a slot per ms, later ones in one of a slot per second, so that a million
 * connections at rest are visited once a minute and cost nothing else. An entry may be early: its
 * owner looks at the deadline and sets it again. Pure; belongs to one thread.
 */
#ifndef LB_TCP_WHEEL_H
#define LB_TCP_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define TCP_WHEEL_MS      4096 /* slots of a ms */
#define TCP_WHEEL_SECONDS 256  /* slots of TCP_WHEEL_SECOND ms */
#define TCP_WHEEL_SECOND  1024

/* Zeroed memory is an entry that waits for nothing. */
struct tcp_wheel_entry {
	struct tcp_wheel_entry *next,
		**at; /* <at>: the pointer to it; NULL: it waits for nothing */
	uint32_t due_ms;
};

struct tcp_wheel {
	uint32_t now_ms;
	uint32_t n; /* entries */
	struct tcp_wheel_entry *ms[TCP_WHEEL_MS], *second[TCP_WHEEL_SECONDS];
	struct tcp_wheel_entry *due; /* and not taken yet */
};

void tcp_wheel_init(struct tcp_wheel *wheel, uint32_t now_ms);

/*
 * <entry> is due at <due_ms>, at most 24 days from now. One that waits already for an earlier time
 * stays where it is: to set a later deadline costs nothing, and comes up early once.
 */
void tcp_wheel_set(struct tcp_wheel *wheel, struct tcp_wheel_entry *entry, uint32_t due_ms);

void tcp_wheel_remove(struct tcp_wheel *wheel, struct tcp_wheel_entry *entry);

/* Returns the ms until an entry may be due, at most <most> and TCP_WHEEL_SECOND. */
uint32_t tcp_wheel_left(const struct tcp_wheel *wheel, uint32_t most);

/* Time passes. */
void tcp_wheel_advance(struct tcp_wheel *wheel, uint32_t now_ms);

/* The next entry that is due, which then waits for nothing; NULL: none is. */
struct tcp_wheel_entry *tcp_wheel_take(struct tcp_wheel *wheel);

#endif
