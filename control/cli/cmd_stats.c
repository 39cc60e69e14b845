/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats and version.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define STAGES_MAX (CLI_COLUMNS_MAX - 1)
#define KEY_MAX    64

static const struct cli_column traffic[] = {
	{"LCORE", "lcore", CLI_PLAIN},          {"CPU", "cpu", CLI_PLAIN},
	{"BUSY", "busy", CLI_PERCENT},          {"SLEEPS", "sleeps", CLI_COUNT},
	{"PKTS IN", "packets_in", CLI_COUNT},   {"BYTES IN", "bytes_in", CLI_BYTES},
	{"PKTS OUT", "packets_out", CLI_COUNT}, {"BYTES OUT", "bytes_out", CLI_BYTES},
	{"REQUESTS", "requests", CLI_COUNT},    {"REPLIES", "replies", CLI_COUNT},
	{"NOTICES", "notices", CLI_COUNT},      {"COPIES", "payload_copies", CLI_COUNT},
};

static const struct cli_column flows[] = {
	{"LCORE", "lcore", CLI_PLAIN},
	{"FLOWS", "flows.live", CLI_COUNT},
	{"OF", "flows.capacity", CLI_COUNT},
	{"NEW/S", "new_flows_per_s", CLI_COUNT},
	{"LOAD", "flows.load", CLI_PERCENT},
	{"BUCKETS/LOOKUP", "flows.buckets_per_lookup", CLI_PLAIN},
	{"LAG", "flows.lag_ms", CLI_MS},
	{"INSERTED", "flows.inserted", CLI_COUNT},
	{"EXPIRED", "flows.expired", CLI_COUNT},
	{"REMOVED", "flows.removed", CLI_COUNT},
	{"RECLAIMED", "flows.reclaimed", CLI_COUNT},
	{"REFUSED", "flows.refused", CLI_COUNT},
	{"TOO FAST", "flows.refused_source", CLI_COUNT},
};

/* Of lcores with TCP connections. */
static const struct cli_column tcp[] = {
	{"LCORE", "lcore", CLI_PLAIN},
	{"TCP", "tcp.connections", CLI_COUNT},
	{"OF", "tcp.connections_max", CLI_COUNT},
	{"HALF OPEN", "tcp.half_open", CLI_COUNT},
	{"BUSY", "tcp.busy", CLI_COUNT},
	{"TIME-WAIT", "tcp.time_wait", CLI_COUNT},
	{"HELD", "tcp.held_packets", CLI_COUNT},
	{"OF", "tcp.held_packets_max", CLI_COUNT},
	{"SEGS IN", "tcp.segments_in", CLI_COUNT},
	{"SEGS OUT", "tcp.segments_out", CLI_COUNT},
	{"SENT AGAIN", "tcp.retransmits", CLI_COUNT},
	{"TIMEOUTS", "tcp.timeouts", CLI_COUNT},
	{"OUT OF ORDER", "tcp.out_of_order", CLI_COUNT},
	{"GAVE UP", "tcp.gave_up", CLI_COUNT},
};

static const struct cli_column tcp_refused[] = {
	{"REFUSED", "count", CLI_COUNT},
	{"TCP SEGMENTS", "name", CLI_TEXT},
};

/* Why clients of TCP services are slowed down: events of <tcp>, and for people what they mean. */
static const struct cli_column tcp_waits[] = {
	{"SLOWED", "count", CLI_COUNT},
	{"TCP CLIENTS", "name", CLI_TEXT},
	{"WHICH IS", "text", CLI_TEXT},
};

static const char *const tcp_wait[][2] = {
	{"windows_closed", "memory is used up: buffer_mb, or client_percent of it"},
	{"pipeline_full",
	 "a connection has pipeline open requests: workers, or one reply, are slow"},
	{"replies_full", "replies that are not read take its share of memory"},
};

static const struct cli_column drops[] = {
	{"DROPPED", "count", CLI_COUNT},
	{"FOR", "name", CLI_TEXT},
	{"WHICH IS", "text", CLI_TEXT},
};

