/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE packets of workers to acknowledgements and replies (private to lb/). Runs on the lcore.
 */
#ifndef WALK_FABRIC_H
#define WALK_FABRIC_H

#include "lcore/burst.h"
#include "lcore/lcore.h"

/* Process a burst; complete replies are left in it for egress_send(). */
void fabric_receive(struct lcore *lc, struct fabric_burst *f);
/* Add a complete message with its immediate, of either engine, to the burst. Takes the message.
 */
void fabric_message(struct lcore *lc, struct link *link, struct rte_mbuf *message, uint32_t imm,
		    struct fabric_burst *f);

#endif
