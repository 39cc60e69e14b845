/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retires services that were removed from the configuration (private to lb/). They take no new
 * requests; once those in flight are answered, their flows are ended, and then their numbers are
 * free. Control thread.
 */
#ifndef LB_RETIRE_H
#define LB_RETIRE_H

struct lb;
struct retire;

struct retire *retire_create(void);
void retire_destroy(struct retire *retire);

/* End some of their flows; works for about a millisecond. */
void retire_tick(struct lb *lb);

#endif
