/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments of clients' datagrams (private to lb/). Runs on the lcore.
 */
#ifndef WALK_REASSEMBLE_H
#define WALK_REASSEMBLE_H

#include "lcore/lcore.h"
#include "packet/parse.h"

/*
 * Keep a fragment. When its datagram is complete, the whole frame goes to the lcore that owns its
 * flow. <handed>: another lcore received the fragment. Takes the packet.
 */
void reassemble_add(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p,
		    const struct flow_key *key, bool handed);

#endif
