/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "http/chunked.h"

#define SIZE_DIGITS_MAX 16

enum chunked_state {
	CHUNKED_SIZE,
	CHUNKED_SPACE, /* behind the size: only an extension may follow */
	CHUNKED_EXTENSION,
	CHUNKED_SIZE_LF,
	CHUNKED_DATA_CR,
	CHUNKED_DATA_LF,
	CHUNKED_TRAILER, /* the first byte of a line behind the last chunk */
	CHUNKED_NAME,
	CHUNKED_VALUE,
	CHUNKED_VALUE_LF,
	CHUNKED_LAST_LF,
	CHUNKED_ENDED,
	CHUNKED_FAILED,
};

static enum http_chunk chunked_refuse(struct http_chunked *c, uint16_t status)
{
	c->state = CHUNKED_FAILED;
	c->status = status;
	return HTTP_CHUNK_REFUSED;
}

static enum http_chunk chunked_expect(struct http_chunked *c, char byte, char expected,
				      enum chunked_state next)
{
	if (byte != expected)
		return chunked_refuse(c, 400);
	c->state = (uint8_t)next;
	return HTTP_CHUNK_MORE;
}

static int chunked_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static enum http_chunk chunked_size(struct http_chunked *c, char byte)
{
	int digit = chunked_hex(byte);

	if (digit >= 0 && c->digits < SIZE_DIGITS_MAX) {
		c->size = (c->digits == 0 ? 0 : c->size) << 4 | (uint64_t)digit;
		c->digits++;
		return HTTP_CHUNK_MORE;
	}
	if (digit >= 0 || c->digits == 0)
		return chunked_refuse(c, 400);
	c->digits = 0;
	if (byte == ' ' || byte == '\t' || byte == ';') {
		c->state = byte == ';' ? CHUNKED_EXTENSION : CHUNKED_SPACE;
		return HTTP_CHUNK_MORE;
	}
	return chunked_expect(c, byte, '\r', CHUNKED_SIZE_LF);
}

static bool chunked_is_text(char byte)
{
	return ((uint8_t)byte >= 0x20 && byte != 0x7f) || byte == '\t';
}

static enum http_chunk chunked_extension(struct http_chunked *c, char byte)
{
	if (byte == '\r' && c->state == CHUNKED_EXTENSION) {
		c->state = CHUNKED_SIZE_LF;
		return HTTP_CHUNK_MORE;
	}
	if (c->state == CHUNKED_SPACE && byte == ';')
		c->state = CHUNKED_EXTENSION;
	else if (c->state == CHUNKED_SPACE && byte != ' ' && byte != '\t')
		return chunked_refuse(c, 400);
	if (!chunked_is_text(byte) || c->extensions++ == HTTP_EXTENSIONS_MAX)
		return chunked_refuse(c, 400);
	return HTTP_CHUNK_MORE;
}

static enum http_chunk chunked_size_end(struct http_chunked *c, char byte)
{
	if (byte != '\n')
		return chunked_refuse(c, 400);
	if (c->size > c->max - c->total)
		return chunked_refuse(c, 413);
	c->total += c->size;
	c->state = c->size == 0 ? CHUNKED_TRAILER : CHUNKED_DATA_CR;
	return c->size == 0 ? HTTP_CHUNK_MORE : HTTP_CHUNK_DATA;
}

static bool chunked_is_token(char byte)
{
	return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
	       (byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

static enum http_chunk chunked_trailer(struct http_chunked *c, char byte)
{
	bool ends = byte == '\r';

	if (!ends && c->trailers++ == HTTP_TRAILERS_MAX)
		return chunked_refuse(c, 431);
	if (c->state == CHUNKED_VALUE && (ends || chunked_is_text(byte))) {
		c->state = ends ? CHUNKED_VALUE_LF : CHUNKED_VALUE;
		return HTTP_CHUNK_MORE;
	}
	if (c->state == CHUNKED_TRAILER && ends) {
		c->state = CHUNKED_LAST_LF;
		return HTTP_CHUNK_MORE;
	}
	if (c->state == CHUNKED_NAME && byte == ':') {
		c->state = CHUNKED_VALUE;
		return HTTP_CHUNK_MORE;
	}
	if (c->state == CHUNKED_VALUE || !chunked_is_token(byte))
		return chunked_refuse(c, 400);
	c->state = CHUNKED_NAME;
	return HTTP_CHUNK_MORE;
}

static enum http_chunk chunked_byte(struct http_chunked *c, char byte)
{
	switch ((enum chunked_state)c->state) {
	case CHUNKED_SIZE:
		return chunked_size(c, byte);
	case CHUNKED_SPACE:
	case CHUNKED_EXTENSION:
		return chunked_extension(c, byte);
	case CHUNKED_SIZE_LF:
		return chunked_size_end(c, byte);
	case CHUNKED_DATA_CR:
		return chunked_expect(c, byte, '\r', CHUNKED_DATA_LF);
	case CHUNKED_DATA_LF:
		return chunked_expect(c, byte, '\n', CHUNKED_SIZE);
	case CHUNKED_VALUE_LF:
		return chunked_expect(c, byte, '\n', CHUNKED_TRAILER);
	case CHUNKED_LAST_LF:
		if (chunked_expect(c, byte, '\n', CHUNKED_ENDED) == HTTP_CHUNK_REFUSED)
			return HTTP_CHUNK_REFUSED;
		return HTTP_CHUNK_END;
	default:
		return chunked_trailer(c, byte);
	}
}

enum http_chunk http_chunked_read(struct http_chunked *c, const char **at, const char *end)
{
	enum http_chunk result = HTTP_CHUNK_MORE;

	if (c->state >= CHUNKED_ENDED)
		return c->state == CHUNKED_ENDED ? HTTP_CHUNK_END : HTTP_CHUNK_REFUSED;
	while (result == HTTP_CHUNK_MORE && *at < end)
		result = chunked_byte(c, *(*at)++);
	return result;
}

uint32_t http_chunk_write(char at[HTTP_CHUNK_HEAD_MAX], uint32_t size, bool first)
{
	static const char digits[] = "0123456789abcdef";
	int shift = size == 0 ? 0 : (31 - __builtin_clz(size)) & ~3;
	uint32_t n = 0;

	if (!first) {
		memcpy(at, "\r\n", 2);
		n = 2;
	}
	for (; shift >= 0; shift -= 4)
		at[n++] = digits[size >> shift & 15];
	memcpy(at + n, "\r\n\r\n", 4);
	return n + (size == 0 ? 4 : 2);
}
