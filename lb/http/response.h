/* SPDX-License-Identifier: BSD-3-Clause */
/* The heads of HTTP/1.1 responses. */
#ifndef LB_HTTP_RESPONSE_H
#define LB_HTTP_RESPONSE_H

#include "http/head.h"

#define HTTP_RESPONSE_MAX 384 /* bytes of a head */
#define HTTP_CONTINUE     "HTTP/1.1 100 Continue\r\n\r\n"
#define HTTP_DATE_LENGTH  29 /* Wed, 25 Nov 2026 15:37:49 GMT */

enum http_body {
	HTTP_NO_BODY, /* the status says that there is none: 204 */
	HTTP_LENGTH,  /* <length> bytes */
	HTTP_CHUNKED,
	HTTP_TO_CLOSE, /* until the connection closes: for clients of HTTP/1.0 */
};

struct http_response {
	uint16_t status;
	uint8_t body;    /* enum http_body; for HEAD as for GET */
	uint8_t type;    /* enum http_type; HTTP_NO_TYPE: none */
	uint8_t minor;   /* of the request */
	bool keep_alive; /* the connection may be used again */
	bool has_json_length;
	uint64_t length;
	uint64_t json_length;   /* Inference-Header-Content-Length */
	uint32_t retry_after_s; /* 0: none */
	const char *allow;      /* of 405: methods, at most 32 characters; NULL: none */
	const char *date;       /* HTTP_DATE_LENGTH characters; NULL: no clock */
};

/* Writes the head to <at>, and returns its length. */
uint32_t http_response_write(const struct http_response *r, char at[HTTP_RESPONSE_MAX]);

/* The words behind a status; "" if it is none that we send. */
const char *http_reason(uint16_t status);

/* Writes <seconds> since 1970 as the field Date has them. Not terminated. */
void http_date_write(uint64_t seconds, char at[HTTP_DATE_LENGTH]);

#endif
