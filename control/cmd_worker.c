/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rpc.h"

struct worker_query {
	char name[WORKER_NAME_MAX];
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(worker_query, name), CONTROL_TEXT, .required = true},
};

struct worker_setting {
	char name[WORKER_NAME_MAX];
	uint32_t weight;
};

static const struct control_param setting_params[] = {
	{CONTROL_PARAM(worker_setting, name), CONTROL_TEXT, .required = true},
	{CONTROL_PARAM(worker_setting, weight), CONTROL_INTEGER, .required = true, .min = 1,
	 .max = WORKER_WEIGHT_MAX},
};

/* What lists show, and what only one worker's page has room for. */
static const struct control_counter brief_counters[] = {
	CONTROL_COUNTER(lb_link_stats, outstanding), CONTROL_COUNTER(lb_link_stats, credits),
	CONTROL_COUNTER(lb_link_stats, requests),    CONTROL_COUNTER(lb_link_stats, replies),
	CONTROL_COUNTER(lb_link_stats, errors),      CONTROL_COUNTER(lb_link_stats, lost),
	CONTROL_COUNTER(lb_link_stats, timeouts),
};

static const struct control_counter full_counters[] = {
	CONTROL_COUNTER(lb_link_stats, packets_sent),
	CONTROL_COUNTER(lb_link_stats, packets_received),
	CONTROL_COUNTER(lb_link_stats, acks_received),
	CONTROL_COUNTER(lb_link_stats, naks_received),
	CONTROL_COUNTER(lb_link_stats, naks_sent),
	CONTROL_COUNTER(lb_link_stats, rnr_naks_received),
	CONTROL_COUNTER(lb_link_stats, duplicates),
	CONTROL_COUNTER(lb_link_stats, out_of_order),
	CONTROL_COUNTER(lb_link_stats, ecn_marked),
	CONTROL_COUNTER(lb_link_stats, cnps_sent),
	CONTROL_COUNTER(lb_link_stats, cnps_received),
	CONTROL_COUNTER(lb_link_stats, heartbeats),
};

const char *control_worker_state(const struct lb *lb, const struct worker *worker)
{
	if (worker->state == WORKER_DRAINING && lb_worker_drained((struct lb *)lb, worker))
		return "drained";
	return worker_state_name(worker->state);
}

/* Null until the first one came. Both clocks count ms; lb_now_ms() has the low half. */
static json_t *heartbeat_age(const struct lb *lb, const struct worker *worker)
{
	int32_t age = (int32_t)(lb_now_ms(lb) - (uint32_t)worker->heartbeat_ms);

	if (worker->heartbeat_ms == 0)
		return json_null();
	return json_integer(age > 0 ? age : 0);
}

static void add_details(json_t *row, const struct worker *worker, const struct lb_link_stats *stats)
{
	const struct worker_spec *spec = &worker->spec;
	char instance[17];

	snprintf(instance, sizeof(instance), "%016" PRIx64, spec->instance);
	json_object_update_new(row, json_pack("{s:i, s:i, s:s, s:I, s:I, s:I, s:I}", "number",
					      worker->number, "generation", worker->generation,
					      "instance", instance, "max_request",
					      (json_int_t)spec->max_request, "max_reply",
					      (json_int_t)spec->max_reply, "max_batch",
					      (json_int_t)spec->max_batch, "heartbeat_ms",
					      (json_int_t)spec->heartbeat_ms));
	control_counters(row, full_counters, CONTROL_COUNT_OF(full_counters), stats);
	/* Null while nothing limits it. */
	json_object_set_new(row, "rate_mbit",
			    stats->rate == 0 ? json_null()
					     : json_integer((json_int_t)(stats->rate / 125000)));
}

json_t *control_worker_labels(const struct worker *worker)
{
	json_t *labels = json_object();

	for (unsigned int i = 0; i < worker->spec.n_labels; i++)
		json_object_set_new(labels, worker->spec.label[i].key,
				    control_text(worker->spec.label[i].value));
	return labels;
}

