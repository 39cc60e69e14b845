/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "json/reader.h"

enum reader_state {
	READER_START,
	READER_FIRST_KEY, /* or the end of the object */
	READER_KEY,
	READER_COLON,
	READER_FIRST_VALUE, /* or the end of the array */
	READER_VALUE,
	READER_AFTER, /* a comma, or the end of the object or array */
	READER_STRING,
	READER_NUMBER, /* it is cut: the start is in <text> */
	READER_WORD,   /* likewise */
	READER_DONE,
	READER_FAILED,
};

static enum json_kind reader_fail(struct json_reader *r, const char *error)
{
	r->state = READER_FAILED;
	r->error = error;
	return JSON_TOKEN_BAD;
}

static inline bool reader_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static enum json_kind reader_open(struct json_reader *r, bool object)
{
	if (r->depth == JSON_DEPTH_MAX)
		return reader_fail(r, "arrays and objects are nested too deeply");
	r->objects &= ~(1u << r->depth);
	r->objects |= (uint32_t)object << r->depth;
	r->depth++;
	r->state = object ? READER_FIRST_KEY : READER_FIRST_VALUE;
	return object ? JSON_TOKEN_OBJECT_BEGIN : JSON_TOKEN_ARRAY_BEGIN;
}

static inline bool reader_in_object(const struct json_reader *r)
{
	return (r->objects >> (r->depth - 1) & 1) != 0;
}

static enum json_kind reader_close(struct json_reader *r, char c)
{
	bool object = reader_in_object(r);

	if (c != (object ? '}' : ']'))
		return reader_fail(r, object ? "expected ',' or '}'" : "expected ',' or ']'");
	r->depth--;
	r->state = r->depth == 0 ? READER_DONE : READER_AFTER;
	return object ? JSON_TOKEN_OBJECT_END : JSON_TOKEN_ARRAY_END;
}

/* --- numbers and words --- */

