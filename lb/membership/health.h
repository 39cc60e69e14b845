/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watches which workers are alive (private to lb/). Control thread only.
 */
#ifndef LB_HEALTH_H
#define LB_HEALTH_H

#include <stdint.h>

#include "pool.h"

struct lb;

/* Every tick: check all workers' heartbeats and links, and change their states accordingly. */
void health_tick(struct lb *lb);

/*
 * Note that a worker is suspect once more. Returns how long it has to wait, ms: <first_ms>, and
 * longer each time when it was suspect shortly before.
 */
uint32_t health_hold_ms(struct worker_doubt *doubt, uint32_t now_ms, uint32_t first_ms);

/* The worker's agent closed its connection: suspect the worker until its next heartbeat, if enough
 * others of its model are not suspect (control_loss_max_percent). */
void health_hint(struct lb *lb, struct worker *w);

#endif
