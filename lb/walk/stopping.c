/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lcore's part of stopping: refuse new requests, and notify the clients of those that are still
 * here when the time is over. stop.c sets the stage.
 */
#include "walk/stopping.h"

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "walk/egress.h"
#include "walk/forward.h"
#include "walk/replay.h"
#include "walk/waiting.h"

/* Notices per link and ms, and per service and ms for those that wait: bounds an iteration. */
#define BUDGET 256

void stopping_refuse(struct lcore *lc, struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		b->link[i] = NULL;
		forward_refuse(lc, b, i, LB_DROP_STOPPING);
	}
}

/* Send the client a timeout notice: the request may have run, as after a timeout. Does nothing
 * while the client's port has no room. */
static void stopping_notify_slot(struct lcore *lc, struct link *link, uint32_t number)
{
	const struct client_path *path = &link->client_path[number];
	const struct slot *slot = &link->slot[number];
	struct flow *flow = conntrack_flow_get(lc->ct, slot->flow);

	if (flow != NULL)
		edge_note_worker(lc, flow, slot);
	if (flow != NULL && (txq_room(&lc->tx[path->port]) == 0 ||
			     !egress_notice(lc, flow, path, LB_NOTICE_TIMEOUT, slot->tag)))
		return;
	lc->stats.drop[LB_DROP_STOP_TIMEOUT]++;
	lc->service[slot->service].stats.drops++;
	/* No cancel word: it would take the memory of a notice, and the worker is about to lose its
	 * links anyway. */
	replay_forget(lc, link, number);
	link_slot_abandon(link, number);
}

/* Requests whose client's port has no room are passed over: other ports may have room. */
static void stopping_notify_link(struct lcore *lc, struct link *link)
{
	link_visit_busy(lc, link, &link->overdue_at, BUDGET, stopping_notify_slot);
}

void stopping_notify(struct lcore *lc)
{
	waiting_end(lc, BUDGET);
	for (unsigned int i = 0; i < lc->n_links; i++)
		stopping_notify_link(lc, lc->links[i]);
	for (struct link *link = lc->detached; link != NULL; link = link->next_detached)
		stopping_notify_link(lc, link);
}
