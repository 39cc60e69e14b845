/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/option_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/endpoint.h"

#define HELP_COLUMN 27 /* column of the explanations, after two spaces */

/* --- rows ----------------------------------------------------------------------------------------
 */

static const struct option_row version_rows[] = {
	{.name = "version", .help = "print the version", .letter = 'V'}, {0}};
static const struct option_row help_rows[] = {
	{.name = "help", .help = "print this help", .letter = 'h'}, {0}};

/* Row <i> of all that the table has: its own, the shared ones, --version and --help. NULL after the
 * last. */
static const struct option_row *option_at(const struct option_table *table, unsigned int i)
{
	const struct option_row *const lists[] = {table->rows, table->shared,
						  table->version != NULL ? version_rows : NULL,
						  table->usage != NULL ? help_rows : NULL};

	for (unsigned int list = 0; list < sizeof(lists) / sizeof(lists[0]); list++)
		for (const struct option_row *row = lists[list]; row != NULL && row->name != NULL;
		     row++)
			if (i-- == 0)
				return row;
	return NULL;
}

bool option_needs_value(const struct option_row *row)
{
	return row->kind != OPTION_FLAG && row->kind != OPTION_FLAG_OFF && !row->optional;
}

bool option_is_given(const struct option_table *table, uint64_t given, const char *name)
{
	const struct option_row *row;

	for (unsigned int i = 0; (row = option_at(table, i)) != NULL; i++)
		if (strcmp(row->name, name) == 0)
			return (given >> i & 1) != 0;
	return false;
}

const char *option_form(const struct option_row *row, char form[OPTION_FORM_MAX])
{
	static const char *const forms[] = {
		[OPTION_FLAG] = "",
		[OPTION_FLAG_OFF] = "",
		[OPTION_NUMBER] = "N",
		[OPTION_POWER_OF_TWO] = "N",
		[OPTION_REAL] = "N",
		[OPTION_SECONDS] = "S",
		[OPTION_TEXT] = "TEXT",
		[OPTION_ADDRESS] = "ADDR:PORT",
		[OPTION_ENDPOINT] = "HOST:PORT",
		[OPTION_CALL] = "VALUE",
	};
	size_t at = 0;

	if (row->form != NULL || row->kind != OPTION_WORD)
		return row->form != NULL ? row->form : forms[row->kind];
	form[0] = '\0';
	for (size_t i = 0; row->words[i] != NULL && at < OPTION_FORM_MAX; i++)
		at += (size_t)snprintf(form + at, OPTION_FORM_MAX - at, "%s%s", i == 0 ? "" : "|",
				       row->words[i]);
	return form;
}

void option_print_name(const struct option_row *row)
{
	printf(" --%s%s", row->name, option_needs_value(row) ? "=" : "");
}

void options_print_names(const struct option_row *rows)
{
	for (; rows->name != NULL; rows++)
		option_print_name(rows);
}

/* --- values --------------------------------------------------------------------------------------
 */

static uint64_t field_largest(const struct option_row *row)
{
	return UINT64_MAX >> (64 - 8 * row->size);
}

static uint64_t field_read(const struct option_row *row, const void *field)
{
	return row->size == sizeof(uint64_t)   ? *(const uint64_t *)field
	       : row->size == sizeof(uint32_t) ? *(const uint32_t *)field
	       : row->size == sizeof(uint16_t) ? *(const uint16_t *)field
					       : *(const uint8_t *)field;
}

static void field_write(const struct option_row *row, void *field, uint64_t number)
{
	if (row->size == sizeof(uint64_t))
		*(uint64_t *)field = number;
	else if (row->size == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)number;
	else if (row->size == sizeof(uint16_t))
		*(uint16_t *)field = (uint16_t)number;
	else
		*(uint8_t *)field = (uint8_t)number;
}

/* Write an error that follows the value. Returns -EINVAL. */
static int __attribute__((format(printf, 3, 4)))
value_error(char *error, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, size, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int option_set_number(const struct option_row *row, void *field, const char *text,
			     char *error, size_t size)
{
	bool power = row->kind == OPTION_POWER_OF_TWO;
	uint64_t max = row->max != 0 ? row->max : field_largest(row), number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < row->min ||
	    number > max || (power && (number & (number - 1)) != 0))
		return value_error(error, size, "is not a %s from %" PRIu64 " to %" PRIu64,
				   power ? "power of two" : "number", row->min, max);
	field_write(row, field, number);
	return 0;
}

static int option_set_real(const struct option_row *row, double *field, const char *text,
			   char *error, size_t size)
{
	char *end;

	*field = strtod(text, &end);
	/* Written so that NaN fails, too. */
	if (end != text && *end == '\0' && *field >= (double)row->min && *field <= (double)row->max)
		return 0;
	return value_error(error, size, "is not a number from %" PRIu64 " to %" PRIu64, row->min,
			   row->max);
}

