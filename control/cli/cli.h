/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of cli/, private to this folder and its unit tests. main.c has the table of commands,
 * help.c prints it, options.c has the table of options. One cmd_*.c per object runs commands and
 * watch.c repeats them; table.c, units.c and top.c print.
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "protocol/client.h"
#include "runtime/option_table.h"

/* One bit per option; each command has a mask of the options that it takes. */
enum cli_option {
	CLI_SERVICE,
	CLI_WORKER,
	CLI_CLIENT,
	CLI_STATE,
	CLI_ZONE,
	CLI_MIN_BYTES,
	CLI_MIN_IDLE,
	CLI_LIMIT,
	CLI_SORT,
	CLI_BY,
	CLI_STREAM,
	CLI_ALL,
	CLI_NO_WAIT,
	CLI_WATCH,
	CLI_CONFIG,
	CLI_LB,
	CLI_DEVICE,
	CLI_ADDRESS,
	CLI_MTU,
	CLI_MEMORY_MB,
	CLI_GPU_MEMORY_MB,
	CLI_NO_HUGEPAGES,
	CLI_ENGINE,
	CLI_LB_FABRIC_ADDRESS,
	CLI_ROOT,
	CLI_ONCE,
	CLI_FLOW,
	CLI_PROTOCOL,
	CLI_COUNT_N,
	CLI_FOLLOW,
	CLI_PORT,
	CLI_FILE,
	CLI_FILTER,
	CLI_DIRECTION,
	CLI_SNAPLEN,
	CLI_FOR_SECONDS,
	CLI_ABSENT,
	CLI_TIMEOUT,
	CLI_PARTLY,
	CLI_OPTIONS,
};

#define CLI_BIT(option) (UINT64_C(1) << (option))

/* Values above CLI_OPTIONS: options of all commands. */
enum { OPT_SOCKET = CLI_OPTIONS, OPT_JSON, OPT_HELP, OPT_VERSION, OPT_COMMANDS, OPT_MAKE };

#define EXIT_USAGE 2

struct cli {
	struct control_client *client; /* NULL for commands that do not ask the daemon */
	FILE *out;                     /* all output but errors and progress */
	bool json, watch;              /* watch: JSON goes on one line */
	unsigned int watch_s;
	const char *socket;
	const char *name, *value; /* the operands, for commands that take them */
	char **more;              /* the operands after the first, ending with NULL */
	const char *flow;         /* of trace */
	const char *protocol;     /* of trace */
	bool follow;
	/* of capture */
	const char *port, *file, *filter, *direction;
	uint64_t snaplen, seconds;
	const char *service, *worker, *of_client, *zone, *state, *sort, *by;
	uint64_t limit, min_bytes, min_idle_s; /* 0 = none given */
	bool all, no_wait, stream, once, absent, partly;
	uint64_t timeout_s; /* of workers drain; 0: none given */
	/* doctor */
	const char *config, *lb, *device, *address, *engine, *lb_fabric_address, *root;
	uint64_t mtu, memory_mb, gpu_memory_mb;
	bool no_hugepages;
	bool help, version, commands; /* print this instead of running a command */
	const char *make;
};

/* Run one command. Returns the exit status; errors were printed to stderr. */
typedef int cli_run(struct cli *cli);

/* Run a command again and again, as --watch says, until a run fails. */
int cli_watch(struct cli *cli, cli_run *run);

/* Draw <text> over the previous text on the terminal, as many lines as fit. */
void cli_paint(const char *text);

cli_run cli_flows_list, cli_flows_show, cli_flows_count, cli_flows_top;
cli_run cli_workers_list, cli_workers_show, cli_workers_drain, cli_workers_set;
cli_run cli_workers_replace, cli_workers_resume, cli_workers_forget, cli_workers_settings;
cli_run cli_workers_refused;
cli_run cli_workers_assign, cli_workers_release, cli_workers_table;
cli_run cli_services_list, cli_services_show;
cli_run cli_models_list, cli_models_show;
cli_run cli_trace;
cli_run cli_capture;
cli_run cli_log_show, cli_log_level;
cli_run cli_config_check, cli_config_diff, cli_config_apply;
cli_run cli_stats, cli_version, cli_top_status;
cli_run cli_doctor, cli_doctor_lb, cli_doctor_agent;

/* Run a command that reads its own options; argv[0] is the command. Returns the exit status. */
int cli_bench(int argc, char **argv);
int cli_size(int argc, char **argv);

/* $DOORBELL_SOCKET, or the default path of doorbell-lb's socket. */
const char *cli_default_socket(void);

/*
 * Print help for the commands of an object, or for its <verb> only. Returns the number of commands.
 */
unsigned int cli_help_print(FILE *out, const char *object, const char *verb);

/*
 * Write the daemon's <message> into <buf>, with the command line's words for methods and
 * parameters.
 */
const char *cli_words(const char *message, char *buf, size_t size);

/* Print the daemon's error in the command line's words, as cli_error() does. */
int cli_daemon_error(const char *message);

/* Print "doorbell: ..." to stderr; returns 1. */
int cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print an error of the command line as cli_error() does; returns EXIT_USAGE. */
int cli_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- options.c -------------------------------------------------------------------------------- */

