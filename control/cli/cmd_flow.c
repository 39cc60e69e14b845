/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flows list, show, top and count. There may be millions: pages are printed as they come, and ranking
 * keeps only as many rows as it will show.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define PAGE          16384 /* rows per call; the daemon's limit */
#define LIMIT_DEFAULT 1000  /* rows, where not all can be shown: sorted or watched */
#define TOP_DEFAULT   20

const struct cli_column cli_flow_columns[CLI_FLOW_COLUMNS] = {
	{"CLIENT", "client", CLI_TEXT},        {"ZONE", "zone", CLI_TEXT},
	{"SERVICE", "service", CLI_TEXT},      {"WORKER", "worker", CLI_TEXT},
	{"STATE", "state", CLI_TEXT},          {"LCORE", "lcore", CLI_PLAIN},
	{"AGE", "age_s", CLI_SECONDS},         {"IDLE", "idle_s", CLI_SECONDS},
	{"REQUESTS", "requests", CLI_COUNT},   {"PKTS IN", "packets_in", CLI_COUNT},
	{"BYTES IN", "bytes_in", CLI_BYTES},   {"PKTS OUT", "packets_out", CLI_COUNT},
	{"BYTES OUT", "bytes_out", CLI_BYTES},
};

/* How rows are printed: lines or one array of JSON in parts, or a table in parts. */
struct output {
	struct cli *cli;
	struct cli_table table;
	uint64_t rows;
};

bool cli_flow_field(const char *name, char *fields, size_t size)
{
	size_t at = 0;
	bool found = false;

	fields[0] = '\0';
	for (size_t i = 0; i < CLI_FLOW_COLUMNS; i++) {
		found = found || strcmp(cli_flow_columns[i].key, name) == 0;
		if (at < size)
			at += (size_t)snprintf(fields + at, size - at, "%s%s", i ? ", " : "",
					       cli_flow_columns[i].key);
	}
	return found;
}

static void flow_add_number(json_t *params, const char *name, uint64_t value)
{
	if (value)
		json_object_set_new(params, name, json_integer((json_int_t)value));
}

json_t *cli_walk_next(struct cli_walk *walk, json_t *params, struct scan *rows)
{
	const struct cli *cli = walk->cli;
	json_t *filters = json_pack("{s:s*, s:s*, s:s*, s:s*, s:s*, s:I}", "service", cli->service,
				    "worker", cli->worker, "client", cli->of_client, "zone",
				    cli->zone, "state", cli->state, "cursor", walk->cursor);
	json_t *page;

	flow_add_number(filters, "min_bytes", cli->min_bytes);
	flow_add_number(filters, "min_idle_s", cli->min_idle_s);
	json_object_update(params, filters);
	json_decref(filters);
	page = cli_call_rows(walk->cli, walk->method, params, rows != NULL ? "flows" : NULL, rows);
	walk->cursor = json_integer_value(json_object_get(page, "cursor"));
	walk->done = json_is_true(json_object_get(page, "done"));
	return page;
}

/* --- list ------------------------------------------------------------------------------------- */

static void before_row(struct output *o)
{
	const char *first = o->cli->watch ? "{\"flows\": [" : "{\"flows\": [\n  ";

	if (!o->cli->stream)
		fputs(o->rows == 0 ? first : o->cli->watch ? "," : ",\n  ", o->cli->out);
	o->rows++;
}

static void print_rows(struct output *o, const json_t *names, const json_t *rows)
{
	const json_t *row;
	size_t i;

	if (!o->cli->json) {
		cli_table_places(&o->table, names);
		cli_table_print(o->cli->out, &o->table, rows);
		o->rows += json_array_size(rows);
		return;
	}
	json_array_foreach (rows, i, row) {
		before_row(o);
		cli_row_json(o->cli->out, names, row);
	}
}

/* Print rows as the daemon wrote them: objects for JSON, arrays for a table. */
static void print_text_rows(struct output *o, const json_t *names, struct scan rows)
{
	struct scan row;

	if (!o->cli->json) {
		cli_table_places(&o->table, names);
		o->rows += cli_table_print_text(o->cli->out, &o->table, rows);
		return;
	}
	while (scan_element(&rows, &row)) {
		before_row(o);
		fwrite(row.at, 1, (size_t)(row.end - row.at), o->cli->out);
		if (o->cli->stream)
			fputc('\n', o->cli->out);
	}
}

static void print_end(struct output *o)
{
	if (!o->cli->json || o->cli->stream)
		return;
	fputs(o->rows == 0 ? "{\"flows\": []}\n" : o->cli->watch ? "]}\n" : "\n]}\n", o->cli->out);
}

static json_t *list_next(struct cli_walk *walk, uint64_t limit, bool compact, struct scan *rows)
{
	return cli_walk_next(walk,
			     json_pack("{s:I, s:b}", "limit",
				       (json_int_t)(limit < PAGE ? limit : PAGE), "compact",
				       compact),
			     rows);
}

