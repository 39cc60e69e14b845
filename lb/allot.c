/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which workers serve which service: workers/assign.h works it out; this is where it is asked, and
 * what operators say. Control thread.
 */
#include <errno.h>
#include <stdio.h>

#include "registry.h"

_Static_assert(LB_NAME_MAX <= WORKER_NAME_MAX, "names of services fit pins");

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
	workers_assign(lb->pool, lb->pins, want, config->n_services, lb->allot);
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

static int say(struct lb *lb, const struct worker *w, const struct lb_service_config *s,
	       enum assign_pin pin, char *error, size_t error_size)
{
	int ret = workers_assign_pin(lb->pins, w->spec.name, s->name, pin);

	if (ret < 0) {
		snprintf(error, error_size,
			 ret == -ENOSPC ? "%d assignments are known already; release some"
					: "no memory for one more assignment than %d",
			 ASSIGN_PINS_MAX);
		return ret;
	}
	LB_LOG(NOTICE, "worker=%s service=%s assignment=%s", w->spec.name, s->name,
	       pin == ASSIGN_IN    ? "assigned"
	       : pin == ASSIGN_OUT ? "released"
				   : "none");
	registry_publish(lb, s->model);
	return 0;
}

int lb_worker_assign(struct lb *lb, const struct worker *w, unsigned int service, char *error,
		     size_t error_size)
{
	const struct lb_service_config *s = &lb->config.service[service];

	if (strcmp(w->spec.model, s->model) != 0) {
		snprintf(error, error_size,
			 "worker '%s' runs the model '%s', and service '%s' needs '%s'; assign a "
			 "worker of that model",
			 w->spec.name, w->spec.model, s->name, s->model);
		return -EINVAL;
	}
	/* Where all serve, it is enough that it is not released any more. */
	return say(lb, w, s, s->assigned_only ? ASSIGN_IN : ASSIGN_AUTO, error, error_size);
}

int lb_worker_release(struct lb *lb, const struct worker *w, unsigned int service, char *error,
		      size_t error_size)
{
	const struct lb_service_config *s = &lb->config.service[service];
	bool assigned = workers_assign_pinned(lb->pins, w->spec.name, s->name) == ASSIGN_IN;

	if (!assigned && !lb_worker_serves(lb, w, service)) {
		snprintf(error, error_size, "worker '%s' does not serve '%s'", w->spec.name,
			 s->name);
		return -EINVAL;
	}
	/* Back to those that may step in as spares; a spare itself, or one of all, stays out. */
	return say(lb, w, s, assigned && s->assigned_only ? ASSIGN_AUTO : ASSIGN_OUT, error,
		   error_size);
}
