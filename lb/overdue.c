/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that a worker has not answered in time. The client gets a notice and the worker a cancel
 * word; the slot stays taken until the worker lets go of it, or it would be written under its feet.
 */
#include "lcore.h"

/* Slots looked at per link and call: bounded work, and a full ring every few ms. */
#define SWEEP 64

static void check(struct lcore *lc, struct link *link, uint32_t number)
{
	struct slot *slot = &link->slot[number];
	struct flow *flow;
	uint64_t limit;

	if (slot->state != SLOT_BUSY)
		return;
	limit = lc->lb->config.service[slot->service].request_timeout_ms * lc->lb->tsc_per_ms;
	if (lc->now - slot->sent <= limit)
		return;
	slot->state = SLOT_ABANDONED;
	lc->stats.drop[LB_DROP_REQUEST_TIMEOUT]++;
	flow = conntrack_flow_get(lc->ct, slot->flow);
	if (flow != NULL)
		egress_notice(lc, flow, LB_NOTICE_TIMEOUT, slot->tag);
	link_cancel(link, number, lc->small);
}

void overdue_sweep(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->n_links; i++) {
		struct link *link = lc->links[i];
		uint32_t n = RTE_MIN(link->slots, (uint32_t)SWEEP);

		for (uint32_t k = 0; k < n && link_outstanding(link) > 0; k++) {
			check(lc, link, link->sweep);
			link->sweep = (link->sweep + 1) & (link->slots - 1);
		}
	}
}
