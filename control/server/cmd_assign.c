/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers to services and back, and the table of where workers are. */
#include <stdio.h>
#include <string.h>

#include "server/rpc.h"

struct assign_query {
	char name[WORKER_NAME_MAX];
	const json_t *services;
};

static const struct control_param assign_params[] = {
	{CONTROL_PARAM(assign_query, name), CONTROL_TEXT, .required = true},
	{CONTROL_PARAM(assign_query, services), CONTROL_NAMES, .required = true, .min = 1,
	 .max = LB_SERVICES_MAX},
};

typedef int assign_act(struct lb *lb, const struct worker *worker, const unsigned int *service,
		       unsigned int n, char *error, size_t error_size);

static bool find_services(struct control_call *call, const json_t *names, unsigned int *service)
{
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));
		int number = control_service_find(lb_config_get(call->c->lb), name);

		if (number < 0) {
			control_fail(call, CONTROL_ERROR_NOT_FOUND,
				     "no service '%.64s'; services.list has them all", name);
			return false;
		}
		service[i] = (unsigned int)number;
	}
	return true;
}

static json_t *act_on(struct control_call *call, assign_act *act)
{
	unsigned int service[LB_SERVICES_MAX];
	struct lb *lb = call->c->lb;
	const struct worker *worker;
	struct assign_query q;
	char error[256];

	if (!control_params_read(call, "params", call->params, assign_params,
				 CONTROL_COUNT_OF(assign_params), &q))
		return NULL;
	worker = workers_find(lb_pool(lb), q.name);
	if (!worker)
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "no worker '%s'; workers.list has them all", q.name);
	if (!find_services(call, q.services, service))
		return NULL;
	if (act(lb, worker, service, (unsigned int)json_array_size(q.services), error,
		sizeof(error)) < 0)
		return control_fail(call, CONTROL_ERROR_STATE, "%s", error);
	return json_pack("{s:o}", "worker", control_worker_row(lb, worker));
}

json_t *control_workers_assign(struct control_call *call)
{
	return act_on(call, lb_worker_assign);
}

json_t *control_workers_release(struct control_call *call)
{
	return act_on(call, lb_worker_release);
}

/* A label, or null. */
static json_t *label(const struct worker *worker, const char *key)
{
	const char *value = workers_label(worker, key);

	return value ? control_text(value) : json_null();
}

json_t *control_workers_table(struct control_call *call)
{
	struct lb *lb = call->c->lb;
	json_t *rows;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	rows = json_array();
	for (const struct worker *worker = workers_next(lb_pool(lb), NULL); worker;
	     worker = workers_next(lb_pool(lb), worker)) {
		json_array_append_new(rows, json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "host",
						      label(worker, ASSIGN_HOST_LABEL), "slot",
						      label(worker, "slot"), "name",
						      control_text(worker->spec.name), "model",
						      control_text(worker->spec.model), "state",
						      control_worker_state(lb, worker), "services",
						      control_worker_services(lb, worker), "labels",
						      control_worker_labels(worker)));
	}
	return json_pack("{s:o}", "workers", rows);
}
