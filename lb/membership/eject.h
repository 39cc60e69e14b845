/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers that answer much worse than the others of their model (private to lb/). Control thread only.
 */
#ifndef LB_EJECT_H
#define LB_EJECT_H

struct lb;

/* Regular work: give such workers nothing new for a while (workers/outlier.h says which). */
void eject_tick(struct lb *lb);

#endif
