/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choose the worker of a request (private to lb/): the policy's choice, or the flow's own worker,
 * among those that have a credit and can be done in time. Runs on the lcore.
 */
#ifndef WALK_CHOOSE_H
#define WALK_CHOOSE_H

#include "lcore/lcore.h"

/* Does the service have workers now? */
bool choose_has_workers(const struct lcore *lc, uint16_t service);
/*
 * Take a credit for a packet of <length> bytes to <service>, which is the flow's or has its
 * address; returns the link, or NULL. <*late> is set when no worker would be done by <deadline>
 * (TSC; 0: none).
 */
struct link *choose_worker(struct lcore *lc, struct flow *flow, uint16_t service, uint32_t hash,
			   uint32_t length, uint64_t deadline, bool *late);
/*
 * The same for a request whose payload comes in pieces: takes a slot with a <place> for it. Offer
 * older requests first: in an iteration where one found too little room on a link, later ones get
 * none of that room.
 */
struct link *choose_place(struct lcore *lc, struct flow *flow, uint16_t service, uint32_t hash,
			  const struct placing *placing, uint64_t deadline,
			  struct link_place *place, bool *late);
/* Does each flow, or each request, have a worker of its own to wait for? Others may then be served
 * before it. */
static inline bool choose_is_pinned(const struct lb_service_config *config)
{
	/* Sticky flows are not: when the preferred worker has no room, any will do. */
	return config->affinity == LB_AFFINITY_FLOW ||
	       (config->affinity == LB_AFFINITY_REQUEST && config->policy == PICK_MAGLEV);
}
/*
 * May the service's requests wait here, in their order, instead of in workers' rings? Yes for
 * policies that want the least busy worker: the first worker that is free takes the next request.
 * The other policies promise turns, weights or a preferred worker, or count on what workers have
 * queued.
 */
bool choose_waits_here(const struct lcore *lc, uint16_t service);
/*
 * For such a service: like choose_worker(), but also takes credits of workers whose rings hold as
 * much as they should. NULL also when no worker would be done in time.
 */
struct link *choose_deep(struct lcore *lc, struct flow *flow, uint16_t service, uint32_t hash,
			 const struct rte_mbuf *m, uint64_t deadline);
/* Work out how many of the link's slots are kept back from now on. */
void choose_set_depth(const struct lcore *lc, struct link *link);

#endif
