/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.show: services, workers and lcores with their rates of the last second. Written as text:
 * as values it would take ten times as long for a large pool, once a second for each onlooker.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "config/address.h"
#include "server/rpc.h"
#include "view/view.h"

/* All members begin with a comma; the first of an object is written over it. */
static void name(struct text *t, const char *key)
{
	text_string(t, ",\"");
	text_string(t, key);
	text_string(t, "\":");
}

static void put_integer(struct text *t, const char *key, uint64_t value)
{
	name(t, key);
	text_integer(t, value);
}

static void put_real(struct text *t, const char *key, double value)
{
	char number[32];

	name(t, key);
	text_add(t, number, (size_t)snprintf(number, sizeof(number), "%.1f", value));
}

static void put_null(struct text *t, const char *key)
{
	name(t, key);
	text_string(t, "null");
}

/* Null without anything to have a mean or a percentile of. */
static void put_time(struct text *t, const char *key, double us, bool known)
{
	if (known)
		put_real(t, key, us);
	else
		put_null(t, key);
}

static void put_share(struct text *t, const char *key, double value)
{
	char number[32];

	name(t, key);
	text_add(t, number, (size_t)snprintf(number, sizeof(number), "%.3f", value));
}

static void put_text(struct text *t, const char *key, const char *value)
{
	json_t *string = control_text(value);

	name(t, key);
	if (string)
		text_json(t, string);
	else
		t->failed = true;
	json_decref(string);
}

/* An object that begins here; close() ends it. Its first member's comma is taken away. */
static size_t open_object(struct text *t)
{
	text_string(t, "{");
	return t->n;
}

static void close_object(struct text *t, size_t start)
{
	if (!t->failed && t->n > start) {
		memmove(t->data + start, t->data + start + 1, t->n - start - 1);
		t->n--;
	}
	text_string(t, "}");
}

/* The same for the rows of an array, each preceded by a comma. */
static size_t open_array(struct text *t, const char *key)
{
	name(t, key);
	text_string(t, "[");
	return t->n;
}

static void close_array(struct text *t, size_t start)
{
	if (!t->failed && t->n > start)
		t->data[start] = ' ';
	text_string(t, "]");
}

static size_t open_row(struct text *t)
{
	text_string(t, ",");
	return open_object(t);
}

static void put_latency(struct text *t, const struct window_service *rates)
{
	size_t all, one;

	name(t, "latency");
	all = open_object(t);
	for (unsigned int p = 0; p < LATENCY_PARTS; p++) {
		const struct window_latency *l = &rates->part[p];

		name(t, latency_part_name(p));
		one = open_object(t);
		put_integer(t, "count", l->count);
		put_time(t, "mean_us", l->mean, l->count > 0);
		put_time(t, "p50_us", l->p50, l->count > 0);
		put_time(t, "p90_us", l->p90, l->count > 0);
		put_time(t, "p99_us", l->p99, l->count > 0);
		close_object(t, one);
	}
	close_object(t, all);
}

static void put_service_rates(struct text *t, const struct window_service *rates)
{
	static const struct window_service none;

	if (!rates)
		rates = &none;
	put_integer(t, "requests_per_s", rates->requests);
	put_integer(t, "replies_per_s", rates->replies);
	put_integer(t, "notices_per_s", rates->notices);
	put_integer(t, "drops_per_s", rates->drops);
	put_integer(t, "bytes_in_per_s", rates->bytes_in);
	put_integer(t, "bytes_out_per_s", rates->bytes_out);
	put_latency(t, rates);
}

static void service_row(const struct view *view, struct text *t, unsigned int number)
{
	const struct lb_service_config *s = &lb_config_get(view->lb)->service[number];
	struct lb_service_stats stats;
	char vip[LB_ADDRESS_TEXT];
	size_t row = open_row(t);

	memset(&stats, 0, sizeof(stats));
	lb_service_stats_read(view->lb, number, &stats);
	put_text(t, "name", s->name);
	put_text(t, "vip", lb_address_format(&s->vip, vip, sizeof(vip)));
	put_integer(t, "port", s->port);
	put_text(t, "protocol", s->protocol == IPPROTO_UDP ? "udp" : "tcp");
	put_text(t, "model", s->model);
	put_text(t, "policy", pick_policy_name(s->policy));
	put_integer(t, "workers", lb_service_workers(view->lb, number, NULL));
	put_integer(t, "requests", stats.requests);
	put_integer(t, "replies", stats.replies);
	put_integer(t, "notices", stats.notices);
	put_integer(t, "drops", stats.drops);
	put_integer(t, "queued", stats.queued);
	put_service_rates(t, window_service(view->window, number));
	close_object(t, row);
}

