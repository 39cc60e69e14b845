/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunked bodies: where their bytes are, and what is refused, however they are cut. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/chunked.h"

#define MAX_BODY 1000

/* "5@3 end@12": chunks with their positions, then the position of the end, or the status. */
struct body {
	struct http_chunked chunked;
	char log[512];
	size_t length;
	uint64_t position, skip;
	enum http_chunk result;
};

__attribute__((format(printf, 2, 3))) static void note(struct body *b, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	b->length += (size_t)vsnprintf(b->log + b->length, sizeof(b->log) - b->length, format,
				       arguments);
	va_end(arguments);
	cr_assert(b->length < sizeof(b->log));
}

static bool over(const struct body *b)
{
	return b->result == HTTP_CHUNK_END || b->result == HTTP_CHUNK_REFUSED;
}

static void step(struct body *b, const char *bytes, const char **at, const char *end)
{
	const char *from = *at;

	b->result = http_chunked_read(&b->chunked, at, end);
	b->position += (uint64_t)(*at - from);
	if (b->result == HTTP_CHUNK_DATA) {
		note(b, "%" PRIu64 "@%" PRIu64 " ", b->chunked.size, b->position);
		b->skip = b->chunked.size;
	} else if (b->result == HTTP_CHUNK_END) {
		note(b, "end@%" PRIu64, b->position);
	} else if (b->result == HTTP_CHUNK_REFUSED) {
		note(b, "%u", b->chunked.status);
	} else {
		cr_assert_eq(*at, end);
	}
}

/* The next bytes of the stream; those of chunks are not shown. */
static void take(struct body *b, const char *bytes, size_t n)
{
	char *copy = malloc(n > 0 ? n : 1);
	const char *at = copy;

	memcpy(copy, bytes, n);
	while (at < copy + n && !over(b)) {
		uint64_t skip =
			b->skip < (uint64_t)(copy + n - at) ? b->skip : (uint64_t)(copy + n - at);

		at += skip;
		b->skip -= skip;
		b->position += skip;
		if (at < copy + n)
			step(b, copy, &at, copy + n);
	}
	free(copy);
}

static void expect_bytes(const char *text, size_t n, const char *want)
{
	struct body b;

	for (size_t cut = 0; cut <= n; cut++) {
		b = (struct body){.chunked.max = MAX_BODY};
		take(&b, text, cut);
		take(&b, text + cut, n - cut);
		cr_assert_str_eq(b.log, want, "%s cut at %zu: %s", text, cut, b.log);
	}
	b = (struct body){.chunked.max = MAX_BODY};
	for (size_t i = 0; i < n; i++)
		take(&b, text + i, 1);
	cr_assert_str_eq(b.log, want, "%s byte by byte: %s", text, b.log);
}

static void expect(const char *text, const char *want)
{
	expect_bytes(text, strlen(text), want);
}

