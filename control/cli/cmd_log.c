/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/cli.h"

static const struct cli_column columns[] = {
	{"MODULE", "module", CLI_TEXT},
	{"LEVEL", "level", CLI_TEXT},
};

static int print_modules(struct cli *cli, json_t *result)
{
	return cli_print_list(cli, result, "modules", columns, CLI_COUNT_OF(columns));
}

int cli_log_show(struct cli *cli)
{
	return print_modules(cli, cli_call(cli, "log.show", NULL));
}

/* [MODULE] LEVEL: a single word is the level. */
int cli_log_level(struct cli *cli)
{
	json_t *params = json_pack("{s:s}", "level", cli->value != NULL ? cli->value : cli->name);

	if (cli->value != NULL)
		json_object_set_new(params, "module", json_string(cli->name));
	return print_modules(cli, cli_call(cli, "log.level", params));
}
