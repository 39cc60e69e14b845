/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services of a running load balancer change (private to lb/): everything that lcores have by
 * service number is made first, then each lcore adopts it between two of its turns, then the old is
 * freed. Control thread.
 */
#ifndef LB_ADOPT_H
#define LB_ADOPT_H

#include "lcore/lcore.h"

/*
 * Go on with the services of <next> and with what else of it can change under way. 0, or -errno
 * with a sentence in <error>: then nothing has changed.
 */
int adopt_config(struct lb *lb, const struct lb_config *next, char *error, size_t size);

/* For the first configuration. NULL without memory; the caller frees it. */
struct service_view *adopt_view(const struct lb *lb, const struct lb_config *config);
void adopt_timeouts(const struct lb_service_config *service, uint32_t timeout_ms[FLOW_STATES]);
/* TSC */
uint64_t adopt_shortest_timeout(const struct lb *lb, const struct lb_config *config);

#endif
