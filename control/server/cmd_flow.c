/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flows.list, flows.show and flows.count: one bounded step of a walk per call.
 */
#include <arpa/inet.h>
#include <string.h>

#include "server/flows.h"

#define LIST_DEFAULT 1000
#define LIST_MAX     16384

struct list_query {
	struct flow_query query;
	uint32_t limit;
	bool compact;
};

static const struct control_param list_params[] = {
	FLOW_QUERY_PARAMS(list_query),
	{CONTROL_PARAM(list_query, limit), CONTROL_INTEGER, .min = 1, .max = LIST_MAX},
	{CONTROL_PARAM(list_query, compact), CONTROL_BOOLEAN},
};

static void list_flow(void *context, unsigned int lcore, const struct flow_info *flow)
{
	flow_rows_add(context, lcore, flow);
}

json_t *control_flows_list(struct control_call *call)
{
	struct list_query q = {.limit = LIST_DEFAULT};
	struct flow_rows rows = {.lb = call->c->lb, .text = &call->written};
	struct flow_walk walk = {.lb = call->c->lb, .visit = list_flow, .context = &rows};
	struct flow_filter filter;
	json_t *result;

	if (!control_params_read(call, "params", call->params, list_params,
				 CONTROL_COUNT_OF(list_params), &q) ||
	    !flow_filter_read(call, &q.query, &filter))
		return NULL;
	rows.compact = q.compact;
	walk.limit = q.limit;
	flow_walk_from(&walk, q.query.cursor);
	flow_rows_begin(&rows);
	flow_walk_step(&walk, &filter);
	flow_rows_end(&rows);
	result = json_object();
	if (q.compact)
		json_object_set_new(result, "columns", flow_rows_columns());
	flow_walk_say(&walk, result);
	call->written_name = "flows";
	return result;
}

/* --- show ------------------------------------------------------------------------------------- */

#define SHOW_MAX 256 /* rows of one call: each may ask an lcore */

struct show_query {
	struct flow_query query;
	char flow[160];
};

static const struct control_param show_params[] = {
	FLOW_QUERY_PARAMS(show_query),
	{CONTROL_PARAM(show_query, flow), CONTROL_TEXT, .required = true},
};

struct show {
	struct flow_rows rows;
	struct trace_flow flow;
};

static void show_flow(void *context, unsigned int lcore, const struct flow_info *flow)
{
	struct show *show = context;
	const struct flow_key *key = &flow->key;

	if (key->src_port != htons(show->flow.client_port) ||
	    memcmp(&key->src, &show->flow.client.addr, sizeof(key->src)) != 0)
		return;
	if (show->flow.vip_port == 0 ||
	    (key->dst_port == htons(show->flow.vip_port) &&
	     memcmp(&key->dst, &show->flow.vip.addr, sizeof(key->dst)) == 0))
		flow_rows_add_tcp(&show->rows, lcore, flow);
}

json_t *control_flows_show(struct control_call *call)
{
	struct show show = {.rows = {.lb = call->c->lb, .text = &call->written}};
	struct flow_walk walk = {
		.lb = call->c->lb, .limit = SHOW_MAX, .visit = show_flow, .context = &show};
	struct flow_filter filter;
	struct show_query q = {0};
	json_t *result;

	if (!control_params_read(call, "params", call->params, show_params,
				 CONTROL_COUNT_OF(show_params), &q) ||
	    !flow_ends_read(call, q.flow, &show.flow) || !flow_filter_read(call, &q.query, &filter))
		return NULL;
	if (filter.client.family == 0) {
		filter.any = false;
		filter.client = show.flow.client;
		filter.prefix = 128;
	}
	flow_walk_from(&walk, q.query.cursor);
	flow_rows_begin(&show.rows);
	flow_walk_step(&walk, &filter);
	flow_rows_end(&show.rows);
	result = json_object();
	flow_walk_say(&walk, result);
	call->written_name = "flows";
	return result;
}

