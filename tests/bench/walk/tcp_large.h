/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large requests of the TCP bench: a few connections with a request each, cut into segments of
 * 1,448 bytes, and the room of the worker that they are written to. What arrives there is checked
 * outside the measured time.
 */
#ifndef BENCH_TCP_LARGE_H
#define BENCH_TCP_LARGE_H

#include "common/peer.h"
#include "walk/tcp_clients.h"

#define LARGE_SEGMENT  1448u
#define LARGE_CLIENTS  6
#define LARGE_SEGMENTS (sizeof(((struct tcp_script *)0)->at) / LARGE_SEGMENT)
/* Segments of one connection that come one behind the other in a turn; of all of them together. */
#define LARGE_ROW   5
/* Turns that a segment's bytes may wait for while other clients are read. */
#define LARGE_WAIT  4
#define LARGE_TURN  (LARGE_CLIENTS * LARGE_ROW)
_Static_assert(LARGE_TURN <= LB_BURST, "a turn is a burst");

struct tcp_large {
	struct tcp_clients *clients;
	struct peer *peer;
	uint32_t flow[LARGE_CLIENTS];
	uint32_t size;     /* bytes of a request */
	uint32_t segments; /* of a request */
	struct tcp_script script[LARGE_CLIENTS];
	struct rte_mbuf *packet[LARGE_CLIENTS][LARGE_SEGMENTS];
	/* bytes of the stream, where the NIC has put them */
	const uint8_t *at[LARGE_CLIENTS][LARGE_SEGMENTS];
	/* places in the room, UINT32_MAX: not known yet; and bytes that have come there */
	uint32_t base[LARGE_CLIENTS], written[LARGE_CLIENTS];
	uint32_t late; /* segments that came behind a hole */
	/* segments from this one on may be written in this turn */
	unsigned int from;
	uint8_t memory[PEER_ROOM]; /* of the worker; only where bytes are verified */
};

/* Takes the WRITEs of <peer> into its room from now on. */
void tcp_large_init(struct tcp_large *l, struct peer *peer);

/* Makes all segments of a request of <size> bytes of each of <flow>. */
void tcp_large_prepare(struct tcp_large *l, struct tcp_clients *clients, uint32_t size,
		       const uint32_t flow[LARGE_CLIENTS]);

/* Turns that it takes to deliver them. */
static inline unsigned int tcp_large_turns(const struct tcp_large *l, bool late)
{
	return (l->segments + LARGE_ROW - 1) / LARGE_ROW + late;
}

/*
 * Hands the segments of turn <turn> to the NIC. <late>: every fifth segment of a connection comes a
 * turn later than it should, behind four others; there is one turn more then. Returns how many.
 */
unsigned int tcp_large_deliver(struct tcp_large *l, unsigned int turn, bool late);

/* Dies if not all requests were written and announced, once each. */
void tcp_large_check(const struct tcp_large *l);

#endif
