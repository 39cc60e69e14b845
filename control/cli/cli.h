/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CLI, private to this folder and its unit tests. main.c has the table of commands, one
 * cmd_*.c per object runs them, table.c and units.c print.
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "client.h"

/* One bit per option of which a command may allow or refuse the use. */
enum cli_option {
	CLI_SERVICE,
	CLI_WORKER,
	CLI_CLIENT,
	CLI_LIMIT,
	CLI_SORT,
	CLI_ALL,
	CLI_NO_WAIT,
	CLI_WATCH,
	CLI_OPTIONS,
};

#define CLI_BIT(option) (1u << (option))

struct cli {
	struct control_client *client;
	FILE *out;        /* all output but errors and progress */
	bool json, watch; /* watch: JSON goes on one line */
	unsigned int watch_s;
	const char *socket;
	const char *name; /* the operand, for commands that take one */
	const char *service, *worker, *of_client, *sort;
	uint64_t limit; /* 0 = none given */
	bool all, no_wait;
};

/* Run one command. Returns the exit status; errors are on stderr already. */
typedef int cli_run(struct cli *cli);

cli_run cli_flows_list, cli_flows_count;
cli_run cli_workers_list, cli_workers_show, cli_workers_drain;
cli_run cli_services_list, cli_services_show;
cli_run cli_stats, cli_version;

/* "doorbell: ..." on stderr; returns 1. */
int cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Call; NULL after an error message. Takes over <params>. */
json_t *cli_call(struct cli *cli, const char *method, json_t *params);

/* Print a whole result as JSON. Returns 0. */
int cli_print_json(struct cli *cli, const json_t *value);

/* Is this a field that flows can be sorted by? <fields> gets the list of those that are. */
bool cli_flow_field(const char *name, char *fields, size_t size);

/* --- printing ---------------------------------------------------------------------------- */

enum cli_format {
	CLI_TEXT,
	CLI_PLAIN,   /* an integer, as it is */
	CLI_COUNT,   /* 1.2M */
	CLI_BYTES,   /* 3.4 MiB */
	CLI_SECONDS, /* 5h03m */
	CLI_MS,      /* 12 ms, 1.2 s */
	CLI_US,      /* 12 us, 1.2 ms */
	CLI_PERCENT,
	CLI_FORMATS,
};

/* One column of a table, or one line of a page. <key> may go into objects: "flows.live". */
struct cli_column {
	const char *title, *key;
	enum cli_format format;
};

#define CLI_VALUE_MAX 160

/* Write <value> for people; "-" for null and what is missing. Returns <buf>. */
const char *cli_format_value(enum cli_format format, const json_t *value, char *buf, size_t size);

/* The member at a dotted path, borrowed, or NULL. */
json_t *cli_member(const json_t *object, const char *path);

#define CLI_COLUMNS_MAX 32

/* A table that may be printed in parts: widths only grow. Zero all but the first two. */
struct cli_table {
	const struct cli_column *column;
	unsigned int n;
	unsigned int width[CLI_COLUMNS_MAX];
	bool titled;
};

/* Print these rows, and the titles if it is the first time. */
void cli_table_print(FILE *out, struct cli_table *table, const json_t *rows);

/* Print one object, a line per member. */
void cli_page_print(FILE *out, const struct cli_column *column, unsigned int n,
		    const json_t *object);

#define CLI_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
