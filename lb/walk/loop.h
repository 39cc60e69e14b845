/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk (private to lb/): one burst after the other, every stage over the whole burst.
 */
#ifndef WALK_LOOP_H
#define WALK_LOOP_H

#include "lcore/lcore.h"

/* One iteration. True: there was something to do. Runs on the lcore, which tests may play. */
bool lb_poll(struct lcore *lc);
/* Iterate until the load balancer stops. <lcore> is a struct lcore; for rte_eal_remote_launch(). */
int lb_loop(void *lcore);

#endif
