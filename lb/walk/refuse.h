/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that are never admitted (private to lb/): too large, cut short, or no request. Runs on
 * the lcore.
 */
#ifndef WALK_REFUSE_H
#define WALK_REFUSE_H

#include "lcore/lcore.h"
#include "packet/parse.h"

/* May this source get another notice about such a request? Counted as notice_limit if not. */
bool refuse_may_notify(struct lcore *lc, const struct in6_addr *source, uint16_t zone);
/*
 * Not all bytes of this datagram were taken: tell its client, if it was for one of our services.
 * <payload> holds the first <length> bytes.
 */
void refuse_stranger(struct lcore *lc, const struct flow_key *key, const struct client_path *path,
		     const uint8_t *payload, uint32_t length);
/* The same for a frame that parse_frame() dropped because it is shorter than its headers say. */
void refuse_cut(struct lcore *lc, const struct rte_mbuf *m, struct parsed *p, uint16_t port);

#endif
