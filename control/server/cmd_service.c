/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>
#include <string.h>

#include "config/address.h"
#include "server/rpc.h"

struct service_query {
	char name[LB_NAME_MAX];
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(service_query, name), CONTROL_TEXT, .required = true},
};

static const struct control_counter counters[] = {
	CONTROL_COUNTER(lb_service_stats, requests),
	CONTROL_COUNTER(lb_service_stats, replies),
	CONTROL_COUNTER(lb_service_stats, notices),
	CONTROL_COUNTER(lb_service_stats, drops),
	CONTROL_COUNTER(lb_service_stats, queued),
	CONTROL_COUNTER(lb_service_stats, replays),
	CONTROL_COUNTER(lb_service_stats, bytes_in),
	CONTROL_COUNTER(lb_service_stats, bytes_out),
	CONTROL_COUNTER(lb_service_stats, went_home),
	CONTROL_COUNTER(lb_service_stats, spilled),
	CONTROL_COUNTER(lb_service_stats, moved),
	CONTROL_COUNTER(lb_service_stats, queue_places),
};

static const char *const affinities[] = {
	[LB_AFFINITY_FLOW] = "flow",
	[LB_AFFINITY_REQUEST] = "request",
	[LB_AFFINITY_STICKY] = "sticky",
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
		leaving = (int)i; /* unless another has its name now */
	}
	return leaving;
}

static json_t *service_row(struct lb *lb, unsigned int number)
{
	const struct lb_service_config *s = &lb_config_get(lb)->service[number];
	struct lb_service_stats stats;
	char vip[LB_ADDRESS_TEXT];
	unsigned int workers, spares;
	json_t *row;

	memset(&stats, 0, sizeof(stats));
	lb_service_stats_read(lb, number, &stats);
	workers = lb_service_workers(lb, number, &spares);
	row = json_pack("{s:o, s:s, s:i, s:s, s:o, s:s, s:s, s:i}", "name", control_text(s->name),
			"vip", lb_address_format(&s->vip, vip, sizeof(vip)), "port", s->port,
			"protocol", s->protocol == IPPROTO_UDP ? "udp" : "tcp", "model",
			control_text(s->model), "policy", pick_policy_name(s->policy), "affinity",
			affinities[s->affinity], "workers", (int)workers);
	json_object_set_new(row, "state", json_string(s->leaving ? "leaving" : "serving"));
	control_counters(row, counters, CONTROL_COUNT_OF(counters), &stats);
	json_object_update_new(
		row, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "max_request",
			       (json_int_t)s->max_request, "max_reply", (json_int_t)s->max_reply,
			       "queue", (json_int_t)s->queue, "queue_timeout_ms",
			       (json_int_t)s->queue_timeout_ms, "request_timeout_ms",
			       (json_int_t)s->request_timeout_ms, "flow_timeout_ms",
			       (json_int_t)s->flow_timeout_ms, "one_way_timeout_ms",
			       (json_int_t)s->one_way_timeout_ms, "payload_crc", s->payload_crc));
	json_object_set_new(row, "sticky_load_percent",
			    json_integer((json_int_t)s->sticky_load_percent));
	json_object_update_new(row, json_pack("{s:s, s:I, s:i, s:I, s:s}", "members",
					      s->assigned_only ? "assigned" : "all", "min_workers",
					      (json_int_t)s->min_workers, "spares_in", (int)spares,
					      "spares", (json_int_t)s->spares, "placement",
					      s->placement == ASSIGN_PACK ? "pack" : "spread"));
	return row;
}

json_t *control_services_list(struct control_call *call)
{
	struct lb *lb = call->c->lb;
	json_t *rows, *result;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	rows = json_array();
	result = json_object();
	for (unsigned int i = 0; i < lb_config_get(lb)->n_services; i++)
		if (lb_service_used(&lb_config_get(lb)->service[i]))
			json_array_append_new(rows, service_row(lb, i));
	json_object_set_new(result, "services", rows);
	return result;
}

json_t *control_services_show(struct control_call *call)
{
	struct service_query q;
	int number;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	number = control_service_find(lb_config_get(call->c->lb), q.name);
	if (number < 0)
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "no service '%s'; services.list has them all", q.name);
	return json_pack("{s:o}", "service", service_row(call->c->lb, (unsigned int)number));
}
