/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facade of the reference texts: one table each for commands and options (reference.c). manual.c
 * makes sections of the man page and tables of the shell's completion from them; tests use them to
 * find missing documentation. main.c has the table of commands. Texts are mdoc(7).
 */
#ifndef CLI_REFERENCE_H
#define CLI_REFERENCE_H

#include <stddef.h>

#include "cli/cli.h"

/* A part of the COMMANDS section: the commands of some objects. */
struct cli_topic {
	const char *title;
	const char *objects;        /* "stats top version" */
	const char *before, *after; /* text around the list of commands, or NULL */
	const char *all; /* text before the options that all commands have; NULL: "All take:" */
};

extern const struct cli_topic cli_topics[];
extern const size_t cli_n_topics;

struct cli_about {
	const char *command; /* "flows list"; one word where there is no verb */
	const char *text;
};

extern const struct cli_about cli_abouts[];
extern const size_t cli_n_abouts;

/* Meaning of an option; <command> is an object, a command, or NULL for all others. */
struct cli_option_about {
	int option;
	const char *command;
	const char *text;
};

extern const struct cli_option_about cli_option_abouts[];
extern const size_t cli_n_option_abouts;

/* Completion of an option's value: "workers", "services", "files", or the words themselves. */
extern const char *const cli_option_completions[CLI_OPTIONS];

/* One command of main.c's table. */
struct cli_command {
	const char *object, *verb, *operand, *more; /* all but object are NULL when there is none */
	const char *help;
	uint64_t options; /* CLI_BIT() of each */
};

/* Get the <i>-th command; false when there are no more. */
bool cli_command_get(size_t i, struct cli_command *out);

/* Meaning of an option for <c>, as mdoc; NULL when undocumented. */
const char *cli_option_text(int option, const struct cli_command *c);

/* Write "flows list" into <buf>; returns <buf>. */
const char *cli_command_words(const struct cli_command *c, char *buf, size_t size);

/* True when <word> is in <list>, whose words are separated by <separator>. */
bool cli_list_has(const char *list, char separator, const char *word);

/*
 * Print one of the parts of the files in deploy/: man-commands, completion-values or
 * completion-options. Returns an exit status.
 */
int cli_make(const char *part);

#endif
