/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP errors about replies (private to lb/): counted with their flow, never answered. Runs on the
 * lcore.
 */
#ifndef WALK_ICMP_H
#define WALK_ICMP_H

#include "lcore/lcore.h"
#include "packet/parse.h"

/* Count the error. <handed>: another lcore received it. Takes the packet. */
void icmp_error(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p,
		const struct flow_key *key, bool handed);

#endif