static void put_heartbeat_age(const struct view *view, struct text *t, const struct worker *worker)
{
	int64_t age = control_heartbeat_age(view->lb, worker);

	if (age < 0)
		put_null(t, "heartbeat_age_ms");
	else
		put_integer(t, "heartbeat_age_ms", (uint64_t)age);
}

static void put_worker_rates(struct text *t, const struct window_worker *rates)
{
	static const struct window_worker none;

	if (!rates)
		rates = &none;
	put_integer(t, "requests_per_s", rates->requests);
	put_integer(t, "replies_per_s", rates->replies);
	put_integer(t, "errors_per_s", rates->errors);
	put_time(t, "mean_wire_us", rates->wire, rates->count > 0);
	put_time(t, "mean_wait_us", rates->wait, rates->count > 0);
	put_time(t, "mean_run_us", rates->run, rates->count > 0);
	put_time(t, "mean_total_us", rates->total, rates->count > 0);
	put_share(t, "gpu", rates->gpu);
}

static void worker_row(const struct view *view, struct text *t, const struct worker *worker)
{
	struct lb_link_stats stats;
	size_t row = open_row(t);

	memset(&stats, 0, sizeof(stats));
	lb_worker_stats_read(view->lb, worker, &stats);
	put_text(t, "name", worker->spec.name);
	put_text(t, "model", worker->spec.model);
	put_text(t, "state", control_worker_state(view->lb, worker));
	put_text(t, "reason", worker->reason);
	put_integer(t, "weight", worker->spec.weight);
	put_integer(t, "outstanding", stats.outstanding);
	put_integer(t, "credits", stats.credits);
	put_integer(t, "requests", stats.requests);
	put_integer(t, "replies", stats.replies);
	put_integer(t, "errors", stats.errors);
	put_integer(t, "lost", stats.lost);
	put_heartbeat_age(view, t, worker);
	put_worker_rates(t, window_worker(view->window, worker));
	close_object(t, row);
}

static void lcore_row(const struct view *view, struct text *t, unsigned int lcore)
{
	static const struct window_lcore none;
	const struct window_lcore *rates = window_lcore(view->window, lcore);
	struct conntrack_stats flows;
	size_t row = open_row(t);

	memset(&flows, 0, sizeof(flows));
	conntrack_stats_read(lb_conntrack(view->lb, lcore), &flows);
	if (!rates)
		rates = &none;
	put_integer(t, "lcore", lcore);
	put_integer(t, "cpu", lb_config_get(view->lb)->lcore_cpu[lcore]);
	put_share(t, "busy", rates->busy);
	put_integer(t, "packets_in_per_s", rates->packets_in);
	put_integer(t, "packets_out_per_s", rates->packets_out);
	put_integer(t, "requests_per_s", rates->requests);
	put_integer(t, "replies_per_s", rates->replies);
	put_integer(t, "drops_per_s", rates->drops);
	put_integer(t, "flows", flows.live);
	put_integer(t, "flows_capacity", flows.capacity);
	close_object(t, row);
}

void view_status(const struct view *view, struct text *t)
{
	size_t all = open_object(t), rows;

	put_text(t, "version", DOORBELL_VERSION);
	put_integer(t, "uptime_ms", control_clock_ms() - view->start_ms);
	put_integer(t, "window_ms", window_ms(view->window));
	rows = open_array(t, "services");
	for (unsigned int i = 0; i < lb_config_get(view->lb)->n_services; i++)
		if (lb_service_used(&lb_config_get(view->lb)->service[i]))
			service_row(view, t, i);
	close_array(t, rows);
	rows = open_array(t, "workers");
	for (const struct worker *worker = workers_next(lb_pool(view->lb), NULL); worker;
	     worker = workers_next(lb_pool(view->lb), worker))
		worker_row(view, t, worker);
	close_array(t, rows);
	rows = open_array(t, "lcores");
	for (unsigned int i = 0; i < lb_lcores(view->lb); i++)
		lcore_row(view, t, i);
	close_array(t, rows);
	close_object(t, all);
}

json_t *control_status_show(struct control_call *call)
{
	const struct control_connection *c = call->c;
	const struct view view = {.lb = c->lb, .window = c->window, .start_ms = c->server_start_ms};

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	call->written_name = "status";
	view_status(&view, &call->written);
	return json_object();
}