Test(lb_http_chunked, bodies)
{
	expect("0\r\n\r\n", "end@5");
	expect("5\r\nhello\r\n0\r\n\r\n", "5@3 end@15");
	expect("5\r\nhello\r\n3\r\nabc\r\n000\r\n\r\nGET", "5@3 3@13 end@25");
	expect("1\r\n\n\r\n1\r\n\r\r\n0\r\n\r\n", "1@3 1@9 end@17");
	expect("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "10@3 10@18 end@35");
	expect("0000000000000001\r\nx\r\n0\r\n\r\n", "1@18 end@26");
	expect("3e8\r\n", "1000@5 ");
}

Test(lb_http_chunked, extensions_are_dropped)
{
	expect("1;a=b;c=\"d\"\r\nx\r\n0;z\r\n\r\n", "1@13 end@23");
	expect("1 ;a\r\nx\r\n0 \t;z\r\n\r\n", "1@6 end@18");
	expect("1 \r\nx", "400");
	expect("1;a\n", "400");
	expect("1;a\rb\r\n", "400");
	expect("1;\x01\r\n", "400");
}

Test(lb_http_chunked, trailers_are_dropped)
{
	expect("0\r\nX-Sum: 5\r\nY:\r\n\r\n", "end@19");
	expect("0\r\n folded: 1\r\n\r\n", "400");
	expect("0\r\nX: 1\r\n y\r\n\r\n", "400");
	expect("0\r\nX : 1\r\n\r\n", "400");
	expect("0\r\nX\r\n\r\n", "400");
	expect("0\r\n: 1\r\n\r\n", "400");
	expect("0\r\nX: 1\n\r\n", "400");
	expect("0\r\nX: \x01\r\n\r\n", "400");
	expect("0\r\nX: 1\r\r\n", "400");
}

Test(lb_http_chunked, sizes_are_strict)
{
	static const char *const bad[] = {
		"\r\n",
		"g\r\n",
		"-1\r\n",
		"+1\r\n",
		"0x1\r\n",
		" 1\r\n",
		"1\n",
		"1\rx",
		"1,2\r\n",
		"1.\r\n",
		"00000000000000001\r\n",
		";a\r\n",
		"\n",
		"5 5\r\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect(bad[i], "400");
	expect_bytes("\0\r\n", 3, "400");
	expect("3e9\r\n", "413");
	expect("3e8;\r\n", "1000@6 ");
	expect("ffffffffffffffff\r\n", "413");
	expect("1\r\nxy", "1@3 400");
	expect("1\r\nx\n", "1@3 400");
	expect("1\r\nx\r0", "1@3 400");
	expect("5\r\nhello\r\n3e8\r\n", "5@3 413");
	expect("0\r\n\r0", "400");
}

/* Prints <head>, then <n> bytes of <filler>, and <tail>. */
static void expect_filled(const char *head, char filler, size_t n, const char *tail,
			  const char *want)
{
	char *text = malloc(strlen(head) + n + strlen(tail) + 1);

	strcpy(text, head);
	memset(text + strlen(head), filler, n);
	strcpy(text + strlen(head) + n, tail);
	expect(text, want);
	free(text);
}

Test(lb_http_chunked, extensions_and_trailers_are_bounded)
{
	char want[32];

	snprintf(want, sizeof(want), "1@%u ", HTTP_EXTENSIONS_MAX + 4);
	expect_filled("1;", 'x', HTTP_EXTENSIONS_MAX, "\r\n", want);
	expect_filled("1;", 'x', HTTP_EXTENSIONS_MAX + 1, "\r\n", "400");
	snprintf(want, sizeof(want), "end@%u", HTTP_TRAILERS_MAX + 7);
	expect_filled("0\r\nX:", 'x', HTTP_TRAILERS_MAX - 2, "\r\n\r\n", want);
	expect_filled("0\r\nX:", 'x', HTTP_TRAILERS_MAX - 1, "\r\n\r\n", "431");
}

Test(lb_http_chunked, what_is_over_stays_over)
{
	struct http_chunked c = {.max = 10};
	const char good[] = "0\r\n\r\n", bad[] = "x";
	const char *at = good;

	cr_assert_eq(http_chunked_read(&c, &at, good + 5), HTTP_CHUNK_END);
	at = good;
	cr_assert_eq(http_chunked_read(&c, &at, good + 5), HTTP_CHUNK_END);
	cr_assert_eq(at, good);
	c = (struct http_chunked){.max = 10};
	at = bad;
	cr_assert_eq(http_chunked_read(&c, &at, bad + 1), HTTP_CHUNK_REFUSED);
	at = good;
	cr_assert_eq(http_chunked_read(&c, &at, good + 5), HTTP_CHUNK_REFUSED);
}

static const char *head_of(uint32_t size, bool first)
{
	static char text[HTTP_CHUNK_HEAD_MAX + 1];

	text[http_chunk_write(text, size, first)] = '\0';
	return text;
}

Test(lb_http_chunked, heads_of_chunks_that_are_sent)
{
	cr_assert_str_eq(head_of(1, true), "1\r\n");
	cr_assert_str_eq(head_of(16, false), "\r\n10\r\n");
	cr_assert_str_eq(head_of(0xabcdef, false), "\r\nabcdef\r\n");
	cr_assert_str_eq(head_of(UINT32_MAX, false), "\r\nffffffff\r\n");
	cr_assert_str_eq(head_of(0, true), "0\r\n\r\n");
	cr_assert_str_eq(head_of(0, false), "\r\n0\r\n\r\n");
}
