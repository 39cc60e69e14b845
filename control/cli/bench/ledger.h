/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outcome of each request of one thread. Every request ends once: answered, wrong, refused or lost.
 * A later reply counts as late or as a duplicate, at any distance, as two bits per request are kept
 * to the end of the run.
 *
 * Knows no sockets and no clock. One thread owns it; others may read <counts>, which are then a
 * moment old.
 */
#ifndef BENCH_LEDGER_H
#define BENCH_LEDGER_H

#include "cli/bench/notice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ledger_verdict {
	LEDGER_ANSWERED,
	LEDGER_WRONG,     /* of bytes that cannot be right */
	LEDGER_REFUSED,   /* by a notice */
	LEDGER_LATE,      /* given up before */
	LEDGER_DUPLICATE, /* answered or refused before */
	LEDGER_STRANGER,  /* not of this run; also counted as wrong */
};

struct ledger_counts {
	uint64_t sent, answered, wrong, refused, lost; /* the last four: ends of requests */
	uint64_t late, duplicates, strangers;
	uint64_t notices[NOTICE_CODES];
};

/* A request on its way. */
struct flight {
	uint64_t due_ns, sent_ns; /* when it was to leave, and did */
	uint32_t flow, size;
	uint8_t target;
	bool counted; /* not of the warm-up */
};

struct ledger {
	struct ledger_counts counts;
	uint32_t tag;
	uint64_t oldest, next; /* indices: nothing before <oldest> is outstanding */
	uint64_t outstanding;
	struct flight *flights; /* of index i at i modulo <room>, a power of two */
	uint64_t room;
	uint8_t *states; /* two bits for each index */
	uint64_t states_room;
};

/* <tag> is the upper half of every id. -ENOMEM. */
int ledger_init(struct ledger *ledger, uint32_t tag);
void ledger_fini(struct ledger *ledger);

/* The id of the next request; call ledger_sent() when it left. */
uint64_t ledger_next_id(const struct ledger *ledger);
/* -ENOMEM. */
int ledger_sent(struct ledger *ledger, const struct flight *flight);

/* True when a request of this run was sent with this id. */
bool ledger_knows(const struct ledger *ledger, uint64_t id);
/* The outstanding request with this id, or NULL. */
const struct flight *ledger_find(const struct ledger *ledger, uint64_t id);

/* A reply or, with <code>, a notice came for <id>; <right>: its bytes are those expected. <flight>
 * gets the request if this ended it: ANSWERED, WRONG or REFUSED. */
enum ledger_verdict ledger_settle(struct ledger *ledger, uint64_t id, enum notice_code code,
				  bool right, struct flight *flight);

/* Give up the oldest request that was sent before <before_ns>. False: there is none. */
bool ledger_expire(struct ledger *ledger, uint64_t before_ns, struct flight *flight);

void ledger_counts_add(struct ledger_counts *to, const struct ledger_counts *from);

#endif
