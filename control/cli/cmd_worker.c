/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "protocol/worker_state.h"
#include "runtime/clock.h"

#define DRAIN_POLL_MS 200
/* s; a worker that never answers its last requests would be waited for without end */
#define DRAIN_TIMEOUT_S  600
#define EXIT_NOT_DRAINED 3
#define ABSENT           "not registered; drained when it is"

static const struct cli_column brief[] = {
	{"NAME", "name", CLI_TEXT},
	{"MODEL", "model", CLI_TEXT},
	{"STATE", "state", CLI_TEXT},
	{"WEIGHT", "weight", CLI_PLAIN},
	{"OUTSTANDING", "outstanding", CLI_COUNT},
	{"BACKLOG", "backlog", CLI_COUNT},
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
	{"its version", "model_version", CLI_TEXT},
	{"state", "state", CLI_TEXT},
	{"reason", "reason", CLI_TEXT},
	{"number", "number", CLI_PLAIN},
	{"generation", "generation", CLI_PLAIN},
	{"instance", "instance", CLI_TEXT},
	{"services", "services", CLI_TEXT},
	{"labels", "labels", CLI_TEXT},
	{"weight", "weight", CLI_PLAIN},
	{"its agent's", "agent_weight", CLI_PLAIN},
	{"set to drain", "drain", CLI_TEXT},
	{"control lost", "control_lost_ms", CLI_MS},
	{"slots per lcore", "slots", CLI_PLAIN},
	{"smallest request", "min_request", CLI_BYTES},
	{"largest request", "max_request", CLI_BYTES},
	{"largest reply", "max_reply", CLI_BYTES},
	{"largest batch", "max_batch", CLI_PLAIN},
	{"heartbeat every", "heartbeat_ms", CLI_MS},
	{"last heartbeat", "heartbeat_age_ms", CLI_MS},
	{"heartbeats", "heartbeats", CLI_COUNT},
	{"outstanding", "outstanding", CLI_COUNT},
	{"backlog", "backlog", CLI_COUNT},
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
	{"batches by size", "batches", CLI_TEXT},
	{"their mean, us", "batch_run_us", CLI_TEXT},
	{"GPU busy, %", "gpu.utilization", CLI_PLAIN},
	{"GPU memory used", "gpu.memory_used", CLI_BYTES},
	{"GPU memory", "gpu.memory_total", CLI_BYTES},
	{"GPU degrees C", "gpu.temperature", CLI_PLAIN},
	{"GPU power, mW", "gpu.power_mw", CLI_COUNT},
	{"GPU ECC fixed", "gpu.ecc_corrected", CLI_COUNT},
	{"GPU ECC errors", "gpu.ecc_uncorrected", CLI_COUNT},
	{"GPU Xids", "gpu.xids", CLI_COUNT},
	{"GPU notice", "gpu.notice", CLI_TEXT},
};

static const struct cli_column refused[] = {
	{"LAST", "last_s", CLI_SECONDS}, {"TIMES", "times", CLI_COUNT},
	{"PEER", "peer", CLI_TEXT},      {"NAME", "worker", CLI_TEXT},
	{"MODEL", "model", CLI_TEXT},    {"REASON", "reason", CLI_TEXT},
};

int cli_workers_refused(struct cli *cli)
{
	return cli_print_list(cli, cli_call(cli, "workers.refused", NULL), "refused", refused,
			      CLI_COUNT_OF(refused));
}

int cli_workers_list(struct cli *cli)
{
	return cli_print_list(cli, cli_call(cli, "workers.list", NULL), "workers", brief,
			      CLI_COUNT_OF(brief));
}

int cli_workers_show(struct cli *cli)
{
	json_t *params = json_pack("{s:s}", "name", cli->name);

	return cli_print_one(cli, cli_call(cli, "workers.show", params), "worker", full,
			     CLI_COUNT_OF(full));
}

/* The name that the server gave: it may know more states than this program. */
static const char *state_name(const json_t *result)
{
	const char *state = json_string_value(cli_member(result, "worker.state"));

	return state != NULL ? state : "?";
}

static bool is_drained(const json_t *result)
{
	return control_state_find(state_name(result)) == CONTROL_STATE_DRAINED;
}

