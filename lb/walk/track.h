/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to flows (private to lb/). Runs on the lcore.
 */
#ifndef WALK_TRACK_H
#define WALK_TRACK_H

#include "lcore/burst.h"
#include "lcore/lcore.h"

/* Find the flow of each packet of the burst, or start tracking it. Packets without a service are
 * dropped. */
void track_burst(struct lcore *lc, struct burst *b);

#endif
