/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flows list and count. There may be millions: pages are printed as they come, and sorting keeps
 * only as many rows as it will show.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define PAGE          1000 /* rows asked for at a time */
#define LIMIT_DEFAULT 1000 /* where not all can be shown: sorted, or watched */

static const struct cli_column columns[] = {
	{"CLIENT", "client", CLI_TEXT},         {"SERVICE", "service", CLI_TEXT},
	{"WORKER", "worker", CLI_TEXT},         {"STATE", "state", CLI_TEXT},
	{"LCORE", "lcore", CLI_PLAIN},          {"AGE", "age_s", CLI_SECONDS},
	{"IDLE", "idle_s", CLI_SECONDS},        {"REQUESTS", "requests", CLI_COUNT},
	{"PKTS IN", "packets_in", CLI_COUNT},   {"BYTES IN", "bytes_in", CLI_BYTES},
	{"PKTS OUT", "packets_out", CLI_COUNT}, {"BYTES OUT", "bytes_out", CLI_BYTES},
};

/* How rows leave: one of a JSON array in parts, or a table in parts. */
struct output {
	struct cli *cli;
	struct cli_table table;
	uint64_t rows;
};

/* The best rows so far, in room for twice as many as are wanted. */
struct top {
	json_t **row;
	size_t n, want;
	const char *field;
};

bool cli_flow_field(const char *name, char *fields, size_t size)
{
	size_t at = 0;
	bool found = false;

	fields[0] = '\0';
	for (size_t i = 0; i < CLI_COUNT_OF(columns); i++) {
		found = found || strcmp(columns[i].key, name) == 0;
		if (at < size)
			at += (size_t)snprintf(fields + at, size - at, "%s%s", i ? ", " : "",
					       columns[i].key);
	}
	return found;
}

static json_t *query(const struct cli *cli)
{
	return json_pack("{s:s*, s:s*, s:s*}", "service", cli->service, "worker", cli->worker,
			 "client", cli->of_client);
}

/* Ask for what comes after <cursor>, which moves on. NULL after an error message. */
static json_t *next_page(struct cli *cli, const char *method, uint64_t limit, json_int_t *cursor,
			 bool *done)
{
	json_t *params = query(cli), *page;

	json_object_set_new(params, "cursor", json_integer(*cursor));
	if (limit)
		json_object_set_new(params, "limit", json_integer((json_int_t)limit));
	page = cli_call(cli, method, params);
	*cursor = json_integer_value(json_object_get(page, "cursor"));
	*done = json_is_true(json_object_get(page, "done"));
	return page;
}

static void print_rows(struct output *o, const json_t *rows)
{
	const json_t *row;
	size_t i;

	if (!o->cli->json) {
		cli_table_print(o->cli->out, &o->table, rows);
		o->rows += json_array_size(rows);
		return;
	}
	json_array_foreach (rows, i, row) {
		fputs(o->rows++ ? "," : "{\"flows\": [", o->cli->out);
		fputs(o->cli->watch ? "" : "\n  ", o->cli->out);
		json_dumpf(row, o->cli->out, 0);
	}
}

static void print_end(struct output *o)
{
	if (o->cli->json)
		fputs(o->rows == 0    ? "{\"flows\": []}\n"
		      : o->cli->watch ? "]}\n"
				      : "\n]}\n",
		      o->cli->out);
}

static int print_as_they_come(struct cli *cli, uint64_t limit, struct output *o)
{
	json_int_t cursor = 0;
	bool done = false;

	while (!done && o->rows < limit) {
		uint64_t want = limit - o->rows < PAGE ? limit - o->rows : PAGE;
		json_t *page = next_page(cli, "flows.list", want, &cursor, &done);

		if (!page)
			return 1;
		print_rows(o, json_object_get(page, "flows"));
		json_decref(page);
	}
	return 0;
}

/* Numbers: largest first. Text: in order. */
static int compare_rows(const void *a, const void *b, void *field)
{
	const json_t *x = json_object_get(*(json_t *const *)a, field);
	const json_t *y = json_object_get(*(json_t *const *)b, field);

	if (json_is_string(x) && json_is_string(y))
		return strcmp(json_string_value(x), json_string_value(y));
	return (json_integer_value(x) < json_integer_value(y)) -
	       (json_integer_value(x) > json_integer_value(y));
}

static void top_shrink(struct top *top)
{
	qsort_r(top->row, top->n, sizeof(*top->row), compare_rows, (void *)top->field);
	while (top->n > top->want)
		json_decref(top->row[--top->n]);
}

static void top_add(struct top *top, const json_t *rows)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		if (top->n == 2 * top->want)
			top_shrink(top);
		top->row[top->n++] = json_incref(json_array_get(rows, i));
	}
}

static int print_top(struct cli *cli, uint64_t limit, struct output *o)
{
	struct top top = {.want = limit, .field = cli->sort};
	json_t *rows = json_array();
	json_int_t cursor = 0;
	bool done = false;

	top.row = calloc(2 * limit, sizeof(*top.row));
	if (!top.row)
		return cli_error("out of memory for %llu rows", (unsigned long long)limit);
	while (!done) {
		json_t *page = next_page(cli, "flows.list", PAGE, &cursor, &done);

		if (!page)
			break;
		top_add(&top, json_object_get(page, "flows"));
		json_decref(page);
	}
	top_shrink(&top);
	for (size_t i = 0; i < top.n; i++)
		json_array_append_new(rows, top.row[i]);
	if (done)
		print_rows(o, rows);
	json_decref(rows);
	free(top.row);
	return done ? 0 : 1;
}

int cli_flows_list(struct cli *cli)
{
	struct output o = {.cli = cli, .table = {.column = columns, .n = CLI_COUNT_OF(columns)}};
	uint64_t limit = cli->limit;
	int rc;

	if (!limit)
		limit = cli->sort || cli->watch ? LIMIT_DEFAULT : UINT64_MAX;
	if (cli->sort)
		rc = print_top(cli, limit, &o);
	else
		rc = print_as_they_come(cli, limit, &o);
	if (rc == 0)
		print_end(&o);
	return rc;
}

int cli_flows_count(struct cli *cli)
{
	json_int_t cursor = 0, count = 0;
	bool done = false;

	while (!done) {
		json_t *page = next_page(cli, "flows.count", 0, &cursor, &done);

		if (!page)
			return 1;
		count += json_integer_value(json_object_get(page, "count"));
		json_decref(page);
	}
	fprintf(cli->out,
		cli->json ? "{\"count\": %" JSON_INTEGER_FORMAT "}\n"
			  : "%" JSON_INTEGER_FORMAT "\n",
		count);
	return 0;
}
