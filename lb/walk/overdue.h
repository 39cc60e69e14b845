/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that get no answer (private to lb/): too late, or their worker is gone. Runs on the
 * lcore.
 */
#ifndef WALK_OVERDUE_H
#define WALK_OVERDUE_H

#include "lcore/lcore.h"

/* Once per millisecond: end requests that their workers have not answered in time. */
void overdue_check(struct lcore *lc);
/* End the request in <slot>, which is busy, if its deadline has passed. */
void overdue_check_deadline(struct lcore *lc, struct link *link, uint32_t slot);
/* Once per millisecond: end the requests of links that are detached, then give the links back. */
void overdue_reap(struct lcore *lc);

#endif
