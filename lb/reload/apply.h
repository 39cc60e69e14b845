/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applies changed services to a running load balancer (private to lb/): first all arrays that
 * lcores index by service number are made, then each lcore takes them over between two polls, then
 * the old ones are freed. Control thread.
 */
#ifndef LB_APPLY_H
#define LB_APPLY_H

#include "lcore/lcore.h"

/*
 * Apply the services of <next> and its other values that can change at run time. 0, or -errno with
 * a sentence in <error>: then nothing has changed.
 */
int apply_config(struct lb *lb, const struct lb_config *next, char *error, size_t size);

/* The lcores' services for <config>. NULL without memory; the caller frees it. */
struct service_snapshot *apply_snapshot(const struct lb *lb, const struct lb_config *config);
void apply_timeouts(const struct lb_service_config *service, uint32_t timeout_ms[FLOW_STATES]);
/* The shortest request timeout of the services, TSC cycles. */
uint64_t apply_shortest_timeout(const struct lb *lb, const struct lb_config *config);

#endif
