/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that nobody waits for any more: their client said so, or its flow has gone. One that
 * waits is dropped; for one in flight the worker gets a cancel word, so that it need not run.
 *
 * There is no index from ids to slots, which every request would pay for: a cancel looks through
 * the slots in use, newest first, its flow's last worker before the others. What that may cost per
 * ms is bounded for all cancels of an lcore together, as anybody can send them.
 */
#include "walk/cancel.h"

#include "lcore/lcore.h"
#include "walk/egress.h"
#include "walk/replay.h"
#include "walk/waiting.h"

/* Slots looked at per ms. */
#define BUDGET 4096
/* Flows asked for per ms whether they are still there, and workers told what they were not. */
#define SWEEP 64

static uint32_t find(const struct link *link, uint64_t handle, uint64_t tag, uint32_t *budget)
{
	uint32_t number = link->busy.newest;

	for (; number != SLOT_NONE && *budget > 0; number = link->slot[number].older, --*budget)
		if (link->slot[number].flow == handle && link->slot[number].tag == tag)
			return number;
	return SLOT_NONE;
}

void cancel_slot(struct lcore *lc, struct link *link, uint32_t slot)
{
	replay_forget(lc, link, slot);
	link_cancel(link, slot, lc->cancels);
}

static void end(struct lcore *lc, struct link *link, uint32_t number)
{
	lc->stats.drop[LB_DROP_CANCELLED]++;
	lc->service[link->slot[number].service].stats.drops++;
	cancel_slot(lc, link, number);
}

/* A look at a link costs as much as one at a slot. */
static bool cancel_on(struct lcore *lc, struct link *link, const struct flow *flow, uint64_t handle,
		      uint64_t tag, uint32_t *budget)
{
	uint32_t number;

	--*budget;
	number = find(link, handle, tag, budget);
	if (number == SLOT_NONE)
		return false;
	egress_notice(lc, flow, &link->client_path[number], LB_NOTICE_CANCELLED, tag);
	end(lc, link, number);
	return true;
}

static bool find_and_end(struct lcore *lc, const struct flow *flow, uint64_t handle, uint64_t tag,
			 uint32_t *budget)
{
	struct link *last = flow->worker == WORKER_NONE ? NULL : lc->link[flow->worker];

	if (waiting_cancel(lc, flow, handle, tag, budget))
		return true;
	if (last != NULL && *budget > 0 && cancel_on(lc, last, flow, handle, tag, budget))
		return true;
	for (unsigned int i = 0; i<lc->n_active && * budget> 0; i++)
		if (lc->active[i] != last &&
		    cancel_on(lc, lc->active[i], flow, handle, tag, budget))
			return true;
	return false;
}

/* A service may have looked at as many as all others have left: none takes the cancels of others.
 */
static uint32_t looks_left(struct lcore *lc, struct lcore_service *s)
{
	if (s->cancel_window != lc->cancel_window) {
		s->cancel_window = lc->cancel_window;
		s->cancel_looks = 0;
	}
	return lc->cancel_budget > s->cancel_looks ? (lc->cancel_budget - s->cancel_looks + 1) / 2
						   : 0;
}

void cancel_request(struct lcore *lc, const struct flow *flow, uint64_t handle, uint64_t tag)
{
	struct lcore_service *s = &lc->service[flow->service];
	uint32_t may = looks_left(lc, s), left = may;

	if (!find_and_end(lc, flow, handle, tag, &left))
		lc->stats.drop[left == 0 ? LB_DROP_CANCEL_LIMIT : LB_DROP_CANCEL_UNKNOWN]++;
	s->cancel_looks += may - left;
	lc->cancel_budget -= may - left;
}

/* The next in flight of this link whose flow is to be asked for, from the oldest on, around. */
static void sweep(struct lcore *lc, struct link *link, uint32_t *budget)
{
	uint32_t number = link->swept_at, newer;

	if (number == SLOT_NONE || link->slot[number].state != SLOT_BUSY)
		number = link->busy.oldest;
	for (; number != SLOT_NONE && *budget > 0; number = newer, --*budget) {
		newer = link->slot[number].newer;
		if (conntrack_flow_get(lc->ct, link->slot[number].flow) == NULL)
			end(lc, link, number);
	}
	link->swept_at = number;
}

void cancel_housekeeping(struct lcore *lc)
{
	uint32_t budget = SWEEP;

	lc->cancel_budget = BUDGET;
	lc->cancel_window++;
	for (unsigned int i = 0; i < lc->n_active && budget > 0; i++) {
		uint16_t at = (lc->first_swept + i) % lc->n_active;

		budget -= link_tell(lc->active[at], budget, lc->cancels);
		sweep(lc, lc->active[at], &budget);
		/* Where the budget ended goes on first the next time. */
		if (budget == 0)
			lc->first_swept = at;
	}
}
