/* SPDX-License-Identifier: BSD-3-Clause */
/* size: the formulas and the simulation are in size/. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/size/commands.h"
#include "cli/size/size.h"

static void size_print_json(json_t *object)
{
	struct cli cli = {.out = stdout};

	cli_print_json(&cli, object);
	json_decref(object);
}

typedef int size_command(int argc, char **argv, FILE *out, json_t **object, bool *kept);

/* Words behind size; --json may stand before them. */
static const struct {
	const char *name;
	size_command *command;
} models[] = {{"reads", size_reads_command}, {"calls", size_calls_command}};

static int size_by_model(size_command *command, int argc, char **argv)
{
	json_t *object;
	bool kept;
	int ret = command(argc, argv, stdout, &object, &kept);

	if (ret != 0)
		return ret > 0 ? EXIT_SUCCESS : EXIT_USAGE;
	if (object != NULL)
		size_print_json(object);
	return kept ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cli_size(int argc, char **argv)
{
	struct size_question question;
	struct size_answer answer;
	bool json, kept;
	int ret;

	for (size_t i = 0; i < CLI_COUNT_OF(models); i++) {
		int at = argc > 2 && strcmp(argv[1], "--json") == 0 ? 2 : 1;

		if (argc <= at || strcmp(argv[at], models[i].name) != 0)
			continue;
		argv[at] = at == 2 ? argv[1] : argv[at];
		return size_by_model(models[i].command, argc - 1, argv + 1);
	}
	ret = size_options_read(argc, argv, &question, &json);
	if (ret != 0)
		return ret > 0 ? EXIT_SUCCESS : EXIT_USAGE;
	ret = size_answer(&question, &answer);
	if (ret == 0 && json)
		size_print_json(size_json(&question, &answer));
	else if (ret == 0)
		size_print(&question, &answer, stdout);
	kept = answer.found;
	size_answer_fini(&answer);
	if (ret != 0)
		return cli_error("cannot simulate: %s", strerror(-ret));
	return kept ? EXIT_SUCCESS : EXIT_FAILURE;
}
