/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between lcores (private to lb/): a packet goes to the lcore that owns its flow or queue
 * pair, and packets for a port where an lcore has no queue go to the lcore that carries for it.
 * Runs on the lcore.
 */
#ifndef WALK_HANDOVER_H
#define WALK_HANDOVER_H

#include "lcore/lcore.h"

/*
 * Give a packet to lcore <owner>, by handover_flush() at the latest; at most LB_BURST packets to
 * one lcore until then. Takes the packet.
 */
void handover_add(struct lcore *lc, unsigned int owner, struct rte_mbuf *m);
void handover_flush(struct lcore *lc);
/*
 * The lcore that owns a flow, worked out from a port where its client's packets arrive. The
 * receiver itself when the answer is uncertain.
 */
unsigned int handover_owner(const struct lcore *lc, uint16_t port, const struct flow_key *key);
/*
 * Hand over those of <n> packets from <port> that belong to other lcores. The others move to the
 * front of <packet>; returns how many.
 */
unsigned int handover_spread(struct lcore *lc, uint16_t port, struct rte_mbuf **packet,
			     unsigned int n);
/* Pass on what this lcore sends through a port where it has no queue. Returns the number of
 * packets. */
unsigned int handover_transmit(struct lcore *lc, unsigned int port);
/* Send what other lcores passed on. */
void handover_carry(struct lcore *lc);
/* Are packets of other lcores waiting to be sent? */
bool handover_waits(const struct lcore *lc);

#endif
