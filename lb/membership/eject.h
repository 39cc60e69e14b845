/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ejects workers that answer much worse than the others of their model (private to lb/). Control
 * thread only.
 */
#ifndef LB_EJECT_H
#define LB_EJECT_H

struct lb;

/* Every tick: eject such workers for a while (workers/outlier.h has the rules). */
void eject_tick(struct lb *lb);

#endif
