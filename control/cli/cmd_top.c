/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top: services, workers and cores as they are now, painted again each second. Printed once when
 * the output is no terminal.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli/cli.h"
#include "protocol/worker_state.h"

#define PERIOD_MS 1000

static const struct cli_column services[] = {
	{"SERVICE", "name", CLI_TEXT},
	{"WORKERS", "workers", CLI_PLAIN},
	{"WAITING", "queued", CLI_COUNT},
	{"REQUESTS/S", "requests_per_s", CLI_COUNT},
	{"REPLIES/S", "replies_per_s", CLI_COUNT},
	{"NOTICES/S", "notices_per_s", CLI_COUNT},
	{"IN/S", "bytes_in_per_s", CLI_BYTES},
	{"OUT/S", "bytes_out_per_s", CLI_BYTES},
	{"P50", "latency.total.p50_us", CLI_US},
	{"P90", "latency.total.p90_us", CLI_US},
	{"P99", "latency.total.p99_us", CLI_US},
};

static const struct cli_column split[] = {
	{"WHERE TIME GOES", "name", CLI_TEXT},   {"QUEUE P50", "latency.queue.p50_us", CLI_US},
	{"P99", "latency.queue.p99_us", CLI_US}, {"WIRE P50", "latency.wire.p50_us", CLI_US},
	{"P99", "latency.wire.p99_us", CLI_US},  {"WAIT P50", "latency.wait.p50_us", CLI_US},
	{"P99", "latency.wait.p99_us", CLI_US},  {"RUN P50", "latency.run.p50_us", CLI_US},
	{"P99", "latency.run.p99_us", CLI_US},   {"REPLY P50", "latency.reply.p50_us", CLI_US},
	{"P99", "latency.reply.p99_us", CLI_US},
};

static const struct cli_column workers[] = {
	{"WORKER", "name", CLI_TEXT},
	{"STATE", "state", CLI_TEXT},
	{"OUTSTANDING", "outstanding", CLI_COUNT},
	{"CREDITS", "credits", CLI_COUNT},
	{"REPLIES/S", "replies_per_s", CLI_COUNT},
	{"ERRORS/S", "errors_per_s", CLI_COUNT},
	{"WIRE", "mean_wire_us", CLI_US},
	{"WAIT", "mean_wait_us", CLI_US},
	{"RUN", "mean_run_us", CLI_US},
	{"TOTAL", "mean_total_us", CLI_US},
	{"GPU", "gpu", CLI_PERCENT},
	{"HEARTBEAT", "heartbeat_age_ms", CLI_MS},
	{"REASON", "reason", CLI_TEXT},
};

static const struct cli_column lcores[] = {
	{"LCORE", "lcore", CLI_PLAIN},
	{"CPU", "cpu", CLI_PLAIN},
	{"BUSY", "busy", CLI_PERCENT},
	{"PKTS IN/S", "packets_in_per_s", CLI_COUNT},
	{"PKTS OUT/S", "packets_out_per_s", CLI_COUNT},
	{"REQUESTS/S", "requests_per_s", CLI_COUNT},
	{"REPLIES/S", "replies_per_s", CLI_COUNT},
	{"DROPS/S", "drops_per_s", CLI_COUNT},
	{"FLOWS", "flows", CLI_COUNT},
	{"OF", "flows_capacity", CLI_COUNT},
};

/* The column by which the workers are sorted. */
struct order {
	unsigned int column;
	bool reverse;
};

/* Numbers with the largest first, text by alphabet; equal rows keep the pool's order. */
static int top_compare_rows(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	const char *key = workers[order->column].key;
	const json_t *x = json_object_get(*(json_t *const *)a, key);
	const json_t *y = json_object_get(*(json_t *const *)b, key);
	double difference;
	int result;

	if (json_is_string(x) && json_is_string(y)) {
		result = strcmp(json_string_value(x), json_string_value(y));
	} else {
		difference = json_number_value(y) - json_number_value(x);
		result = (difference > 0) - (difference < 0);
	}
	return order->reverse ? -result : result;
}

/* A new array, or NULL when memory is short. */
static json_t *sorted(const json_t *rows, struct order *order)
{
	size_t n = json_array_size(rows);
	json_t **row = calloc(n + 1, sizeof(*row)), *out = json_array();

	for (size_t i = 0; row != NULL && i < n; i++)
		row[i] = json_array_get(rows, i);
	if (row != NULL)
		qsort_r(row, n, sizeof(*row), top_compare_rows, order);
	for (size_t i = 0; row != NULL && i < n; i++)
		json_array_append(out, row[i]);
	free(row);
	return out;
}

static json_int_t sum(const json_t *rows, const char *key)
{
	json_int_t all = 0;
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row)
		all += json_integer_value(json_object_get(row, key));
	return all;
}

static void print_count(FILE *out, const char *before, json_int_t n, const char *behind)
{
	char text[CLI_VALUE_MAX];
	json_t *value = json_integer(n);

	fprintf(out, "%s%s%s", before, cli_format_value(CLI_COUNT, value, text, sizeof(text)),
		behind);
	json_decref(value);
}

