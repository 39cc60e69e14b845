/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many handshakes may be under way on the agents' port, per source and altogether: what
 * strangers cost is bounded here. Pure: addresses and a clock in, a yes or no out.
 *
 * A source is an IPv4 address or an IPv6 /64. A handshake that failed costs it a token, of which
 * HANDSHAKE_SOURCE_FAILURES are there and HANDSHAKE_SOURCE_REFILL come back each second, all of
 * them when one succeeds. Without tokens it is not let in at all, so a flood costs an accept() and
 * a close().
 *
 * One source may have all that there is room for, as hundreds of workers may come back at once.
 * When there is no more room, a source with fewer takes from the one with most. A handshake that
 * waits until its time is over is not charged: there is no room to do that often.
 */
#ifndef CONTROL_HANDSHAKE_LIMIT_H
#define CONTROL_HANDSHAKE_LIMIT_H

#include <netinet/in.h>
#include <stdint.h>

struct sockaddr;

#define HANDSHAKE_PENDING_MAX     512 /* altogether */
#define HANDSHAKE_SOURCE_FAILURES 32
#define HANDSHAKE_SOURCE_REFILL   4    /* per second; a debt grows to as many again */
#define HANDSHAKE_SOURCES         1024 /* more than can be pending: a place without is always found */

enum handshake_end { HANDSHAKE_PROVEN, HANDSHAKE_FAILED, HANDSHAKE_GIVEN_UP };

struct handshake_source {
	struct in6_addr address; /* IPv4 as mapped; IPv6 without its last half */
	uint64_t seen_ms;        /* when <spent> was right; 0: the place was never taken */
	uint32_t spent;          /* thousandths of tokens that are missing */
	uint32_t pending;
};

/* Zeroed at first. */
struct handshake_limit {
	struct handshake_source source[HANDSHAKE_SOURCES];
	unsigned int pending;
};

/*
 * May a handshake with <address> begin now? The source to give to handshake_limit_leave() when it
 * is over, or NULL for no. When there is no room, <loser> is a source that is to end a handshake of
 * its own, at once; else it is NULL.
 */
struct handshake_source *handshake_limit_enter(struct handshake_limit *limit,
					       const struct sockaddr *address, uint64_t now_ms,
					       struct handshake_source **loser);
void handshake_limit_leave(struct handshake_limit *limit, struct handshake_source *source,
			   enum handshake_end end, uint64_t now_ms);

#endif
