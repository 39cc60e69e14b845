/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/log_line.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FIELDS_MAX 24
#define KEY_MAX    32
#define MODULE_MAX 32

const char *const log_format_names[LOG_FORMATS + 1] = {"text", "logfmt", "json", NULL};

/* Names of rte_log.h's levels, which count from 1. */
static const char *const levels[] = {"emergency", "alert",  "critical", "error",
				     "warning",   "notice", "info",     "debug"};
#define LEVELS (int)(sizeof(levels) / sizeof(levels[0]))

const char *log_level_name(int level)
{
	return levels[level >= 1 && level <= LEVELS ? level - 1 : LEVELS - 1];
}

int log_level_number(const char *name)
{
	for (int i = 0; i < LEVELS; i++)
		if (strcmp(levels[i], name) == 0)
			return i + 1;
	return -1;
}

/* --- parsing ---------------------------------------------------------------------------------- */

struct span {
	const char *at;
	size_t n;
};

struct field {
	struct span key, value;
};

struct parts {
	struct span module; /* may be empty */
	struct span words;  /* from the first to the last word that is no pair */
	unsigned int n;
	struct field field[FIELDS_MAX];
};

static bool is_name(int c)
{
	return isalnum(c) || c == '_' || c == '.' || c == '-';
}

/* Take "lb: " from the front; returns the rest. */
static struct span parts_take_module(struct span text, struct span *module)
{
	size_t n = 0;

	*module = (struct span){text.at, 0};
	while (n < text.n && n <= MODULE_MAX && is_name((unsigned char)text.at[n]))
		n++;
	if (n == 0 || n > MODULE_MAX || n >= text.n || text.at[n] != ':')
		return text;
	if (n + 1 < text.n && text.at[n + 1] != ' ')
		return text;
	module->n = n++;
	while (n < text.n && text.at[n] == ' ')
		n++;
	return (struct span){text.at + n, text.n - n};
}

/* Bytes of "key=" at the start, or 0. */
static size_t key_length(struct span text)
{
	size_t n = 0;

	if (text.n == 0 || !(isalpha((unsigned char)text.at[0]) || text.at[0] == '_'))
		return 0;
	while (n < text.n && n <= KEY_MAX &&
	       (isalnum((unsigned char)text.at[n]) || text.at[n] == '_' || text.at[n] == '.'))
		n++;
	return n <= KEY_MAX && n < text.n && text.at[n] == '=' ? n + 1 : 0;
}

static size_t word_length(struct span text)
{
	size_t n = 0;

	while (n < text.n && text.at[n] != ' ')
		n++;
	return n;
}

/* Take a value from the front; returns its bytes with quotes, or 0 when there is no value. */
static size_t parts_take_value(struct span text, struct span *value)
{
	const char *end;
	size_t n;

	if (text.n > 0 && text.at[0] == '"') {
		end = memchr(text.at + 1, '"', text.n - 1);
		if (end == NULL)
			return 0;
		*value = (struct span){text.at + 1, (size_t)(end - text.at) - 1};
		return value->n + 2;
	}
	n = word_length(text);
	*value = (struct span){text.at, n};
	/* "lcores=2, so ..." */
	while (value->n > 0 && strchr(",;:", text.at[value->n - 1]) != NULL)
		value->n--;
	return n;
}

static bool span_equal(struct span a, struct span b)
{
	return a.n == b.n && memcmp(a.at, b.at, a.n) == 0;
}

static bool has_field(const struct parts *p, struct span key)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (span_equal(p->field[i].key, key))
			return true;
	return false;
}

/* Take a pair from the front; returns its bytes or 0. A repeated key counts as words. */
static size_t parts_take_pair(struct span text, struct parts *p)
{
	size_t n = key_length(text), taken;
	struct field field;

	if (n == 0 || p->n == FIELDS_MAX)
		return 0;
	field.key = (struct span){text.at, n - 1};
	taken = parts_take_value((struct span){text.at + n, text.n - n}, &field.value);
	if (taken == 0 || has_field(p, field.key))
		return 0;
	p->field[p->n++] = field;
	return n + taken;
}

