/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lcore's part of stopping (private to lb/; stop.h has the control thread's). Runs on the
 * lcore.
 */
#ifndef WALK_STOPPING_H
#define WALK_STOPPING_H

#include "lcore/burst.h"
#include "lcore/lcore.h"

/* Refuse all requests of the burst with a notice. */
void stopping_refuse(struct lcore *lc, struct burst *b);
/* The time is over: tell clients whose requests are still here, as fast as their ports take
 * notices. */
void stopping_notify(struct lcore *lc);

#endif