/* Write one line over the last one on a terminal; print nothing elsewhere. */
static void show_progress(const struct cli *cli, const json_t *result, bool over)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (over)
		fprintf(stderr, "\r\033[K");
	else
		fprintf(stderr, "\rworker %s: %s, %lld outstanding\033[K", cli->name,
			state_name(result),
			(long long)json_integer_value(cli_member(result, "worker.outstanding")));
}

/* A drain or a replacement that is waited for, over a restart of the load balancer. */
struct vigil {
	struct cli *cli;
	const char *successor; /* of a replacement; NULL: a drain */
	uint64_t end;          /* ms */
	bool lost;             /* doorbell-lb was lost, and came back */
	bool ask_again;        /* that happened since the replacement was asked for */
	bool asked;            /* the replacement was made once */
	json_int_t generation; /* of the worker when the drain began */
	json_int_t in_hand;    /* that one's requests when it was last seen */
};

static void vigil_set_end(struct vigil *v)
{
	uint64_t s = v->cli->timeout_s ? v->cli->timeout_s : DRAIN_TIMEOUT_S;

	v->end = clock_now_ms() + 1000 * s;
}

/* Connect again, whenever doorbell-lb is back. False, with a sentence in <error>, at the end of the
 * time. */
static bool connect_again(struct vigil *v, char *error, size_t size)
{
	struct cli *cli = v->cli;

	if (!v->lost)
		fprintf(stderr, "doorbell: %s; waiting for it to come back\n", error);
	v->lost = v->ask_again = true;
	control_client_close(cli->client);
	cli->client = NULL;
	while (clock_now_ms() < v->end) {
		/* Also before the first time: one that hangs up on us each time is not asked more
		 * often. */
		poll(NULL, 0, DRAIN_POLL_MS);
		cli->client = control_client_connect(cli->socket, error, size);
		if (cli->client != NULL)
			return true;
	}
	return false;
}

/*
 * As control_client_call(), and again over another connection when doorbell-lb is lost: what was
 * asked for is in its state file, and the worker's requests must be waited for all the same.
 */
static json_t *vigil_call(struct vigil *v, const char *method, json_t *params, int *code,
			  char *error, size_t size)
{
	json_t *result;

	do
		result = control_client_call(v->cli->client, method, json_incref(params), code,
					     error, size);
	while (result == NULL && *code == 0 && connect_again(v, error, size));
	json_decref(params);
	return result;
}

/* The settings of cli->name and the fate of its last worker; null when nothing is set. NULL after
 * an error message. */
static json_t *find_setting(struct vigil *v)
{
	char error[512];
	json_t *all, *row, *found = NULL;
	int code;
	size_t i;

	all = vigil_call(v, "workers.settings", json_object(), &code, error, sizeof(error));
	if (all == NULL) {
		cli_daemon_error(error);
		return NULL;
	}
	json_array_foreach (json_object_get(all, "settings"), i, row)
		if (strcmp(json_string_value(json_object_get(row, "name")), v->cli->name) == 0)
			found = json_incref(row);
	json_decref(all);
	return found != NULL ? found : json_null();
}

/*
 * Ask again for the present state, in the form that workers.drain replied. NULL after an error
 * message.
 */
static json_t *look_again(struct vigil *v)
{
	char error[512];
	int code = 0;
	json_t *now = vigil_call(v, "workers.show", json_pack("{s:s}", "name", v->cli->name), &code,
				 error, sizeof(error));

	if (now != NULL)
		return now;
	if (code == CONTROL_ERROR_NOT_FOUND) {
		json_t *setting = find_setting(v);

		return setting != NULL ? json_pack("{s:n, s:o}", "worker", "setting", setting)
				       : NULL;
	}
	cli_daemon_error(error);
	return NULL;
}

/* True when waiting can end: the worker is drained, gone, or was resumed by another operator. */
static bool is_decided(const json_t *result)
{
	const json_t *worker = json_object_get(result, "worker");

	return !json_is_object(worker) || !json_is_true(json_object_get(worker, "drain")) ||
	       is_drained(result);
}

static json_t *replace_in_time(struct vigil *v);

