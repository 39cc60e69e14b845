/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <stdio.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"digits", command_digits, "send pictures of digits to an mlp model and check its answers"},
	{"echo", command_echo, "send patterns of many sizes to an echo model and check each byte"},
};

static void usage_print(FILE *file)
{
	fprintf(file, "usage: doorbell-client COMMAND --to ADDR:PORT [option ...]\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(file, "  %-8s %s\n", commands[i].name, commands[i].help);
	fprintf(file, "doorbell-client COMMAND --help lists a command's options\n");
}

int run_options_parse(int argc, char **argv, const char *usage, const struct option_row *table,
		      const struct run_options *run, int *status)
{
	int ret = options_parse(argc, argv, usage, table);

	*status = ret == 1 ? COMMAND_OK : COMMAND_ERROR;
	if (ret == 0 && run->load.to.length == 0) {
		fprintf(stderr, "--to ADDR:PORT is needed\n");
		return -1;
	}
	return ret == 0 ? 0 : -1;
}

int run_report(const struct run_options *run, struct tally *tally, json_t *more)
{
	bool to_stdout = run->json != NULL && strcmp(run->json, "-") == 0;
	bool failed = tally->wrong != 0 || tally->lost > run->allow_lost;
	int status = failed ? COMMAND_FAILED : COMMAND_OK;
	json_t *figures = tally_json(tally);
	int ret = 0;

	json_object_update(figures, more);
	json_decref(more);
	if (!to_stdout)
		tally_print(tally);
	if (to_stdout)
		ret = json_dumpf(figures, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	else if (run->json != NULL)
		ret = json_dump_file(figures, run->json, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
	if (figures == NULL || ret != 0) {
		fprintf(stderr, "cannot write the figures to %s\n",
			run->json != NULL ? run->json : "memory");
		status = COMMAND_ERROR;
	}
	if (to_stdout)
		putchar('\n');
	json_decref(figures);
	tally_fini(tally);
	return status;
}

int main(int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		usage_print(stdout);
		return COMMAND_OK;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	if (argc > 1)
		fprintf(stderr, "unknown command '%s'\n", argv[1]);
	usage_print(stderr);
	return COMMAND_ERROR;
}
