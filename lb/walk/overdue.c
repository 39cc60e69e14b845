/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that a worker has not answered in time. The client gets a notice and the worker a cancel
 * word. The slot stays in use until the worker replies, because the worker may still read it.
 */
#include "walk/overdue.h"

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "walk/cancel.h"
#include "walk/egress.h"
#include "walk/replay.h"

/* Requests ended per link and call: bounds the time of an iteration. */
#define BUDGET 64

/* Can the client get a notice now? If its port has no room, the notice is sent later. */
static bool overdue_can_notify(const struct lcore *lc, const struct flow *flow,
			       const struct client_path *path)
{
	return flow == NULL || txq_room(&lc->tx[path->port]) > 0;
}

/* How a request ends that gets no answer. */
struct overdue_end {
	enum lb_drop reason;
	uint8_t notice;
};

static const struct overdue_end overdue_late = {LB_DROP_REQUEST_TIMEOUT, LB_NOTICE_TIMEOUT},
				overdue_past = {LB_DROP_DEADLINE, LB_NOTICE_DEADLINE},
				overdue_lost = {LB_DROP_WORKER_LOST, LB_NOTICE_WORKER_LOST};

/* Counts it, and notifies its client. False: that cannot be notified now, and nothing was done. */
static bool overdue_tell(struct lcore *lc, struct link *link, uint32_t number,
			 const struct overdue_end *end)
{
	const struct slot *slot = &link->slot[number];
	const struct client_path *path = &link->client_path[number];
	struct flow *flow = conntrack_flow_get(lc->ct, slot->flow);

	if (!overdue_can_notify(lc, flow, path))
		return false;
	lc->stats.drop[end->reason]++;
	lc->service[slot->service].stats.drops++;
	if (flow != NULL) {
		edge_note_worker(lc, flow, slot);
		egress_notice(lc, flow, path, end->notice, slot->tag);
	}
	return true;
}

/* End a request whose time is over, if its client can be notified now. */
static void overdue_end_slot(struct lcore *lc, struct link *link, uint32_t number,
			     const struct overdue_end *end)
{
	if (overdue_tell(lc, link, number, end))
		cancel_slot(lc, link, number);
}

/* TSC cycles that the request has been in flight, up to the last time that nothing was left to
 * receive: a reply that waits in a ring because the lcore was descheduled is in time. */
static uint64_t overdue_age(const struct lcore *lc, const struct slot *slot)
{
	return lc->drained.at > slot->sent ? lc->drained.at - slot->sent : 0;
}

static bool overdue_is(const struct lcore *lc, const struct slot *slot)
{
	uint64_t limit = lcore_service_config(lc, slot->service)->request_timeout_ms;

	return overdue_age(lc, slot) > limit * lc->lb->tsc_per_ms;
}

/*
 * End overdue requests from the oldest on, up to one that is younger than the shortest limit of all
 * services. Requests of services with longer limits, or whose clients cannot be notified now, stay
 * in between, so a search that used up its budget continues where it ended.
 */
static void overdue_check_link(struct lcore *lc, struct link *link)
{
	uint32_t number = link_busy_from(link, link->overdue_at), newer;

	for (int k = 0; k < BUDGET; k++) {
		if (number == SLOT_NONE ||
		    overdue_age(lc, &link->slot[number]) <=
			    __atomic_load_n(&lc->lb->shortest_timeout, __ATOMIC_RELAXED)) {
			number = SLOT_NONE;
			break;
		}
		newer = link->slot[number].newer;
		if (overdue_is(lc, &link->slot[number]))
			overdue_end_slot(lc, link, number, &overdue_late);
		number = newer;
	}
	link->overdue_at = number;
}

void overdue_check(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->n_active; i++)
		overdue_check_link(lc, lc->active[i]);
}

/* Was its deadline over <at> that TSC? Of a reply in several chunks, the first decides. */
static bool overdue_is_past(const struct slot *slot, uint64_t at)
{
	return slot->deadline != 0 && slot->chunks == 0 && at > slot->deadline;
}

void overdue_check_deadline(struct lcore *lc, struct link *link, uint32_t number)
{
	if (overdue_is_past(&link->slot[number], lc->drained.at))
		overdue_end_slot(lc, link, number, &overdue_past);
}

/* The worker is lost. A request whose time was over before is not late because of that, and its
 * client need not ask again. */
static const struct overdue_end *overdue_lost_or_late(const struct lcore *lc,
						      const struct slot *slot)
{
	if (overdue_is(lc, slot))
		return &overdue_late;
	return overdue_is_past(slot, lc->now) ? &overdue_past : &overdue_lost;
}

/* The worker will not answer: queue the request for another worker, or notify its client, and free
 * the slot. Does nothing while the client cannot be notified. */
static void overdue_give_up(struct lcore *lc, struct link *link, uint32_t number)
{
	const struct overdue_end *end = overdue_lost_or_late(lc, &link->slot[number]);

	if (end != &overdue_lost || !replay_slot(lc, link, number, true)) {
		if (!overdue_tell(lc, link, number, end))
			return;
		replay_forget(lc, link, number);
	}
	link_slot_free(link, number);
}

/* End the requests in flight of a detached link. True: all are ended and the link is released. */
static bool overdue_reap_link(struct lcore *lc, struct link *link)
{
	/* Requests whose clients cannot be notified now may use up the budget: the next call
	 * continues after them. */
	link_visit_busy(lc, link, &link->overdue_at, BUDGET, overdue_give_up);
	if (link->busy.oldest != SLOT_NONE)
		return false;
	/* An RDMA device may still read the packets. */
	if (__atomic_load_n(&link->qp, __ATOMIC_ACQUIRE) != NULL)
		return false;
	/* The lcore releases it, as the counter of held packets is the lcore's. */
	link_release(link);
	return true;
}

void overdue_reap(struct lcore *lc)
{
	struct link **at = &lc->detached;

	while (*at != NULL) {
		struct link *link = *at;

		if (!overdue_reap_link(lc, link)) {
			at = &link->next_detached;
			continue;
		}
		*at = link->next_detached;
		/* Now the link belongs to the control thread. */
		__atomic_store_n(&link->reaped, 1, __ATOMIC_RELEASE);
	}
}