/* Poll until the worker is drained. Replaces <result>, with NULL after an error message. */
static json_t *wait_until_drained(struct vigil *v, json_t *result)
{
	struct cli *cli = v->cli;

	vigil_set_end(v);
	v->generation = json_integer_value(cli_member(result, "worker.generation"));
	while (result != NULL && !is_decided(result) && clock_now_ms() < v->end) {
		if (json_integer_value(cli_member(result, "worker.generation")) == v->generation)
			v->in_hand = json_integer_value(cli_member(result, "worker.outstanding"));
		show_progress(cli, result, false);
		control_client_wait(cli->client, DRAIN_POLL_MS);
		json_decref(result);
		result = look_again(v);
		if (result != NULL && v->successor != NULL && v->ask_again) {
			json_decref(result);
			result = replace_in_time(v);
		}
	}
	show_progress(cli, result, true);
	return result;
}

/* The same for a worker that has not registered with a doorbell-lb that came back. */
static int conclude_absent(const json_t *result, char *text, size_t size)
{
	if (json_is_true(cli_member(result, "setting.drain"))) {
		snprintf(text, size, ABSENT);
		return 0;
	}
	snprintf(text, size,
		 "doorbell-lb came back and does not know of the drain: it was resumed meanwhile, "
		 "or "
		 "there is no control.state_file");
	return EXIT_NOT_DRAINED;
}

/* A sentence on how a drain ended, and the exit status for it. */
static int conclude(const struct vigil *v, const json_t *result, char *text, size_t size)
{
	const struct cli *cli = v->cli;
	const json_t *worker = json_object_get(result, "worker");
	long long lost = json_integer_value(cli_member(result, "setting.lost"));

	if (!json_is_object(worker) && v->lost)
		return conclude_absent(result, text, size);
	if (!json_is_object(worker)) {
		snprintf(text, size, "gone, with %lld requests in hand", lost);
		return lost > 0 ? EXIT_NOT_DRAINED : 0;
	}
	/* It went, and was back before the next look. */
	if (!v->lost && v->generation != 0 &&
	    json_integer_value(json_object_get(worker, "generation")) != v->generation) {
		snprintf(text, size, "%s, as it registered again, with %lld requests in hand",
			 state_name(result), (long long)v->in_hand);
		return v->in_hand > 0 ? EXIT_NOT_DRAINED : 0;
	}
	if (is_drained(result)) {
		snprintf(text, size, "drained");
		return 0;
	}
	if (!json_is_true(json_object_get(worker, "drain"))) {
		snprintf(text, size, "%s, as it was resumed meanwhile%s%s", state_name(result),
			 v->successor != NULL ? ", or its successor does not serve" : "",
			 v->lost ? ", or doorbell-lb came back without a control.state_file" : "");
		return EXIT_NOT_DRAINED;
	}
	if (cli->no_wait) {
		snprintf(text, size, "%s", state_name(result));
		return 0;
	}
	snprintf(text, size, "%s, with %lld requests in hand", state_name(result),
		 (long long)json_integer_value(json_object_get(worker, "outstanding")));
	return EXIT_NOT_DRAINED;
}

static json_t *setting_params(const struct cli *cli)
{
	json_t *params = json_pack("{s:s}", "name", cli->name);

	if (cli->absent)
		json_object_set_new(params, "absent", json_true());
	return params;
}

/* The worker's state, or words that say that there is no such worker. */
static const char *whereabouts(const json_t *result)
{
	return json_is_object(json_object_get(result, "worker")) ? state_name(result)
								 : "not registered";
}

/* Wait until the worker is drained, and print how that ended. Takes over <result>, the reply to the
 * call that began the drain. Returns the exit status, 1 for NULL. */
static int finish_drain(struct vigil *v, json_t *result)
{
	char text[192] = ABSENT;
	struct cli *cli = v->cli;
	int status = 0;

	if (result == NULL)
		return 1;
	if (json_is_object(json_object_get(result, "worker"))) {
		if (!cli->no_wait)
			result = wait_until_drained(v, result);
		if (result == NULL)
			return 1;
		status = conclude(v, result, text, sizeof(text));
	}
	if (cli->json)
		cli_print_json(cli, result);
	else
		fprintf(cli->out, "worker %s: %s\n", cli->name, text);
	json_decref(result);
	return status;
}

int cli_workers_drain(struct cli *cli)
{
	struct vigil v = {.cli = cli};

	return finish_drain(&v, cli_call(cli, "workers.drain", setting_params(cli)));
}

/*
 * One try to replace the worker. NULL after an error message. A load balancer that does not know
 * the method is not asked to drain instead: it could not see whether the successor still serves
 * then. One that came back may not have the worker yet.
 */
