/* SPDX-License-Identifier: BSD-3-Clause */
/* When connections are looked at again (private to this folder). */
#ifndef EDGE_DEADLINES_H
#define EDGE_DEADLINES_H

#include "edge/edge_private.h"

/* The connection is looked at not later than <ms>. */
void edge_set_timer(struct edge *e, const struct edge_connection *c, uint32_t ms);
/* It is on no list of deadlines that are seldom reached any more. */
void edge_leave_soon(struct edge_busy *b);
/* Looks at those whose time has come. Returns how many. */
unsigned int edge_run_timers(struct edge *e);

#endif
