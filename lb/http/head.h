/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The head of an HTTP/1.1 request (RFC 9112), from bytes that come in parts, cut anywhere. Strict:
 * where the standard leaves a choice between tolerance and 400, it is 400, so that no proxy in
 * front can see another request than we do. Bounded, allocates nothing, knows no KServe.
 */
#ifndef LB_HTTP_HEAD_H
#define LB_HTTP_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#define HTTP_HEAD_MAX   16384 /* bytes of a head: 431 */
#define HTTP_LINE_MAX   4096  /* of a line of it: 414, 431 */
#define HTTP_FIELDS_MAX 64    /* field lines: 431 */
#define HTTP_PATH_MAX   512   /* bytes of a path: 414 */

enum http_method {
	HTTP_OTHER_METHOD, /* refused */
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
};

/* Content-Type, without its parameters. */
enum http_type {
	HTTP_NO_TYPE,
	HTTP_JSON,   /* application/json */
	HTTP_OCTETS, /* application/octet-stream */
	HTTP_FORM,   /* application/x-www-form-urlencoded: curl -d, unless told otherwise */
	HTTP_TEXT,   /* text/plain */
	HTTP_EVENTS, /* text/event-stream */
	HTTP_OTHER_TYPE,
};

struct http_head {
	/* The result, when <done>. */
	bool done;
	/*
	 * 0, or the status to refuse the request with. If <broken>, the request's end is not known,
	 * and nothing more can be read; otherwise its body follows as that of a valid one.
	 */
	uint16_t status;
	bool broken;
	uint8_t method;       /* enum http_method */
	uint8_t type;         /* enum http_type */
	uint8_t minor;        /* HTTP/1.0 or HTTP/1.1 */
	bool keep_alive;      /* the connection may be used again */
	bool expects_100;     /* the client waits for 100 Continue, for a while */
	bool has_length;      /* Content-Length was there */
	bool chunked;         /* the body is; otherwise it has <length> bytes */
	bool has_json_length; /* Inference-Header-Content-Length was there */
	uint64_t length;
	uint64_t json_length;
	uint16_t path_length;
	char path[HTTP_PATH_MAX]; /* as sent, without query and host; of a valid request it begins
				     with / */

	/* private: a part of the head came */
	uint64_t max_body;
	uint16_t size;   /* bytes of lines that are complete */
	uint16_t fields; /* bit per field that was there */
	uint8_t lines;
	bool skipped_line; /* an empty one in front of the head */
	bool wants_close, wants_keep_alive;
	uint16_t line_length;
	char line[HTTP_LINE_MAX + 2]; /* a line that is cut */
};

/* A request of more than <max_body> bytes is refused: 413. */
void http_head_init(struct http_head *h, uint64_t max_body);

/* Reads up to the end of the head, or <n> bytes, and returns how many; after a refusal with
 * <broken> the number says nothing. */
uint32_t http_head_read(struct http_head *h, const char *bytes, uint32_t n);

#endif
