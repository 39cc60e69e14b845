/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "json/number_write.h"
#include "json/write.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static void json_put_bytes(struct json_out *o, const char *bytes, uint32_t n)
{
	if (o->full || n > o->end - o->at) {
		o->full = true;
		return;
	}
	memcpy(o->at, bytes, n);
	o->at += n;
}

void json_put(struct json_out *o, const char *text)
{
	json_put_bytes(o, text, (uint32_t)strlen(text));
}

void json_put_u64(struct json_out *o, uint64_t value)
{
	char text[JSON_NUMBER_ROOM];

	json_put_bytes(o, text, json_number_write_u64(text, value));
}

void json_put_i64(struct json_out *o, int64_t value)
{
	char text[JSON_NUMBER_ROOM];

	json_put_bytes(o, text, json_number_write_i64(text, value));
}

/* The letter behind the backslash; 0: there is none. */
static char json_escape_of(char c)
{
	switch (c) {
	case '"':
	case '\\':
		return c;
	case '\b':
		return 'b';
	case '\f':
		return 'f';
	case '\n':
		return 'n';
	case '\r':
		return 'r';
	case '\t':
		return 't';
	default:
		return 0;
	}
}

/* Does the byte stand for itself? */
static bool json_is_plain(uint8_t c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void json_put_ascii(struct json_out *o, char c)
{
	static const char digits[] = "0123456789abcdef";
	char simple = json_escape_of(c);

	if (simple != 0)
		json_put_bytes(o, (char[]){'\\', simple}, 2);
	else if (!json_is_plain((uint8_t)c))
		json_put_bytes(o, (char[]){'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]}, 6);
	else
		json_put_bytes(o, &c, 1);
}

void json_escape_end(struct json_escape *e, struct json_out *o)
{
	if (e->utf8.left > 0)
		json_put(o, REPLACEMENT);
	e->utf8.left = 0;
	e->length = 0;
}

void json_escape_put(struct json_escape *e, struct json_out *o, uint8_t c)
{
	if (e->utf8.left > 0 && !utf8_next(&e->utf8, c))
		json_escape_end(e, o);
	if (e->length > 0) {
		e->held[e->length++] = (char)c;
		if (e->utf8.left > 0)
			return;
		json_put_bytes(o, e->held, e->length);
		e->length = 0;
	} else if (c < 0x80) {
		json_put_ascii(o, (char)c);
	} else if (utf8_begin(&e->utf8, c)) {
		e->held[e->length++] = (char)c;
	} else {
		json_put(o, REPLACEMENT);
	}
}

void json_put_string(struct json_out *o, const char *text, uint32_t length)
{
	struct json_escape e = {0};

	json_put_bytes(o, "\"", 1);
	for (uint32_t i = 0, n; i < length; i += n) {
		for (n = 0; e.utf8.left == 0 && i + n < length && json_is_plain(text[i + n]); n++)
			;
		if (n > 0) {
			json_put_bytes(o, text + i, n);
			continue;
		}
		if (e.utf8.left == 0 && (uint8_t)text[i] < 0x80)
			json_put_ascii(o, text[i]);
		else
			json_escape_put(&e, o, (uint8_t)text[i]);
		n = 1;
	}
	json_escape_end(&e, o);
	json_put_bytes(o, "\"", 1);
}
