/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "server/row.h"
#include "server/rpc.h"

struct service_query {
	char name[LB_NAME_MAX];
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(service_query, name), CONTROL_TEXT, .required = true},
};

int control_service_find(const struct lb_config *config, const char *name)
{
	int leaving = -1;

	for (unsigned int i = 0; i < config->n_services; i++) {
		if (!lb_service_used(&config->service[i]) ||
		    strcmp(config->service[i].name, name) != 0)
			continue;
		if (!config->service[i].leaving)
			return (int)i;
		leaving = (int)i; /* unless another service has its name now */
	}
	return leaving;
}

json_t *control_services_list(struct control_call *call)
{
	struct json_writer w = {.out = &call->written};
	struct lb *lb = call->c->lb;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	call->written_name = "services";
	writer_open_array(&w, NULL);
	for (unsigned int i = 0; i < lb_config_get(lb)->n_services; i++)
		if (lb_service_used(&lb_config_get(lb)->service[i]))
			service_row_write(&w, NULL, lb, i, call->c->refusals);
	writer_close_array(&w);
	return json_object();
}

json_t *control_services_show(struct control_call *call)
{
	struct json_writer w = {.out = &call->written};
	struct service_query q;
	int number;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	number = control_service_find(lb_config_get(call->c->lb), q.name);
	if (number < 0)
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "no service '%s'; services.list has them all", q.name);
	call->written_name = "service";
	service_row_write(&w, NULL, call->c->lb, (unsigned int)number, call->c->refusals);
	return json_object();
}
