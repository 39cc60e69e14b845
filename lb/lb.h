/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load balancer's interface for the control plane. Every call runs on the control thread and
 * waits for the packet path for one of its polls, and for an lcore that stands still not at all.
 */
#ifndef LB_H
#define LB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "conntrack.h"
#include "lcore/counters.h"
#include "lcore/latency.h"
#include "lcore/link_spec.h"
#include "membership/registry.h"
#include "membership/service_workers.h"
#include "membership/operator_settings.h"
#include "observe/stats.h"
#include "packet/drop.h"
#include "packet/notice.h"
#include "pool.h"
#include "stop.h"

struct lb;

/* Build ports, tables and lcores from <config>; the EAL is up. NULL after logging why. */
struct lb *lb_create(const struct lb_config *config);
/* Start the lcores' loops. 0, or -errno after logging why. */
int lb_start(struct lb *lb);
/* End the lcores' loops, whether the graceful stop is over or not. */
void lb_stop(struct lb *lb);
void lb_destroy(struct lb *lb);

const struct lb_config *lb_config_get(const struct lb *lb);
struct worker_pool *lb_pool(struct lb *lb);

/* The access log's file may have another name now: go on in a new one. */
void lb_reopen_logs(struct lb *lb);

/*
 * A descriptor that is readable when lb_attend() has something to do, which should not wait for the
 * next tick; -1: none. The other end of a memif has said something.
 */
int lb_attention(const struct lb *lb);
/* False when that is not over: not before the next tick again. */
bool lb_attend(struct lb *lb);

/* The control thread's regular work: health, address resolution. Call every 10 to 50 ms. */
void lb_tick(struct lb *lb);

#endif
