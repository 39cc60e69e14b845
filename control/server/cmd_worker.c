/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#include "server/rpc.h"

struct worker_query {
	char name[WORKER_NAME_MAX];
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(worker_query, name), CONTROL_TEXT, .required = true},
};

/* What an operator sets for a name, whose worker may have yet to come. */
struct setting_query {
	char name[WORKER_NAME_MAX];
	bool absent;
	uint32_t weight;
};

static const struct control_param setting_params[] = {
	{CONTROL_PARAM(setting_query, name), CONTROL_TEXT, .required = true},
	{CONTROL_PARAM(setting_query, absent), CONTROL_BOOLEAN},
};

static const struct control_param weight_params[] = {
	{CONTROL_PARAM(setting_query, name), CONTROL_TEXT, .required = true},
	{CONTROL_PARAM(setting_query, weight), CONTROL_INTEGER, .required = true, .min = 0,
	 .max = WORKER_WEIGHT_MAX},
	{CONTROL_PARAM(setting_query, absent), CONTROL_BOOLEAN},
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
	CONTROL_COUNTER(lb_link_stats, unacked),
};

const char *control_worker_state(const struct lb *lb, const struct worker *worker)
{
	if (worker->state == WORKER_DRAINING && lb_worker_drained((struct lb *)lb, worker))
		return "drained";
	return worker_state_name(worker->state);
}

/* Both clocks count ms; lb_now_ms() has the low half. */
int64_t control_heartbeat_age(const struct lb *lb, const struct worker *worker)
{
	int32_t age = (int32_t)(lb_now_ms(lb) - (uint32_t)worker->heartbeat_ms);

	if (worker->heartbeat_ms == 0)
		return -1;
	return age > 0 ? age : 0;
}

static json_t *heartbeat_age(const struct lb *lb, const struct worker *worker)
{
	int64_t age = control_heartbeat_age(lb, worker);

	return age < 0 ? json_null() : json_integer(age);
}

/*
 * Tells two starts of an agent apart. The instance itself is what its agent shows to take over what
 * it left behind: who sees workers must not be able to.
 */
static void print_instance(const struct worker_spec *spec, char text[17])
{
	uint64_t instance = htobe64(spec->instance), first;
	unsigned char digest[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)&instance, sizeof(instance), digest);
	memcpy(&first, digest, sizeof(first));
	snprintf(text, 17, "%016" PRIx64, be64toh(first));
}

static void add_details(json_t *row, const struct worker *worker, const struct lb_link_stats *stats)
{
	const struct worker_spec *spec = &worker->spec;
	char instance[17];

	print_instance(spec, instance);
	json_object_set_new(row, "min_request", json_integer(spec->min_request));
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
	json_object_set_new(row, "agent_weight", json_integer(worker->own_weight));
	json_object_set_new(row, "drain", json_boolean(worker->drain));
	/* Null while its agent is heard. */
	json_object_set_new(row, "control_lost_ms",
			    worker->uncontrolled
				    ? json_integer(lb_now_ms(lb) - worker->uncontrolled_ms)
				    : json_null());
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
	for (const struct worker *worker = workers_next(lb_pool(lb), NULL); worker;
	     worker = workers_next(lb_pool(lb), worker))
		json_array_append_new(rows, worker_row(lb, worker, false));
	json_object_set_new(result, "workers", rows);
	return result;
}

json_t *control_workers_show(struct control_call *call)
{
	const struct worker *worker;
	struct worker_query q;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	worker = workers_find(lb_pool(call->c->lb), q.name);
	if (!worker)
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "no worker '%s'; workers.list has them all", q.name);
	return json_pack("{s:o}", "worker", worker_row(call->c->lb, worker, true));
}

/* --- what operators set ------------------------------------------------------------------------
 */

static json_t *pins(const struct worker_setting *setting, enum assign_pin pin)
{
	json_t *names = json_array();

	for (unsigned int i = 0; setting && i < setting->n_pins; i++)
		if (setting->pin[i].pin == pin)
			json_array_append_new(names, control_text(setting->pin[i].service));
	return names;
}

/* <setting> is NULL when nothing is set for <name>. Without a worker: what became of the last one.
 */
