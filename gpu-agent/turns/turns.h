/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of one machine that run their models one at a time, as they share a device. They take
 * turns by a lock on a file, which ends with their process. Those that want a turn say in the file
 * what they would do with it, and each works out for itself who is first (turns_first()).
 *
 * Owner: the loop's thread.
 */
#ifndef AGENT_TURNS_H
#define AGENT_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TURNS_MEMBERS 64 /* processes that say what they want; others wait as they come */

/* How a process would use the device. Times are ns of CLOCK_MONOTONIC. */
struct turns_offer {
	uint64_t said_ns;  /* 0: it wants no turn */
	uint64_t asked_ns; /* since when it has wanted one */
	uint64_t due_ns;   /* the earliest deadline of its batch; 0: it has none */
	uint64_t work_ns;  /* that all its requests take */
	double worth;      /* of its batch: line.h */
	/* Of those that want no turn, too: what its longest batches take, and when it said that. */
	uint64_t run_ns, alive_ns;
};

/*
 * The index of the one that has the next turn, if it begins at <begin>; -1: none wants one. Offers
 * that are older than TURNS_FRESH_NS are of processes that were halted, and do not count.
 *
 * Of those with deadlines the earliest is first while all that wait are in time in any order, else
 * the batch that is worth most. One that has waited for TURNS_PATIENCE of the longest runs goes
 * before all. One without a deadline goes before those that asked later.
 */
int turns_first(const struct turns_offer *offer, unsigned int n, uint64_t begin, uint64_t now);
#define TURNS_FRESH_NS UINT64_C(50000000)
#define TURNS_PATIENCE 8

struct turns_file;

struct turns {
	int fd;
	int member; /* its place in the file; -1: all are taken */
	struct turns_file *file;
	uint32_t heard; /* the bell, when it last looked */
	struct turns_offer own;
};

/* Open the file, or make it. 0, or -errno with a sentence in <error>; -EPERM: users other than this
 * one and root may write to it. */
int turns_open(struct turns *turns, const char *path, char *error, size_t size);
void turns_close(struct turns *turns);

/* Want a turn for what <offer> says (its three times of saying are filled in), or no more. */
void turns_want(struct turns *turns, const struct turns_offer *offer, uint64_t now);
void turns_want_no_more(struct turns *turns, uint64_t now);

/* Take the turn if it is free, and this one is first. 1: taken; 0: not now; or -errno. */
int turns_try(struct turns *turns, uint64_t now);
/* Sleep until a turn ends, <ns> at most, unless one has ended since the last turns_want()
 * or turns_want_no_more(). */
void turns_sleep(const struct turns *turns, uint64_t ns);

/* Want the turn, in the order in which others without deadlines ask, and try to take it. <run_ns>:
 * what the runs of this one take. As turns_try(). */
int turns_ask(struct turns *turns, uint64_t run_ns, uint64_t now);
/* One that asked and did not get it asks again after this long at the latest. */
#define TURNS_SAY_NS UINT64_C(1000000)

/* Ask until it is taken. 0 or -errno. */
int turns_take(struct turns *turns, uint64_t run_ns);

/* Say when the turn that this one has will end, as far as it knows. */
void turns_until(struct turns *turns, uint64_t ns);
/* When the turn ends that another one has, as far as it is known; <now> at least. */
uint64_t turns_ends(const struct turns *turns, uint64_t now);
/* The longest run of those that take part, at least 1 ms. */
uint64_t turns_longest(const struct turns *turns, uint64_t now);

void turns_give(struct turns *turns);

/* Does another one want a turn? For tests. */
bool turns_are_wanted(const struct turns *turns);

#endif
