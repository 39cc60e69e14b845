/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of rows and races that fail. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

static unsigned int failures;
static char context[128];
static unsigned int contexts;

unsigned int walk_contexts(void)
{
	unsigned int n = contexts > 0 ? contexts : 1;

	contexts = 0;
	return n;
}

unsigned int walk_failures(void)
{
	unsigned int n = failures;

	failures = 0;
	return n;
}

void walk_context(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(context, sizeof(context), format, arguments);
	contexts += context[0] != '\0';
	va_end(arguments);
}

static void say(const char *file, int line, const char *condition, const char *format,
		va_list arguments)
{
	fprintf(stderr, "%s:%d: %s%s%s", file, line, context, context[0] != '\0' ? ": " : "",
		condition);
	/* Every format begins with a space, as an empty one is not allowed. */
	if (format[1] != '\0') {
		fputc(':', stderr);
		vfprintf(stderr, format, arguments);
	}
	fputc('\n', stderr);
}

void walk_failed(const char *file, int line, const char *condition, const char *format, ...)
{
	va_list arguments;

	failures++;
	va_start(arguments, format);
	say(file, line, condition, format, arguments);
	va_end(arguments);
}

void walk_fatal(const char *file, int line, const char *condition, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(file, line, condition, format, arguments);
	va_end(arguments);
	exit(EXIT_FAILURE);
}

bool walk_equal(const char *file, int line, const char *a_text, uint64_t a, const char *b_text,
		uint64_t b)
{
	if (a == b)
		return true;
	walk_failed(file, line, a_text, " is %lu, not %s (%lu)", a, b_text, b);
	return false;
}