/* Indexed by enum cli_option, then by the options of all commands. */
extern const struct option_row cli_options[];
/* The table of these options, for a struct cli. */
extern const struct option_table cli_option_table;

/* Call the daemon; NULL after an error message. Takes over <params>. */
json_t *cli_call(struct cli *cli, const char *method, json_t *params);

/* As cli_call(), with the array <member> of the result as text; see control_client_call_rows(). */
json_t *cli_call_rows(struct cli *cli, const char *method, json_t *params, const char *member,
		      struct scan *rows);

/*
 * Compile a filter for Ethernet to libpcap's program, as capture.start takes it; the caller frees
 * it. NULL with a sentence in <error>. Defined in capture_filter.c, or without libpcap in
 * capture_filter_none.c.
 */
char *cli_capture_filter(const char *expression, char *error, size_t size);

/* Print a whole result as JSON. Returns 0. */
int cli_print_json(struct cli *cli, const json_t *value);

struct cli_column;

/*
 * Print <result>, which cli_call() returned, and free it: its array <member> as a table of <n>
 * columns, or with --json all of it. Returns the exit status, 1 for NULL.
 */
int cli_print_list(struct cli *cli, json_t *result, const char *member,
		   const struct cli_column *column, unsigned int n);
/* As cli_print_list() for one object, printed as a page. <member> NULL: the result itself. */
int cli_print_one(struct cli *cli, json_t *result, const char *member,
		  const struct cli_column *column, unsigned int n);

/* True when flows can be sorted by this field. <fields> gets the list of such fields. */
bool cli_flow_field(const char *name, char *fields, size_t size);

/* --- printing ---------------------------------------------------------------------------- */

enum cli_format {
	CLI_TEXT,    /* lists of names as a,b; objects as key=value,key=value */
	CLI_PLAIN,   /* an integer, as it is */
	CLI_COUNT,   /* 1.2M */
	CLI_BYTES,   /* 3.4 MiB */
	CLI_SECONDS, /* 5h03m */
	CLI_MS,      /* 12 ms, 1.2 s */
	CLI_US,      /* 12 us, 1.2 ms */
	CLI_PERCENT,
	CLI_FORMATS,
};

/* One column of a table, or one line of a page. <key> may be a path into objects: "flows.live". */
struct cli_column {
	const char *title, *key;
	enum cli_format format;
};

#define CLI_VALUE_MAX 160

/* Write <value> for people; "-" for null and missing values. Returns <buf>. */
const char *cli_format_value(enum cli_format format, const json_t *value, char *buf, size_t size);

/* As cli_format_value(), for a value that is still JSON text. */
const char *cli_format_scan(enum cli_format format, struct scan value, char *buf, size_t size);

/* The member at a dotted path, borrowed, or NULL. */
json_t *cli_member(const json_t *object, const char *path);

#define CLI_COLUMNS_MAX 32

/*
 * A table that may be printed in parts: widths only grow. The caller sets the first two members and
 * zeroes the rest.
 */
struct cli_table {
	const struct cli_column *column;
	unsigned int n;
	unsigned int width[CLI_COLUMNS_MAX];
	bool titled;
	size_t place[CLI_COLUMNS_MAX]; /* in rows that are arrays: see cli_table_places() */
};

/* The rows that follow are arrays of values with these names. */
void cli_table_places(struct cli_table *table, const json_t *names);

/* Print these rows; the first call also prints the titles. */
void cli_table_print(FILE *out, struct cli_table *table, const json_t *rows);

/* As cli_table_print(), for rows that are text: an array of arrays. Returns the number of rows. */
size_t cli_table_print_text(FILE *out, struct cli_table *table, struct scan rows);

/* Print one row as JSON: an object as it is, an array as an object with these names. */
void cli_row_json(FILE *out, const json_t *names, const json_t *row);

/* Print one object, a line per member. */
void cli_page_print(FILE *out, const struct cli_column *column, unsigned int n,
		    const json_t *object);

/* --- flows: cmd_flow.c, and top.c which keeps the best of many ------------------------------ */

#define CLI_FLOW_COLUMNS 13
extern const struct cli_column cli_flow_columns[CLI_FLOW_COLUMNS];

/*
 * One walk over all flows, page by page. The caller sets the first two members and zeroes the rest.
 */
struct cli_walk {
	struct cli *cli;
	const char *method;
	json_int_t cursor;
	bool done;
};

/*
 * Ask for the next page, with the filters that were given and <params>, which this takes over; NULL
 * after an error message. Unless <rows> is NULL, it gets "flows" as text.
 */
json_t *cli_walk_next(struct cli_walk *walk, json_t *params, struct scan *rows);

/* The best rows so far; holds up to twice as many as are wanted. */
struct cli_top {
	json_t **row;
	size_t n, want;
	const char *field; /* ranks rows that are objects; <place> ranks arrays */
	size_t place;
};

/* Returns -ENOMEM after an error message. */
int cli_top_init(struct cli_top *top, size_t want, const char *field);
void cli_top_add(struct cli_top *top, json_t *rows);
/* Sort the best rows: numbers with the largest first, text by alphabet. They stay in <top>. */
void cli_top_sort(struct cli_top *top);
/* Return the sorted rows as an array, which the caller owns. Frees the rest of <top>. */
json_t *cli_top_end(struct cli_top *top);

#define CLI_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
