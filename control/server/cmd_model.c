/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Models: the names that services and registered workers have, each with its workers and what they
 * say of its tensors.
 */
#include <stdlib.h>
#include <string.h>

#include "server/row.h"
#include "server/rpc.h"

struct model_query {
	char name[WORKER_NAME_MAX];
};

static const struct control_param model_params[] = {
	{CONTROL_PARAM(model_query, name), CONTROL_TEXT, .required = true},
};

/* Services before workers, and each in the order of their numbers. */
static int model_member_compare(const void *a, const void *b)
{
	const struct model_member *x = a, *y = b;
	int order = strcmp(x->model, y->model);

	if (order != 0)
		return order;
	if ((x->worker != NULL) != (y->worker != NULL))
		return x->worker != NULL ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Sorted by model, so that the members of one lie together. Returns their number. */
static size_t model_members(struct lb *lb, struct model_member *member)
{
	const struct lb_config *config = lb_config_get(lb);
	size_t n = 0;

	for (unsigned int i = 0; i < config->n_services; i++)
		if (lb_service_serves(&config->service[i]))
			member[n++] = (struct model_member){.model = config->service[i].model,
							    .number = i,
							    .service = &config->service[i]};
	for (const struct worker *worker = workers_next(lb_pool(lb), NULL); worker != NULL;
	     worker = workers_next(lb_pool(lb), worker))
		member[n++] = (struct model_member){
			.model = worker->spec.model, .number = worker->number, .worker = worker};
	qsort(member, n, sizeof(*member), model_member_compare);
	return n;
}

/* The number of members from <member> on that are of its model. */
static size_t model_members_of_one(const struct model_member *member, size_t n)
{
	size_t same = 1;

	while (same < n && strcmp(member[same].model, member[0].model) == 0)
		same++;
	return same;
}

json_t *control_models_list(struct control_call *call)
{
	static struct model_member member[MODEL_MEMBERS_MAX];
	struct json_writer w = {.out = &call->written};
	size_t n, same;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	n = model_members(call->c->lb, member);
	call->written_name = "models";
	writer_open_array(&w, NULL);
	for (size_t i = 0; i < n; i += same) {
		same = model_members_of_one(&member[i], n - i);
		model_row_write(&w, NULL, call->c->lb, &member[i], same, ROW_LIST);
	}
	writer_close_array(&w);
	return json_object();
}

json_t *control_models_show(struct control_call *call)
{
	static struct model_member member[MODEL_MEMBERS_MAX];
	struct json_writer w = {.out = &call->written};
	struct model_query q;
	size_t n;

	if (!control_params_read(call, "params", call->params, model_params,
				 CONTROL_COUNT_OF(model_params), &q))
		return NULL;
	n = model_members(call->c->lb, member);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(member[i].model, q.name) != 0)
			continue;
		call->written_name = "model";
		model_row_write(&w, NULL, call->c->lb, &member[i],
				model_members_of_one(&member[i], n - i), ROW_PAGE);
		return json_object();
	}
	return control_fail(call, CONTROL_ERROR_NOT_FOUND,
			    "no model '%s'; models.list has them all", q.name);
}
