/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which workers serve which service (workers/assign.h works it out). Control thread only.
 */
#ifndef LB_SERVICE_WORKERS_H
#define LB_SERVICE_WORKERS_H

#include <stdbool.h>

#include "config/config.h"
#include "workers.h"

struct lb;

/* Is it active, and gets the service's requests? */
bool lb_worker_serves(const struct lb *lb, const struct worker *worker, unsigned int service);
/* How many do; <spares>, if not NULL: how many of them have stepped in by themselves. */
unsigned int lb_service_workers(const struct lb *lb, unsigned int service, unsigned int *spares);

/* --- private to lb/ ---------------------------------------------------------------------------- */

/* Work it out again for the services of <config>. */
void allot_update(struct lb *lb, const struct lb_config *config);
/* The pick table of a service; as workers_pick_table_create_of(). */
struct pick_table *allot_table(struct lb *lb, const struct lb_service_config *s,
			       unsigned int service);

#endif