static json_t *try_replace(struct vigil *v)
{
	struct cli *cli = v->cli;
	json_t *params = json_pack("{s:s, s:s}", "name", cli->name, "successor", v->successor);
	char error[512];
	int code = 0;
	json_t *result;

	if (cli->partly)
		json_object_set_new(params, "partly", json_true());
	/* Another operator may have resumed the worker since. */
	if (v->asked)
		json_object_set_new(params, "again", json_true());
	result = vigil_call(v, "workers.replace", params, &code, error, sizeof(error));
	if (result == NULL && v->lost && code == CONTROL_ERROR_NOT_FOUND) {
		snprintf(error, sizeof(error), "worker '%s' is not registered", cli->name);
		return json_pack("{s:s}", "waits", error);
	}
	if (result == NULL && code == CONTROL_ERROR_METHOD)
		cli_error(
			"this doorbell-lb is older than the command, and cannot replace in one "
			"step; update it, or run 'doorbell workers drain %s' while '%s' is active",
			cli->name, v->successor);
	else if (result == NULL)
		cli_daemon_error(error);
	return result;
}

/* Try until the successor serves. Returns the reply of the try that drained the worker; NULL after
 * an error message. */
static json_t *replace_in_time(struct vigil *v)
{
	json_t *result;
	const char *waits;

	vigil_set_end(v);
	result = try_replace(v);
	while ((waits = json_string_value(json_object_get(result, "waits"))) != NULL) {
		if (clock_now_ms() >= v->end) {
			cli_error("%s; '%s' goes on", waits, v->cli->name);
			json_decref(result);
			return NULL;
		}
		json_decref(result);
		control_client_wait(v->cli->client, DRAIN_POLL_MS);
		result = try_replace(v);
	}
	v->ask_again = false;
	v->asked |= result != NULL;
	return result;
}

int cli_workers_replace(struct cli *cli)
{
	struct vigil v = {.cli = cli, .successor = cli->more[0]};

	if (cli->more[1] != NULL || strcmp(v.successor, cli->name) == 0)
		return cli_usage_error("workers replace: give two workers, the old one and the new "
				       "one");
	return finish_drain(&v, replace_in_time(&v));
}

static int set_one(struct cli *cli, const char *method, json_t *params, const char *what)
{
	json_t *result = cli_call(cli, method, params);

	if (result == NULL)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else
		fprintf(cli->out, "worker %s: %s%s\n", cli->name, what, whereabouts(result));
	json_decref(result);
	return 0;
}

int cli_workers_resume(struct cli *cli)
{
	return set_one(cli, "workers.resume", setting_params(cli), "resumed, ");
}

int cli_workers_forget(struct cli *cli)
{
	return set_one(cli, "workers.forget", json_pack("{s:s}", "name", cli->name),
		       "nothing is set for it any more, ");
}

static const struct cli_column settings[] = {
	{"NAME", "name", CLI_TEXT},         {"STATE", "state", CLI_TEXT},
	{"DRAIN", "drain", CLI_TEXT},       {"SUCCESSOR", "successor", CLI_TEXT},
	{"WEIGHT", "weight", CLI_PLAIN},    {"ASSIGNED", "assigned", CLI_TEXT},
	{"RELEASED", "released", CLI_TEXT}, {"REASON", "reason", CLI_TEXT},
};

int cli_workers_settings(struct cli *cli)
{
	return cli_print_list(cli, cli_call(cli, "workers.settings", NULL), "settings", settings,
			      CLI_COUNT_OF(settings));
}

int cli_workers_set(struct cli *cli)
{
	const char *number = strncmp(cli->value, "weight=", 7) == 0 ? cli->value + 7 : NULL;
	char what[32];
	json_t *params;
	char *end;
	long weight;

	if (number == NULL)
		return cli_usage_error("workers set: cannot set '%s'; give weight=N", cli->value);
	weight = strtol(number, &end, 10);
	if (end == number || *end != '\0')
		return cli_usage_error("workers set: weight: '%s' is not a number; give 1 to 256, "
				       "or 0 for the agent's",
				       number);
	params = setting_params(cli);
	json_object_set_new(params, "weight", json_integer(weight));
	snprintf(what, sizeof(what), "weight %ld, ", weight);
	return set_one(cli, "workers.set", params, what);
}
