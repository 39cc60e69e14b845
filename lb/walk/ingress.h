/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive bursts and sort them (private to lb/): client requests and RoCE packets go to their
 * stages, questions for an address are answered here, the rest is dropped. Runs on the lcore.
 */
#ifndef WALK_INGRESS_H
#define WALK_INGRESS_H

#include "lcore/lcore.h"

/* Receive a burst from this lcore's queue of <port>, an index. Returns the number of packets. */
unsigned int ingress_receive(struct lcore *lc, uint16_t port);
/* The same for packets that other lcores handed over. */
unsigned int ingress_handover(struct lcore *lc);
/* Add one more packet to this burst; the packet belongs to this lcore. Takes the packet. */
void ingress_sort(struct lcore *lc, struct rte_mbuf *m);

#endif
