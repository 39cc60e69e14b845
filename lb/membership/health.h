/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which workers are alive (private to lb/). Control thread only.
 */
#ifndef LB_HEALTH_H
#define LB_HEALTH_H

#include <stdint.h>

#include "workers.h"

struct lb;

/* Regular work: look at every worker's heartbeats and links, and change its state when they say so. */
void health_tick(struct lb *lb);

/*
 * A worker is doubted once more: note it, and say for how long it is to wait: <first_ms>, and each
 * time longer when it was doubted shortly before.
 */
uint32_t health_hold_ms(struct worker_doubt *doubt, uint32_t now_ms, uint32_t first_ms);

/* Its agent's connection closed: suspect the worker until its next heartbeat, if there are others. */
void health_hint(struct lb *lb, struct worker *w);

#endif
