/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers to services and back, and the table of where workers are. */
#include <stdio.h>
#include <string.h>

#include "server/row.h"
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
	if (worker == NULL)
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "no worker '%s'; workers.list has them all", q.name);
	if (!find_services(call, q.services, service))
		return NULL;
	if (act(lb, worker, service, (unsigned int)json_array_size(q.services), error,
		sizeof(error)) < 0)
		return control_fail(call, CONTROL_ERROR_STATE, "%s", error);
	return control_worker_page(call, worker);
}

json_t *control_workers_assign(struct control_call *call)
{
	return act_on(call, lb_worker_assign);
}

json_t *control_workers_release(struct control_call *call)
{
	return act_on(call, lb_worker_release);
}

/* Write a label's value, or null. */
static void write_label(struct json_writer *w, const char *name, const struct worker *worker,
			const char *key)
{
	const char *value = workers_label(worker, key);

	if (value != NULL)
		writer_string(w, name, value);
	else
		writer_null(w, name);
}

static void write_place(struct json_writer *w, struct lb *lb, const struct worker *worker)
{
	writer_open_object(w, NULL);
	write_label(w, "host", worker, ASSIGN_HOST_LABEL);
	write_label(w, "slot", worker, "slot");
	writer_string(w, "name", worker->spec.name);
	writer_string(w, "model", worker->spec.model);
	writer_string(w, "state", control_worker_state_name(lb, worker));
	worker_row_write_services(w, lb, worker);
	worker_row_write_labels(w, worker);
	writer_close_object(w);
}

json_t *control_workers_table(struct control_call *call)
{
	return control_workers_write(call, write_place);
}
