/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of a program as a table: parsing, range checks, errors, help and completion.
 * Keeps no state, unlike getopt_long(): a library may parse beside the program that it is part of.
 */
#ifndef OPTION_TABLE_H
#define OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_FLAG,         /* bool, which becomes true; no value */
	OPTION_FLAG_OFF,     /* bool, which becomes false; no value */
	OPTION_NUMBER,       /* unsigned integer of 8 to 64 bits, from min to max */
	OPTION_POWER_OF_TWO, /* unsigned integer, a power of two, from min to max */
	OPTION_REAL,         /* double, from min to max */
	OPTION_SECONDS,      /* double, above 0 */
	OPTION_TEXT,         /* const char *, which points into argv */
	OPTION_WORD,         /* enum, int or bool: index of the word in <words> */
	OPTION_ADDRESS,      /* struct endpoint_address */
	OPTION_ENDPOINT,     /* struct endpoint: names are allowed */
	OPTION_CALL,         /* take() is called each time the option is given */
};

/* Offset and size of the field of <type> that an option sets; OPTION_WHOLE() is for a take() that
 * gets the whole struct. */
#define OPTION_AT(type, field) offsetof(type, field), sizeof(((type *)NULL)->field)
#define OPTION_WHOLE(type)     0, sizeof(type)

struct option_row {
	const char *name;
	enum option_kind kind;
	size_t at, size;   /* OPTION_AT(); the field holds the default until the option is parsed */
	const char *form;  /* the value's name in the help, "FILE"; NULL: the kind's own */
	const char *help;  /* a text that ends with ']' states the default itself */
	uint64_t min, max; /* max 0: the largest number that fits into the field */
	const char *const *words; /* of OPTION_WORD; NULL after the last */
	/* Returns 0, or -EINVAL with <error>, which is printed after "--name: 'text' ". */
	int (*take)(void *field, const char *text, char *error, size_t size);
	char letter;   /* 'c': also -c; 0: none */
	bool required; /* an error if it is not given */
	bool optional; /* OPTION_CALL only: the value may be left out; <text> is NULL then */
};

struct option_table {
	const char *program; /* "doorbell bench": every error begins with it */
	const char *usage;   /* the head of --help; NULL: there is no --help */
	const char *version; /* printed by --version; NULL: there is no --version */
	const struct option_row
		*rows; /* a row without a name ends them; at most 62 with <shared> */
	/* Rows of several programs, whose fields are at the start of the struct; NULL: none. */
	const struct option_row *shared;
	bool operands; /* words that are no options are allowed */
};

/*
 * Parse argv[1] to argv[argc - 1] into the struct at <values>. Operands move to argv[1], [2] and so
 * on, with NULL after the last; a table without operands leaves argv as it is. <given>, unless
 * NULL, gets a bit for each row that was given. Returns 0; 1 after it printed the help or the
 * version; -EINVAL after an error message on stderr.
 */
int options_parse(const struct option_table *table, int argc, char **argv, void *values,
		  uint64_t *given);

/* True when the option of this name has its bit in <given>. The bits of <shared> follow those of
 * <rows>. */
bool option_is_given(const struct option_table *table, uint64_t given, const char *name);

/* True when the option needs a value, in the same word or in the next one. */
bool option_needs_value(const struct option_row *row);

#define OPTION_FORM_MAX 128

/* The value's name in the help: "N" or "FILE". <form> holds a name that has to be made up. */
const char *option_form(const struct option_row *row, char form[OPTION_FORM_MAX]);

/* Print " --name=" for an option that needs a value and " --name" for any other, as completion
 * expects. */
void option_print_name(const struct option_row *row);
void options_print_names(const struct option_row *rows);

#endif
