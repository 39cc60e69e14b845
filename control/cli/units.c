/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values for people: three digits and a unit are easier to read than twelve digits.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

/*
 * A value being written, cut at the end of its buffer. Not by printf(), which takes most of a long
 * list's time.
 */
struct out {
	char *at, *end; /* room for the terminator comes after <end> */
};

static void put(struct out *out, const char *text)
{
	while (*text && out->at < out->end)
		*out->at++ = *text++;
}

/* Write <value> with leading zeroes, to <width> digits. */
static void put_padded(struct out *out, uint64_t value, unsigned int width)
{
	char digits[21];
	unsigned int at = sizeof(digits) - 1, n = 0;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (++n < width || value > 0);
	put(out, digits + at);
}

static void put_number(struct out *out, uint64_t value)
{
	put_padded(out, value, 1);
}

/*
 * Write <value> in the largest of <units> that leaves at least 1; each unit is <step> of the one
 * before.
 */
static void scale(struct out *out, double value, double step, const char *const units[],
		  unsigned int n)
{
	unsigned int unit = 0;

	/* 999.5 of a unit would be rounded to 1000 */
	while (unit + 1 < n && value >= step - 0.5) {
		value /= step;
		unit++;
	}
	if (unit == 0 || value >= 99.95) {
		put_number(out, (uint64_t)(value + 0.5));
	} else {
		uint64_t tenths = (uint64_t)(value * 10 + 0.5);

		put_number(out, tenths / 10);
		put(out, ".");
		put_number(out, tenths % 10);
	}
	put(out, units[unit]);
}

static void format_count(struct out *out, uint64_t value)
{
	static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};

	if (value < 10000)
		put_number(out, value);
	else
		scale(out, (double)value, 1000, units, CLI_COUNT_OF(units));
}

static void format_bytes(struct out *out, uint64_t value)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};

	scale(out, (double)value, 1024, units, CLI_COUNT_OF(units));
}

static void format_seconds(struct out *out, uint64_t s)
{
	static const struct {
		uint64_t below, large, small;
		const char *large_name, *small_name;
	} scales[] = {
		{60, 1, 0, "s", ""},
		{3600, 60, 1, "m", "s"},
		{86400, 3600, 60, "h", "m"},
		{UINT64_MAX, 86400, 3600, "d", "h"},
	};
	unsigned int i = 0;

	while (s >= scales[i].below)
		i++;
	put_number(out, s / scales[i].large);
	put(out, scales[i].large_name);
	if (!scales[i].small)
		return;
	put_padded(out, s % scales[i].large / scales[i].small, 2);
	put(out, scales[i].small_name);
}

static const char *const durations[] = {" us", " ms", " s"};

static void format_us(struct out *out, uint64_t value)
{
	scale(out, (double)value, 1000, durations, 3);
}

static void format_ms(struct out *out, uint64_t value)
{
	scale(out, (double)value, 1000, durations + 1, 2);
}

static void format_percent(struct out *out, uint64_t value)
{
	put_number(out, value);
	put(out, "%");
}

static void (*const integers[CLI_FORMATS])(struct out *out, uint64_t value) = {
	[CLI_TEXT] = put_number,    [CLI_PLAIN] = put_number,       [CLI_COUNT] = format_count,
	[CLI_BYTES] = format_bytes, [CLI_SECONDS] = format_seconds, [CLI_MS] = format_ms,
	[CLI_US] = format_us,       [CLI_PERCENT] = format_percent,
};

static void format_integer(enum cli_format format, json_int_t value, struct out *out)
{
	if (value < 0)
		put(out, "-");
	integers[format](out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* Format a fraction, or a mean of small numbers. */
static void format_real(enum cli_format format, double value, struct out *out)
{
	char text[32];

	if (format == CLI_PERCENT)
		snprintf(text, sizeof(text), "%.1f%%", value * 100);
	else if (format == CLI_US && value >= 10) {
		format_us(out, (uint64_t)(value + 0.5));
		return;
	} else if (format == CLI_US)
		snprintf(text, sizeof(text), "%.1f us", value);
	else
		snprintf(text, sizeof(text), "%.2f", value);
	put(out, text);
}

/* Replace control characters by '?': texts from clients and workers must not move the cursor. */
static void format_text(const char *value, struct out *out)
{
	char *start = out->at;

	put(out, *value ? value : "-");
	for (char *p = start; p < out->at; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

static void format_names(const json_t *names, struct out *out)
{
	size_t i;
	json_t *name;

	json_array_foreach ((json_t *)names, i, name) {
		put(out, i > 0 ? "," : "");
		format_text(json_string_value(name) != NULL ? json_string_value(name) : "?", out);
	}
	if (json_array_size(names) == 0)
		put(out, "-");
}

static void format_pairs(const json_t *object, struct out *out)
{
	const char *key, *comma = "";
	json_t *value;

	json_object_foreach ((json_t *)object, key, value) {
		put(out, comma);
		format_text(key, out);
		put(out, "=");
		if (json_is_integer(value))
			format_integer(CLI_PLAIN, json_integer_value(value), out);
		else
			format_text(json_string_value(value) != NULL ? json_string_value(value)
								     : "?",
				    out);
		comma = ",";
	}
	if (json_object_size(object) == 0)
		put(out, "-");
}

const char *cli_format_value(enum cli_format format, const json_t *value, char *buf, size_t size)
{
	struct out out = {buf, buf + size - 1};

	if (json_is_string(value))
		format_text(json_string_value(value), &out);
	else if (json_is_boolean(value))
		put(&out, json_is_true(value) ? "yes" : "no");
	else if (json_is_integer(value))
		format_integer(format, json_integer_value(value), &out);
	else if (json_is_real(value))
		format_real(format, json_real_value(value), &out);
	else if (json_is_array(value))
		format_names(value, &out);
	else if (json_is_object(value))
		format_pairs(value, &out);
	else
		put(&out, "-");
	*out.at = '\0';
	return buf;
}

/* Format the usual values, a short string without escapes or digits. False for any other. */
static bool format_simple(enum cli_format format, struct scan value, struct out *out)
{
	size_t n = (size_t)(value.end - value.at);
	char text[CLI_VALUE_MAX];
	json_int_t number = 0;

	if (n >= 2 && n < sizeof(text) && *value.at == '"' && memchr(value.at, '\\', n) == NULL) {
		memcpy(text, value.at + 1, n - 2);
		text[n - 2] = '\0';
		format_text(text, out);
		return true;
	}
	if (n == 0 || n > 18)
		return false;
	for (const char *p = value.at; p < value.end; p++) {
		if (*p < '0' || *p > '9')
			return false;
		number = number * 10 + *p - '0';
	}
	format_integer(format, number, out);
	return true;
}

const char *cli_format_scan(enum cli_format format, struct scan value, char *buf, size_t size)
{
	struct out out = {buf, buf + size - 1};
	json_t *built;

	if (format_simple(format, value, &out)) {
		*out.at = '\0';
		return buf;
	}
	built = json_loadb(value.at, (size_t)(value.end - value.at), JSON_DECODE_ANY, NULL);
	cli_format_value(format, built, buf, size);
	json_decref(built);
	return buf;
}
