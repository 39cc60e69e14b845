/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's commands, and the parts that they share: the options of a run and its end. */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

#include "load.h"
#include "runtime/option_table.h"

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

/* Rows of all commands, whose options begin with a struct run_options. */
extern const struct option_row run_rows[];

/* Prints or writes the figures, with <more> (may be NULL; taken over) among them; returns the exit
 * status and finishes <tally>. */
int run_report(const struct run_options *run, struct tally *tally, json_t *more);

int command_digits(int argc, char **argv);
int command_echo(int argc, char **argv);

#endif
