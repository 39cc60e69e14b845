/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that a worker has not answered in time. The client gets a notice and the worker a cancel
 * word; the slot stays taken until the worker lets go of it, or it would be written under its feet.
 */
#include "lcore.h"

/* Requests ended per link and call: bounds a turn. */
#define BUDGET 64

/* The client's port takes no more: better later than not at all. */
static bool can_tell(const struct lcore *lc, const struct flow *flow)
{
	return flow == NULL || txq_room(&lc->tx[flow->path.port]) > 0;
}

/* End one request if its time is over. False: nothing more to do on this link now. */
static bool check(struct lcore *lc, struct link *link, uint32_t number)
{
	struct slot *slot = &link->slot[number];
	struct flow *flow;
	uint64_t limit =
		lc->lb->config.service[slot->service].request_timeout_ms * lc->lb->tsc_per_ms;

	/* Younger ones have waited even less. */
	if (lc->now - slot->sent <= lc->lb->shortest_timeout)
		return false;
	if (slot->state == SLOT_ABANDONED || lc->now - slot->sent <= limit)
		return true;
	flow = conntrack_flow_get(lc->ct, slot->flow);
	if (!can_tell(lc, flow))
		return false;
	slot->state = SLOT_ABANDONED;
	lc->stats.drop[LB_DROP_REQUEST_TIMEOUT]++;
	lc->service[slot->service].stats.drops++;
	if (flow != NULL)
		egress_notice(lc, flow, LB_NOTICE_TIMEOUT, slot->tag);
	link_cancel(link, number, lc->control);
	return true;
}

void overdue_check(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->n_links; i++) {
		struct link *link = lc->links[i];
		uint32_t number = link->oldest;

		for (int k = 0; k < BUDGET && number != SLOT_NONE; k++) {
			if (!check(lc, link, number))
				break;
			number = link->slot[number].newer;
		}
	}
}

/* Tell the clients of a link that is gone. True when all are told. */
static bool bury(struct lcore *lc, struct link *link)
{
	for (int k = 0; k < BUDGET && link->oldest != SLOT_NONE; k++) {
		struct slot *slot = &link->slot[link->oldest];
		struct flow *flow = conntrack_flow_get(lc->ct, slot->flow);

		if (!can_tell(lc, flow))
			return false;
		if (slot->state == SLOT_BUSY && flow != NULL)
			egress_notice(lc, flow, LB_NOTICE_WORKER_LOST, slot->tag);
		link_slot_free(link, link->oldest);
	}
	return link->oldest == SLOT_NONE;
}

void overdue_bury(struct lcore *lc)
{
	struct link **at = &lc->dying;

	while (*at != NULL) {
		struct link *link = *at;

		if (!bury(lc, link)) {
			at = &link->next_dying;
			continue;
		}
		*at = link->next_dying;
		/* From here on it is the control thread's. */
		__atomic_store_n(&link->buried, 1, __ATOMIC_RELEASE);
	}
}
