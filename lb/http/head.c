/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>

#include "http/head.h"

/* Fields that mean something to us: a bit each in <fields>. */
enum head_field {
	FIELD_HOST,
	FIELD_CONTENT_LENGTH,
	FIELD_TRANSFER_ENCODING,
	FIELD_EXPECT,
	FIELD_CONNECTION,
	FIELD_CONTENT_TYPE,
	FIELD_CONTENT_ENCODING,
	FIELD_JSON_LENGTH,
	FIELDS,
};

struct text {
	const char *at;
	uint32_t length;
};

#define TEXT(literal) ((struct text){literal, sizeof(literal) - 1})

#define LENGTH_MAX ((uint64_t)1 << 62)

/* Characters of tokens (RFC 9110, 5.6.2), of a request's target and of host names (RFC 3986), and
 * of addresses in brackets. */
#define TOKEN   1
#define TARGET  2
#define HOST    4
#define ADDRESS 8

static const uint8_t char_classes[256] = {
	['0' ... '9'] = TOKEN | TARGET | HOST | ADDRESS,
	['A' ... 'F'] = TOKEN | TARGET | HOST | ADDRESS,
	['G' ... 'Z'] = TOKEN | TARGET | HOST,
	['a' ... 'f'] = TOKEN | TARGET | HOST | ADDRESS,
	['g' ... 'z'] = TOKEN | TARGET | HOST,
	['!'] = TOKEN | TARGET | HOST,
	['#'] = TOKEN,
	['$'] = TOKEN | TARGET | HOST,
	['%'] = TOKEN | TARGET | HOST,
	['&'] = TOKEN | TARGET | HOST,
	['\''] = TOKEN | TARGET | HOST,
	['('] = TARGET | HOST,
	[')'] = TARGET | HOST,
	['*'] = TOKEN | TARGET | HOST,
	['+'] = TOKEN | TARGET | HOST,
	[','] = TARGET | HOST,
	['-'] = TOKEN | TARGET | HOST,
	['.'] = TOKEN | TARGET | HOST | ADDRESS,
	['/'] = TARGET,
	[':'] = TARGET | ADDRESS,
	[';'] = TARGET | HOST,
	['='] = TARGET | HOST,
	['?'] = TARGET,
	['@'] = TARGET,
	['^'] = TOKEN,
	['_'] = TOKEN | TARGET | HOST,
	['`'] = TOKEN,
	['|'] = TOKEN,
	['~'] = TOKEN | TARGET | HOST,
};

static bool text_has_only(struct text t, uint8_t class)
{
	uint8_t all = class;

	for (uint32_t i = 0; i < t.length; i++)
		all &= char_classes[(uint8_t)t.at[i]];
	return all != 0;
}

/* Of characters in a word, those that are letters may be in upper case: bit 6 tells them from the
 * digits and punctuation that our names have. */
static inline bool text_word_is(uint64_t word, uint64_t lower)
{
	return (word | (lower & 0x4040404040404040) >> 1) == lower;
}

/* <lower> is in lower case. */
static inline bool text_is(struct text t, struct text lower)
{
	uint64_t word, want;
	uint32_t i = 0;

	if (t.length != lower.length)
		return false;
	for (; i + sizeof(word) <= t.length; i += sizeof(word)) {
		memcpy(&word, t.at + i, sizeof(word));
		memcpy(&want, lower.at + i, sizeof(want));
		if (!text_word_is(word, want))
			return false;
	}
	for (; i < t.length; i++) {
		if (!text_word_is((uint8_t)t.at[i], (uint8_t)lower.at[i]))
			return false;
	}
	return true;
}

static inline bool text_equals(struct text t, struct text other)
{
	return t.length == other.length && memcmp(t.at, other.at, t.length) == 0;
}

static struct text text_from(struct text t, uint32_t from)
{
	return (struct text){t.at + from, t.length - from};
}

/* Up to <c>, which leaves <t> with what is behind it; all of <t> if there is none. */
static struct text text_cut(struct text *t, char c)
{
	const char *stop = t->length == 0 ? NULL : memchr(t->at, c, t->length);
	struct text first = *t;

	if (stop == NULL) {
		*t = text_from(*t, t->length);
		return first;
	}
	first.length = (uint32_t)(stop - t->at);
	*t = text_from(*t, first.length + 1);
	return first;
}

static struct text text_trim(struct text t)
{
	while (t.length > 0 && (t.at[0] == ' ' || t.at[0] == '\t'))
		t = text_from(t, 1);
	while (t.length > 0 && (t.at[t.length - 1] == ' ' || t.at[t.length - 1] == '\t'))
		t.length--;
	return t;
}

/* --- refusals --- */

