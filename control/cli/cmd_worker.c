/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define DRAIN_POLL_MS 200

static const struct cli_column brief[] = {
	{"NAME", "name", CLI_TEXT},
	{"MODEL", "model", CLI_TEXT},
	{"STATE", "state", CLI_TEXT},
	{"WEIGHT", "weight", CLI_PLAIN},
	{"OUTSTANDING", "outstanding", CLI_COUNT},
	{"CREDITS", "credits", CLI_COUNT},
	{"REQUESTS", "requests", CLI_COUNT},
	{"REPLIES", "replies", CLI_COUNT},
	{"ERRORS", "errors", CLI_COUNT},
	{"LOST", "lost", CLI_COUNT},
	{"RESENT", "resent", CLI_COUNT},
	{"HEARTBEAT", "heartbeat_age_ms", CLI_MS},
	{"WAIT", "mean_wait_us", CLI_US},
	{"RUN", "mean_run_us", CLI_US},
	{"TOTAL", "mean_total_us", CLI_US},
	{"REASON", "reason", CLI_TEXT},
};

static const struct cli_column full[] = {
	{"name", "name", CLI_TEXT},
	{"model", "model", CLI_TEXT},
	{"state", "state", CLI_TEXT},
	{"reason", "reason", CLI_TEXT},
	{"number", "number", CLI_PLAIN},
	{"generation", "generation", CLI_PLAIN},
	{"instance", "instance", CLI_TEXT},
	{"services", "services", CLI_TEXT},
	{"labels", "labels", CLI_TEXT},
	{"weight", "weight", CLI_PLAIN},
	{"slots per lcore", "slots", CLI_PLAIN},
	{"largest request", "max_request", CLI_BYTES},
	{"largest reply", "max_reply", CLI_BYTES},
	{"largest batch", "max_batch", CLI_PLAIN},
	{"heartbeat every", "heartbeat_ms", CLI_MS},
	{"last heartbeat", "heartbeat_age_ms", CLI_MS},
	{"heartbeats", "heartbeats", CLI_COUNT},
	{"outstanding", "outstanding", CLI_COUNT},
	{"credits", "credits", CLI_COUNT},
	{"requests", "requests", CLI_COUNT},
	{"replies", "replies", CLI_COUNT},
	{"errors", "errors", CLI_COUNT},
	{"lost", "lost", CLI_COUNT},
	{"mean wait", "mean_wait_us", CLI_US},
	{"mean run", "mean_run_us", CLI_US},
	{"mean total", "mean_total_us", CLI_US},
	{"packets sent", "packets_sent", CLI_COUNT},
	{"packets resent", "resent", CLI_COUNT},
	{"packets received", "packets_received", CLI_COUNT},
	{"acks received", "acks_received", CLI_COUNT},
	{"naks received", "naks_received", CLI_COUNT},
	{"naks sent", "naks_sent", CLI_COUNT},
	{"rnr naks", "rnr_naks_received", CLI_COUNT},
	{"duplicates", "duplicates", CLI_COUNT},
	{"out of order", "out_of_order", CLI_COUNT},
	{"ecn marked", "ecn_marked", CLI_COUNT},
	{"cnps sent", "cnps_sent", CLI_COUNT},
	{"cnps received", "cnps_received", CLI_COUNT},
	{"rate, Mbit/s", "rate_mbit", CLI_COUNT},
	{"timeouts", "timeouts", CLI_COUNT},
};

int cli_workers_list(struct cli *cli)
{
	struct cli_table table = {.column = brief, .n = CLI_COUNT_OF(brief)};
	json_t *result = cli_call(cli, "workers.list", NULL);

	if (!result)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else
		cli_table_print(cli->out, &table, json_object_get(result, "workers"));
	json_decref(result);
	return 0;
}

int cli_workers_show(struct cli *cli)
{
	json_t *result = cli_call(cli, "workers.show", json_pack("{s:s}", "name", cli->name));

	if (!result)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else
		cli_page_print(cli->out, full, CLI_COUNT_OF(full),
			       json_object_get(result, "worker"));
	json_decref(result);
	return 0;
}

static const char *state_of(const json_t *result)
{
	const char *state = json_string_value(cli_member(result, "worker.state"));

	return state ? state : "?";
}

/* One line that is written over on a terminal; nothing elsewhere. */
static void show_progress(const struct cli *cli, const json_t *result, bool over)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (over)
		fprintf(stderr, "\r\033[K");
	else
		fprintf(stderr, "\rworker %s: %s, %lld outstanding\033[K", cli->name,
			state_of(result),
			(long long)json_integer_value(cli_member(result, "worker.outstanding")));
}

/*
 * Wait until the worker is drained, or gone: its agent leaves once it is drained. Replaces
 * <result>, which turns NULL after an error message.
 */
static json_t *wait_until_drained(struct cli *cli, json_t *result)
{
	char error[512];
	int code = 0;

	while (result && strcmp(state_of(result), "drained") != 0) {
		json_t *now;

		show_progress(cli, result, false);
		control_client_wait(cli->client, DRAIN_POLL_MS);
		now = control_client_call(cli->client, "workers.show",
					  json_pack("{s:s}", "name", cli->name), &code, error,
					  sizeof(error));
		if (!now && code == CONTROL_ERROR_NOT_FOUND) {
			json_object_set_new(json_object_get(result, "worker"), "state",
					    json_string("gone"));
			break;
		}
		json_decref(result);
		result = now;
	}
	show_progress(cli, result, true);
	if (!result)
		cli_error("%s", error);
	return result;
}

int cli_workers_drain(struct cli *cli)
{
	json_t *result = cli_call(cli, "workers.drain", json_pack("{s:s}", "name", cli->name));

	if (result && !cli->no_wait)
		result = wait_until_drained(cli, result);
	if (!result)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else
		fprintf(cli->out, "worker %s: %s\n", cli->name, state_of(result));
	json_decref(result);
	return 0;
}

int cli_workers_set(struct cli *cli)
{
	const char *number = strncmp(cli->value, "weight=", 7) == 0 ? cli->value + 7 : NULL;
	json_t *result;
	char *end;
	long weight;

	if (!number)
		return cli_usage_error("workers set: cannot set '%s'; give weight=N", cli->value);
	weight = strtol(number, &end, 10);
	if (end == number || *end != '\0')
		return cli_usage_error("workers set: weight: '%s' is not a number", number);
	result = cli_call(cli, "workers.set",
			  json_pack("{s:s, s:I}", "name", cli->name, "weight", (json_int_t)weight));
	if (!result)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else
		fprintf(cli->out, "worker %s: weight %ld\n", cli->name, weight);
	json_decref(result);
	return 0;
}
