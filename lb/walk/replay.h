/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replay (private to lb/): a request whose worker is lost or suspect goes to another worker. Runs
 * on the lcore.
 */
#ifndef WALK_REPLAY_H
#define WALK_REPLAY_H

#include "lcore/burst.h"
#include "lcore/lcore.h"

/* Keep a copy of request <i> until its reply comes, if its service allows replays. False: not kept.
 */
bool replay_keep(struct lcore *lc, struct link *link, const struct burst *b, unsigned int i);
void replay_unkeep(struct lcore *lc, struct link *link, uint32_t slot, uint16_t service);
/* The slot's request has ended, with a reply or without one. */
static inline void replay_forget(struct lcore *lc, struct link *link, uint32_t slot)
{
	if (unlikely(lc->replay_copies > 0) && link->replay_copy[slot].packet != NULL)
		replay_unkeep(lc, link, slot, link->slot[slot].service);
}
/*
 * Queue the slot's request to be sent again. False: it cannot be sent again. The caller then
 * notifies its client, or, when <gone> is false, leaves it to its worker, which may still answer.
 */
bool replay_slot(struct lcore *lc, struct link *link, uint32_t slot, bool gone);
/* Queue the requests of suspect workers to be sent to others. */
void replay_suspects(struct lcore *lc);
/* Work out the shares of services again, after services that replay have come or gone. */
void replay_share(struct lcore *lc);
/* A request that was to be sent again leaves the queue. */
void replay_left(struct lcore *lc, uint16_t service);

#endif