json_t *control_worker_services(const struct lb *lb, const struct worker *worker)
{
	const struct lb_config *config = lb_config_get(lb);
	json_t *services = json_array();

	for (unsigned int i = 0; i < config->n_services; i++)
		if (lb_worker_serves(lb, worker, i))
			json_array_append_new(services, control_text(config->service[i].name));
	return services;
}

static json_t *worker_row(struct lb *lb, const struct worker *worker, bool full)
{
	const struct worker_spec *spec = &worker->spec;
	struct lb_link_stats stats;
	json_t *row;

	memset(&stats, 0, sizeof(stats));
	lb_worker_stats_read(lb, worker, &stats);
	row = json_pack("{s:o, s:o, s:s, s:o, s:I, s:I}", "name", control_text(spec->name), "model",
			control_text(spec->model), "state", control_worker_state(lb, worker),
			"reason", control_text(worker->reason), "weight", (json_int_t)spec->weight,
			"slots", (json_int_t)spec->slots);
	control_counters(row, brief_counters, CONTROL_COUNT_OF(brief_counters), &stats);
	json_object_set_new(row, "resent", json_integer((json_int_t)stats.packets_resent));
	json_object_set_new(row, "heartbeat_age_ms", heartbeat_age(lb, worker));
	json_object_set_new(row, "mean_wait_us", control_mean(stats.wait_ns / 1000, stats.replies));
	json_object_set_new(row, "mean_run_us", control_mean(stats.run_ns / 1000, stats.replies));
	json_object_set_new(row, "mean_total_us",
			    control_mean(stats.total_ns / 1000, stats.replies));
	json_object_set_new(row, "labels", control_worker_labels(worker));
	json_object_set_new(row, "services", control_worker_services(lb, worker));
	if (full)
		add_details(row, worker, &stats);
	return row;
}

json_t *control_worker_row(struct lb *lb, const struct worker *worker)
{
	return worker_row(lb, worker, true);
}

json_t *control_workers_list(struct control_call *call)
{
	struct lb *lb = call->c->lb;
	json_t *rows, *result;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	rows = json_array();
	result = json_object();
	for (unsigned int i = 0; i < WORKERS_MAX; i++) {
		const struct worker *worker = workers_get(lb_pool(lb), i);

		if (worker)
			json_array_append_new(rows, worker_row(lb, worker, false));
	}
	json_object_set_new(result, "workers", rows);
	return result;
}

/* NULL after control_fail(). */
static struct worker *worker_named(struct control_call *call, const char *name)
{
	struct worker *worker = workers_find(lb_pool(call->c->lb), name);

	if (!worker)
		control_fail(call, CONTROL_ERROR_NOT_FOUND,
			     "no worker '%s'; workers.list has them all", name);
	return worker;
}

/* The worker that params name, or NULL after control_fail(). */
static struct worker *find_worker(struct control_call *call)
{
	struct worker_query q;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	return worker_named(call, q.name);
}

json_t *control_workers_show(struct control_call *call)
{
	const struct worker *worker = find_worker(call);

	if (!worker)
		return NULL;
	return json_pack("{s:o}", "worker", worker_row(call->c->lb, worker, true));
}

json_t *control_workers_drain(struct control_call *call)
{
	struct worker *worker = find_worker(call);

	if (!worker)
		return NULL;
	if (worker->state != WORKER_DRAINING)
		lb_worker_drain(call->c->lb, worker);
	return json_pack("{s:o}", "worker", worker_row(call->c->lb, worker, true));
}

json_t *control_workers_set(struct control_call *call)
{
	struct worker_setting setting;
	struct worker *worker;

	if (!control_params_read(call, "params", call->params, setting_params,
				 CONTROL_COUNT_OF(setting_params), &setting))
		return NULL;
	worker = worker_named(call, setting.name);
	if (!worker)
		return NULL;
	lb_worker_weight(call->c->lb, worker, setting.weight);
	return json_pack("{s:o}", "worker", worker_row(call->c->lb, worker, true));
}
