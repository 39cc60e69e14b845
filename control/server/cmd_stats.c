/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.show and version.
 */
#include <stdio.h>

#include <rte_version.h>

#include "edge/view.h"
#include "server/rpc.h"

struct stats_query {
	bool all;
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(stats_query, all), CONTROL_BOOLEAN},
};

static const struct writer_counter lcore_counters[] = {
	WRITER_COUNTER(lb_lcore_stats, packets_in),
	WRITER_COUNTER(lb_lcore_stats, bytes_in),
	WRITER_COUNTER(lb_lcore_stats, packets_out),
	WRITER_COUNTER(lb_lcore_stats, bytes_out),
	WRITER_COUNTER(lb_lcore_stats, reassembled),
	WRITER_COUNTER(lb_lcore_stats, handed_over),
	WRITER_COUNTER(lb_lcore_stats, requests),
	WRITER_COUNTER(lb_lcore_stats, replies),
	WRITER_COUNTER(lb_lcore_stats, notices),
	WRITER_COUNTER(lb_lcore_stats, payload_copies),
	WRITER_COUNTER(lb_lcore_stats, access_lines),
	WRITER_COUNTER(lb_lcore_stats, access_dropped),
	WRITER_COUNTER(lb_lcore_stats, polls),
	WRITER_COUNTER(lb_lcore_stats, idle_polls),
	WRITER_COUNTER(lb_lcore_stats, sleeps),
	WRITER_COUNTER(lb_lcore_stats, stands_ms),
	WRITER_COUNTER(lb_lcore_stats, window_held),
	WRITER_COUNTER(lb_lcore_stats, window_packets),
	WRITER_COUNTER(lb_lcore_stats, queued),
	WRITER_COUNTER(lb_lcore_stats, queue_packets),
};

static const struct writer_counter flow_counters[] = {
	WRITER_COUNTER(conntrack_stats, live),           WRITER_COUNTER(conntrack_stats, inserted),
	WRITER_COUNTER(conntrack_stats, expired),        WRITER_COUNTER(conntrack_stats, removed),
	WRITER_COUNTER(conntrack_stats, reclaimed),      WRITER_COUNTER(conntrack_stats, refused),
	WRITER_COUNTER(conntrack_stats, refused_source), WRITER_COUNTER(conntrack_stats, capacity),
	WRITER_COUNTER(conntrack_stats, lag_ms),
};

static const struct writer_counter memory_counters[] = {
	WRITER_COUNTER(lb_memory, packets),  WRITER_COUNTER(lb_memory, packets_max),
	WRITER_COUNTER(lb_memory, control),  WRITER_COUNTER(lb_memory, cancels),
	WRITER_COUNTER(lb_memory, indirect), WRITER_COUNTER(lb_memory, reassembled),
};

static const struct writer_counter tcp_levels[] = {
	WRITER_COUNTER(lb_tcp_stats, connections),  WRITER_COUNTER(lb_tcp_stats, connections_max),
	WRITER_COUNTER(lb_tcp_stats, half_open),    WRITER_COUNTER(lb_tcp_stats, busy),
	WRITER_COUNTER(lb_tcp_stats, time_wait),    WRITER_COUNTER(lb_tcp_stats, held_packets),
	WRITER_COUNTER(lb_tcp_stats, held_packets_max),
	WRITER_COUNTER(lb_tcp_stats, requests),     WRITER_COUNTER(lb_tcp_stats, large_requests),
	WRITER_COUNTER(lb_tcp_stats, pieces),       WRITER_COUNTER(lb_tcp_stats, clients),
	WRITER_COUNTER(lb_tcp_stats, timers),
};

static const struct writer_counter tcp_events[] = {
#define TCP_EVENT(name, text) WRITER_COUNTER(tcp_counters, name),
	TCP_COUNTER_LIST(TCP_EVENT)
#undef TCP_EVENT
};

static const struct writer_counter tls_events[] = {
#define TLS_EVENT(name, text) WRITER_COUNTER(tls_counters, name),
	TLS_COUNTER_LIST(TLS_EVENT)
#undef TLS_EVENT
};

static void write_stages(struct json_writer *w, const struct lb_lcore_stats *stats)
{
	writer_open_object(w, "stages");
	for (unsigned int i = 0; i < LB_STAGES; i++) {
		writer_open_object(w, lb_stage_name(i));
		writer_integer(w, "cycles", stats->stage_cycles[i]);
		writer_integer(w, "items", stats->stage_items[i]);
		writer_mean(w, "cycles_per_item", stats->stage_cycles[i], stats->stage_items[i]);
		writer_close_object(w);
	}
	writer_close_object(w);
}

static void write_drops(struct json_writer *w, const struct lb_lcore_stats *stats, bool zeroes_too)
{
	writer_open_object(w, "drops");
	for (unsigned int i = 0; i < LB_DROPS; i++)
		if (stats->drop[i] || zeroes_too)
			writer_integer(w, lb_drop_name(i), stats->drop[i]);
	writer_close_object(w);
}

