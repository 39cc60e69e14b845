/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workers of each service, as workers/assign.h computes them, and the services' pick tables.
 * Control thread.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "membership/service_workers.h"

#include "config/config_places.h"
#include "lcore/lcore.h"
#include "membership/registry.h"
#include "schedule/groups.h"

/*
 * The services' demands during an update; static, because it is too large for a stack. Control
 * thread.
 */
static struct assign_want wanted[LB_SERVICES_MAX];

static void fill_wanted(const struct lb_config *config)
{
	for (unsigned int i = 0; i < config->n_services; i++) {
		const struct lb_service_config *s = &config->service[i];

		wanted[i] = (struct assign_want){
			.service = s->name,
			/* An empty model matches no worker: a leaving service gets none. */
			.model = lb_service_serves(s) ? s->model : "",
			.assigned_only = s->assigned_only,
			.min_workers = s->min_workers,
			.spares = s->spares,
			.placement = s->placement,
		};
	}
}

/* Compute the workers of each service of <config>; service_workers_table() uses the result. */
void service_workers_update(struct lb *lb, const struct lb_config *config)
{
	fill_wanted(config);
	workers_assign(lb->pool, lb->settings, wanted, config->n_services, lb->assigned);
}

/* Put the table's workers into groups, if the service is near or spread. 0 or -ENOMEM. */
static int group_workers(struct lb *lb, const struct lb_service_config *s, struct pick_table *table)
{
	const char *key = s->near[0] != '\0' ? s->near : s->spread;
	char host[sizeof(((struct worker_label *)0)->value)] = "";

	if (key[0] == '\0')
		return 0;
	gethostname(host, sizeof(host) - 1);
	return workers_pick_table_group(table, lb->pool, key == s->near ? PICK_NEAR : PICK_SPREAD,
					key, lb_config_label(&lb->config, key, host));
}

struct pick_table *service_workers_table(struct lb *lb, const struct lb_service_config *s,
					 unsigned int service)
{
	const struct assign_result *assigned = &lb->assigned[service];

	struct pick_table *table =
		workers_pick_table_create(lb->pool, &assigned->in, assigned->soon, s->policy);

	if (table == NULL)
		return NULL;
	if (group_workers(lb, s, table) < 0) {
		workers_pick_table_destroy(table);
		errno = ENOMEM;
		return NULL;
	}
	table->away = assigned->away;
	return table;
}

/* One that is suspect for a moment says what it did before: requests wait for it, and their clients
 * must not be told that nobody describes the model. */
static bool may_serve(const struct worker *w, const struct lb_service_config *s)
{
	return w->state == WORKER_SUSPECT && lb_service_serves(s) &&
	       strcmp(w->spec.model, s->model) == 0;
}

struct model_table *service_workers_models(struct lb *lb, const struct lb_config *config)
{
	struct model_table *table = model_table_create(config->n_services);

	for (unsigned int i = 0; table != NULL && i < config->n_services; i++)
		for (const struct worker *w = workers_next(lb->pool, NULL); w != NULL;
		     w = workers_next(lb->pool, w))
			if (w->spec.description != NULL &&
			    (lb_worker_serves(lb, w, i) || may_serve(w, &config->service[i])))
				model_table_add(table, w->spec.model, w->spec.description,
						w->spec.max_batch);
	return table;
}

bool lb_worker_serves(const struct lb *lb, const struct worker *w, unsigned int service)
{
	return worker_set_has(&lb->assigned[service].in, w->number);
}

unsigned int lb_service_workers(const struct lb *lb, unsigned int service, unsigned int *spares)
{
	if (spares != NULL)
		*spares = worker_set_count(&lb->assigned[service].spares);
	return worker_set_count(&lb->assigned[service].in);
}

/* The workers of each service if <old> were active, or drained. */
static void assign_with(struct lb *lb, struct worker *old, enum worker_state state,
			struct assign_result result[LB_SERVICES_MAX])
{
	enum worker_state before = old->state;

	memcpy(result, lb->assigned, sizeof(lb->assigned));
	old->state = state;
	workers_assign(lb->pool, lb->settings, wanted, lb->config.n_services, result);
	old->state = before;
}

int lb_replace_gap(struct lb *lb, struct worker *old, struct worker *successor)
{
	static struct assign_result with[LB_SERVICES_MAX], without[LB_SERVICES_MAX];
	enum worker_state before = successor->state;
	int gap = -1;

	fill_wanted(&lb->config);
	successor->state = WORKER_ACTIVE;
	assign_with(lb, old, WORKER_ACTIVE, with);
	assign_with(lb, old, WORKER_DRAINING, without);
	successor->state = before;
	for (unsigned int i = 0; gap < 0 && i < lb->config.n_services; i++)
		if (worker_set_has(&with[i].in, old->number) &&
		    !worker_set_has(&without[i].in, successor->number) &&
		    !(worker_set_has(&with[i].spares, old->number) &&
		      worker_set_count(&without[i].in) >= worker_set_count(&with[i].in)))
			gap = (int)i;
	return gap;
}
