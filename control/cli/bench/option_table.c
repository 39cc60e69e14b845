/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/option_table.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/endpoint.h"

#define OPTIONS_MAX 48

static int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || *number < min ||
	    *number > max)
		return -EINVAL;
	return 0;
}

static int seconds_parse(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	/* Written so that NaN fails, too. */
	return *end == '\0' && *seconds > 0 && *seconds < 1e6 ? 0 : -EINVAL;
}

static int real_parse(const char *text, double min, double max, double *real)
{
	char *end;

	*real = strtod(text, &end);
	return end != text && *end == '\0' && *real >= min && *real <= max ? 0 : -EINVAL;
}

int address_parse(const char *text, struct address *address)
{
	struct endpoint endpoint;

	memset(address, 0, sizeof(*address));
	if (endpoint_parse(text, &endpoint) != 0)
		return -EINVAL;
	return endpoint_socket(&endpoint, &address->socket, &address->length);
}

static int option_set(const struct option_row *option, const char *text)
{
	char error[256];

	switch (option->kind) {
	case OPTION_NUMBER:
		if (number_parse(text, option->min, option->max, option->value) == 0)
			return 0;
		fprintf(stderr, "--%s %s: must be a number from %" PRIu64 " to %" PRIu64 "\n",
			option->name, text, option->min, option->max);
		return -EINVAL;
	case OPTION_SECONDS:
		if (seconds_parse(text, option->value) == 0)
			return 0;
		fprintf(stderr, "--%s %s: must be a number of seconds above 0\n", option->name,
			text);
		return -EINVAL;
	case OPTION_ADDRESS:
		if (address_parse(text, option->value) == 0)
			return 0;
		fprintf(stderr, "--%s %s: must be like 192.0.2.1:9000 or [2001:db8::1]:9000\n",
			option->name, text);
		return -EINVAL;
	case OPTION_TEXT:
		*(const char **)option->value = text;
		return 0;
	case OPTION_FLAG:
		*(bool *)option->value = true;
		return 0;
	case OPTION_REAL:
		if (real_parse(text, (double)option->min, (double)option->max, option->value) == 0)
			return 0;
		fprintf(stderr, "--%s %s: must be a number from %" PRIu64 " to %" PRIu64 "\n",
			option->name, text, option->min, option->max);
		return -EINVAL;
	case OPTION_CALL:
		if (option->take(option->value, text, error, sizeof(error)) == 0)
			return 0;
		fprintf(stderr, "--%s %s: %s\n", option->name, text, error);
		return -EINVAL;
	}
	return -EINVAL;
}

static void help_print(const char *usage, const struct option_row *table)
{
	static const char *const values[] = {
		[OPTION_NUMBER] = "N",          [OPTION_SECONDS] = "S", [OPTION_TEXT] = "TEXT",
		[OPTION_ADDRESS] = "ADDR:PORT", [OPTION_FLAG] = "",     [OPTION_REAL] = "N",
	};

	printf("usage: %s\n", usage);
	for (; table->name != NULL; table++) {
		printf("  --%-14s %-10s %s", table->name,
		       table->kind == OPTION_CALL ? table->form : values[table->kind], table->help);
		if (table->kind == OPTION_NUMBER && *(uint64_t *)table->value != 0)
			printf(" (default %" PRIu64 ")", *(uint64_t *)table->value);
		else if (table->kind == OPTION_REAL && *(double *)table->value != 0)
			printf(" (default %g)", *(double *)table->value);
		printf("\n");
	}
}

void options_print_names(const struct option_row *table)
{
	for (; table->name != NULL; table++)
		printf(" --%s%s", table->name, table->kind == OPTION_FLAG ? "" : "=");
}

int options_parse(int argc, char **argv, const char *usage, const struct option_row *table)
{
	struct option longs[OPTIONS_MAX + 2] = {0};
	int n, found;

	for (n = 0; n < OPTIONS_MAX && table[n].name != NULL; n++)
		longs[n] = (struct option){
			.name = table[n].name,
			.has_arg = table[n].kind == OPTION_FLAG ? no_argument : required_argument,
			.val = n + 1,
		};
	longs[n] = (struct option){.name = "help", .val = n + 1};
	/* No short options: "+" stops at the first word that is not an option. */
	while ((found = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
		if (found == '?')
			return -EINVAL;
		if (found == n + 1) {
			help_print(usage, table);
			return 1;
		}
		if (option_set(&table[found - 1], optarg) != 0)
			return -EINVAL;
	}
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected word '%s'\n", argv[0], argv[optind]);
		return -EINVAL;
	}
	return 0;
}
