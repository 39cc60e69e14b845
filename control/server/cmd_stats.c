/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.show and version.
 */
#include <stdio.h>
#include <string.h>

#include <rte_version.h>

#include "server/rpc.h"

struct stats_query {
	bool all;
};

static const struct control_param query_params[] = {
	{CONTROL_PARAM(stats_query, all), CONTROL_BOOLEAN},
};

static const struct control_counter lcore_counters[] = {
	CONTROL_COUNTER(lb_lcore_stats, packets_in),
	CONTROL_COUNTER(lb_lcore_stats, bytes_in),
	CONTROL_COUNTER(lb_lcore_stats, packets_out),
	CONTROL_COUNTER(lb_lcore_stats, bytes_out),
	CONTROL_COUNTER(lb_lcore_stats, reassembled),
	CONTROL_COUNTER(lb_lcore_stats, handed_over),
	CONTROL_COUNTER(lb_lcore_stats, requests),
	CONTROL_COUNTER(lb_lcore_stats, replies),
	CONTROL_COUNTER(lb_lcore_stats, notices),
	CONTROL_COUNTER(lb_lcore_stats, payload_copies),
	CONTROL_COUNTER(lb_lcore_stats, turns),
	CONTROL_COUNTER(lb_lcore_stats, idle_turns),
	CONTROL_COUNTER(lb_lcore_stats, sleeps),
	CONTROL_COUNTER(lb_lcore_stats, window_held),
	CONTROL_COUNTER(lb_lcore_stats, window_packets),
	CONTROL_COUNTER(lb_lcore_stats, queued),
	CONTROL_COUNTER(lb_lcore_stats, queue_packets),
};

static const struct control_counter flow_counters[] = {
	CONTROL_COUNTER(conntrack_stats, live),
	CONTROL_COUNTER(conntrack_stats, inserted),
	CONTROL_COUNTER(conntrack_stats, expired),
	CONTROL_COUNTER(conntrack_stats, removed),
	CONTROL_COUNTER(conntrack_stats, reclaimed),
	CONTROL_COUNTER(conntrack_stats, refused),
	CONTROL_COUNTER(conntrack_stats, refused_source),
	CONTROL_COUNTER(conntrack_stats, capacity),
	CONTROL_COUNTER(conntrack_stats, lag_ms),
};

static json_t *stages(const struct lb_lcore_stats *stats)
{
	json_t *all = json_object();

	for (unsigned int i = 0; i < LB_STAGES; i++)
		json_object_set_new(
			all, lb_stage_name(i),
			json_pack("{s:I, s:I, s:o}", "cycles", (json_int_t)stats->stage_cycles[i],
				  "items", (json_int_t)stats->stage_items[i], "cycles_per_item",
				  control_mean(stats->stage_cycles[i], stats->stage_items[i])));
	return all;
}

static json_t *drops(const struct lb_lcore_stats *stats, bool zeroes_too)
{
	json_t *all = json_object();

	for (unsigned int i = 0; i < LB_DROPS; i++)
		if (stats->drop[i] || zeroes_too)
			json_object_set_new(all, lb_drop_name(i),
					    json_integer((json_int_t)stats->drop[i]));
	return all;
}

/* To three digits; null when there is nothing to divide by. */
static json_t *ratio(uint64_t part, uint64_t whole)
{
	return whole ? json_real((double)(1000 * part / whole) / 1000) : json_null();
}

static json_t *lcore_row(struct lb *lb, const struct rates *rates, unsigned int lcore, bool all)
{
	const struct conntrack *ct = lb_conntrack(lb, lcore);
	struct lb_lcore_stats stats;
	struct conntrack_stats flows;
	json_t *row = json_object(), *table = json_object();

	memset(&stats, 0, sizeof(stats));
	memset(&flows, 0, sizeof(flows));
	lb_lcore_stats_read(lb, lcore, &stats);
	conntrack_stats_read(ct, &flows);
	json_object_set_new(row, "lcore", json_integer((json_int_t)lcore));
	json_object_set_new(row, "cpu", json_integer(lb_config_get(lb)->lcore_cpu[lcore]));
	control_counters(row, lcore_counters, CONTROL_COUNT_OF(lcore_counters), &stats);
	json_object_set_new(row, "stages", stages(&stats));
	json_object_set_new(row, "drops", drops(&stats, all));
	control_counters(table, flow_counters, CONTROL_COUNT_OF(flow_counters), &flows);
	if (lb_config_get(lb)->flow_table == CONNTRACK_TABLE_TAGS) {
		json_object_set_new(table, "load", ratio(flows.live, flows.places));
		json_object_set_new(table, "buckets_per_lookup",
				    ratio(flows.live + flows.detours, flows.live));
	}
	json_object_set_new(row, "flows", table);
	json_object_set_new(row, "new_flows_per_s", rates_new_flows(rates, lcore));
	return row;
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
	struct lb *lb = call->c->lb;
	struct stats_query q = {0};
	json_t *lcores, *result;

	if (!control_params_read(call, "params", call->params, query_params,
				 CONTROL_COUNT_OF(query_params), &q))
		return NULL;
	lcores = json_array();
	for (unsigned int i = 0; i < lb_lcores(lb); i++)
		json_array_append_new(lcores, lcore_row(lb, call->c->rates, i, q.all));
	result = json_pack("{s:I, s:o, s:o}", "uptime_s",
			   (json_int_t)((control_clock_ms() - call->c->server_start_ms) / 1000),
			   "ports", ports(lb), "lcores", lcores);
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
