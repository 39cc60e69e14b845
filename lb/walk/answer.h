/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers on the spot (private to lb/): ARP, neighbour discovery and ICMP echo. Runs on the lcore.
 */
#ifndef WALK_ANSWER_H
#define WALK_ANSWER_H

#include "lcore/lcore.h"
#include "packet/parse.h"

/* Answer an ARP request or a neighbour solicitation, or pass an answer on to the control thread.
 * Takes the packet. */
void answer_neighbour(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p);
/* Answer a ping. Takes the packet. */
void answer_echo(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p);

#endif
