/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's commands, and what they share: the options of a run and how a run ends. */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

#include "load.h"
#include "cli/bench/option_table.h"

#include <jansson.h>

/* Exit statuses. */
#define COMMAND_OK     0
#define COMMAND_FAILED 1 /* replies were lost or wrong */
#define COMMAND_ERROR  2 /* the run could not be made */

struct run_options {
	struct load_options load;
	uint64_t allow_lost;
	const char *json; /* path, "-" for stdout; NULL for none */
};

/* Rows of a struct option_row table for <run>, whose name is a struct run_options. */
#define RUN_OPTIONS(run)                                                                           \
	{"to", OPTION_ADDRESS, &(run).load.to, 0, 0, "where the requests go (needed)"},            \
		{"sockets", OPTION_NUMBER,    &(run).load.sockets,                                 \
		 1,         LOAD_SOCKETS_MAX, "UDP sockets, each with its own port"},              \
		{"window", OPTION_NUMBER,   &(run).load.window,                                    \
		 1,        LOAD_WINDOW_MAX, "requests outstanding per socket"},                    \
		{"rate", OPTION_NUMBER, &(run).load.rate,                                          \
		 0,      100000000,     "requests per second over all sockets, 0: no limit"},      \
		{"timeout-ms",                                                                     \
		 OPTION_NUMBER,                                                                    \
		 &(run).load.timeout_ms,                                                           \
		 1,                                                                                \
		 600000,                                                                           \
		 "a request without a reply by then is lost"},                                     \
		{"allow-lost",      OPTION_NUMBER,                                                 \
		 &(run).allow_lost, 0,                                                             \
		 UINT64_MAX,        "do not fail if no more than this many are lost"},             \
		{"json",      OPTION_TEXT,                                                         \
		 &(run).json, 0,                                                                   \
		 0,           "write the figures to this file, - for stdout instead of text"},     \
	{                                                                                          \
		"progress", OPTION_FLAG, &(run).load.progress, 0, 0, "a line per second on stderr" \
	}

/* Parses and checks the common options. COMMAND_OK, or -1 with the exit status in <status>. */
int run_options_parse(int argc, char **argv, const char *usage, const struct option_row *table,
		      const struct run_options *run, int *status);

/* Prints or writes the figures, with <more> (may be NULL; taken over) among them; returns the exit
 * status and finishes <tally>. */
int run_report(const struct run_options *run, struct tally *tally, json_t *more);

int command_digits(int argc, char **argv);
int command_echo(int argc, char **argv);

#endif
