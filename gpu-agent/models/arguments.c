/* SPDX-License-Identifier: BSD-3-Clause */
#include "models/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct argument *argument_find(const struct argument *table, size_t n, const char *key,
					    size_t length)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(table[i].key) == length && memcmp(table[i].key, key, length) == 0)
			return &table[i];
	return NULL;
}

static int argument_number(const struct argument *argument, const char *value, char *error,
			   size_t error_size)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(value, &end, 10);
	/* strtoull accepts signs and leading blanks; a size has neither. */
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 ||
	    number < argument->min || number > argument->max) {
		snprintf(error, error_size, "%s=%s: must be a number from %u to %u", argument->key,
			 value, argument->min, argument->max);
		return -EINVAL;
	}
	*argument->number = (uint32_t)number;
	return 0;
}

static int argument_set(const struct argument *argument, const char *value, size_t length,
			char *error, size_t error_size)
{
	char copy[ARGUMENT_TEXT_SIZE];

	if (length == 0 || length >= sizeof(copy)) {
		snprintf(error, error_size, "%s: the value must have 1 to %zu characters",
			 argument->key, sizeof(copy) - 1);
		return -EINVAL;
	}
	memcpy(copy, value, length);
	copy[length] = '\0';
	if (argument->number != NULL)
		return argument_number(argument, copy, error, error_size);
	memcpy(argument->text, copy, length + 1);
	return 0;
}

/* Write an error that names the first <key> bytes of <text> and the arguments that the model takes.
 * Returns -EINVAL. */
static int argument_unknown(const struct argument *table, size_t n, const char *text, size_t key,
			    char *error, size_t error_size)
{
	size_t at = (size_t)snprintf(error, error_size, "unknown argument '%.*s'; give ",
				     (int)(key < 64 ? key : 64), text);

	for (size_t i = 0; i < n && at < error_size; i++)
		at += (size_t)snprintf(error + at, error_size - at, "%s%s=...",
				       i == 0 ? "" : " or ", table[i].key);
	return -EINVAL;
}

int arguments_parse(const char *text, const struct argument *table, size_t n, char *error,
		    size_t error_size)
{
	while (*text != '\0') {
		size_t pair = strcspn(text, ",");
		size_t key = strcspn(text, "=,");
		const struct argument *argument = argument_find(table, n, text, key);
		int ret;

		if (argument == NULL) {
			return argument_unknown(table, n, text, key, error, error_size);
		}
		if (key == pair) {
			snprintf(error, error_size, "%s: needs a value, %s=...", argument->key,
				 argument->key);
			return -EINVAL;
		}
		ret = argument_set(argument, text + key + 1, pair - key - 1, error, error_size);
		if (ret != 0)
			return ret;
		text += pair;
		text += *text == ',';
	}
	return 0;
}