/* Write <part> / <whole> with three digits; null when <whole> is 0. */
static void write_ratio(struct json_writer *w, const char *key, uint64_t part, uint64_t whole)
{
	if (whole)
		writer_real(w, key, (double)(1000 * part / whole) / 1000, 3);
	else
		writer_null(w, key);
}

static void write_flows(struct json_writer *w, const struct lb *lb, unsigned int lcore)
{
	struct conntrack_stats flows;

	conntrack_stats_read(lb_conntrack(lb, lcore), &flows);
	writer_open_object(w, "flows");
	writer_counters(w, flow_counters, CONTROL_COUNT_OF(flow_counters), &flows);
	if (lb_config_get(lb)->flow_table == CONNTRACK_TABLE_TAGS) {
		write_ratio(w, "load", flows.live, flows.places);
		write_ratio(w, "buckets_per_lookup", flows.live + flows.detours, flows.live);
	}
	writer_close_object(w);
}

static void write_memory(struct json_writer *w, const struct lb *lb, unsigned int lcore)
{
	struct lb_memory memory;

	lb_memory_read(lb, lcore, &memory);
	writer_open_object(w, "memory");
	writer_counters(w, memory_counters, CONTROL_COUNT_OF(memory_counters), &memory);
	writer_close_object(w);
}

static void write_tcp_refusals(struct json_writer *w, const struct tcp_counters *events, bool all)
{
	writer_open_object(w, "refused");
	for (unsigned int i = TCP_REFUSAL_NONE + 1; i < TCP_REFUSALS; i++)
		if (events->refused[i] || all)
			writer_integer(w, tcp_refusal_name(i), events->refused[i]);
	writer_close_object(w);
}

static void write_tcp(struct json_writer *w, const struct lb *lb, unsigned int lcore, bool all)
{
	struct lb_tcp_stats stats;

	if (!lb_tcp_stats_read(lb, lcore, &stats))
		return writer_null(w, "tcp");
	writer_open_object(w, "tcp");
	writer_counters(w, tcp_levels, CONTROL_COUNT_OF(tcp_levels), &stats);
	writer_counters(w, tcp_events, CONTROL_COUNT_OF(tcp_events), &stats.events);
	write_tcp_refusals(w, &stats.events, all);
	writer_open_object(w, "tls");
	writer_integer(w, "handshakes", stats.handshakes);
	writer_counters(w, tls_events, CONTROL_COUNT_OF(tls_events), &stats.tls);
	writer_close_object(w);
	writer_close_object(w);
}

static void stats_write_lcore(struct json_writer *w, const struct control_connection *c,
			      unsigned int lcore, bool all)
{
	const struct window_lcore *rates = window_lcore(c->window, lcore);
	struct lb_lcore_stats stats;

	lb_lcore_stats_read(c->lb, lcore, &stats);
	writer_open_object(w, NULL);
	writer_integer(w, "lcore", lcore);
	writer_integer(w, "cpu", lb_config_get(c->lb)->lcore_cpu[lcore]);
	writer_counters(w, lcore_counters, CONTROL_COUNT_OF(lcore_counters), &stats);
	write_stages(w, &stats);
	write_drops(w, &stats, all);
	write_flows(w, c->lb, lcore);
	write_memory(w, c->lb, lcore);
	write_tcp(w, c->lb, lcore, all);
	if (rates != NULL)
		writer_integer(w, "new_flows_per_s", rates->new_flows);
	else
		writer_null(w, "new_flows_per_s");
	writer_close_object(w);
}

static json_t *ports(const struct lb *lb)
{
	const struct lb_config *config = lb_config_get(lb);
	json_t *rows = json_array();

	for (unsigned int i = 0; i < config->n_ports; i++)
		json_array_append_new(rows, json_pack("{s:s, s:s}", "port", config->port[i].name,
						      "link", lb_port_up(lb, i) ? "up" : "down"));
	return rows;
}

json_t *control_stats_show(struct control_call *call)
{
	struct json_writer w = {.out = &call->written};
	struct lb *lb = call->c->lb;
	struct stats_query q = {0};
	json_t *result;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	call->written_name = "lcores";
	writer_open_array(&w, NULL);
	for (unsigned int i = 0; i < lb_lcores(lb); i++)
		stats_write_lcore(&w, call->c, i, q.all);
	writer_close_array(&w);
	result = json_pack("{s:I, s:o}", "uptime_s",
			   (json_int_t)((clock_now_ms() - call->c->server_start_ms) / 1000),
			   "ports", ports(lb));
	if (q.all) {
		json_t *reasons = json_object();

		for (unsigned int i = 0; i < LB_DROPS; i++)
			json_object_set_new(reasons, lb_drop_name(i), json_string(lb_drop_text(i)));
		json_object_set_new(result, "reasons", reasons);
	}
	return result;
}

json_t *control_version(struct control_call *call)
{
	char dpdk[32];

	if (!control_params_read(call, "params", call->params, NULL, 0, NULL))
		return NULL;
	snprintf(dpdk, sizeof(dpdk), "%u.%02u.%u", rte_version_year(), rte_version_month(),
		 rte_version_minor());
	return json_pack("{s:s, s:i, s:s}", "version", DOORBELL_VERSION, "protocol",
			 CONTROL_PROTOCOL, "dpdk", dpdk);
}
