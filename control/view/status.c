/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.show: services, workers and lcores with their rates of the last second. Written as text:
 * building values first would take ten times as long for a large pool, once a second for each
 * onlooker.
 */
#include "edge/view.h"
#include "server/row.h"
#include "server/rpc.h"
#include "view/view.h"

/* Write null when there is nothing to have a mean or a percentile of. */
static void write_time(struct json_writer *w, const char *key, double us, bool known)
{
	if (known)
		writer_real(w, key, us, 1);
	else
		writer_null(w, key);
}

static void write_latency(struct json_writer *w, const struct window_service *rates)
{
	writer_open_object(w, "latency");
	for (unsigned int p = 0; p < LATENCY_PARTS; p++) {
		const struct window_latency *l = &rates->part[p];

		writer_open_object(w, latency_part_name(p));
		writer_integer(w, "count", l->count);
		write_time(w, "mean_us", l->mean, l->count > 0);
		write_time(w, "p50_us", l->p50, l->count > 0);
		write_time(w, "p90_us", l->p90, l->count > 0);
		write_time(w, "p99_us", l->p99, l->count > 0);
		writer_close_object(w);
	}
	writer_close_object(w);
}

static void write_service_rates(struct json_writer *w, const struct window_service *rates)
{
	static const struct window_service none;

	if (rates == NULL)
		rates = &none;
	writer_integer(w, "requests_per_s", rates->requests);
	writer_integer(w, "replies_per_s", rates->replies);
	writer_integer(w, "notices_per_s", rates->notices);
	writer_integer(w, "drops_per_s", rates->drops);
	writer_integer(w, "bytes_in_per_s", rates->bytes_in);
	writer_integer(w, "bytes_out_per_s", rates->bytes_out);
	write_latency(w, rates);
}

static void write_service(struct json_writer *w, const struct view *view, unsigned int number)
{
	struct lb_service_stats stats;

	lb_service_stats_read(view->lb, number, &stats);
	writer_open_object(w, NULL);
	service_row_write_summary(w, view->lb, number, &stats);
	write_service_rates(w, window_service(view->window, number));
	writer_close_object(w);
}

static void write_worker_rates(struct json_writer *w, const struct window_worker *rates)
{
	static const struct window_worker none;

	if (rates == NULL)
		rates = &none;
	writer_integer(w, "requests_per_s", rates->requests);
	writer_integer(w, "replies_per_s", rates->replies);
	writer_integer(w, "errors_per_s", rates->errors);
	write_time(w, "mean_wire_us", rates->wire, rates->count > 0);
	write_time(w, "mean_wait_us", rates->wait, rates->count > 0);
	write_time(w, "mean_run_us", rates->run, rates->count > 0);
	write_time(w, "mean_total_us", rates->total, rates->count > 0);
	writer_real(w, "gpu", rates->gpu, 3);
}

static void write_worker(struct json_writer *w, const struct view *view,
			 const struct worker *worker)
{
	struct lb_link_stats stats;

	lb_worker_stats_read(view->lb, worker, &stats);
	writer_open_object(w, NULL);
	worker_row_write_summary(w, view->lb, worker, &stats);
	write_worker_rates(w, window_worker(view->window, worker));
	writer_close_object(w);
}

static void status_write_lcore(struct json_writer *w, const struct view *view, unsigned int lcore)
{
	static const struct window_lcore none;
	const struct window_lcore *rates = window_lcore(view->window, lcore);
	struct conntrack_stats flows;
	struct lb_tcp_stats tcp;

	conntrack_stats_read(lb_conntrack(view->lb, lcore), &flows);
	if (rates == NULL)
		rates = &none;
	writer_open_object(w, NULL);
	writer_integer(w, "lcore", lcore);
	writer_integer(w, "cpu", lb_config_get(view->lb)->lcore_cpu[lcore]);
	writer_real(w, "busy", rates->busy, 3);
	writer_integer(w, "packets_in_per_s", rates->packets_in);
	writer_integer(w, "packets_out_per_s", rates->packets_out);
	writer_integer(w, "requests_per_s", rates->requests);
	writer_integer(w, "replies_per_s", rates->replies);
	writer_integer(w, "drops_per_s", rates->drops);
	writer_integer(w, "flows", flows.live);
	writer_integer(w, "flows_capacity", flows.capacity);
	if (lb_tcp_stats_read(view->lb, lcore, &tcp))
		writer_integer(w, "tcp_connections", tcp.connections);
	else
		writer_null(w, "tcp_connections");
	writer_close_object(w);
}

void view_status(const struct view *view, struct text *out)
{
	struct json_writer w = {.out = out};

	writer_open_object(&w, NULL);
	writer_string(&w, "version", DOORBELL_VERSION);
	writer_integer(&w, "uptime_ms", clock_now_ms() - view->start_ms);
	writer_integer(&w, "window_ms", window_ms(view->window));
	writer_open_array(&w, "services");
	for (unsigned int i = 0; i < lb_config_get(view->lb)->n_services; i++)
		if (lb_service_used(&lb_config_get(view->lb)->service[i]))
			write_service(&w, view, i);
	writer_close_array(&w);
	writer_open_array(&w, "workers");
	for (const struct worker *worker = workers_next(lb_pool(view->lb), NULL); worker != NULL;
	     worker = workers_next(lb_pool(view->lb), worker))
		write_worker(&w, view, worker);
	writer_close_array(&w);
	writer_open_array(&w, "lcores");
	for (unsigned int i = 0; i < lb_lcores(view->lb); i++)
		status_write_lcore(&w, view, i);
	writer_close_array(&w);
	writer_close_object(&w);
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
