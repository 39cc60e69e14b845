/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that no client waits for any more: the client cancelled it, or its flow has gone. One in
 * a queue is dropped; for one in flight the worker gets a cancel word, so that it need not run it.
 *
 * An index from ids to slots would cost time on every request, so there is none: a cancel searches
 * the slots in use, newest first, those of the flow's last worker before the others. Any client can
 * send cancels, so their cost per ms is bounded for all of an lcore together.
 */
#include "walk/cancel.h"

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "walk/egress.h"
#include "walk/overdue.h"
#include "walk/replay.h"
#include "walk/waiting.h"

/* Slots visited per ms. */
#define BUDGET 4096
/* Per ms: slots whose flow and deadline are looked at, and cancel words sent that were due. */
#define SWEEP 64

static uint32_t cancel_find_slot(const struct link *link, uint64_t handle, uint64_t tag,
				 uint32_t *budget)
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

static void cancel_end_slot(struct lcore *lc, struct link *link, uint32_t number)
{
	lc->stats.drop[LB_DROP_CANCELLED]++;
	lc->service[link->slot[number].service].stats.drops++;
	cancel_slot(lc, link, number);
}

/* A request to cancel. */
struct cancel {
	const struct flow *flow;
	uint64_t handle, tag;
	uint16_t service;
	bool told; /* the client has been told why, and the request was counted for that */
};

/* Visiting a link also uses one unit of the budget. */
static bool cancel_on_link(struct lcore *lc, struct link *link, const struct cancel *c,
			   uint32_t *budget)
{
	uint32_t number;

	--*budget;
	number = cancel_find_slot(link, c->handle, c->tag, budget);
	if (number == SLOT_NONE)
		return false;
	if (c->told) {
		cancel_slot(lc, link, number);
		return true;
	}
	edge_note_worker(lc, c->flow, &link->slot[number]);
	egress_notice(lc, c->flow, &link->client_path[number], LB_NOTICE_CANCELLED, c->tag);
	cancel_end_slot(lc, link, number);
	return true;
}

static bool cancel_anywhere(struct lcore *lc, const struct cancel *c, uint32_t *budget)
{
	const struct flow *flow = c->flow;
	struct link *last = flow->worker == WORKER_NONE ? NULL : lc->link[flow->worker];

	if (waiting_cancel(lc, flow, c->service, c->handle, c->tag, c->told, budget))
		return true;
	if (last != NULL && *budget > 0 && cancel_on_link(lc, last, c, budget))
		return true;
	for (unsigned int i = 0; i<lc->n_active && * budget> 0; i++)
		if (lc->active[i] != last && cancel_on_link(lc, lc->active[i], c, budget))
			return true;
	return false;
}

/*
 * Visits left for a service: half of the budget that would be left without its own visits so far.
 */
static uint32_t cancel_visits_left(struct lcore *lc, struct lcore_service *s)
{
	if (s->cancel_window != lc->cancel_window) {
		s->cancel_window = lc->cancel_window;
		s->cancel_visits = 0;
	}
	return lc->cancel_budget > s->cancel_visits ? (lc->cancel_budget - s->cancel_visits + 1) / 2
						    : 0;
}

static void cancel_wherever(struct lcore *lc, const struct cancel *c)
{
	struct lcore_service *s = &lc->service[c->service];
	uint32_t may = cancel_visits_left(lc, s), left = may;

	if (!cancel_anywhere(lc, c, &left) && (left == 0 || !c->told))
		lc->stats.drop[left == 0 ? LB_DROP_CANCEL_LIMIT : LB_DROP_CANCEL_UNKNOWN]++;
	s->cancel_visits += may - left;
	lc->cancel_budget -= may - left;
}

void cancel_request(struct lcore *lc, const struct flow *flow, uint16_t service, uint64_t handle,
		    uint64_t tag)
{
	const struct cancel c = {.flow = flow, .handle = handle, .tag = tag, .service = service};

	cancel_wherever(lc, &c);
}

void cancel_told(struct lcore *lc, const struct flow *flow, uint16_t service, uint64_t handle,
		 uint64_t tag)
{
	const struct cancel c = {
		.flow = flow, .handle = handle, .tag = tag, .service = service, .told = true};

	cancel_wherever(lc, &c);
}

/* End the request if its flow has gone, or its deadline has passed. */
static void cancel_sweep_slot(struct lcore *lc, struct link *link, uint32_t number)
{
	if (conntrack_flow_get(lc->ct, link->slot[number].flow) == NULL)
		cancel_end_slot(lc, link, number);
	else
		overdue_check_deadline(lc, link, number);
}

void cancel_housekeeping(struct lcore *lc)
{
	uint32_t budget = SWEEP;

	lc->cancel_budget = BUDGET;
	lc->cancel_window++;
	for (unsigned int i = 0; i < lc->n_active && budget > 0; i++) {
		uint16_t at = (lc->first_swept + i) % lc->n_active;

		budget -= link_send_cancels(lc->active[at], budget, lc->cancels);
		budget = link_visit_busy(lc, lc->active[at], &lc->active[at]->swept_at, budget,
					 cancel_sweep_slot);
		/* The next call starts behind the link where the budget ended, which goes on in its
		 * turn: one that always uses up all of it would be the only one. */
		if (budget == 0)
			lc->first_swept = at + 1;
	}
}