static json_t *setting_row(struct lb *lb, const char *name, const struct worker_setting *setting)
{
	const struct worker *worker = workers_find(lb_pool(lb), name);
	const struct worker *gone = worker ? NULL : workers_find_gone(lb_pool(lb), name);

	return json_pack("{s:o, s:s, s:o, s:I, s:b, s:o, s:o, s:o}", "name", control_text(name),
			 "state", worker ? control_worker_state(lb, worker) : "gone", "reason",
			 control_text(worker ? worker->reason
				      : gone ? gone->reason
					     : "it has not registered"),
			 "lost", (json_int_t)(gone ? lb_worker_lost(lb, gone) : 0), "drain",
			 setting && setting->drain, "weight",
			 setting && setting->weight ? json_integer(setting->weight) : json_null(),
			 "assigned", pins(setting, ASSIGN_IN), "released",
			 pins(setting, ASSIGN_OUT));
}

json_t *control_workers_settings(struct control_call *call)
{
	const struct worker_settings *settings = lb_settings(call->c->lb);
	json_t *rows;

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	rows = json_array();
	for (unsigned int i = 0; i < workers_settings_count(settings); i++) {
		const struct worker_setting *setting = workers_settings_at(settings, i);

		json_array_append_new(rows, setting_row(call->c->lb, setting->name, setting));
	}
	return json_pack("{s:o}", "settings", rows);
}

/* A typing error must not be kept for a worker that never comes. */
static bool is_known(struct control_call *call, const struct setting_query *q)
{
	struct lb *lb = call->c->lb;

	if (!workers_name_holds(q->name)) {
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.name: no worker can have this name; use letters, digits and "
			     "._-");
		return false;
	}
	if (q->absent || workers_find(lb_pool(lb), q->name) ||
	    workers_settings_find(lb_settings(lb), q->name))
		return true;
	control_fail(call, CONTROL_ERROR_NOT_FOUND,
		     "no worker '%s'; workers.list has them all (absent: true, or --absent, is for "
		     "one that has yet to register)",
		     q->name);
	return false;
}

/* The reply to a change that came to <ret>. */
static json_t *changed(struct control_call *call, const char *name, int ret, const char *error)
{
	struct lb *lb = call->c->lb;
	const struct worker *worker = workers_find(lb_pool(lb), name);

	if (ret < 0)
		return control_fail(call, CONTROL_ERROR_STATE, "%s", error);
	return json_pack("{s:o, s:o}", "worker",
			 worker ? worker_row(lb, worker, true) : json_null(), "setting",
			 setting_row(lb, name, workers_settings_find(lb_settings(lb), name)));
}

static json_t *set_drain(struct control_call *call, bool drain)
{
	struct setting_query q = {0};
	char error[512] = "";
	int ret;

	if (!control_params_read(call, "params", call->params, setting_params,
				 CONTROL_COUNT_OF(setting_params), &q) ||
	    !is_known(call, &q))
		return NULL;
	ret = lb_settings_drain(call->c->lb, q.name, drain, error, sizeof(error));
	return changed(call, q.name, ret, error);
}

json_t *control_workers_drain(struct control_call *call)
{
	return set_drain(call, true);
}

json_t *control_workers_resume(struct control_call *call)
{
	return set_drain(call, false);
}

json_t *control_workers_set(struct control_call *call)
{
	struct setting_query q = {0};
	char error[512] = "";
	int ret;

	if (!control_params_read(call, "params", call->params, weight_params,
				 CONTROL_COUNT_OF(weight_params), &q) ||
	    !is_known(call, &q))
		return NULL;
	ret = lb_settings_weight(call->c->lb, q.name, q.weight, error, sizeof(error));
	return changed(call, q.name, ret, error);
}

json_t *control_workers_forget(struct control_call *call)
{
	struct worker_query q;
	char error[512] = "";
	int ret;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	ret = lb_settings_forget(call->c->lb, q.name, error, sizeof(error));
	if (ret == -ENOENT)
		return control_fail(call, CONTROL_ERROR_NOT_FOUND,
				    "%s; workers.settings has all that is", error);
	return changed(call, q.name, ret, error);
}
