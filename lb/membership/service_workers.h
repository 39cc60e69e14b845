/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workers of each service (workers/assign.h computes them). Control thread only.
 */
#ifndef LB_SERVICE_WORKERS_H
#define LB_SERVICE_WORKERS_H

#include <stdbool.h>

#include "config/config.h"

struct lb;
struct worker;

/*
 * True when the worker gets the service's requests: it is active, and assigned where the service
 * asks for that.
 */
bool lb_worker_serves(const struct lb *lb, const struct worker *worker, unsigned int service);
/* The number of workers that serve it; <spares>, if not NULL: how many of them are spares. */
unsigned int lb_service_workers(const struct lb *lb, unsigned int service, unsigned int *spares);

/*
 * Would each service of <old> still have its workers if <successor>, once it is active, took the
 * place of <old>? -1, or the number of the first service that <old> serves, or would if it were
 * active, and that <successor> would not. A spare that steps in for <old>, which was one itself,
 * will do.
 */
int lb_replace_gap(struct lb *lb, struct worker *old, struct worker *successor);

/* --- private to lb/ ----------------------------------------------------------------------------
 */

/* Compute the workers of each service of <config>. */
void service_workers_update(struct lb *lb, const struct lb_config *config);
/* Create the pick table of a service; as workers_pick_table_create(). */
struct pick_table *service_workers_table(struct lb *lb, const struct lb_service_config *s,
					 unsigned int service);
/*
 * Create the table of the models whose workers serve a service of <config>, after
 * service_workers_update(). NULL when out of memory.
 */
struct model_table *service_workers_models(struct lb *lb, const struct lb_config *config);

#endif