static unsigned int active(const json_t *rows)
{
	unsigned int n = 0;
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		const char *state = json_string_value(json_object_get(row, "state"));

		n += control_state_find(state) == CONTROL_STATE_ACTIVE;
	}
	return n;
}

static void print_summary(FILE *out, const json_t *status)
{
	const json_t *of_services = json_object_get(status, "services");
	const json_t *of_workers = json_object_get(status, "workers");
	json_t *uptime =
		json_integer(json_integer_value(json_object_get(status, "uptime_ms")) / 1000);
	char text[CLI_VALUE_MAX];

	fprintf(out, "doorbell-lb up %s, %u of %zu workers active",
		cli_format_value(CLI_SECONDS, uptime, text, sizeof(text)), active(of_workers),
		json_array_size(of_workers));
	print_count(out, ", ", sum(of_services, "requests_per_s"), " requests/s");
	print_count(out, ", ", sum(of_services, "queued"), " waiting");
	print_count(out, ", ", sum(json_object_get(status, "lcores"), "drops_per_s"), " drops/s\n");
	json_decref(uptime);
}

static void print_table(FILE *out, const struct cli_column *column, unsigned int n,
			const json_t *rows)
{
	struct cli_table table = {.column = column, .n = n};

	fputc('\n', out);
	cli_table_print(out, &table, rows);
}

static void print_status(FILE *out, const json_t *status, struct order *order)
{
	json_t *rows = sorted(json_object_get(status, "workers"), order);

	print_summary(out, status);
	print_table(out, services, CLI_COUNT_OF(services), json_object_get(status, "services"));
	print_table(out, split, CLI_COUNT_OF(split), json_object_get(status, "services"));
	print_table(out, workers, CLI_COUNT_OF(workers), rows);
	print_table(out, lcores, CLI_COUNT_OF(lcores), json_object_get(status, "lcores"));
	json_decref(rows);
}

static int once(struct cli *cli, struct order *order)
{
	json_t *result = cli_call(cli, "status.show", NULL);

	if (result == NULL)
		return 1;
	if (cli->json)
		cli_print_json(cli, json_object_get(result, "status"));
	else
		print_status(cli->out, json_object_get(result, "status"), order);
	json_decref(result);
	return 0;
}

/* --- on a terminal ---------------------------------------------------------------------------- */

static struct termios as_it_was;
static volatile sig_atomic_t interrupted;

static void top_on_signal(int number)
{
	interrupted = 1;
}

/*
 * Read keys as they are pressed, without echo; paint on a screen of its own, which cuts long lines.
 */
static void take_terminal(void)
{
	/* A call is restarted after a signal; only the waiting ends. */
	struct sigaction action = {.sa_handler = top_on_signal, .sa_flags = SA_RESTART};
	struct termios raw;

	tcgetattr(STDIN_FILENO, &as_it_was);
	raw = as_it_was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	/* without SA_RESTART, so that these signals end the waiting */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	printf("\033[?1049h\033[?7l\033[?25l");
}

static void give_back_terminal(void)
{
	printf("\033[?25h\033[?7h\033[?1049l");
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &as_it_was);
}

/* Handle a key. False: leave. */
static bool take_key(struct order *order)
{
	char key;

	if (read(STDIN_FILENO, &key, 1) != 1)
		return false;
	switch (key) {
	case 'q':
		return false;
	case 's':
		order->column = (order->column + 1) % CLI_COUNT_OF(workers);
		break;
	case 'S':
		order->column = (order->column + CLI_COUNT_OF(workers) - 1) % CLI_COUNT_OF(workers);
		break;
	case 'r':
		order->reverse = !order->reverse;
		break;
	default: /* paints at once, as any other key */
		break;
	}
	return true;
}

/* Print into memory first, so that a screen never shows half of an answer. */
static int paint(struct cli *cli, struct order *order)
{
	char *text = NULL;
	size_t size;
	int rc;

	cli->out = open_memstream(&text, &size);
	if (cli->out == NULL)
		return cli_error("out of memory");
	rc = once(cli, order);
	fprintf(cli->out,
		"\nq leave, s/S sort by the next column or the one before (now %s%s), r reverse\n",
		workers[order->column].title, order->reverse ? ", reversed" : "");
	fclose(cli->out);
	if (rc == 0)
		cli_paint(text);
	free(text);
	fflush(stdout);
	return rc;
}

static int live(struct cli *cli)
{
	struct order order = {0};
	struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
	int rc = 0;

	take_terminal();
	while (!interrupted && rc == 0) {
		rc = paint(cli, &order);
		if (rc == 0 && poll(&keys, 1, PERIOD_MS) > 0 && !take_key(&order))
			break;
	}
	give_back_terminal();
	return rc;
}

int cli_top_status(struct cli *cli)
{
	struct order order = {0};

	if (cli->json || cli->once || cli->watch || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return once(cli, &order);
	return live(cli);
}
