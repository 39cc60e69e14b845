/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "config/config.h"

static const struct cli_column columns[] = {
	{"KEY", "key", CLI_TEXT},
	{"FROM", "from", CLI_TEXT},
	{"TO", "to", CLI_TEXT},
	{"HOW", "effect", CLI_TEXT},
};

/* The configuration is right, and the running load balancer could not take it over. */
#define EXIT_NOT_NOW 3

#define NO_DAEMON                                                                                  \
	"no doorbell-lb answers here that it could be applied to (doorbell-lb --config FILE "      \
	"--check also reads the files that it names)"

/* Call with the file that was named, if any; NULL after an error message. */
static json_t *call_with_file(struct cli *cli, const char *method)
{
	char path[PATH_MAX];

	if (cli->name == NULL)
		return cli_call(cli, method, NULL);
	/*
	 * make the path absolute: the daemon, which reads the file, has another working directory
	 */
	if (realpath(cli->name, path) == NULL) {
		cli_error("%s: %s", cli->name, strerror(errno));
		return NULL;
	}
	return cli_call(cli, method, json_pack("{s:s}", "file", path));
}

static size_t config_count_changes(const json_t *result)
{
	return json_array_size(json_object_get(result, "changes"));
}

static void print_changes(struct cli *cli, const json_t *result)
{
	struct cli_table table = {.column = columns, .n = CLI_COUNT_OF(columns)};

	if (config_count_changes(result) > 0)
		cli_table_print(cli->out, &table, json_object_get(result, "changes"));
}

static const char *file_of(const json_t *result)
{
	const char *file = json_string_value(json_object_get(result, "file"));

	return file != NULL ? file : "-";
}

static const char *plural(const json_t *result)
{
	return config_count_changes(result) == 1 ? "" : "s";
}

static int print_alone(struct cli *cli)
{
	json_t *result = json_pack("{s:s, s:b, s:s, s:[]}", "file", cli->name, "applies", 0,
				   "reason", NO_DAEMON, "changes");
	int rc = cli_print_json(cli, result);

	json_decref(result);
	return rc;
}

/* Check the file without a daemon, as doorbell-lb --check does, but not the files that it names. */
static int config_check_alone(struct cli *cli)
{
	struct lb_config *config = malloc(sizeof(*config)); /* large for a stack */
	char error[8192];
	int ret;

	if (config == NULL)
		return cli_error("no memory for %s", cli->name);
	ret = lb_config_load(cli->name, config, error, sizeof(error));
	free(config);
	if (ret < 0)
		return cli_error("%s", error);
	if (cli->json)
		return print_alone(cli);
	fprintf(cli->out, "%s: good; " NO_DAEMON "\n", cli->name);
	return 0;
}

int cli_config_check(struct cli *cli)
{
	json_t *result;
	const char *reason;
	int rc;

	if (cli->client == NULL)
		return config_check_alone(cli);
	result = call_with_file(cli, "config.check");
	if (result == NULL)
		return 1;
	reason = json_string_value(json_object_get(result, "reason"));
	rc = reason != NULL ? EXIT_NOT_NOW : 0;
	if (cli->json)
		cli_print_json(cli, result);
	else if (reason != NULL)
		fprintf(cli->out, "%s: good, but cannot be applied now: %s\n", file_of(result),
			reason);
	else
		fprintf(cli->out, "%s: good, %zu change%s\n", file_of(result),
			config_count_changes(result), plural(result));
	json_decref(result);
	return rc;
}

int cli_config_diff(struct cli *cli)
{
	json_t *result = call_with_file(cli, "config.diff");

	if (result == NULL)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else if (config_count_changes(result) == 0)
		fprintf(cli->out, "%s: as it runs\n", file_of(result));
	else
		print_changes(cli, result);
	json_decref(result);
	return 0;
}

int cli_config_apply(struct cli *cli)
{
	json_t *result = call_with_file(cli, "config.apply");

	if (result == NULL)
		return 1;
	if (cli->json) {
		cli_print_json(cli, result);
	} else {
		print_changes(cli, result);
		fprintf(cli->out, "%s: applied, %zu change%s\n", file_of(result),
			config_count_changes(result), plural(result));
	}
	json_decref(result);
	return 0;
}