static const struct cli_column versions[] = {
	{"doorbell", "client", CLI_TEXT},
	{"doorbell-lb", "version", CLI_TEXT},
	{"protocol", "protocol", CLI_PLAIN},
	{"dpdk", "dpdk", CLI_TEXT},
};

static void add_busy(json_t *lcores)
{
	json_t *lcore;
	size_t i;

	json_array_foreach (lcores, i, lcore) {
		json_int_t polls = json_integer_value(json_object_get(lcore, "polls"));
		json_int_t idle = json_integer_value(json_object_get(lcore, "idle_polls"));

		/* the two counters are read at different moments */
		if (polls > 0 && idle <= polls)
			json_object_set_new(lcore, "busy",
					    json_integer((polls - idle) * 100 / polls));
	}
}

/* One column per stage, in the walk's order, as the daemon names them. */
static void print_stages(struct cli *cli, const json_t *lcores)
{
	struct cli_column columns[STAGES_MAX + 1] = {{"LCORE", "lcore", CLI_PLAIN}};
	char title[STAGES_MAX][KEY_MAX], key[STAGES_MAX][KEY_MAX];
	struct cli_table table = {.column = columns, .n = 1};
	json_t *stages = json_object_get(json_array_get(lcores, 0), "stages"), *stage;
	const char *name;

	json_object_foreach (stages, name, stage) {
		unsigned int i = table.n - 1;

		if (i == STAGES_MAX)
			break;
		snprintf(title[i], KEY_MAX, "%s", name);
		for (char *p = title[i]; *p; p++)
			*p = (char)toupper((unsigned char)*p);
		snprintf(key[i], KEY_MAX, "stages.%.40s.cycles_per_item", name);
		columns[table.n++] = (struct cli_column){title[i], key[i], CLI_COUNT};
	}
	cli_table_print(cli->out, &table, lcores);
}

static int compare_drops(const void *a, const void *b)
{
	json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "count"));
	json_int_t y = json_integer_value(json_object_get(*(json_t *const *)b, "count"));

	return (x < y) - (x > y);
}

static json_int_t sum_of_drops(const json_t *lcores, const char *name)
{
	json_int_t sum = 0;
	json_t *lcore;
	size_t i;

	json_array_foreach (lcores, i, lcore)
		sum += json_integer_value(json_object_get(json_object_get(lcore, "drops"), name));
	return sum;
}

static void print_drops(struct cli *cli, const json_t *result)
{
	struct cli_table table = {.column = drops, .n = CLI_COUNT_OF(drops)};
	json_t *reasons = json_object_get(result, "reasons"), *text, *rows = json_array();
	json_t **row = calloc(json_object_size(reasons) + 1, sizeof(*row));
	const char *name;
	size_t n = 0;

	if (row == NULL)
		goto done;
	json_object_foreach (reasons, name, text) {
		json_int_t sum = sum_of_drops(json_object_get(result, "lcores"), name);

		if (sum || cli->all)
			row[n++] = json_pack("{s:s, s:I, s:O}", "name", name, "count", sum, "text",
					     text);
	}
	qsort(row, n, sizeof(*row), compare_drops);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(rows, row[i]);
	if (n)
		cli_table_print(cli->out, &table, rows);
	else
		fprintf(cli->out, "nothing dropped\n");
done:
	free(row);
	json_decref(rows);
}

/* Reasons for which a connection refused segments, over all lcores. */
static void print_tcp_refused(struct cli *cli, const json_t *lcores)
{
	struct cli_table table = {.column = tcp_refused, .n = CLI_COUNT_OF(tcp_refused)};
	json_t *reasons = cli_member(json_array_get(lcores, 0), "tcp.refused"), *count;
	json_t *rows = json_array(), *lcore;
	const char *name;
	size_t i;

	json_object_foreach (reasons, name, count) {
		json_int_t sum = 0;

		json_array_foreach (lcores, i, lcore)
			sum += json_integer_value(
				json_object_get(cli_member(lcore, "tcp.refused"), name));
		if (sum > 0 || cli->all)
			json_array_append_new(rows, json_pack("{s:s, s:I}", "name", name, "count", sum));
	}
	if (json_array_size(rows) > 0) {
		cli_table_print(cli->out, &table, rows);
		fputc('\n', cli->out);
	}
	json_decref(rows);
}

