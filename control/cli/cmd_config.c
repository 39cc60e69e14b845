/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const struct cli_column columns[] = {
	{"KEY", "key", CLI_TEXT},
	{"FROM", "from", CLI_TEXT},
	{"TO", "to", CLI_TEXT},
	{"HOW", "effect", CLI_TEXT},
};

/* Call with the file that was named, or none; NULL after an error message. */
static json_t *call_with_file(struct cli *cli, const char *method)
{
	char path[PATH_MAX];

	if (!cli->name)
		return cli_call(cli, method, NULL);
	/* The daemon reads it, and is somewhere else. */
	if (!realpath(cli->name, path)) {
		cli_error("%s: %s", cli->name, strerror(errno));
		return NULL;
	}
	return cli_call(cli, method, json_pack("{s:s}", "file", path));
}

static size_t count(const json_t *result)
{
	return json_array_size(json_object_get(result, "changes"));
}

static void print_changes(struct cli *cli, const json_t *result)
{
	struct cli_table table = {.column = columns, .n = CLI_COUNT_OF(columns)};

	if (count(result) > 0)
		cli_table_print(cli->out, &table, json_object_get(result, "changes"));
}

static const char *file_of(const json_t *result)
{
	const char *file = json_string_value(json_object_get(result, "file"));

	return file ? file : "-";
}

static const char *plural(const json_t *result)
{
	return count(result) == 1 ? "" : "s";
}

int cli_config_check(struct cli *cli)
{
	json_t *result = call_with_file(cli, "config.check");
	const char *reason;

	if (!result)
		return 1;
	reason = json_string_value(json_object_get(result, "reason"));
	if (cli->json)
		cli_print_json(cli, result);
	else if (reason)
		fprintf(cli->out, "%s: good, but cannot be applied: %s\n", file_of(result), reason);
	else
		fprintf(cli->out, "%s: good, %zu change%s\n", file_of(result), count(result),
			plural(result));
	json_decref(result);
	return 0;
}

int cli_config_diff(struct cli *cli)
{
	json_t *result = call_with_file(cli, "config.diff");

	if (!result)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else if (count(result) == 0)
		fprintf(cli->out, "%s: as it runs\n", file_of(result));
	else
		print_changes(cli, result);
	json_decref(result);
	return 0;
}

int cli_config_apply(struct cli *cli)
{
	json_t *result = call_with_file(cli, "config.apply");

	if (!result)
		return 1;
	if (cli->json) {
		cli_print_json(cli, result);
	} else {
		print_changes(cli, result);
		fprintf(cli->out, "%s: applied, %zu change%s\n", file_of(result), count(result),
			plural(result));
	}
	json_decref(result);
	return 0;
}
