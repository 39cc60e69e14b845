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

#define AT(field) OPTION_AT(struct run_options, field)

const struct option_row run_rows[] = {
	{"to", OPTION_ADDRESS, AT(load.to), NULL, "where the requests go", .required = true},
	{"sockets", OPTION_NUMBER, AT(load.sockets), NULL, "UDP sockets, each with its own port", 1,
	 LOAD_SOCKETS_MAX},
	{"window", OPTION_NUMBER, AT(load.window), NULL, "requests outstanding per socket", 1,
	 LOAD_WINDOW_MAX},
	{"rate", OPTION_NUMBER, AT(load.rate), NULL,
	 "requests per second over all sockets, 0: no limit", 0, 100000000},
	{"timeout-ms", OPTION_NUMBER, AT(load.timeout_ms), NULL,
	 "a request without a reply by then is lost", 1, 600000},
	{"allow-lost", OPTION_NUMBER, AT(allow_lost), NULL,
	 "do not fail if no more than this many are lost"},
	{"json", OPTION_TEXT, AT(json), "FILE",
	 "write the figures to this file, - for stdout instead of text"},
	{"progress", OPTION_FLAG, AT(load.progress), NULL, "a line per second on stderr"},
	{0},
};

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
