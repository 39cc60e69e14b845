/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions of RDMA devices to replies (private to lb/), for fabric ports of engine verbs.
 */
#ifndef WALK_FABRIC_VERBS_H
#define WALK_FABRIC_VERBS_H

#include "lcore/lcore.h"

/* Poll the completions of <port>, an index, into the lcore's bursts. Returns how many there were.
 */
unsigned int fabric_verbs_poll(struct lcore *lc, unsigned int port);

#endif
