/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of the commands that answer with a published model: `doorbell size reads`
 * (reads_command.c) and `doorbell size calls` (calls_command.c).
 */
#ifndef SIZE_COMMANDS_H
#define SIZE_COMMANDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Read the command line, argv[0] being the command's last word, and answer: as text to <out>, or,
 * with --json, as <*object>, which the caller frees. <*kept>: the limit of the options is kept.
 * Returns 0; 1 after --help; -EINVAL after an error message.
 */
int size_reads_command(int argc, char **argv, FILE *out, json_t **object, bool *kept);
int size_calls_command(int argc, char **argv, FILE *out, json_t **object, bool *kept);

/* Print the options for the completion. */
void size_reads_names(void);
void size_calls_names(void);

#endif