static int option_set_seconds(double *field, const char *text, char *error, size_t size)
{
	char *end;

	*field = strtod(text, &end);
	if (*end == '\0' && *field > 0 && *field < 1e6)
		return 0;
	return value_error(error, size, "is not a number of seconds above 0");
}

static int option_set_word(const struct option_row *row, void *field, const char *text, char *error,
			   size_t size)
{
	size_t n = 0, at;

	for (; row->words[n] != NULL; n++)
		if (strcmp(text, row->words[n]) == 0) {
			field_write(row, field, n);
			return 0;
		}
	if (n == 2)
		return value_error(error, size, "is neither %s nor %s", row->words[0],
				   row->words[1]);
	at = (size_t)snprintf(error, size, "is none of ");
	for (size_t i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(error + at, size - at, "%s%s", i == 0 ? "" : ", ",
				       row->words[i]);
	return -EINVAL;
}

static int option_set(const struct option_row *row, void *field, const char *text, char *error,
		      size_t size)
{
	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_FLAG_OFF:
		*(bool *)field = row->kind == OPTION_FLAG;
		return 0;
	case OPTION_NUMBER:
	case OPTION_POWER_OF_TWO:
		return option_set_number(row, field, text, error, size);
	case OPTION_REAL:
		return option_set_real(row, field, text, error, size);
	case OPTION_SECONDS:
		return option_set_seconds(field, text, error, size);
	case OPTION_TEXT:
		*(const char **)field = text;
		return 0;
	case OPTION_WORD:
		return option_set_word(row, field, text, error, size);
	case OPTION_ADDRESS:
		if (endpoint_address_parse(text, field) == 0)
			return 0;
		return value_error(error, size, "is not " ENDPOINT_ADDRESS_FORM);
	case OPTION_ENDPOINT:
		if (endpoint_parse(text, field) == 0)
			return 0;
		return value_error(error, size,
				   "is not HOST:PORT; write 10.201.0.254:4790 or [fd00::1]:4790");
	case OPTION_CALL:
		return row->take(field, text, error, size);
	}
	return -EINVAL;
}

/* --- help ----------------------------------------------------------------------------------------
 */

/* Print the end of a help line: " [1500]" or " [required]"; nothing when the text states the
 * default itself. */
static void option_print_default(const struct option_row *row, const void *field)
{
	uint64_t number;

	if (row->required)
		printf(" [required]");
	if (row->required || row->help[strlen(row->help) - 1] == ']')
		return;
	if (row->kind == OPTION_REAL && *(const double *)field != 0)
		printf(" [%g]", *(const double *)field);
	if (row->kind != OPTION_NUMBER && row->kind != OPTION_POWER_OF_TWO &&
	    row->kind != OPTION_WORD)
		return;
	number = field_read(row, field);
	if (row->kind == OPTION_WORD)
		printf(" [%s]", row->words[number]);
	else if (number != 0)
		printf(" [%" PRIu64 "]", number);
}

static void option_print_help(const struct option_row *row, bool letters, const void *values)
{
	char left[64 + OPTION_FORM_MAX], form[OPTION_FORM_MAX], letter[5] = "    ";
	const char *value = option_form(row, form);

	if (row->letter != 0)
		snprintf(letter, sizeof(letter), "-%c, ", row->letter);
	snprintf(left, sizeof(left), "%s--%s%s%s", letters ? letter : "", row->name,
		 value[0] == '\0' || row->optional ? "" : " ", value);
	/* A longer option has a line of its own. */
	if (strlen(left) > HELP_COLUMN - 2)
		printf("  %s\n  %-*s%s", left, HELP_COLUMN, "", row->help);
	else
		printf("  %-*s%s", HELP_COLUMN, left, row->help);
	option_print_default(row, (const char *)values + row->at);
	putchar('\n');
}

static void options_print_help(const struct option_table *table, const void *values)
{
	const struct option_row *row;
	bool letters = false;

	for (row = table->rows; row->name != NULL; row++)
		letters |= row->letter != 0;
	printf("usage: %s\n\n", table->usage);
	for (unsigned int i = 0; (row = option_at(table, i)) != NULL; i++)
		option_print_help(row, letters, values);
}

/* --- parsing -------------------------------------------------------------------------------------
 */

/* Print "program: ..." on stderr. Returns -EINVAL. */
static int __attribute__((format(printf, 2, 3)))
options_error(const struct option_table *table, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "%s: ", table->program);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return -EINVAL;
}

/* Find the row of this name, or else of the only name that begins with it. NULL when no name begins
 * with it, or several do; <n> counts these. */
