/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies and notices to client packets (private to lb/). Runs on the lcore.
 */
#ifndef WALK_EGRESS_H
#define WALK_EGRESS_H

#include "lcore/burst.h"
#include "lcore/lcore.h"

/* Send the replies of the burst to their clients; their slots are credits again. */
void egress_send(struct lcore *lc, struct fabric_burst *f);
/*
 * Send a notice about a request of <flow> that came by <path>. False: there is no room or memory
 * for it now.
 */
bool egress_notice(struct lcore *lc, const struct flow *flow, const struct client_path *path,
		   uint8_t code, uint64_t tag);
/* The same to a client that has no flow; <key> is that of its datagram. */
void egress_notice_stranger(struct lcore *lc, uint16_t service, const struct flow_key *key,
			    const struct client_path *path, uint8_t code, uint64_t tag);

#endif