/* The request's end is not known. */
static void head_break(struct http_head *h, uint16_t status)
{
	h->status = status;
	h->broken = true;
	h->done = true;
	h->keep_alive = false;
}

/* The first fault that leaves the request's end known is the one that is told. */
static void head_refuse(struct http_head *h, uint16_t status)
{
	if (h->status == 0)
		h->status = status;
}

/* --- the request line --- */

static void head_method(struct http_head *h, struct text method)
{
	static const struct text others[] = {{"PUT", 3},   {"DELETE", 6}, {"OPTIONS", 7},
					     {"PATCH", 5}, {"TRACE", 5},  {"CONNECT", 7}};

	if (text_equals(method, TEXT("POST")))
		h->method = HTTP_POST;
	else if (text_equals(method, TEXT("GET")))
		h->method = HTTP_GET;
	else if (text_equals(method, TEXT("HEAD")))
		h->method = HTTP_HEAD;
	else
		h->method = HTTP_OTHER_METHOD;
	if (h->method != HTTP_OTHER_METHOD)
		return;
	head_refuse(h, 501);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (text_equals(method, others[i]))
			h->status = 405;
	}
}

static bool head_version(struct http_head *h, struct text version)
{
	const char *at = version.at;

	if (version.length != 8 || memcmp(at, "HTTP/", 5) != 0 || at[6] != '.' || at[5] < '0' ||
	    at[5] > '9' || at[7] < '0' || at[7] > '9') {
		head_break(h, 400);
		return false;
	}
	if (at[5] != '1' || at[7] > '1') {
		head_break(h, 505);
		return false;
	}
	h->minor = (uint8_t)(at[7] - '0');
	return true;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* Each % has two digits. */
static bool head_escapes_are_valid(struct text t)
{
	struct text rest = t;

	for (;;) {
		text_cut(&rest, '%');
		if (rest.length == 0)
			return t.length == 0 || t.at[t.length - 1] != '%';
		if (rest.length < 2 || !is_hex(rest.at[0]) || !is_hex(rest.at[1]))
			return false;
	}
}

/* A name or an address, and maybe a port. No user: nobody logs in by a URL here. */
static bool head_host_is_valid(struct text host)
{
	struct text port = host, name = text_cut(&port, ':');
	bool valid = text_has_only(name, HOST) && head_escapes_are_valid(name);

	if (host.length > 0 && host.at[0] == '[') {
		port = text_from(host, 1);
		name = text_cut(&port, ']');
		valid = name.length > 0 && name.length + 1 < host.length &&
			text_has_only(name, ADDRESS) && (port.length == 0 || port.at[0] == ':');
		port = text_from(port, port.length > 0);
	}
	for (uint32_t i = 0; i < port.length; i++)
		valid &= port.at[i] >= '0' && port.at[i] <= '9';
	return valid;
}

/* http://host/path: leaves the path. False: no valid one. */
static bool head_absolute(struct text *target)
{
	struct text scheme = {target->at, 0}, authority;
	uint32_t n = 0;

	while (n < target->length && target->at[n] != '/')
		n++;
	scheme.length = n;
	if ((!text_is(scheme, TEXT("http:")) && !text_is(scheme, TEXT("https:"))) ||
	    target->length < n + 2 || target->at[n + 1] != '/')
		return false;
	authority = text_from(*target, n + 2);
	for (n = 0; n < authority.length && authority.at[n] != '/' && authority.at[n] != '?'; n++)
		;
	*target = text_from(authority, n);
	authority.length = n;
	return n > 0 && head_host_is_valid(authority);
}

static void head_target(struct http_head *h, struct text target)
{
	/* Of methods that are refused the target may have other forms: * and host:port. */
	bool any_form = h->method == HTTP_OTHER_METHOD;
	struct text path;

	if (target.length == 0 || (target.at[0] != '/' && !any_form && !head_absolute(&target)) ||
	    !text_has_only(target, TARGET) || !head_escapes_are_valid(target)) {
		head_break(h, 400);
		return;
	}
	path = text_cut(&target, '?');
	if (path.length == 0)
		path = (struct text){"/", 1};
	if (path.length > HTTP_PATH_MAX) {
		head_break(h, 414);
		return;
	}
	memcpy(h->path, path.at, path.length);
	h->path_length = (uint16_t)path.length;
}

static void head_request_line(struct http_head *h, struct text line)
{
	struct text method = text_cut(&line, ' '), target = text_cut(&line, ' ');

	if (method.length == 0 || !text_has_only(method, TOKEN)) {
		head_break(h, 400);
		return;
	}
	if (!head_version(h, line))
		return;
	head_method(h, method);
	head_target(h, target);
}

/* --- fields --- */

/* Digits only. Larger than LENGTH_MAX: LENGTH_MAX. */
static bool head_number(struct text value, uint64_t *number)
{
	*number = 0;
	for (uint32_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return false;
		if (*number < LENGTH_MAX / 10)
			*number = *number * 10 + (uint64_t)(value.at[i] - '0');
		else
			*number = LENGTH_MAX;
	}
	return value.length > 0;
}

static void head_connection(struct http_head *h, struct text value)
{
	while (value.length > 0) {
		struct text option = text_trim(text_cut(&value, ','));

		h->wants_close |= text_is(option, TEXT("close"));
		h->wants_keep_alive |= text_is(option, TEXT("keep-alive"));
	}
}

static void head_content_type(struct http_head *h, struct text value)
{
	static const struct {
		struct text name;
		uint8_t type;
	} types[] = {
		{{"application/json", 16}, HTTP_JSON},
		{{"application/octet-stream", 24}, HTTP_OCTETS},
		{{"application/x-www-form-urlencoded", 33}, HTTP_FORM},
		{{"text/plain", 10}, HTTP_TEXT},
		{{"text/event-stream", 17}, HTTP_EVENTS},
	};
	struct text type = text_trim(text_cut(&value, ';'));

	h->type = type.length == 0 ? HTTP_NO_TYPE : HTTP_OTHER_TYPE;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (text_is(type, types[i].name))
			h->type = types[i].type;
	}
}

