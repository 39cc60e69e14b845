/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services that were taken out of the configuration (private to lb/). They take no new requests;
 * when those in flight are answered their flows go, and then their numbers are free. Control
 * thread.
 */
#ifndef LB_LEAVE_H
#define LB_LEAVE_H

struct lb;
struct leave;

struct leave *leave_create(void);
void leave_destroy(struct leave *leave);

/* See some of them off; works for a millisecond or so. */
void leave_tick(struct lb *lb);

#endif
