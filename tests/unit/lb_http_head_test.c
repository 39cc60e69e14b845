/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads of HTTP/1.1 requests: what is valid, what is refused and how, however they are cut. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/head.h"

#define MAX_BODY 1000

/* The result as text: status, method, path, and what else was said. */
static const char *said(const struct http_head *h)
{
	static const char *const methods[] = {"other", "GET", "HEAD", "POST"};
	static char text[1024];
	int n;

	if (!h->done)
		return "more";
	if (h->broken)
		n = snprintf(text, sizeof(text), "%u broken", h->status);
	else if (h->status != 0)
		n = snprintf(text, sizeof(text), "%u, ", h->status);
	else
		n = 0;
	if (!h->broken) {
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s %.*s", methods[h->method],
			      h->path_length, h->path);
		if (h->has_length)
			n += snprintf(text + n, sizeof(text) - (size_t)n, " %" PRIu64, h->length);
		if (h->has_json_length)
			n += snprintf(text + n, sizeof(text) - (size_t)n, " json %" PRIu64,
				      h->json_length);
		snprintf(text + n, sizeof(text) - (size_t)n, "%s%s%s", h->chunked ? " chunked" : "",
			 h->expects_100 ? " expects" : "", h->keep_alive ? "" : " close");
	}
	return text;
}

/* The bytes have their exact size, for the sanitizers. */
static uint32_t take(struct http_head *h, const char *bytes, size_t n)
{
	char *copy = malloc(n > 0 ? n : 1);
	uint32_t taken;

	memcpy(copy, bytes, n);
	taken = http_head_read(h, copy, (uint32_t)n);
	free(copy);
	cr_assert(taken == n || h->done);
	return taken;
}

/* In one piece, in each two pieces, byte by byte. What follows the head is not taken. */
static void expect_bytes(const char *text, size_t n, const char *want)
{
	struct http_head h;

	for (size_t cut = 0; cut <= n; cut++) {
		uint32_t taken;

		http_head_init(&h, MAX_BODY);
		taken = take(&h, text, cut);
		if (!h.done)
			taken += take(&h, text + cut, n - cut);
		cr_assert_str_eq(said(&h), want, "%s\ncut at %zu: %s", text, cut, said(&h));
		if (h.done && !h.broken)
			cr_assert_eq(strncmp(text + taken - 2, "\r\n", 2), 0);
	}
	http_head_init(&h, MAX_BODY);
	for (size_t i = 0; i < n && !h.done; i++)
		take(&h, text + i, 1);
	cr_assert_str_eq(said(&h), want, "%s\nbyte by byte: %s", text, said(&h));
}

static void expect(const char *text, const char *want)
{
	expect_bytes(text, strlen(text), want);
}

/* A request line, then these fields. */
static void expect_fields(const char *fields, const char *want)
{
	char text[1024];

	snprintf(text, sizeof(text), "POST /v2 HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
	expect(text, want);
}

/* A request line, with the fields that it needs. */
static void expect_line(const char *line, const char *want)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s\r\nHost: a\r\n\r\n", line);
	expect(text, want);
}