static int print_as_they_come(struct cli_walk *walk, uint64_t limit, struct output *o)
{
	while (!walk->done && o->rows < limit) {
		struct scan rows;
		json_t *page = list_next(walk, limit - o->rows, !o->cli->json, &rows);

		if (page == NULL)
			return 1;
		print_text_rows(o, json_object_get(page, "columns"), rows);
		json_decref(page);
		/* with a narrow filter rows are rare: show each page at once */
		fflush(o->cli->out);
	}
	return 0;
}

static size_t place_of(const json_t *names, const char *name)
{
	size_t i = 0;

	while (i < json_array_size(names) &&
	       strcmp(json_string_value(json_array_get(names, i)), name) != 0)
		i++;
	return i;
}

static int print_sorted(struct cli_walk *walk, uint64_t limit, struct output *o)
{
	json_t *names = NULL, *rows;
	struct cli_top top;

	if (cli_top_init(&top, limit, o->cli->sort) != 0)
		return 1;
	while (!walk->done) {
		json_t *page = list_next(walk, PAGE, true, NULL);

		if (page == NULL)
			break;
		json_decref(names);
		names = json_incref(json_object_get(page, "columns"));
		top.place = place_of(names, top.field);
		cli_top_add(&top, json_object_get(page, "flows"));
		json_decref(page);
	}
	rows = cli_top_end(&top);
	if (walk->done)
		print_rows(o, names, rows);
	json_decref(names);
	json_decref(rows);
	return walk->done ? 0 : 1;
}

int cli_flows_list(struct cli *cli)
{
	struct output o = {.cli = cli,
			   .table = {.column = cli_flow_columns, .n = CLI_FLOW_COLUMNS}};
	struct cli_walk walk = {.cli = cli, .method = "flows.list"};
	uint64_t limit = cli->limit;
	int rc;

	if (!limit)
		limit = cli->sort != NULL || cli->watch ? LIMIT_DEFAULT : UINT64_MAX;
	if (cli->sort != NULL)
		rc = print_sorted(&walk, limit, &o);
	else
		rc = print_as_they_come(&walk, limit, &o);
	if (rc == 0)
		print_end(&o);
	return rc;
}

/* --- show ------------------------------------------------------------------------------------- */

static const struct cli_column flow_page[] = {
	{"client", "client", CLI_TEXT},
	{"zone", "zone", CLI_TEXT},
	{"service", "service", CLI_TEXT},
	{"worker", "worker", CLI_TEXT},
	{"state", "state", CLI_TEXT},
	{"lcore", "lcore", CLI_PLAIN},
	{"age", "age_s", CLI_SECONDS},
	{"idle", "idle_s", CLI_SECONDS},
	{"requests", "requests", CLI_COUNT},
	{"packets in", "packets_in", CLI_COUNT},
	{"bytes in", "bytes_in", CLI_BYTES},
	{"packets out", "packets_out", CLI_COUNT},
	{"bytes out", "bytes_out", CLI_BYTES},
};

static const struct cli_column tcp_page[] = {
	{"TCP state", "tcp.state", CLI_TEXT},
	{"closing", "tcp.closing", CLI_TEXT},
	{"open requests", "tcp.open_requests", CLI_COUNT},
	{"bytes held to read", "tcp.held_bytes", CLI_BYTES},
	{"bytes held to send", "tcp.send_bytes", CLI_BYTES},
	{"congestion", "tcp.phase", CLI_TEXT},
	{"congestion window", "tcp.cwnd", CLI_BYTES},
	{"slow start below", "tcp.ssthresh", CLI_BYTES},
	{"in flight", "tcp.in_flight", CLI_BYTES},
	{"client's window", "tcp.client_window", CLI_BYTES},
	{"window offered", "tcp.offered_window", CLI_BYTES},
	{"segment size", "tcp.mss", CLI_BYTES},
	{"round trip", "tcp.srtt_us", CLI_US},
	{"its variation", "tcp.rttvar_us", CLI_US},
	{"shortest", "tcp.rtt_min_us", CLI_US},
	{"sent again after", "tcp.rto_ms", CLI_MS},
	{"segments sent again", "tcp.retransmits", CLI_COUNT},
	{"SACK", "tcp.sack", CLI_TEXT},
	{"timestamps", "tcp.timestamps", CLI_TEXT},
	{"window scaling", "tcp.scaling", CLI_TEXT},
	{"ECN", "tcp.ecn", CLI_TEXT},
	{"TLS", "tcp.tls", CLI_TEXT},
};

static void flow_print_page(struct cli *cli, const json_t *flow)
{
	cli_page_print(cli->out, flow_page, CLI_COUNT_OF(flow_page), flow);
	if (!json_is_object(json_object_get(flow, "tcp")))
		return;
	fputc('\n', cli->out);
	cli_page_print(cli->out, tcp_page, CLI_COUNT_OF(tcp_page), flow);
}

static void flow_print_pages(struct cli *cli, json_t *flows)
{
	json_t *all, *flow;
	size_t i;

	if (cli->json) {
		all = json_pack("{s:O}", "flows", flows);
		cli_print_json(cli, all);
		json_decref(all);
		return;
	}
	json_array_foreach (flows, i, flow) {
		fputs(i > 0 ? "\n" : "", cli->out);
		flow_print_page(cli, flow);
	}
}