static void parts_split(struct span text, struct parts *p)
{
	struct span rest = parts_take_module(text, &p->module);
	const char *end = rest.at;

	p->n = 0;
	p->words = (struct span){rest.at, 0};
	while (rest.n > 0) {
		size_t n = parts_take_pair(rest, p);

		if (n == 0 && rest.at[0] != ' ') {
			n = word_length(rest);
			if (p->words.n == 0)
				p->words.at = rest.at;
			end = rest.at + n;
			p->words.n = (size_t)(end - p->words.at);
		}
		n += n == 0; /* skip a space */
		rest.at += n;
		rest.n -= n;
	}
}

/* --- writing ---------------------------------------------------------------------------------- */

/* No function below checks for room: LOG_LINE_MAX is enough for any LOG_TEXT_MAX bytes. */
struct out {
	char *at;
};

static void out_text(struct out *o, const char *text)
{
	size_t n = strlen(text);

	memcpy(o->at, text, n);
	o->at += n;
}

static void out_span(struct out *o, struct span s)
{
	memcpy(o->at, s.at, s.n);
	o->at += s.n;
}

static void out_hex(struct out *o, const char *format, unsigned int value)
{
	o->at += sprintf(o->at, format, value);
}

/* Bytes of the UTF-8 character at the start (RFC 3629), or 0 when there is none. */
static size_t utf8_length(const uint8_t *s, size_t n)
{
	size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (length == 0 || s[0] > 0xf4 || length > n)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, UTF-16 surrogates, and numbers above U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return length;
}

/* U+0000 to U+001F, U+007F to U+009F, and the line and paragraph separators. */
static bool is_control(const uint8_t *s, size_t length)
{
	if (length == 1)
		return s[0] < 0x20 || s[0] == 0x7f;
	return (length == 2 && s[0] == 0xc2 && s[1] < 0xa0) ||
	       (length == 3 && s[0] == 0xe2 && s[1] == 0x80 && (s[2] == 0xa8 || s[2] == 0xa9));
}

