/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that a worker has not answered in time. The client gets a notice and the worker a cancel
 * word; the slot stays taken until the worker lets go of it, or it would be written under its feet.
 */
#include "walk/overdue.h"

#include "lcore/lcore.h"
#include "walk/cancel.h"
#include "walk/egress.h"
#include "walk/replay.h"

/* Requests ended per link and call: bounds a turn. */
#define BUDGET 64

/* The client's port takes no more: better later than not at all. */
static bool can_tell(const struct lcore *lc, const struct flow *flow,
		     const struct client_path *path)
{
	return flow == NULL || txq_room(&lc->tx[path->port]) > 0;
}

/* End a request whose time is over, if its client can be told now. */
static void end(struct lcore *lc, struct link *link, uint32_t number)
{
	const struct slot *slot = &link->slot[number];
	const struct client_path *path = &link->client_path[number];
	struct flow *flow = conntrack_flow_get(lc->ct, slot->flow);

	if (!can_tell(lc, flow, path))
		return;
	lc->stats.drop[LB_DROP_REQUEST_TIMEOUT]++;
	lc->service[slot->service].stats.drops++;
	if (flow != NULL)
		egress_notice(lc, flow, path, LB_NOTICE_TIMEOUT, slot->tag);
	cancel_slot(lc, link, number);
}

/* TSC. A reply that came while the lcore stood still may lie in a ring: it is in time. */
static uint64_t without_reply(const struct lcore *lc, const struct slot *slot)
{
	return lc->drained.at > slot->sent ? lc->drained.at - slot->sent : 0;
}

static bool is_overdue(const struct lcore *lc, const struct slot *slot)
{
	uint64_t limit = lcore_service_config(lc, slot->service)->request_timeout_ms;

	return without_reply(lc, slot) > limit * lc->lb->tsc_per_ms;
}

/*
 * From the oldest on, until one is younger than any service's limit: those behind it are younger
 * still. Services with longer limits and clients that cannot be told may leave some in between, so
 * a search that its budget ends goes on where it was.
 */
static void check(struct lcore *lc, struct link *link)
{
	uint32_t number = link->overdue_at, newer;

	if (number == SLOT_NONE || link->slot[number].state != SLOT_BUSY)
		number = link->busy.oldest;
	for (int k = 0; k < BUDGET; k++) {
		if (number == SLOT_NONE ||
		    without_reply(lc, &link->slot[number]) <=
			    __atomic_load_n(&lc->lb->shortest_timeout, __ATOMIC_RELAXED)) {
			number = SLOT_NONE;
			break;
		}
		newer = link->slot[number].newer;
		if (is_overdue(lc, &link->slot[number]))
			end(lc, link, number);
		number = newer;
	}
	link->overdue_at = number;
}

void overdue_check(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->n_active; i++)
		check(lc, lc->active[i]);
}

/* Nobody will answer it: another worker gets it, or its client is told. False: cannot be told now.
 */
static bool give_up(struct lcore *lc, struct link *link, uint32_t number)
{
	const struct slot *slot = &link->slot[number];
	const struct client_path *path = &link->client_path[number];
	struct flow *flow;

	if (replay_slot(lc, link, number, true))
		return true;
	flow = conntrack_flow_get(lc->ct, slot->flow);
	if (!can_tell(lc, flow, path))
		return false;
	lc->stats.drop[LB_DROP_WORKER_LOST]++;
	lc->service[slot->service].stats.drops++;
	if (flow != NULL)
		egress_notice(lc, flow, path, LB_NOTICE_WORKER_LOST, slot->tag);
	replay_forget(lc, link, number);
	return true;
}

/* Give up what a link that is gone had in flight. True when all is done. */
static bool bury(struct lcore *lc, struct link *link)
{
	uint32_t number = link->overdue_at, newer;

	if (number == SLOT_NONE || link->slot[number].state != SLOT_BUSY)
		number = link->busy.oldest;
	for (int k = 0; k < BUDGET && number != SLOT_NONE; k++, number = newer) {
		newer = link->slot[number].newer;
		if (give_up(lc, link, number))
			link_slot_free(link, number);
	}
	/* Those whose clients cannot be told now may fill the budget: on behind them. */
	link->overdue_at = number;
	if (link->busy.oldest != SLOT_NONE)
		return false;
	/* An RDMA device may still read the packets. */
	if (__atomic_load_n(&link->qp, __ATOMIC_ACQUIRE) != NULL)
		return false;
	/* Here and not with the link: what counts held packets is this lcore's. */
	link_release(link);
	return true;
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
