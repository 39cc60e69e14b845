/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Outcome of each request of one thread. Every request ends once: answered, wrong, refused or lost.
 * A further reply counts as late or as a duplicate however late it comes, as two bits per request
 * are kept until the end of the run.
 *
 * Has no sockets and no clock. One thread owns it; others may read <counts>, which may then be
 * slightly old.
 */
#ifndef BENCH_LEDGER_H
#define BENCH_LEDGER_H

#include "cli/bench/notice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ledger_verdict {
	LEDGER_ANSWERED,
	LEDGER_WRONG,     /* its bytes cannot be right */
	LEDGER_REFUSED,   /* answered by a notice */
	LEDGER_LATE,      /* the request was given up before */
	LEDGER_DUPLICATE, /* the request was answered or refused before */
	LEDGER_STRANGER,  /* no request of this run; also counted as wrong */
};

struct ledger_counts {
	uint64_t sent, answered, wrong, refused, lost; /* the last four: how requests ended */
	uint64_t late, duplicates, strangers;
	uint64_t notices[NOTICE_CODES];
};

/* A request without a reply yet. */
struct flight {
	uint64_t due_ns, sent_ns; /* times of being due and of being sent */
	uint32_t flow, size;
	uint8_t target;
	bool counted; /* not part of the warm-up */
};

struct ledger {
	struct ledger_counts counts;
	uint32_t tag;
	uint64_t oldest, next; /* no index before <oldest> is outstanding */
	uint64_t outstanding;
	struct flight *flights; /* request i is at i modulo <room>, a power of two */
	uint64_t room;
	uint8_t *states; /* two bits per index */
	uint64_t states_room;
};

/* <tag> is the upper half of every id. Returns -ENOMEM on failure. */
int ledger_init(struct ledger *ledger, uint32_t tag);
void ledger_fini(struct ledger *ledger);

/* The id of the next request; call ledger_sent() after it was sent. */
uint64_t ledger_next_id(const struct ledger *ledger);
/* Returns -ENOMEM on failure. */
int ledger_sent(struct ledger *ledger, const struct flight *flight);

/* True when a request of this run was sent with this id. */
bool ledger_knows(const struct ledger *ledger, uint64_t id);
/* The outstanding request with this id, or NULL. */
const struct flight *ledger_find(const struct ledger *ledger, uint64_t id);

/*
 * Settle a reply for <id> or, with <code>, a notice. <right>: its bytes are those expected.
 * <flight> gets the request when this ended it: ANSWERED, WRONG or REFUSED.
 */
enum ledger_verdict ledger_settle(struct ledger *ledger, uint64_t id, enum notice_code code,
				  bool right, struct flight *flight);

/* Give up the oldest request that was sent before <before_ns>. False when there is none. */
bool ledger_expire(struct ledger *ledger, uint64_t before_ns, struct flight *flight);

void ledger_counts_add(struct ledger_counts *to, const struct ledger_counts *from);

#endif