/* False: 400. */
static bool head_value(struct http_head *h, enum head_field field, struct text value)
{
	switch (field) {
	case FIELD_HOST:
		return head_host_is_valid(value);
	case FIELD_CONTENT_LENGTH:
		h->has_length = true;
		return head_number(value, &h->length);
	case FIELD_JSON_LENGTH:
		h->has_json_length = true;
		return head_number(value, &h->json_length);
	case FIELD_TRANSFER_ENCODING:
		h->chunked = text_is(value, TEXT("chunked"));
		if (!h->chunked)
			head_break(h, 501);
		return true;
	case FIELD_EXPECT:
		h->expects_100 = text_is(value, TEXT("100-continue"));
		if (!h->expects_100)
			head_refuse(h, 417);
		return true;
	case FIELD_CONNECTION:
		head_connection(h, value);
		return true;
	case FIELD_CONTENT_TYPE:
		head_content_type(h, value);
		return true;
	default:
		if (value.length > 0 && !text_is(value, TEXT("identity")))
			head_refuse(h, 415);
		return true;
	}
}

static enum head_field head_field_of(struct text name)
{
	static const struct text names[FIELDS] = {
		[FIELD_HOST] = {"host", 4},
		[FIELD_CONTENT_LENGTH] = {"content-length", 14},
		[FIELD_TRANSFER_ENCODING] = {"transfer-encoding", 17},
		[FIELD_EXPECT] = {"expect", 6},
		[FIELD_CONNECTION] = {"connection", 10},
		[FIELD_CONTENT_TYPE] = {"content-type", 12},
		[FIELD_CONTENT_ENCODING] = {"content-encoding", 16},
		[FIELD_JSON_LENGTH] = {"inference-header-content-length", 31},
	};

	for (int field = 0; field < FIELDS; field++) {
		if (text_is(name, names[field]))
			return (enum head_field)field;
	}
	return FIELDS;
}

/* Characters of control but tabs, which also finds a CR that ends no line. */
static bool head_is_control(uint8_t c)
{
	return (c < 0x20 && c != '\t') || c == 0x7f;
}

/* Some of eight bytes may be such characters: certain if not, as tabs are among them. */
static inline bool head_may_be_control(const char *at)
{
	const uint64_t ones = 0x0101010101010101, highest = 0x8080808080808080;
	uint64_t v, deleted;

	memcpy(&v, at, sizeof(v));
	deleted = v ^ 0x7f * ones;
	return (((v - 0x20 * ones) & ~v) | ((deleted - ones) & ~deleted)) & highest;
}

static bool head_value_is_valid(struct text value)
{
	bool look = value.length < 8;

	for (uint32_t i = 0; i + 8 <= value.length; i += 8)
		look |= head_may_be_control(value.at + i);
	if (!look && !head_may_be_control(value.at + value.length - 8))
		return true;
	for (uint32_t i = 0; i < value.length; i++) {
		if (head_is_control((uint8_t)value.at[i]))
			return false;
	}
	return true;
}

