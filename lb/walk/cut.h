/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams to requests (private to lb/): leaves each packet with the payload of one request, as
 * the service's framing says (framing/framing.h). Runs on the lcore.
 */
#ifndef WALK_CUT_H
#define WALK_CUT_H

#include "lcore/burst.h"
#include "lcore/lcore.h"

/* Packets that are not requests are dropped, and their clients are notified. */
void cut_burst(struct lcore *lc, struct burst *b);

#endif
