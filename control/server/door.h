/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may begin a handshake on the agents' port: what strangers cost is bounded here, per source
 * and altogether. Pure: addresses and a clock in, a yes or no out.
 *
 * A source is an IPv4 address or an IPv6 /64. A handshake that failed costs it a token, of which
 * DOOR_SOURCE_FAILURES are there and DOOR_SOURCE_REFILL come back each second, all of them when one
 * succeeds. Without tokens it is not let in at all, so a flood costs an accept() and a close().
 *
 * One source may have all that there is room for, as hundreds of workers may come back at once.
 * When there is no more room, whoever has less takes from whoever has most. Who waits until his
 * time is over is not charged: there is no room to do that often.
 */
#ifndef CONTROL_DOOR_H
#define CONTROL_DOOR_H

#include <netinet/in.h>
#include <stdint.h>

struct sockaddr;

#define DOOR_PENDING_MAX     512 /* altogether */
#define DOOR_SOURCE_FAILURES 32
#define DOOR_SOURCE_REFILL   4    /* per second; a debt grows to as many again */
#define DOOR_SOURCES         1024 /* more than can be pending: a place without is always found */

enum door_end { DOOR_PROVEN, DOOR_FAILED, DOOR_GIVEN_UP };

struct door_source {
	struct in6_addr address; /* IPv4 as mapped; IPv6 without its last half */
	uint64_t seen_ms;        /* when <spent> was right; 0: the place was never taken */
	uint32_t spent;          /* thousandths of tokens that are missing */
	uint32_t pending;
};

/* Zeroed at first. */
struct door {
	struct door_source source[DOOR_SOURCES];
	unsigned int pending;
};

/*
 * May a handshake with <address> begin now? The source to give to door_leave() when it is over, or
 * NULL for no. When there is no room, <loser> is a source that is to end a handshake of its own, at
 * once; else it is NULL.
 */
struct door_source *door_enter(struct door *door, const struct sockaddr *address, uint64_t now_ms,
			       struct door_source **loser);
void door_leave(struct door *door, struct door_source *source, enum door_end end, uint64_t now_ms);

#endif