static void head_field_line(struct http_head *h, struct text line)
{
	const char *colon = memchr(line.at, ':', line.length);
	struct text name = {line.at, colon == NULL ? 0 : (uint32_t)(colon - line.at)};
	enum head_field field;
	struct text value;

	field = head_field_of(name);
	value = text_trim(text_from(line, name.length + (colon != NULL)));
	/* No name is also a line that continues the one before (obs-fold); a space in front of the
	 * colon belongs to no name. */
	if (name.length == 0 || (field == FIELDS && !text_has_only(name, TOKEN)) ||
	    !head_value_is_valid(value)) {
		head_break(h, 400);
		return;
	}
	if (field == FIELDS)
		return;
	/* Only Connection is a list that may be in several lines. */
	if ((h->fields & 1u << field) != 0 && field != FIELD_CONNECTION)
		head_break(h, 400);
	h->fields |= (uint16_t)(1u << field);
	if (!h->broken && !head_value(h, field, value))
		head_break(h, 400);
}

/* --- the whole --- */

/* RFC 9112, 6.1 and 6.3: more than one thing says where the body ends, or the wrong one does. */
static bool head_length_is_clear(const struct http_head *h)
{
	return !h->chunked || (!h->has_length && h->minor == 1);
}

static void head_end(struct http_head *h)
{
	bool needs_host = h->minor == 1 && (h->fields & 1u << FIELD_HOST) == 0;
	/* Of a body that is compressed the two lengths are not of the same bytes. */
	bool compressed = h->status == 415;

	if (needs_host || !head_length_is_clear(h) ||
	    (h->has_json_length && h->has_length && h->json_length > h->length && !compressed)) {
		head_break(h, 400);
		return;
	}
	h->done = true;
	h->keep_alive = h->minor == 1 ? !h->wants_close : h->wants_keep_alive && !h->wants_close;
	if (h->minor == 0)
		h->expects_100 = false; /* RFC 9110, 10.1.1 */
	if (h->length > h->max_body)
		head_refuse(h, 413);
}

/* A line with its end, CR LF or not. */
static void head_line(struct http_head *h, struct text line)
{
	bool first = h->lines == 0;

	h->size += (uint16_t)line.length;
	if (line.length < 2 || line.at[line.length - 2] != '\r') {
		head_break(h, 400);
		return;
	}
	line.length -= 2;
	if (first && line.length == 0 && !h->skipped_line) {
		h->skipped_line = true; /* RFC 9112, 2.2 */
		return;
	}
	if (!first && line.length == 0) {
		head_end(h);
		return;
	}
	if (h->lines++ > HTTP_FIELDS_MAX) {
		head_break(h, 431);
		return;
	}
	if (first)
		head_request_line(h, line);
	else
		head_field_line(h, line);
}

/* A line of <n> bytes so far is not too long, and does not make the head too long. */
static bool head_has_room(struct http_head *h, uint32_t n)
{
	if (n <= sizeof(h->line) && h->size + n <= HTTP_HEAD_MAX)
		return true;
	head_break(h, h->lines == 0 ? 414 : 431);
	return false;
}

/* A line that began in earlier bytes. Returns how many of these belong to it. */
static uint32_t head_read_rest(struct http_head *h, const char *bytes, uint32_t n, bool ends)
{
	if (!head_has_room(h, h->line_length + n))
		return 0;
	memcpy(h->line + h->line_length, bytes, n);
	h->line_length += (uint16_t)n;
	if (ends) {
		uint16_t length = h->line_length;

		h->line_length = 0;
		head_line(h, (struct text){h->line, length});
	}
	return n;
}

/* A client of another protocol may never send the end of a line: its first byte tells. */
static bool head_can_begin(const struct http_head *h, char c)
{
	return h->size > 0 || h->line_length > 0 || c == '\r' ||
	       (char_classes[(uint8_t)c] & TOKEN) != 0;
}

void http_head_init(struct http_head *h, uint64_t max_body)
{
	memset(h, 0, offsetof(struct http_head, path));
	memset(&h->max_body, 0,
	       offsetof(struct http_head, line) - offsetof(struct http_head, max_body));
	h->max_body = max_body;
}

uint32_t http_head_read(struct http_head *h, const char *bytes, uint32_t n)
{
	uint32_t taken = 0;

	if (n > 0 && !h->done && !head_can_begin(h, bytes[0]))
		head_break(h, 400);
	while (taken < n && !h->done) {
		const char *from = bytes + taken, *stop = memchr(from, '\n', n - taken);
		uint32_t length = stop == NULL ? n - taken : (uint32_t)(stop - from) + 1;

		if (stop == NULL || h->line_length > 0) {
			taken += head_read_rest(h, from, length, stop != NULL);
		} else {
			if (head_has_room(h, length))
				head_line(h, (struct text){from, length});
			taken += length;
		}
	}
	return taken;
}
