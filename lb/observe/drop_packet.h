/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drop a packet (private to lb/): counted under its reason, and seen by a trace. Runs on the lcore.
 */
#ifndef WALK_DROP_PACKET_H
#define WALK_DROP_PACKET_H

#include "lcore/lcore.h"
#include "observe/flow_trace.h"

static inline void lcore_drop(struct lcore *lc, struct rte_mbuf *m, enum lb_drop reason)
{
	lc->stats.drop[reason]++;
	if (unlikely(lc->trace != NULL))
		trace_dropped(lc, m, reason);
	rte_pktmbuf_free(m);
}

#endif
