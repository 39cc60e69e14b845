/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JSON (RFC 8259) token by token, from bytes that come in parts, cut anywhere. Strict: the grammar,
 * UTF-8, surrogates, JSON_DEPTH_MAX. Allocates nothing and keeps nothing but a number or a
 * character that is cut, so the caller can stop after any token, and after any byte.
 *
 * The value at the top is an object or an array. Strings are delivered in pieces, decoded, as they
 * come: the caller bounds what it keeps of them.
 */
#ifndef LB_JSON_READER_H
#define LB_JSON_READER_H

#include "json/number_read.h"
#include "json/utf8.h"

#define JSON_DEPTH_MAX 32

enum json_kind {
	JSON_TOKEN_MORE, /* all bytes were read, and complete no token */
	JSON_TOKEN_BAD,  /* not JSON: <error> of the reader says why; it stays so */
	JSON_TOKEN_OBJECT_BEGIN,
	JSON_TOKEN_OBJECT_END,
	JSON_TOKEN_ARRAY_BEGIN,
	JSON_TOKEN_ARRAY_END,
	JSON_TOKEN_KEY,    /* a piece of a member's name: .text, .length, .last */
	JSON_TOKEN_STRING, /* a piece of a string: likewise */
	JSON_TOKEN_NUMBER, /* .number */
	JSON_TOKEN_TRUE,
	JSON_TOKEN_FALSE,
	JSON_TOKEN_NULL,
};

struct json_token {
	enum json_kind kind;
	bool last;        /* the string ends with this piece, which may be empty */
	uint32_t length;  /* at most 4 more than the bytes that were read for it */
	const char *text; /* in the caller's bytes, or in the reader: until its next call */
	struct json_number number;
};

/* Zeroed memory is a reader of which nothing has arrived. */
struct json_reader {
	uint8_t state; /* enum in reader.c: what may come */
	uint8_t depth;
	bool is_key;         /* of a string that is open */
	struct utf8 utf8;    /* likewise */
	uint8_t escape;      /* characters of an escape that came: backslash, u, digits */
	uint8_t text_length; /* of a number or word that is cut */
	uint16_t unit;       /* of an escape, so far */
	uint16_t surrogate;  /* the first of a pair, which came */
	uint32_t objects;    /* bit per depth: it is an object, not an array */
	const char *error;
	char text[JSON_NUMBER_MAX]; /* a number or word that is cut; an escaped character */
};

/* Reads from *at on, up to the next token or <end>, and moves *at behind it. */
enum json_kind json_read(struct json_reader *r, const char **at, const char *end,
			 struct json_token *token);

/* The value is complete: only spaces may follow. */
bool json_is_complete(const struct json_reader *r);

#endif