static const struct option_row *option_named(const struct option_table *table, const char *name,
					     size_t length, unsigned int *at, unsigned int *n)
{
	const struct option_row *row, *found = NULL;

	*n = 0;
	for (unsigned int i = 0; (row = option_at(table, i)) != NULL; i++) {
		if (strncmp(row->name, name, length) != 0)
			continue;
		found = row;
		*at = i;
		if (row->name[length] == '\0')
			return row;
		++*n;
	}
	return *n == 1 ? found : NULL;
}

/* True when <word> is "--" and the whole name of an option, with or without a value. */
static bool option_is_whole(const struct option_table *table, const char *word)
{
	size_t length = strcspn(word, "=");
	const struct option_row *row;
	unsigned int at, n;

	if (length < 3 || strncmp(word, "--", 2) != 0)
		return false;
	row = option_named(table, word + 2, length - 2, &at, &n);
	return row != NULL && strlen(row->name) == length - 2;
}

/* Report that <word> is no option, or is short for several. */
static int option_unknown(const struct option_table *table, const char *word)
{
	size_t length = strcspn(word, "="), at = 0;
	const struct option_row *row;
	char names[512] = "";
	unsigned int i, n = 0;

	if (strncmp(word, "--", 2) == 0 && length > 2)
		option_named(table, word + 2, length - 2, &i, &n);
	if (n == 0)
		return options_error(table, "there is no option %s (see --help)", word);
	for (i = 0; (row = option_at(table, i)) != NULL && at < sizeof(names); i++)
		if (strncmp(row->name, word + 2, length - 2) == 0)
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s--%s",
					       at == 0 ? "" : ", ", row->name);
	return options_error(table, "%.*s is short for several: %s", (int)length, word, names);
}

/*
 * Find the row of the option <word>; its number goes to <at>. NULL when <word> is no option.
 * <value> points at the value in the same word, or is NULL.
 */
static const struct option_row *option_of(const struct option_table *table, const char *word,
					  unsigned int *at, const char **value)
{
	const struct option_row *row;
	size_t length = strcspn(word, "=");
	unsigned int n;

	*value = NULL;
	if (word[1] == '-') {
		if (word[length] == '=')
			*value = word + length + 1;
		return option_named(table, word + 2, length - 2, at, &n);
	}
	if (word[2] != '\0')
		*value = word + 2;
	for (*at = 0; (row = option_at(table, *at)) != NULL; ++*at)
		if (row->letter == word[1])
			return row;
	return NULL;
}

static int option_take(const struct option_table *table, const struct option_row *row,
		       const char *text, void *values)
{
	char error[512] = "", form[OPTION_FORM_MAX];

	if (text == NULL && option_needs_value(row))
		return options_error(table, "--%s: give a value: --%s %s", row->name, row->name,
				     option_form(row, form));
	if (text != NULL && !option_needs_value(row) && !row->optional)
		return options_error(table, "--%s takes no value, and '%s' is given", row->name,
				     text);
	if (row == help_rows) {
		options_print_help(table, values);
		return 1;
	}
	if (row == version_rows) {
		printf("%s %s\n", table->program, table->version);
		return 1;
	}
	if (option_set(row, (char *)values + row->at, text, error, sizeof(error)) == 0)
		return 0;
	return options_error(table, "--%s: '%s' %s", row->name, text != NULL ? text : "", error);
}

static int options_check_required(const struct option_table *table, uint64_t given)
{
	const struct option_row *row;

	for (unsigned int i = 0; (row = option_at(table, i)) != NULL; i++)
		if (row->required && (given >> i & 1) == 0)
			return options_error(table, "--%s is required (see --help)", row->name);
	return 0;
}

int options_parse(const struct option_table *table, int argc, char **argv, void *values,
		  uint64_t *given)
{
	bool options = true; /* until "--" */
	uint64_t bits = 0;
	int operands = 0, ret;

	for (int i = 1; i < argc; i++) {
		const struct option_row *row;
		const char *value;
		unsigned int at;

		if (options && strcmp(argv[i], "--") == 0) {
			options = false;
			continue;
		}
		if (!options || argv[i][0] != '-' || argv[i][1] == '\0') {
			if (!table->operands)
				return options_error(table, "unexpected argument '%s' (see --help)",
						     argv[i]);
			argv[++operands] = argv[i];
			continue;
		}
		row = option_of(table, argv[i], &at, &value);
		if (row == NULL)
			return option_unknown(table, argv[i]);
		if (value == NULL && option_needs_value(row) && i + 1 < argc &&
		    !option_is_whole(table, argv[i + 1]))
			value = argv[++i];
		ret = option_take(table, row, value, values);
		if (ret != 0)
			return ret;
		bits |= UINT64_C(1) << at;
	}
	if (table->operands)
		argv[operands + 1] = NULL;
	if (given != NULL)
		*given = bits;
	return options_check_required(table, bits);
}