/* --- count ------------------------------------------------------------------------------------ */

#define GROUPS_MAX (WORKERS_MAX + 1)
_Static_assert(GROUPS_MAX > LB_SERVICES_MAX && GROUPS_MAX >= FLOW_STATES, "room for each of them");

struct count_query {
	struct flow_query query;
	char by[16];
};

static const struct control_param count_params[] = {
	FLOW_QUERY_PARAMS(count_query),
	{CONTROL_PARAM(count_query, by), CONTROL_TEXT},
};

static unsigned int flow_state_of(struct lb *lb, const struct flow_info *flow)
{
	return flow->state;
}

static unsigned int flow_service_of(struct lb *lb, const struct flow_info *flow)
{
	return flow_service(lb, flow);
}

static const char *flow_group_service_name(struct lb *lb, unsigned int service)
{
	return flow_service_name(lb, service);
}

static const char *flow_group_state_name(struct lb *lb, unsigned int state)
{
	return conntrack_state_name(state);
}

/* The properties that flows can be counted by. */
static const struct grouping {
	const char *name;
	unsigned int (*group)(struct lb *lb, const struct flow_info *flow);
	const char *(*group_name)(struct lb *lb, unsigned int group);
} groupings[] = {
	{"service", flow_service_of, flow_group_service_name},
	{"worker", flow_worker, flow_worker_name},
	{"state", flow_state_of, flow_group_state_name},
};

struct count {
	struct lb *lb;
	const struct grouping *by; /* or NULL */
	uint64_t group[GROUPS_MAX];
};

static void count_flow(void *context, unsigned int lcore, const struct flow_info *flow)
{
	struct count *count = context;

	if (count->by != NULL)
		count->group[count->by->group(count->lb, flow)]++;
}

static bool grouping_read(struct control_call *call, const char *name, const struct grouping **by)
{
	*by = NULL;
	if (!name[0])
		return true;
	for (size_t i = 0; i < CONTROL_COUNT_OF(groupings); i++)
		if (strcmp(groupings[i].name, name) == 0)
			*by = &groupings[i];
	if (*by == NULL)
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.by: cannot use '%s'; give service, worker or state", name);
	return *by != NULL;
}

static json_t *groups(const struct count *count)
{
	json_t *all = json_array();

	for (unsigned int i = 0; i < GROUPS_MAX; i++)
		if (count->group[i])
			json_array_append_new(
				all, json_pack("{s:o, s:I}", "name",
					       control_text(count->by->group_name(count->lb, i)),
					       "count", (json_int_t)count->group[i]));
	return all;
}

/* Count all flows without a walk: the tables know their numbers. */
static void count_all(struct flow_walk *walk)
{
	for (; walk->lcore < lb_lcores(walk->lb); walk->lcore++)
		walk->matched += conntrack_count(lb_conntrack(walk->lb, walk->lcore));
}

json_t *control_flows_count(struct control_call *call)
{
	struct count count = {.lb = call->c->lb};
	struct flow_walk walk = {
		.lb = call->c->lb, .limit = UINT64_MAX, .visit = count_flow, .context = &count};
	struct count_query q = {0};
	struct flow_filter filter;
	json_t *result;

	if (!control_params_read(call, "params", call->params, count_params,
				 CONTROL_COUNT_OF(count_params), &q) ||
	    !flow_filter_read(call, &q.query, &filter) || !grouping_read(call, q.by, &count.by))
		return NULL;
	flow_walk_from(&walk, q.query.cursor);
	if (filter.any && count.by == NULL && q.query.cursor == 0)
		count_all(&walk);
	else
		flow_walk_step(&walk, &filter);
	result = json_object();
	flow_walk_say(&walk, result);
	json_object_set_new(result, "count", json_integer((json_int_t)walk.matched));
	if (count.by != NULL)
		json_object_set_new(result, "groups", groups(&count));
	return result;
}