Test(lb_http_head, requests_of_real_clients)
{
	expect("GET /v2/health/ready HTTP/1.1\r\nHost: 10.0.0.1:8000\r\nUser-Agent: curl/7.88.1\r\n"
	       "Accept: */*\r\n\r\n",
	       "GET /v2/health/ready");
	expect("POST /v2/models/m/infer HTTP/1.1\r\nHost: lb\r\nContent-Type: application/json\r\n"
	       "Content-Length: 7\r\nExpect: 100-continue\r\n\r\n{\"a\":1}",
	       "POST /v2/models/m/infer 7 expects");
	expect("POST /v2/models/m/infer HTTP/1.1\r\nhost: [::1]:80\r\n"
	       "inference-header-content-length: 5\r\ncontent-length: 9\r\nconnection: "
	       "keep-alive\r\n\r\n",
	       "POST /v2/models/m/infer 9 json 5");
	expect("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	       "POST / chunked");
	expect("GET / HTTP/1.0\r\n\r\n", "GET / close");
	expect("HEAD / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "HEAD /");
	expect("\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n", "GET /");
}

Test(lb_http_head, more_is_needed)
{
	expect("", "more");
	expect("GET / HTTP/1.1\r\nHost: a\r\n", "more");
	expect("GET / HTTP/1.1\r\nHost: a\r\n\r", "more");
}

Test(lb_http_head, targets)
{
	expect_line("GET /a%20b?x=/%2f HTTP/1.1", "GET /a%20b");
	expect_line("GET http://host/p?q HTTP/1.1", "GET /p");
	expect_line("GET HTTP://host:80 HTTP/1.1", "GET /");
	expect_line("GET https://[::1]?q HTTP/1.1", "GET /");
	expect_line("GET http://u@host/ HTTP/1.1", "400 broken");
	expect_line("GET http:///p HTTP/1.1", "400 broken");
	expect_line("GET http:/p HTTP/1.1", "400 broken");
	expect_line("GET http:?/ HTTP/1.1", "400 broken");
	expect_line("GET ftp://host/ HTTP/1.1", "400 broken");
	expect_line("GET p HTTP/1.1", "400 broken");
	expect_line("GET * HTTP/1.1", "400 broken");
	expect_line("GET /[a] HTTP/1.1", "400 broken");
	expect_line("GET http://a/[b] HTTP/1.1", "400 broken");
	expect_line("GET /a#b HTTP/1.1", "400 broken");
	expect_line("GET /a\"b HTTP/1.1", "400 broken");
	expect_line("GET /a\tb HTTP/1.1", "400 broken");
	expect_line("GET /\xc3\xa9 HTTP/1.1", "400 broken");
	expect_line("GET /%2 HTTP/1.1", "400 broken");
	expect_line("GET /% HTTP/1.1", "400 broken");
	expect_line("GET /%zz HTTP/1.1", "400 broken");
}

Test(lb_http_head, request_lines)
{
	expect_line("PUT / HTTP/1.1", "405, other /");
	expect_line("OPTIONS * HTTP/1.1", "405, other *");
	expect_line("CONNECT a:1 HTTP/1.1", "405, other a:1");
	expect_line("get / HTTP/1.1", "501, other /");
	expect_line("BREW / HTTP/1.1", "501, other /");
	expect_line("BREW /\x01 HTTP/1.1", "400 broken");
	expect_line("G(T / HTTP/1.1", "400 broken");
	expect_line(" GET / HTTP/1.1", "400 broken");
	expect_line("GET  / HTTP/1.1", "400 broken");
	expect_line("GET /  HTTP/1.1", "400 broken");
	expect_line("GET / HTTP/1.1 ", "400 broken");
	expect_line("GET\t/ HTTP/1.1", "400 broken");
	expect_line("GET /", "400 broken");
	expect_line("GET / http/1.1", "400 broken");
	expect_line("GET / HTTP/1", "400 broken");
	expect_line("GET / HTTP/01.1", "400 broken");
	expect_line("GET / HTTP/2.0", "505 broken");
	expect_line("GET / HTTP/1.2", "505 broken");
	expect_line("GET / HTTP/0.9", "505 broken");
	expect("\r\n\r\nGET / HTTP/1.1\r\n", "400 broken");
	/* another protocol is told by its first byte */
	expect("\x16\x03\x01", "400 broken");
	expect("\n", "400 broken");
}

Test(lb_http_head, lines_end_in_cr_lf)
{
	static const char with_nul[] = "GET / HTTP/1.1\r\nX: a\0b\r\nHost: a\r\n\r\n";

	expect("GET / HTTP/1.1\nHost: a\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: a\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: a\r\n\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nX: a\r\r\nHost: a\r\n\r\n", "400 broken");
	expect_bytes(with_nul, sizeof(with_nul) - 1, "400 broken");
}

Test(lb_http_head, fields)
{
	expect_fields("X:\r\nY:  \t\r\nZ: \x80\xff\tz\r\n", "POST /v2");
	expect_fields(" folded\r\n", "400 broken");
	expect_fields("X: a\r\n\tfolded\r\n", "400 broken");
	expect_fields("X : a\r\n", "400 broken");
	expect_fields(": a\r\n", "400 broken");
	expect_fields("X\r\n", "400 broken");
	expect_fields("X(: a\r\n", "400 broken");
	expect_fields("X: \x7f\r\n", "400 broken");
	expect_fields("X: \x1b\r\n", "400 broken");
}

Test(lb_http_head, hosts)
{
	expect("GET / HTTP/1.1\r\n\r\n", "400 broken");
	expect("GET http://a/ HTTP/1.1\r\n\r\n", "400 broken");
	expect_fields("Host: a\r\n", "400 broken");
	expect("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: []\r\n\r\n", "400 broken");
	expect("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "GET /");
	expect("GET / HTTP/1.1\r\nHost: [fe80::1]:8000\r\n\r\n", "GET /");
}

/* RFC 9112, 6: what could make two readers see two requests. */
Test(lb_http_head, lengths_are_clear)
{
	expect_fields("Content-Length: 0\r\n", "POST /v2 0");
	expect_fields("Content-Length: 007\r\n", "POST /v2 7");
	expect_fields("Content-Length: 1000\r\n", "POST /v2 1000");
	expect_fields("Content-Length: 1001\r\n", "413, POST /v2 1001");
	expect_fields("Content-Length: 99999999999999999999999999999\r\n",
		      "413, POST /v2 4611686018427387904");
	expect_fields("Content-Length: 5\r\nContent-Length: 5\r\n", "400 broken");
	expect_fields("Content-Length: 5\r\nContent-Length: 6\r\n", "400 broken");
	expect_fields("Content-Length: 5, 5\r\n", "400 broken");
	expect_fields("Content-Length:\r\n", "400 broken");
	expect_fields("Content-Length: -1\r\n", "400 broken");
	expect_fields("Content-Length: +1\r\n", "400 broken");
	expect_fields("Content-Length: 0x5\r\n", "400 broken");
	expect_fields("Content-Length: 1 2\r\n", "400 broken");
	expect_fields("Content-Length : 5\r\n", "400 broken");
	expect_fields("Transfer-Encoding: Chunked\r\n", "POST /v2 chunked");
	expect_fields("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "400 broken");
	expect_fields("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "400 broken");
	expect_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "400 broken");
	expect_fields("Transfer-Encoding: gzip, chunked\r\n", "501 broken");
	expect_fields("Transfer-Encoding: chunked, identity\r\n", "501 broken");
	expect_fields("Transfer-Encoding: xchunked\r\n", "501 broken");
	expect_fields("Transfer-Encoding: \"chunked\"\r\n", "501 broken");
	expect_fields("Transfer-Encoding:\x0b"
		      "chunked\r\n",
		      "400 broken");
	expect_fields("Transfer-Encoding:\r\n", "501 broken");
	expect("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400 broken");
	expect_fields("Content-Length: 5\r\nInference-Header-Content-Length: 6\r\n", "400 broken");
	expect_fields("Inference-Header-Content-Length: x\r\n", "400 broken");
	expect_fields(
		"Inference-Header-Content-Length: 1\r\nInference-Header-Content-Length: 1\r\n",
		"400 broken");
}

Test(lb_http_head, expectations_and_codings)
{
	expect_fields("Expect: 100-Continue\r\n", "POST /v2 expects");
	expect_fields("Expect: tea\r\n", "417, POST /v2");
	expect("GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", "GET / close");
	expect_fields("Content-Encoding: identity\r\n", "POST /v2");
	expect_fields("Content-Encoding: gzip\r\nContent-Length: 3\r\n", "415, POST /v2 3");
	expect_fields("Connection: foo, Close\r\n", "POST /v2 close");
	expect_fields("Connection: foo\r\nConnection: close\r\n", "POST /v2 close");
	expect_fields("Connection: keep-alive,close\r\n", "POST /v2 close");
	expect_fields("Connection: closed\r\n", "POST /v2");
	/* the first fault is told; one that hides the end is told first */
	expect_fields("Content-Encoding: gzip\r\nExpect: tea\r\n", "415, POST /v2");
	/* The JSON's length is that before it was compressed: Triton's clients say it so. */
	expect_fields("Content-Encoding: gzip\r\nInference-Header-Content-Length: 300\r\n"
		      "Content-Length: 150\r\n",
		      "415, POST /v2 150 json 300");
	expect_fields("Expect: tea\r\nContent-Length: x\r\n", "400 broken");
}

Test(lb_http_head, types)
{
	static const struct {
		const char *field;
		enum http_type type;
	} rows[] = {
		{"", HTTP_NO_TYPE},
		{"Content-Type:\r\n", HTTP_NO_TYPE},
		{"Content-Type: application/json\r\n", HTTP_JSON},
		{"Content-Type: Application/JSON; charset=utf-8\r\n", HTTP_JSON},
		{"Content-Type: application/octet-stream\r\n", HTTP_OCTETS},
		{"Content-Type: application/x-www-form-urlencoded\r\n", HTTP_FORM},
		{"Content-Type: text/html\r\n", HTTP_OTHER_TYPE},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct http_head h;
		char text[256];
		int n = snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: a\r\n%s\r\n",
				 rows[i].field);

		http_head_init(&h, MAX_BODY);
		cr_assert_eq(take(&h, text, (size_t)n), (uint32_t)n);
		cr_assert(h.done && h.status == 0);
		cr_assert_eq(h.type, rows[i].type, "%s", rows[i].field);
	}
}

/* A head with a path of <path> bytes, and <fields> fields of <each> bytes with their end. */
static void expect_sizes(size_t path, size_t fields, size_t each, const char *want)
{
	size_t n = 0, room = path + fields * each + 64,
	       cuts[] = {0, 1, 100, 4000, 4097, 4098, 16000};
	char *text = malloc(room);
	struct http_head h;

	n += (size_t)sprintf(text, "GET /");
	memset(text + n, 'p', path - 1);
	n += path - 1;
	n += (size_t)sprintf(text + n, " HTTP/1.1\r\nHost: a\r\n");
	for (size_t i = 0; i < fields; i++) {
		memset(text + n, 'x', each);
		memcpy(text + n, "X:", 2);
		memcpy(text + n + each - 2, "\r\n", 2);
		n += each;
	}
	n += (size_t)sprintf(text + n, "\r\n");
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		size_t cut = cuts[i] < n ? cuts[i] : n;

		http_head_init(&h, MAX_BODY);
		take(&h, text, cut);
		if (!h.done)
			take(&h, text + cut, n - cut);
		cr_assert(h.done);
		cr_assert_eq(strncmp(said(&h), want, strlen(want)), 0, "%zu %zu %zu at %zu: %s",
			     path, fields, each, cut, said(&h));
	}
	free(text);
}

Test(lb_http_head, sizes_are_bounded)
{
	expect_sizes(HTTP_PATH_MAX, 0, 0, "GET /ppp");
	expect_sizes(HTTP_PATH_MAX + 1, 0, 0, "414 broken");
	expect_sizes(HTTP_LINE_MAX, 0, 0, "414 broken");
	expect_sizes(20000, 0, 0, "414 broken");
	expect_sizes(1, 1, HTTP_LINE_MAX + 2, "GET /");
	expect_sizes(1, 1, HTTP_LINE_MAX + 3, "431 broken");
	expect_sizes(1, 1, 60000, "431 broken");
	expect_sizes(1, HTTP_FIELDS_MAX - 1, 10, "GET /");
	expect_sizes(1, HTTP_FIELDS_MAX, 10, "431 broken");
	/* 16 + 9 + 3 * 4,098 + 2 bytes, and then more than the head may have */
	expect_sizes(1, 3, HTTP_LINE_MAX + 2, "GET /");
	expect_sizes(1, 4, HTTP_LINE_MAX + 2, "431 broken");
}

Test(lb_http_head, what_follows_is_not_taken)
{
	const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\n";
	struct http_head h;

	http_head_init(&h, MAX_BODY);
	cr_assert_eq(take(&h, text, sizeof(text) - 1), 27);
	cr_assert(h.done);
	cr_assert_eq(http_head_read(&h, text, 5), 0, "a head that is done takes nothing");
}