int cli_flows_show(struct cli *cli)
{
	struct cli_walk walk = {.cli = cli, .method = "flows.show"};
	json_t *flows = json_array();
	int rc = 1;

	while (!walk.done) {
		json_t *page = cli_walk_next(&walk, json_pack("{s:s}", "flow", cli->name), NULL);

		if (page == NULL)
			break;
		json_array_extend(flows, json_object_get(page, "flows"));
		json_decref(page);
	}
	if (walk.done && json_array_size(flows) == 0 && !cli->json) {
		rc = cli_error("no flow of %s", cli->name);
	} else if (walk.done) {
		flow_print_pages(cli, flows);
		rc = 0;
	}
	json_decref(flows);
	return rc;
}

/* --- top -------------------------------------------------------------------------------------- */

/* Ask only for flows that would still be among the best. */
static json_t *top_params(struct cli *cli, struct cli_top *top)
{
	json_t *params = json_pack("{s:s*, s:I}", "by", cli->by, "limit", (json_int_t)top->want);

	if (top->n < top->want)
		return params;
	cli_top_sort(top);
	json_object_set(params, "above", json_object_get(top->row[top->want - 1], "value"));
	return params;
}

int cli_flows_top(struct cli *cli)
{
	struct output o = {.cli = cli,
			   .table = {.column = cli_flow_columns, .n = CLI_FLOW_COLUMNS}};
	struct cli_walk walk = {.cli = cli, .method = "flows.top"};
	struct cli_top top;
	json_t *rows;

	if (cli_top_init(&top, cli->limit ? cli->limit : TOP_DEFAULT, "value") != 0)
		return 1;
	while (!walk.done) {
		json_t *page = cli_walk_next(&walk, top_params(cli, &top), NULL);

		if (page == NULL)
			break;
		cli_top_add(&top, json_object_get(page, "flows"));
		json_decref(page);
	}
	rows = cli_top_end(&top);
	if (walk.done) {
		print_rows(&o, NULL, rows);
		print_end(&o);
	}
	json_decref(rows);
	return walk.done ? 0 : 1;
}

/* --- count ------------------------------------------------------------------------------------ */

static void add_groups(json_t *sums, const json_t *groups)
{
	const json_t *group;
	size_t i;

	json_array_foreach (groups, i, group) {
		const char *name = json_string_value(json_object_get(group, "name"));
		json_int_t sum = json_integer_value(json_object_get(sums, name)) +
				 json_integer_value(json_object_get(group, "count"));

		json_object_set_new(sums, name, json_integer(sum));
	}
}

/* The groups with the largest first. */
static json_t *sorted_groups(json_t *sums)
{
	json_t *rows = json_array(), *sum;
	struct cli_top top;
	const char *name;

	json_object_foreach (sums, name, sum)
		json_array_append_new(rows, json_pack("{s:s, s:O}", "name", name, "count", sum));
	if (json_array_size(rows) == 0 || cli_top_init(&top, json_array_size(rows), "count") != 0)
		return rows;
	cli_top_add(&top, rows);
	json_decref(rows);
	return cli_top_end(&top);
}

static void print_groups(struct cli *cli, json_t *sums, json_int_t count)
{
	struct cli_column columns[] = {
		{"NAME", "name", CLI_TEXT},
		{"FLOWS", "count", CLI_PLAIN},
		{"SHARE", "share", CLI_PERCENT},
	};
	struct cli_table table = {.column = columns, .n = CLI_COUNT_OF(columns)};
	json_t *rows = sorted_groups(sums), *row;
	size_t i;

	if (cli->json) {
		json_t *all = json_pack("{s:I, s:O}", "count", count, "groups", rows);

		cli_print_json(cli, all);
		json_decref(all);
	} else {
		json_array_foreach (rows, i, row)
			json_object_set_new(row, "share",
					    json_real((double)json_integer_value(
							      json_object_get(row, "count")) /
						      (double)count));
		cli_table_print(cli->out, &table, rows);
	}
	json_decref(rows);
}

int cli_flows_count(struct cli *cli)
{
	struct cli_walk walk = {.cli = cli, .method = "flows.count"};
	json_t *sums = json_object();
	json_int_t count = 0;

	while (!walk.done) {
		json_t *page = cli_walk_next(&walk, json_pack("{s:s*}", "by", cli->by), NULL);

		if (page == NULL)
			break;
		count += json_integer_value(json_object_get(page, "count"));
		add_groups(sums, json_object_get(page, "groups"));
		json_decref(page);
	}
	if (walk.done && cli->by != NULL)
		print_groups(cli, sums, count);
	else if (walk.done)
		fprintf(cli->out,
			cli->json ? "{\"count\": %" JSON_INTEGER_FORMAT "}\n"
				  : "%" JSON_INTEGER_FORMAT "\n",
			count);
	json_decref(sums);
	return walk.done ? 0 : 1;
}
