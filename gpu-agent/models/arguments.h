/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses the text of --model-args, "key=value,key=value", by a table of the model's keys. A value
 * cannot contain a comma.
 */
#ifndef MODELS_ARGUMENTS_H
#define MODELS_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

#define ARGUMENT_TEXT_SIZE 4096

/* One key. Exactly one of <number> and <text> is set: it holds the default, and gets the value. */
struct argument {
	const char *key;
	uint32_t *number; /* min..max */
	uint32_t min;
	uint32_t max;
	char *text; /* ARGUMENT_TEXT_SIZE bytes; must not be empty */
};

/* Parse <text> into the variables that <table> points to. -EINVAL with a sentence in <error> for an
 * unknown key, a missing value or one out of range. */
int arguments_parse(const char *text, const struct argument *table, size_t n, char *error,
		    size_t error_size);

#endif
