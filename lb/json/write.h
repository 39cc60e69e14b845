/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON into a buffer of limited size. */
#ifndef LB_JSON_WRITE_H
#define LB_JSON_WRITE_H

#include "json/utf8.h"

struct json_out {
	char *at, *end;
	bool full; /* something did not fit, and was left out */
};

/* A string that is written byte by byte. Zeroed memory is one that begins. */
struct json_escape {
	struct utf8 utf8;
	uint8_t length;
	char held[4]; /* a character that is cut */
};
#define JSON_ESCAPED_MAX 9 /* characters that one byte causes at most */

/* Text as it is: names of members, commas. */
void json_put(struct json_out *o, const char *text);

/* Between quotes, escaped. Bytes that are no UTF-8 become U+FFFD. */
void json_put_string(struct json_out *o, const char *text, uint32_t length);

void json_put_u64(struct json_out *o, uint64_t value);
void json_put_i64(struct json_out *o, int64_t value);

/* The next byte of a string, without quotes; then its end. */
void json_escape_put(struct json_escape *e, struct json_out *o, uint8_t c);
void json_escape_end(struct json_escape *e, struct json_out *o);

#endif
