/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bound the handshakes under way on the agents' port, per source and altogether, and so what
 * strangers can cost. Pure: addresses and a clock in, a yes or no out.
 *
 * A source is an IPv4 address or an IPv6 /64. It starts with HANDSHAKE_SOURCE_FAILURES tokens. A
 * handshake that fails costs one; HANDSHAKE_SOURCE_REFILL come back each second, and all of them
 * when a handshake succeeds. A source without tokens is not let in at all, so a flood costs an
 * accept() and a close().
 *
 * One source may take all of the room, as hundreds of workers may come back at once. When there is
 * no more room, a new handshake of a source with fewer ends one of the source with the most. A
 * handshake that reaches its time limit is not charged: the room bounds how often that can happen.
 */
#ifndef CONTROL_HANDSHAKE_LIMIT_H
#define CONTROL_HANDSHAKE_LIMIT_H

#include <netinet/in.h>
#include <stdint.h>

struct sockaddr;

#define HANDSHAKE_PENDING_MAX     512 /* altogether */
#define HANDSHAKE_SOURCE_FAILURES 32
#define HANDSHAKE_SOURCE_REFILL   4    /* per second; missing tokens grow to twice FAILURES */
#define HANDSHAKE_SOURCES         1024 /* above PENDING_MAX, so that one is always free */

enum handshake_end { HANDSHAKE_PROVEN, HANDSHAKE_FAILED, HANDSHAKE_GIVEN_UP };

struct handshake_source {
	struct in6_addr address; /* IPv4 as mapped; IPv6 without its last half */
	uint64_t seen_ms; /* time of the last update of <spent>; 0: the place was never taken */
	uint32_t spent;   /* missing tokens, in thousandths */
	uint32_t pending;
};

/* Starts as zeroes. */
struct handshake_limit {
	struct handshake_source source[HANDSHAKE_SOURCES];
	unsigned int pending;
};

/*
 * Ask to begin a handshake with <address>. Returns the source, to be given to
 * handshake_limit_leave() when the handshake is over, or NULL when it may not begin. When there was
 * no room, <loser> is a source of which the caller must end a handshake at once; else it is NULL.
 */
struct handshake_source *handshake_limit_enter(struct handshake_limit *limit,
					       const struct sockaddr *address, uint64_t now_ms,
					       struct handshake_source **loser);
void handshake_limit_leave(struct handshake_limit *limit, struct handshake_source *source,
			   enum handshake_end end, uint64_t now_ms);

#endif
