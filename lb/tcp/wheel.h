/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timers of an lcore's connections: an entry per connection, at its first deadline. Near ones
 * are in a wheel of a slot per ms, later ones in one of a slot per second, so that a million
 * connections at rest are visited once a minute and cost nothing else. An entry may be early: its
 * owner looks at the deadline and sets it again. Entries lie side by side, by the connection's
 * number: one that moves touches its neighbours in the list, and they are seldom in the cache.
 * Pure; belongs to one thread.
 */
#ifndef LB_TCP_WHEEL_H
#define LB_TCP_WHEEL_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#define TCP_WHEEL_MS      4096 /* slots of a ms */
#define TCP_WHEEL_SECONDS 256  /* slots of TCP_WHEEL_SECOND ms */
#define TCP_WHEEL_SECOND  1024

struct tcp_wheel_entry {
	uint32_t next, previous; /* numbers of entries; 0: it waits for nothing */
	uint32_t due_ms;
};

struct tcp_wheel {
	uint32_t now_ms;
	uint32_t n; /* entries that wait */
	/* by number; behind the last one's, the ends of the lists, which are circles */
	struct tcp_wheel_entry *entry;
	uint32_t lists; /* number of the first list */
};

/* Bytes of memory for entries 1 to <n>. */
size_t tcp_wheel_bytes(uint32_t n);
/* Uses <memory>, which the caller owns. */
void tcp_wheel_init(struct tcp_wheel *wheel, uint32_t n, uint32_t now_ms, void *memory);

/* As tcp_wheel_set(), also to a later time. */
void tcp_wheel_move(struct tcp_wheel *wheel, uint32_t number, uint32_t due_ms);

/*
 * Entry <number> is due at <due_ms>, at most 24 days from now. One that waits already for an
 * earlier time stays where it is: to set a later deadline costs nothing, and comes up early once.
 */
static inline void tcp_wheel_set(struct tcp_wheel *wheel, uint32_t number, uint32_t due_ms)
{
	const struct tcp_wheel_entry *entry = &wheel->entry[number];

	if (entry->next == 0 || (int32_t)(due_ms - entry->due_ms) < 0)
		tcp_wheel_move(wheel, number, due_ms);
}

void tcp_wheel_remove(struct tcp_wheel *wheel, uint32_t number);

static inline bool tcp_wheel_waits(const struct tcp_wheel *wheel, uint32_t number)
{
	return wheel->entry[number].next != 0;
}

/* Ask for an entry's memory. */
static inline void tcp_wheel_prefetch(const struct tcp_wheel *wheel, uint32_t number)
{
	__builtin_prefetch(&wheel->entry[number], 1);
}

/* Returns the ms until an entry may be due, at most <most> and TCP_WHEEL_SECOND / 2. */
uint32_t tcp_wheel_left(const struct tcp_wheel *wheel, uint32_t most);

/* Time passes. */
void tcp_wheel_advance(struct tcp_wheel *wheel, uint32_t now_ms);

/* The number of the next entry that is due, which then waits for nothing; 0: none is. */
uint32_t tcp_wheel_take(struct tcp_wheel *wheel);

#endif