static unsigned int utf8_code(const uint8_t *s, size_t length)
{
	if (length == 1)
		return s[0];
	if (length == 2)
		return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
	return (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
}

/*
 * Write text with control characters as \uXXXX, \n or \t, and bytes that are not UTF-8 as U+FFFD.
 */
static void out_clean(struct out *o, struct span text, bool quoted)
{
	const uint8_t *s = (const uint8_t *)text.at;

	for (size_t i = 0, n; i < text.n; i += n) {
		n = utf8_length(s + i, text.n - i);
		/* A NUL as well: many readers reject even an escaped one. */
		if (n == 0 || s[i] == '\0') {
			out_text(o, "\xef\xbf\xbd");
			n = 1;
		} else if (quoted && (s[i] == '"' || s[i] == '\\')) {
			*o->at++ = '\\';
			*o->at++ = (char)s[i];
		} else if (s[i] == '\n' || s[i] == '\t') {
			out_text(o, s[i] == '\n' ? "\\n" : "\\t");
		} else if (is_control(s + i, n)) {
			out_hex(o, "\\u%04x", utf8_code(s + i, n));
		} else {
			out_span(o, (struct span){text.at + i, n});
		}
	}
}

static void out_quoted(struct out *o, struct span text)
{
	out_text(o, "\"");
	out_clean(o, text, true);
	out_text(o, "\"");
}

static void out_time(struct out *o, const struct timespec *time)
{
	struct tm tm;

	gmtime_r(&time->tv_sec, &tm);
	o->at += strftime(o->at, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	o->at += sprintf(o->at, ".%06ldZ", time->tv_nsec / 1000 % 1000000);
}

static struct span span_of(const char *text)
{
	return (struct span){text, strlen(text)};
}

/* Keys that every line has already; a pair with such a key gets a '_'. */
static bool is_reserved(struct span key)
{
	static const char *const names[] = {"time", "level", "module", "msg"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (span_equal(key, span_of(names[i])))
			return true;
	return false;
}

static void out_key(struct out *o, struct span key)
{
	out_span(o, key);
	if (is_reserved(key))
		out_text(o, "_");
}

/* --- the formats ------------------------------------------------------------------------------ */

static void write_as_text(struct out *o, const struct log_line *line, const struct parts *p,
			  struct span text)
{
	out_time(o, &line->time);
	out_text(o, " ");
	out_text(o, log_level_name(line->level));
	out_text(o, " ");
	out_clean(o, text, false);
}

/* Write a value, in quotes unless it is plain ASCII without spaces, quotes, '\\' and '='. */
static void out_logfmt(struct out *o, struct span value)
{
	bool plain = value.n > 0;

	for (size_t i = 0; i < value.n; i++)
		plain &= (unsigned char)value.at[i] > ' ' && (unsigned char)value.at[i] < 0x7f &&
			 strchr("\"\\=", value.at[i]) == NULL;
	if (plain)
		out_span(o, value);
	else
		out_quoted(o, value);
}

static void write_as_logfmt(struct out *o, const struct log_line *line, const struct parts *p,
			    struct span text)
{
	out_text(o, "time=");
	out_time(o, &line->time);
	out_text(o, " level=");
	out_text(o, log_level_name(line->level));
	out_text(o, " module=");
	out_logfmt(o, p->module.n > 0 ? p->module : span_of("dpdk"));
	if (p->words.n > 0) {
		out_text(o, " msg=");
		out_logfmt(o, p->words);
	}
	for (unsigned int i = 0; i < p->n; i++) {
		out_text(o, " ");
		out_key(o, p->field[i].key);
		out_text(o, "=");
		out_logfmt(o, p->field[i].value);
	}
}

/* True for a number that every JSON reader parses exactly: up to 15 digits, no leading zero. */
static bool is_number(struct span value)
{
	if (value.n == 0 || value.n > 15 || (value.n > 1 && value.at[0] == '0'))
		return false;
	for (size_t i = 0; i < value.n; i++)
		if (!isdigit((unsigned char)value.at[i]))
			return false;
	return true;
}

static void write_as_json(struct out *o, const struct log_line *line, const struct parts *p,
			  struct span text)
{
	out_text(o, "{\"time\":\"");
	out_time(o, &line->time);
	out_text(o, "\",\"level\":\"");
	out_text(o, log_level_name(line->level));
	out_text(o, "\",\"module\":");
	out_quoted(o, p->module.n > 0 ? p->module : span_of("dpdk"));
	if (p->words.n > 0) {
		out_text(o, ",\"msg\":");
		out_quoted(o, p->words);
	}
	for (unsigned int i = 0; i < p->n; i++) {
		out_text(o, ",\"");
		out_key(o, p->field[i].key);
		out_text(o, "\":");
		if (is_number(p->field[i].value))
			out_span(o, p->field[i].value);
		else
			out_quoted(o, p->field[i].value);
	}
	out_text(o, "}");
}

size_t log_line_write(enum log_format format, const struct log_line *line, char out[LOG_LINE_MAX])
{
	static void (*const writers[LOG_FORMATS])(struct out *, const struct log_line *,
						  const struct parts *, struct span) = {
		[LOG_FORMAT_TEXT] = write_as_text,
		[LOG_FORMAT_LOGFMT] = write_as_logfmt,
		[LOG_FORMAT_JSON] = write_as_json,
	};
	struct span text = {line->text, line->length < LOG_TEXT_MAX ? line->length : LOG_TEXT_MAX};
	struct out o = {out};
	struct parts p;

	parts_split(text, &p);
	writers[format](&o, line, &p, text);
	out_text(&o, "\n");
	return (size_t)(o.at - out);
}
