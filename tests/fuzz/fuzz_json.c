/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as JSON. The first is a seed: the tokens are the same in one piece and in several. Every
 * number is read as the C library reads it, and what is written reads back the same. Strings are
 * written and read again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/number_write.h"
#include "json/reader.h"
#include "json/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* All that the tokens say: a hash of their kinds, texts and values. */
struct tokens {
	struct json_reader reader;
	uint64_t hash, string;
	bool bad;
};

static void mix(uint64_t *hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*hash = (*hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
}

static void check_f64(const char *text, const struct json_number *n)
{
	double value = 0, want = strtod(text, NULL);
	char written[JSON_NUMBER_ROOM];

	require(json_number_f64(n, &value) == (isfinite(want) != 0), "a double is out of range");
	if (isinf(want))
		return;
	require(memcmp(&value, &want, sizeof(value)) == 0, "a double is another");
	written[json_number_write_f64(written, value)] = '\0';
	require(strtod(written, NULL) == want, "a double does not read back");
}

static void check_f32(const char *text, const struct json_number *n)
{
	float value = 0, want = strtof(text, NULL);
	char written[JSON_NUMBER_ROOM];

	require(json_number_f32(n, &value) == (isfinite(want) != 0), "a float is out of range");
	if (isinf(want))
		return;
	require(memcmp(&value, &want, sizeof(value)) == 0, "a float is another");
	written[json_number_write_f32(written, value)] = '\0';
	require(strtof(written, NULL) == want, "a float does not read back");
}

static void check_number(const struct json_number *n)
{
	char text[JSON_NUMBER_MAX + 1];
	uint64_t u;

	memcpy(text, n->text, n->length);
	text[n->length] = '\0';
	check_f64(text, n);
	check_f32(text, n);
	if (json_number_u64(n, &u))
		require(u == strtoull(text, NULL, 10), "an integer is another");
}

static void take_token(struct tokens *t, const struct json_token *token)
{
	if (token->kind == JSON_TOKEN_KEY || token->kind == JSON_TOKEN_STRING) {
		mix(&t->string, token->text, token->length);
		if (!token->last)
			return;
		mix(&t->hash, &t->string, sizeof(t->string));
		t->string = 0;
	} else if (token->kind == JSON_TOKEN_NUMBER) {
		check_number(&token->number);
		mix(&t->hash, token->number.text, token->number.length);
	}
	mix(&t->hash, &token->kind, sizeof(token->kind));
}

/* Bytes that have their exact size. */
static void take(struct tokens *t, const uint8_t *bytes, size_t n)
{
	char *copy = malloc(n);
	const char *at = copy;
	struct json_token token;

	memcpy(copy, bytes, n);
	while (json_read(&t->reader, &at, copy + n, &token) != JSON_TOKEN_MORE &&
	       token.kind != JSON_TOKEN_BAD)
		take_token(t, &token);
	require(at <= copy + n, "read beyond the end");
	t->bad = token.kind == JSON_TOKEN_BAD;
	require(t->bad || at == copy + n, "bytes were left");
	free(copy);
}

static void check_escape(const uint8_t *data, size_t size)
{
	size_t room = 3 + 6 * size;
	char *text = malloc(room);
	struct json_out out = {text, text + room, false};
	struct tokens t = {0};

	json_put(&out, "[");
	json_put_string(&out, (const char *)data, (uint32_t)size);
	require(!out.full, "an escaped string does not fit");
	take(&t, (const uint8_t *)text, (size_t)(out.at - text));
	require(!t.bad, "an escaped string is not JSON");
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tokens whole = {0}, cut = {0};
	uint32_t seed;

	if (size < 2)
		return 0;
	seed = *data++;
	size--;
	take(&whole, data, size);
	for (size_t at = 0, n; at < size && !cut.bad; at += n) {
		seed = seed * 1664525 + 1013904223;
		n = 1 + (seed >> 16) % (seed >> 30 == 0 ? 64 : 4);
		n = n < size - at ? n : size - at;
		take(&cut, data + at, n);
	}
	require(whole.bad == cut.bad, "cuts change the verdict");
	if (whole.bad)
		require(whole.reader.error == cut.reader.error, "cuts change the error");
	require(whole.hash == cut.hash, "cuts change the tokens");
	require(json_is_complete(&whole.reader) == json_is_complete(&cut.reader),
		"cuts change the end");
	check_escape(data, size);
	return 0;
}
