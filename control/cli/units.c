/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values for people: three digits and a unit say more than twelve digits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* <value> in the largest of <units> that leaves at least 1, each <step> of the one before. */
static void scale(double value, double step, const char *const units[], unsigned int n, char *buf,
		  size_t size)
{
	unsigned int unit = 0;

	/* 999.5 of one unit would round to 1000 of it */
	while (unit + 1 < n && value >= step - 0.5) {
		value /= step;
		unit++;
	}
	snprintf(buf, size, unit == 0 || value >= 99.95 ? "%.0f%s" : "%.1f%s", value, units[unit]);
}

static void format_count(json_int_t value, char *buf, size_t size)
{
	static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};

	if (value < 10000)
		snprintf(buf, size, "%" JSON_INTEGER_FORMAT, value);
	else
		scale((double)value, 1000, units, CLI_COUNT_OF(units), buf, size);
}

static void format_bytes(json_int_t value, char *buf, size_t size)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};

	scale((double)value, 1024, units, CLI_COUNT_OF(units), buf, size);
}

static void format_seconds(json_int_t value, char *buf, size_t size)
{
	long long s = value;

	if (s < 60)
		snprintf(buf, size, "%llds", s);
	else if (s < 3600)
		snprintf(buf, size, "%lldm%02llds", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, size, "%lldh%02lldm", s / 3600, s / 60 % 60);
	else
		snprintf(buf, size, "%lldd%02lldh", s / 86400, s / 3600 % 24);
}

static const char *const durations[] = {" us", " ms", " s"};

static void format_us(json_int_t value, char *buf, size_t size)
{
	scale((double)value, 1000, durations, 3, buf, size);
}

static void format_ms(json_int_t value, char *buf, size_t size)
{
	scale((double)value, 1000, durations + 1, 2, buf, size);
}

static void format_plain(json_int_t value, char *buf, size_t size)
{
	snprintf(buf, size, "%" JSON_INTEGER_FORMAT, value);
}

static void format_percent(json_int_t value, char *buf, size_t size)
{
	snprintf(buf, size, "%" JSON_INTEGER_FORMAT "%%", value);
}

static void (*const integers[CLI_FORMATS])(json_int_t value, char *buf, size_t size) = {
	[CLI_TEXT] = format_plain,  [CLI_PLAIN] = format_plain,     [CLI_COUNT] = format_count,
	[CLI_BYTES] = format_bytes, [CLI_SECONDS] = format_seconds, [CLI_MS] = format_ms,
	[CLI_US] = format_us,       [CLI_PERCENT] = format_percent,
};

/* What others chose must not move the cursor. */
static void format_text(const char *value, char *buf, size_t size)
{
	snprintf(buf, size, "%s", *value ? value : "-");
	for (char *p = buf; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

const char *cli_format_value(enum cli_format format, const json_t *value, char *buf, size_t size)
{
	if (json_is_string(value))
		format_text(json_string_value(value), buf, size);
	else if (json_is_boolean(value))
		snprintf(buf, size, "%s", json_is_true(value) ? "yes" : "no");
	else if (json_is_integer(value))
		integers[format](json_integer_value(value), buf, size);
	else
		snprintf(buf, size, "-");
	return buf;
}
