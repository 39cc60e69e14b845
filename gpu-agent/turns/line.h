/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests that a worker has and does not run yet, the earliest deadline first, and the batch
 * that is worth most of them. One that has waited for a second has the place of one that is due:
 * else those with long deadlines would wait behind those with short ones for ever. Pure; times are
 * ns of any one clock.
 *
 * Owner: the loop's thread.
 */
#ifndef AGENT_LINE_H
#define AGENT_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "turns/takes.h"

/* Of a request without a deadline. */
#define LINE_NEVER UINT64_MAX

struct line_request {
	uint64_t due_ns;  /* its run must have ended by then; LINE_NEVER: no deadline */
	uint64_t turn_ns; /* its place in the line */
	uint32_t place;   /* the caller's: where it keeps the request */
};

struct line {
	struct line_request *at; /* the earliest <turn_ns> first, then the one that came first */
	uint32_t n, room;
};

/* 0 or -ENOMEM. */
int line_init(struct line *line, uint32_t room);
void line_fini(struct line *line);

/*
 * When the run of a request must have ended that has <deadline_us> from <began_ns> on: a hundredth
 * of its time is for the reply's way back.
 */
uint64_t line_due(uint64_t began_ns, uint32_t deadline_us);

/* Puts a request that was seen <seen_ns> in its place. The line must have room. */
void line_add(struct line *line, uint64_t seen_ns, uint64_t due_ns, uint32_t place);
#define LINE_PATIENCE_NS UINT64_C(1000000000)

void line_remove(struct line *line, uint32_t first, uint32_t n);

/* The first from <from> on that would be late even by itself if it began at <begin>; <line>->n:
 * none.
 */
uint32_t line_late(const struct line *line, const struct takes *takes, uint64_t begin,
		   uint32_t from);

struct line_batch {
	uint32_t first, n; /* requests from <first> on */
	double worth;
};

/*
 * The batch of at most <max> that is worth most if it begins at <begin>: all in it are in time
 * together, as far as that is known. Each request is worth one if it has no time to lose, and half
 * of it if it has <wait> ns: so long it would wait if another batch ran first. False: none would be
 * in time, or the line is empty.
 */
bool line_choose(const struct line *line, const struct takes *takes, uint32_t max, uint64_t begin,
		 uint64_t wait, struct line_batch *out);

/* ns that all of it takes, in batches of <max>. */
uint64_t line_work(const struct line *line, const struct takes *takes, uint32_t max);

#endif
