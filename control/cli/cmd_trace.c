/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <string.h>

#include "cli/cli.h"

#define POLL_MS       100
#define COUNT_DEFAULT 1

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	interrupted = 1;
}

static bool is_step(const json_t *event, const char *step)
{
	const char *name = json_string_value(json_object_get(event, "step"));

	return name != NULL && strcmp(name, step) == 0;
}

static void print_event(struct cli *cli, const json_t *event)
{
	const char *request = json_string_value(json_object_get(event, "request"));

	if (cli->json) {
		json_dumpf(event, cli->out, 0);
		fputc('\n', cli->out);
		return;
	}
	fprintf(cli->out, "%12.1f us  lcore %lld  %-16s  %-8s  %s\n",
		json_number_value(json_object_get(event, "at_ns")) / 1000,
		(long long)json_integer_value(json_object_get(event, "lcore")),
		request != NULL ? request : "-", json_string_value(json_object_get(event, "step")),
		json_string_value(json_object_get(event, "what")));
}

/* True for the event that ends a request, as its client sees it. */
static bool is_end(const json_t *event)
{
	return is_step(event, "answered") || is_step(event, "notice") || is_step(event, "dropped");
}

/* Print the new events. Returns how many requests ended in them, or -1 after an error message. */
static long read_events(struct cli *cli, json_int_t trace, json_int_t *lost)
{
	json_t *result = cli_call(cli, "trace.read", json_pack("{s:I}", "trace", trace)), *event;
	size_t i;
	long ends = 0;

	if (result == NULL)
		return -1;
	json_array_foreach (json_object_get(result, "events"), i, event) {
		print_event(cli, event);
		ends += is_end(event);
	}
	*lost = json_integer_value(json_object_get(result, "lost"));
	json_decref(result);
	fflush(cli->out);
	return ends;
}

static int follow(struct cli *cli, json_int_t trace)
{
	uint64_t want = cli->limit ? cli->limit : COUNT_DEFAULT, ended = 0;
	json_int_t lost = 0;

	while (!interrupted && (cli->follow || ended < want)) {
		long n = read_events(cli, trace, &lost);

		if (n < 0)
			return 1;
		ended += (uint64_t)n;
		if (cli->follow || ended < want)
			control_client_wait(cli->client, POLL_MS);
	}
	if (lost > 0)
		fprintf(stderr, "doorbell: %lld events were lost: more than could be read\n",
			(long long)lost);
	return 0;
}

int cli_trace(struct cli *cli)
{
	/* A call is restarted after a signal; only the waiting ends. */
	struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
	json_t *result;
	json_int_t trace;
	int rc;

	if (cli->flow == NULL)
		return cli_usage_error("trace: which flow? give --flow CLIENT:PORT[,VIP:PORT]");
	result = cli_call(cli, "trace.start", json_pack("{s:s, s:s*, s:s*}", "flow", cli->flow, "zone", cli->zone,
						      "protocol", cli->protocol));
	if (result == NULL)
		return 1;
	trace = json_integer_value(json_object_get(result, "trace"));
	json_decref(result);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	rc = follow(cli, trace);
	if (rc == 0)
		json_decref(cli_call(cli, "trace.stop", json_pack("{s:I}", "trace", trace)));
	return rc;
}
