/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as HTTP/1.1 requests, one behind the other, with their bodies. The first two are the seed
 * of the cuts. Whole and cut give the same requests; of each that is accepted some things hold that
 * a smuggled one would break: its head ends where an empty line is, has no other control characters
 * than the ends of its lines, and says once how long the body is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/chunked.h"
#include "http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BODY 300
#define LOG_MAX  4096

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* A connection: what it said, as text. */
struct stream {
	struct http_head head;
	struct http_chunked chunked;
	enum { HEAD, BODY, CHUNKS, CHUNK, CLOSED } state;
	uint64_t left; /* of a body or chunk */
	uint64_t position, head_at;
	const uint8_t *all; /* of all bytes, for the checks */
	char log[LOG_MAX];
	size_t length;
};

static void note(struct stream *s, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
	if (s->length < LOG_MAX - 200)
		s->length += (size_t)snprintf(s->log + s->length, LOG_MAX - s->length,
					      "%s %lu %lu %lu\n", what, a, b, c);
}

/* How many lines of the head begin with <name> and a colon. */
static unsigned int count(const char *at, const char *end, const char *name)
{
	unsigned int n = 0;

	for (; at + strlen(name) < end; at++) {
		if (at[-1] == '\n' && strncasecmp(at, name, strlen(name)) == 0 &&
		    at[strlen(name)] == ':')
			n++;
	}
	return n;
}

static void check_head(const struct stream *s)
{
	const struct http_head *h = &s->head;
	const char *at = (const char *)s->all + s->head_at,
		   *end = (const char *)s->all + s->position;

	require(end - at >= 16 && memcmp(end - 4, "\r\n\r\n", 4) == 0, "a head ends elsewhere");
	require(end - at <= HTTP_HEAD_MAX, "a head is too large");
	for (const char *c = at; c < end; c++) {
		if (*c == '\r')
			require(c[1] == '\n', "a bare CR");
		else if (*c == '\n')
			require(c[-1] == '\r', "a bare LF");
		else
			require((uint8_t)*c >= 0x20 || *c == '\t', "a control character");
	}
	require(count(at + 1, end, "content-length") + count(at + 1, end, "transfer-encoding") <= 1,
		"two lengths");
	require(count(at + 1, end, "host") == 1 || h->minor == 0, "a host is there once");
	require(h->has_length == (count(at + 1, end, "content-length") == 1),
		"a length was missed");
	require(h->chunked == (count(at + 1, end, "transfer-encoding") == 1),
		"a coding was missed");
	if (h->status == 0) {
		require(h->path_length > 0 && h->path_length <= HTTP_PATH_MAX && h->path[0] == '/',
			"a path is none");
		require(h->method != HTTP_OTHER_METHOD, "a method is unknown");
		require(h->length <= MAX_BODY, "a body is too large");
	}
}

static void head_is_done(struct stream *s)
{
	const struct http_head *h = &s->head;
	uint64_t path = 0;

	if (h->broken) {
		note(s, "broken", h->status, 0, 0);
		s->state = CLOSED;
		return;
	}
	check_head(s);
	for (uint16_t i = 0; i < h->path_length; i++)
		path = path * 31 + (uint8_t)h->path[i];
	note(s, "head", h->status, h->method * 8u + h->type, path);
	note(s, "length", h->length, h->json_length, h->chunked);
	note(s, "flags", h->keep_alive, h->expects_100, s->position);
	s->left = h->length;
	s->state = h->chunked ? CHUNKS : BODY;
	s->chunked = (struct http_chunked){.max = MAX_BODY};
}

static void body_is_done(struct stream *s)
{
	s->state = s->head.keep_alive ? HEAD : CLOSED;
	s->head_at = s->position;
	http_head_init(&s->head, MAX_BODY);
}

static uint64_t take_chunks(struct stream *s, const char *bytes, size_t n)
{
	const char *at = bytes;
	enum http_chunk result = http_chunked_read(&s->chunked, &at, bytes + n);

	s->position += (uint64_t)(at - bytes);
	if (result == HTTP_CHUNK_DATA) {
		note(s, "chunk", s->chunked.size, s->position, 0);
		require(s->chunked.total <= MAX_BODY, "chunks are too large");
		s->left = s->chunked.size;
		s->state = CHUNK;
	} else if (result == HTTP_CHUNK_REFUSED) {
		note(s, "chunks refused", s->chunked.status, 0, 0);
		s->state = CLOSED;
	} else if (result == HTTP_CHUNK_END) {
		note(s, "end", s->position, 0, 0);
		body_is_done(s);
	} else {
		require(at == bytes + n, "bytes were left");
	}
	return (uint64_t)(at - bytes);
}

static uint64_t take_some(struct stream *s, const char *bytes, size_t n)
{
	uint64_t taken;

	if (s->state == HEAD) {
		taken = http_head_read(&s->head, bytes, (uint32_t)n);
		require(taken == n || s->head.done, "bytes were left");
		s->position += taken;
		if (s->head.done)
			head_is_done(s);
		return taken;
	}
	if (s->state == CHUNKS)
		return take_chunks(s, bytes, n);
	taken = s->left < n ? s->left : n;
	s->left -= taken;
	s->position += taken;
	if (s->left == 0 && s->state == CHUNK)
		s->state = CHUNKS;
	else if (s->left == 0)
		body_is_done(s);
	return taken;
}

/* Bytes that have their exact size. */
static void take(struct stream *s, const uint8_t *bytes, size_t n)
{
	char *copy = malloc(n > 0 ? n : 1);

	memcpy(copy, bytes, n);
	for (size_t at = 0; at < n && s->state != CLOSED;)
		at += take_some(s, copy + at, n - at);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct stream whole, cut;
	uint32_t seed;

	if (size < 2)
		return 0;
	seed = data[0] | (uint32_t)data[1] << 8;
	data += 2;
	size -= 2;
	memset(&whole, 0, sizeof(whole));
	whole.all = data;
	http_head_init(&whole.head, MAX_BODY);
	memcpy(&cut, &whole, sizeof(cut));
	take(&whole, data, size);
	for (size_t at = 0, n; at < size; at += n) {
		seed = seed * 1664525 + 1013904223;
		n = 1 + (seed >> 16) % (seed >> 30 == 0 ? 512 : 8);
		n = n < size - at ? n : size - at;
		take(&cut, data + at, n);
	}
	if (strcmp(whole.log, cut.log) != 0)
		fprintf(stderr, "whole:\n%scut:\n%s", whole.log, cut.log);
	require(strcmp(whole.log, cut.log) == 0 && whole.state == cut.state,
		"cuts change requests");
	return 0;
}
