/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which workers serve which service: workers/assign.h works it out; this is where it is asked. Control
 * thread.
 */
#include "membership/service_workers.h"

#include "lcore/lcore.h"
#include "membership/registry.h"

/* Work out anew who serves what of <config>; tables are made of it by allot_table(). */
void allot_update(struct lb *lb, const struct lb_config *config)
{
	static struct assign_want want[LB_SERVICES_MAX];

	for (unsigned int i = 0; i < config->n_services; i++) {
		const struct lb_service_config *s = &config->service[i];

		want[i] = (struct assign_want){
			.service = s->name,
			/* No worker has none: nobody serves those that leave. */
			.model = lb_service_serves(s) ? s->model : "",
			.assigned_only = s->assigned_only,
			.min_workers = s->min_workers,
			.spares = s->spares,
			.placement = s->placement,
		};
	}
	workers_assign(lb->pool, lb->settings, want, config->n_services, lb->allot);
}

struct pick_table *allot_table(struct lb *lb, const struct lb_service_config *s,
			       unsigned int service)
{
	const struct assign_result *allot = &lb->allot[service];

	struct pick_table *table =
		workers_pick_table_create_of(lb->pool, &allot->in, allot->soon, s->policy);

	if (table != NULL)
		table->away = allot->away;
	return table;
}

bool lb_worker_serves(const struct lb *lb, const struct worker *w, unsigned int service)
{
	return worker_set_has(&lb->allot[service].in, w->number);
}

unsigned int lb_service_workers(const struct lb *lb, unsigned int service, unsigned int *spares)
{
	if (spares != NULL)
		*spares = worker_set_count(&lb->allot[service].spares);
	return worker_set_count(&lb->allot[service].in);
}
