/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retires services that were removed from the configuration (private to lb/). They take no new
 * requests; once those in flight are answered, their flows are ended, and then their numbers are
 * free. Control thread.
 */
#ifndef LB_LEAVE_H
#define LB_LEAVE_H

struct lb;
struct leave;

struct leave *leave_create(void);
void leave_destroy(struct leave *leave);

/* End some of their flows; works for about a millisecond. */
void leave_tick(struct lb *lb);

#endif
