/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const struct cli_column columns[] = {
	{"HOST", "host", CLI_TEXT},     {"SLOT", "slot", CLI_TEXT},
	{"NAME", "name", CLI_TEXT},     {"MODEL", "model", CLI_TEXT},
	{"STATE", "state", CLI_TEXT},   {"SERVICES", "services", CLI_TEXT},
	{"LABELS", "labels", CLI_TEXT},
};

static int act(struct cli *cli, const char *method)
{
	json_t *services = json_array(), *result;
	char names[CLI_VALUE_MAX];

	for (char **more = cli->more; *more != NULL; more++)
		json_array_append_new(services, json_string(*more));
	result = cli_call(cli, method,
			  json_pack("{s:s, s:o}", "name", cli->name, "services", services));
	if (result == NULL)
		return 1;
	if (cli->json)
		cli_print_json(cli, result);
	else
		fprintf(cli->out, "worker %s serves %s\n", cli->name,
			cli_format_value(CLI_TEXT, cli_member(result, "worker.services"), names,
					 sizeof(names)));
	json_decref(result);
	return 0;
}

int cli_workers_assign(struct cli *cli)
{
	return act(cli, "workers.assign");
}

int cli_workers_release(struct cli *cli)
{
	return act(cli, "workers.release");
}

/* Order of the table: by host, then slot (numbers by size), then name. */
static int assign_compare_rows(const void *a, const void *b)
{
	json_t *const *x = a, *const *y = b;
	static const char *const keys[] = {"host", "slot", "name"};

	for (size_t i = 0; i < CLI_COUNT_OF(keys); i++) {
		const char *s = json_string_value(json_object_get(*x, keys[i]));
		const char *t = json_string_value(json_object_get(*y, keys[i]));
		int order = s == NULL || t == NULL ? (s == NULL) - (t == NULL) : strverscmp(s, t);

		if (order != 0)
			return order;
	}
	return 0;
}

static void sort(json_t *rows)
{
	size_t n = json_array_size(rows);
	json_t **row = calloc(n + 1, sizeof(*row));

	if (row == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		row[i] = json_incref(json_array_get(rows, i));
	qsort(row, n, sizeof(*row), assign_compare_rows);
	for (size_t i = 0; i < n; i++)
		json_array_set_new(rows, i, row[i]);
	free(row);
}

int cli_workers_table(struct cli *cli)
{
	json_t *result = cli_call(cli, "workers.table", NULL);

	if (result != NULL)
		sort(json_object_get(result, "workers"));
	return cli_print_list(cli, result, "workers", columns, CLI_COUNT_OF(columns));
}
