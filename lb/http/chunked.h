/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chunked body (RFC 9112, 7.1): reads the lines between the chunks, from bytes that come in
 * parts, and says how long each chunk is. The bytes of chunks are not shown to it, so they can be
 * put in their place before the line in front of them was read.
 *
 * Sizes have at most 16 hexadecimal digits; extensions and trailers are bounded, checked and
 * dropped.
 */
#ifndef LB_HTTP_CHUNKED_H
#define LB_HTTP_CHUNKED_H

#include <stdbool.h>
#include <stdint.h>

#define HTTP_EXTENSIONS_MAX 1024 /* bytes of extensions in a body: 400 */
#define HTTP_TRAILERS_MAX   4096 /* bytes of trailers: 431 */

enum http_chunk {
	HTTP_CHUNK_MORE,    /* all bytes were read */
	HTTP_CHUNK_DATA,    /* the next <size> bytes belong to the body; go on behind them */
	HTTP_CHUNK_END,     /* the body ends here */
	HTTP_CHUNK_REFUSED, /* <status> says why; nothing more can be read */
};

/* Zeroed memory, but for <max>, is a body of which nothing has arrived. */
struct http_chunked {
	uint64_t max;   /* bytes that the body may have: 413 */
	uint64_t total; /* bytes of all chunks so far */
	uint64_t size;  /* of HTTP_CHUNK_DATA */
	uint16_t status;
	/* private */
	uint8_t state; /* enum in chunked.c */
	uint8_t digits;
	uint16_t extensions, trailers;
};

/* Reads from *at on, and moves *at behind what was read. */
enum http_chunk http_chunked_read(struct http_chunked *c, const char **at, const char *end);

#define HTTP_CHUNK_HEAD_MAX 20

/* The head of a chunk that is sent: writes it to <at>, and returns its length. <size> 0: the end of
 * the body. The end of the chunk before is part of it, unless this is the <first>. */
uint32_t http_chunk_write(char at[HTTP_CHUNK_HEAD_MAX], uint32_t size, bool first);

#endif