static json_int_t sum_of_tcp(const json_t *lcores, const char *name)
{
	json_int_t sum = 0;
	json_t *lcore;
	size_t i;

	json_array_foreach (lcores, i, lcore)
		sum += json_integer_value(json_object_get(json_object_get(lcore, "tcp"), name));
	return sum;
}

static void print_tcp_waits(struct cli *cli, const json_t *lcores)
{
	struct cli_table table = {.column = tcp_waits, .n = CLI_COUNT_OF(tcp_waits)};
	json_t *rows = json_array();

	for (size_t i = 0; i < CLI_COUNT_OF(tcp_wait); i++) {
		json_int_t sum = sum_of_tcp(lcores, tcp_wait[i][0]);

		if (sum > 0 || cli->all)
			json_array_append_new(rows,
					      json_pack("{s:s, s:I, s:s}", "name", tcp_wait[i][0],
							"count", sum, "text", tcp_wait[i][1]));
	}
	if (json_array_size(rows) > 0) {
		cli_table_print(cli->out, &table, rows);
		fputc('\n', cli->out);
	}
	json_decref(rows);
}

static void print_tcp(struct cli *cli, const json_t *lcores)
{
	struct cli_table table = {.column = tcp, .n = CLI_COUNT_OF(tcp)};

	if (!json_is_object(json_object_get(json_array_get(lcores, 0), "tcp")))
		return;
	cli_table_print(cli->out, &table, lcores);
	fputc('\n', cli->out);
	print_tcp_refused(cli, lcores);
	print_tcp_waits(cli, lcores);
}

static void print_dead_ports(struct cli *cli, const json_t *ports)
{
	json_t *port;
	size_t i;

	json_array_foreach (ports, i, port)
		if (strcmp(json_string_value(json_object_get(port, "link")), "up") != 0)
			fprintf(cli->out, "port %s has no link\n",
				json_string_value(json_object_get(port, "port")));
}

static void print_standing(struct cli *cli, const json_t *lcores)
{
	char since[CLI_VALUE_MAX];
	json_t *lcore;
	size_t i;

	json_array_foreach (lcores, i, lcore)
		if (json_integer_value(json_object_get(lcore, "stands_ms")) > 0)
			fprintf(cli->out, "lcore %zu has stood still for %s\n", i,
				cli_format_value(CLI_MS, json_object_get(lcore, "stands_ms"), since,
						 sizeof(since)));
}

static void print_stats(struct cli *cli, json_t *result)
{
	struct cli_table traffic_table = {.column = traffic, .n = CLI_COUNT_OF(traffic)};
	struct cli_table flow_table = {.column = flows, .n = CLI_COUNT_OF(flows)};
	json_t *lcores = json_object_get(result, "lcores");
	char uptime[CLI_VALUE_MAX];

	fprintf(cli->out, "up %s\n",
		cli_format_value(CLI_SECONDS, json_object_get(result, "uptime_s"), uptime,
				 sizeof(uptime)));
	print_dead_ports(cli, json_object_get(result, "ports"));
	print_standing(cli, lcores);
	fputc('\n', cli->out);
	add_busy(lcores);
	cli_table_print(cli->out, &traffic_table, lcores);
	fprintf(cli->out, "\ncycles per item, by stage\n");
	print_stages(cli, lcores);
	fputc('\n', cli->out);
	cli_table_print(cli->out, &flow_table, lcores);
	fputc('\n', cli->out);
	print_tcp(cli, lcores);
	print_drops(cli, result);
}

int cli_stats(struct cli *cli)
{
	/* for people, the reasons are printed in words, so ask for all of them */
	bool all = cli->all || !cli->json;
	json_t *result = cli_call(cli, "stats.show", json_pack("{s:b}", "all", all));

	if (result == NULL)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else
		print_stats(cli, result);
	json_decref(result);
	return 0;
}

int cli_version(struct cli *cli)
{
	json_t *result = cli_call(cli, "version", NULL);

	if (result != NULL)
		json_object_set_new(result, "client", json_string(DOORBELL_VERSION));
	return cli_print_one(cli, result, NULL, versions, CLI_COUNT_OF(versions));
}