static inline bool reader_is_number(char c)
{
	return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

static enum json_kind reader_bad_number(struct json_reader *r)
{
	return reader_fail(r, "expected a number of at most 128 characters");
}

/* Keeps the part of a number that came; the rest is read by reader_number_rest(). */
static enum json_kind reader_number_keep(struct json_reader *r, const char **at, const char *end)
{
	while (*at < end && reader_is_number(**at)) {
		if (r->text_length == JSON_NUMBER_MAX)
			return reader_bad_number(r);
		r->text[r->text_length++] = *(*at)++;
	}
	return JSON_TOKEN_MORE;
}

static enum json_kind reader_number_rest(struct json_reader *r, const char **at, const char *end,
					 struct json_token *token)
{
	if (reader_number_keep(r, at, end) == JSON_TOKEN_BAD || *at == end)
		return r->state == READER_FAILED ? JSON_TOKEN_BAD : JSON_TOKEN_MORE;
	if (json_number_read(r->text, r->text + r->text_length, &token->number) != r->text_length)
		return reader_bad_number(r);
	r->state = READER_AFTER;
	return JSON_TOKEN_NUMBER;
}

static inline enum json_kind reader_number(struct json_reader *r, const char **at, const char *end,
					   struct json_token *token)
{
	uint32_t n = json_number_read(*at, end, &token->number);

	if (n > 0 && *at + n < end && !reader_is_number((*at)[n])) {
		*at += n;
		r->state = READER_AFTER;
		return JSON_TOKEN_NUMBER;
	}
	r->state = READER_NUMBER;
	r->text_length = 0;
	return reader_number_rest(r, at, end, token);
}

static enum json_kind reader_word(struct json_reader *r, const char **at, const char *end)
{
	static const struct {
		const char *text;
		enum json_kind kind;
	} words[] = {
		{"true", JSON_TOKEN_TRUE}, {"false", JSON_TOKEN_FALSE}, {"null", JSON_TOKEN_NULL}};
	unsigned int i = r->text[0] == 't' ? 0 : r->text[0] == 'f' ? 1 : 2;
	const char *word = words[i].text;

	for (; *at < end && word[r->text_length] != '\0'; (*at)++) {
		if (**at != word[r->text_length++])
			return reader_fail(r, "expected a value");
	}
	if (word[r->text_length] != '\0')
		return JSON_TOKEN_MORE;
	r->state = READER_AFTER;
	return words[i].kind;
}

/* --- strings --- */

/* Characters of a string that stand for themselves. Returns the first other one, or <end>; NULL:
 * not UTF-8. */
static const char *reader_plain(struct json_reader *r, const char *at, const char *end)
{
	for (; at < end; at++) {
		uint8_t c = (uint8_t)*at;

		if (r->utf8.left > 0) {
			if (!utf8_next(&r->utf8, c))
				return NULL;
		} else if (c >= 0x80) {
			if (!utf8_begin(&r->utf8, c))
				return NULL;
		} else if (c == '"' || c == '\\' || c < 0x20) {
			break;
		}
	}
	return at;
}

/* Writes a character as UTF-8, and returns its length. */
static uint32_t reader_encode(char *at, uint32_t c)
{
	static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	uint32_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (uint32_t i = n - 1; i > 0; i--) {
		at[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	at[0] = (char)(first[n] | c);
	return n;
}

/* A \u escape is complete. */
static enum json_kind reader_unit(struct json_reader *r, uint32_t *length)
{
	uint32_t unit = r->unit;
	bool second = unit >= 0xdc00 && unit <= 0xdfff;

	if (second != (r->surrogate != 0))
		return reader_fail(r, "half of a surrogate pair");
	if (unit >= 0xd800 && unit <= 0xdbff) {
		r->surrogate = (uint16_t)unit;
		return JSON_TOKEN_MORE;
	}
	if (second)
		unit = 0x10000 + ((r->surrogate - 0xd800u) << 10) + (unit - 0xdc00);
	r->surrogate = 0;
	*length = reader_encode(r->text, unit);
	return JSON_TOKEN_STRING;
}

static int reader_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character of an escape. JSON_TOKEN_STRING: it is complete, and <length> bytes are in <text>.
 */
static enum json_kind reader_escape(struct json_reader *r, char c, uint32_t *length)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *simple;

	if (r->escape >= 2) {
		int digit = reader_hex(c);

		if (digit < 0)
			return reader_fail(r, "expected four hexadecimal digits");
		r->unit = (uint16_t)(r->unit << 4 | digit);
		if (++r->escape < 6)
			return JSON_TOKEN_MORE;
		r->escape = 0;
		return reader_unit(r, length);
	}
	if (c == 'u') {
		r->escape = 2;
		r->unit = 0;
		return JSON_TOKEN_MORE;
	}
	simple = c == '\0' ? NULL : strchr(from, c);
	if (simple == NULL || r->surrogate != 0)
		return reader_fail(r, simple == NULL ? "an unknown escape"
						     : "half of a surrogate pair");
	r->escape = 0;
	r->text[0] = to[simple - from];
	*length = 1;
	return JSON_TOKEN_STRING;
}

/* Reads escapes up to one that is a character. JSON_TOKEN_MORE: to <end>, or up to a plain
 * character. */
static enum json_kind reader_escapes(struct json_reader *r, const char **at, const char *end,
				     struct json_token *token)
{
	enum json_kind kind = JSON_TOKEN_MORE;

	while (*at < end && kind == JSON_TOKEN_MORE) {
		if (r->utf8.left > 0)
			return JSON_TOKEN_MORE;
		if (r->escape > 0)
			kind = reader_escape(r, **at, &token->length);
		else if (**at == '\\')
			r->escape = 1;
		else if (r->surrogate != 0)
			return reader_fail(r, "half of a surrogate pair");
		else
			return JSON_TOKEN_MORE;
		(*at)++;
	}
	token->text = r->text;
	return kind;
}

static enum json_kind reader_string(struct json_reader *r, const char **at, const char *end,
				    struct json_token *token)
{
	enum json_kind kind = reader_escapes(r, at, end, token);
	const char *stop;

	token->last = false;
	if (kind != JSON_TOKEN_MORE || *at == end)
		return kind != JSON_TOKEN_STRING ? kind
		       : r->is_key               ? JSON_TOKEN_KEY
						 : JSON_TOKEN_STRING;
	stop = reader_plain(r, *at, end);
	if (stop == NULL)
		return reader_fail(r, "a string is not UTF-8");
	token->text = *at;
	token->length = (uint32_t)(stop - *at);
	*at = stop;
	if (stop < end && (uint8_t)*stop < 0x20)
		return reader_fail(r, "a control character in a string");
	if (stop < end && *stop == '"') {
		token->last = true;
		(*at)++;
		r->state = r->is_key ? READER_COLON : READER_AFTER;
	}
	return r->is_key ? JSON_TOKEN_KEY : JSON_TOKEN_STRING;
}

static enum json_kind reader_string_begin(struct json_reader *r, bool is_key, const char **at,
					  const char *end, struct json_token *token)
{
	(*at)++;
	r->state = READER_STRING;
	r->is_key = is_key;
	return reader_string(r, at, end, token);
}

/* --- structure --- */

static enum json_kind reader_value(struct json_reader *r, const char **at, const char *end,
				   struct json_token *token)
{
	char c = **at;

	switch (c) {
	case '"':
		return reader_string_begin(r, false, at, end, token);
	case '{':
	case '[':
		(*at)++;
		return reader_open(r, c == '{');
	case 't':
	case 'f':
	case 'n':
		r->state = READER_WORD;
		r->text[0] = c;
		r->text_length = 0;
		return reader_word(r, at, end);
	default:
		if (c == '-' || (c >= '0' && c <= '9'))
			return reader_number(r, at, end, token);
		return reader_fail(r, "expected a value");
	}
}

/* A character between tokens. JSON_TOKEN_MORE: it was taken, and is no token. */
static enum json_kind reader_structure(struct json_reader *r, const char **at, const char *end,
				       struct json_token *token)
{
	char c = **at;

	switch ((enum reader_state)r->state) {
	case READER_AFTER:
		(*at)++;
		if (c != ',')
			return reader_close(r, c);
		r->state = reader_in_object(r) ? READER_KEY : READER_VALUE;
		return JSON_TOKEN_MORE;
	case READER_COLON:
		if (c != ':')
			return reader_fail(r, "expected ':'");
		(*at)++;
		r->state = READER_VALUE;
		return JSON_TOKEN_MORE;
	case READER_FIRST_KEY:
	case READER_FIRST_VALUE:
		if (c == (r->state == READER_FIRST_KEY ? '}' : ']')) {
			(*at)++;
			return reader_close(r, c);
		}
		r->state = r->state == READER_FIRST_KEY ? READER_KEY : READER_VALUE;
		return JSON_TOKEN_MORE;
	case READER_KEY:
		if (c != '"')
			return reader_fail(r, "expected a member's name");
		return reader_string_begin(r, true, at, end, token);
	case READER_START:
		if (c != '{' && c != '[')
			return reader_fail(r, "expected an object");
		return reader_value(r, at, end, token);
	case READER_DONE:
		return reader_fail(r, "bytes behind the JSON value");
	default:
		return reader_value(r, at, end, token);
	}
}

/* The next of an array's numbers, when it and the comma in front lie here as a whole: most tokens
 * of large requests. False: look closer. */
static inline bool reader_next_number(struct json_reader *r, const char **at, const char *end,
				      struct json_token *token)
{
	const char *number = *at + 1;
	uint32_t n;

	if (r->state != READER_AFTER || **at != ',' || reader_in_object(r))
		return false;
	if (number < end && *number == ' ')
		number++;
	n = json_number_read(number, end, &token->number);
	if (n == 0 || number + n == end || reader_is_number(number[n]))
		return false;
	*at = number + n;
	return true;
}

enum json_kind json_read(struct json_reader *r, const char **at, const char *end,
			 struct json_token *token)
{
	enum json_kind kind = JSON_TOKEN_MORE;

	if (r->state == READER_FAILED)
		return token->kind = JSON_TOKEN_BAD;
	if (*at == end)
		return token->kind = JSON_TOKEN_MORE;
	if (reader_next_number(r, at, end, token))
		return token->kind = JSON_TOKEN_NUMBER;
	if (r->state == READER_STRING)
		return token->kind = reader_string(r, at, end, token);
	if (r->state == READER_WORD)
		return token->kind = reader_word(r, at, end);
	if (r->state == READER_NUMBER)
		return token->kind = reader_number_rest(r, at, end, token);
	while (kind == JSON_TOKEN_MORE && *at < end) {
		if (reader_is_space(**at)) {
			(*at)++;
			continue;
		}
		kind = reader_structure(r, at, end, token);
		if (r->state >= READER_STRING) /* it is cut, or JSON_TOKEN_BAD */
			break;
	}
	return token->kind = kind;
}

bool json_is_complete(const struct json_reader *r)
{
	return r->state == READER_DONE;
}
