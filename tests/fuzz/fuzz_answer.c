/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as an answer: the seed of the cuts, names, an id, up to three outputs, and their bytes. In
 * one piece and in several the text is the same. It is JSON, and the values that a reader finds in
 * it are those that were written.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"
#include "kserve/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_MAX 65536

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

struct text {
	char at[TEXT_MAX];
	uint32_t length;
	bool failed;
};

static void write_answer(struct text *t, const struct kserve_answer *answer, const uint8_t *bytes,
			 size_t n, uint32_t seed)
{
	struct kserve_writer w = {0};
	size_t at = 0;

	t->length = 0;
	while (!w.done && !w.failed) {
		size_t part = seed == 0 ? n : (seed >> 16) % 23;
		uint32_t room = KSERVE_ANSWER_ROOM + (seed >> 8) % 99, length;
		char *out = malloc(room);
		uint8_t *copy;
		const uint8_t *from;

		seed = seed == 0 ? 0 : seed * 1664525 + 1013904223;
		part = part < n - at ? part : n - at;
		copy = malloc(part > 0 ? part : 1);
		memcpy(copy, bytes + at, part);
		from = copy;
		length = kserve_answer_write(answer, &w, &from, copy + part, out, room);
		require(length <= room && from <= copy + part, "it stays inside");
		require(w.failed || length > 0 || from > copy || part == 0, "it goes on");
		require(t->length + length < TEXT_MAX, "the text is too long");
		memcpy(t->at + t->length, out, length);
		t->length += length;
		at += (size_t)(from - copy);
		free(copy);
		free(out);
	}
	require(w.failed || at == n, "bytes were left");
	t->failed = w.failed;
}

/* The value that was written for these bytes. */
static bool is_value(enum kserve_datatype type, const uint8_t *bytes,
		     const struct json_token *token)
{
	uint64_t u = 0, read_u = 0;
	int64_t i = 0, read_i = 0;
	float f32, read_f32;
	double f64, read_f64;

	memcpy(&u, bytes, kserve_datatype_size(type));
	switch (type) {
	case KSERVE_BOOL:
		return token->kind == (u != 0 ? JSON_TOKEN_TRUE : JSON_TOKEN_FALSE);
	case KSERVE_FP32:
		memcpy(&f32, bytes, sizeof(f32));
		if (!isfinite(f32))
			return token->kind == JSON_TOKEN_NULL;
		return token->kind == JSON_TOKEN_NUMBER &&
		       json_number_f32(&token->number, &read_f32) &&
		       memcmp(&f32, &read_f32, sizeof(f32)) == 0;
	case KSERVE_FP64:
		memcpy(&f64, bytes, sizeof(f64));
		if (!isfinite(f64))
			return token->kind == JSON_TOKEN_NULL;
		return token->kind == JSON_TOKEN_NUMBER &&
		       json_number_f64(&token->number, &read_f64) &&
		       memcmp(&f64, &read_f64, sizeof(f64)) == 0;
	case KSERVE_UINT8:
	case KSERVE_UINT16:
	case KSERVE_UINT32:
	case KSERVE_UINT64:
		return token->kind == JSON_TOKEN_NUMBER &&
		       json_number_u64(&token->number, &read_u) && u == read_u;
	default:
		i = (int64_t)(u << (64 - 8 * kserve_datatype_size(type))) >>
		    (64 - 8 * kserve_datatype_size(type));
		return token->kind == JSON_TOKEN_NUMBER &&
		       json_number_i64(&token->number, &read_i) && i == read_i;
	}
}

/* Reads the answer: each value of `data` in turn. Strings are only counted. */
static void check_values(const struct kserve_answer *answer, const struct text *t,
			 const uint8_t *bytes)
{
	struct json_reader reader = {0};
	const char *at = t->at, *end = t->at + t->length;
	struct json_token token;
	uint64_t done = 0;
	int output = -1, inside = 0;

	while (json_read(&reader, &at, end, &token) != JSON_TOKEN_MORE) {
		require(token.kind != JSON_TOKEN_BAD, "the answer is not JSON");
		if (token.kind == JSON_TOKEN_KEY && token.length == 4 &&
		    memcmp(token.text, "data", 4) == 0) {
			inside = 1;
			for (output++; answer->output[output].binary; output++)
				;
			done = 0;
		} else if (inside > 0 && token.kind == JSON_TOKEN_ARRAY_BEGIN) {
			inside = 2;
		} else if (inside > 0 && token.kind == JSON_TOKEN_ARRAY_END) {
			const struct kserve_answer_output *o = &answer->output[output];

			require(o->type == KSERVE_BYTES || done == o->bytes, "values are missing");
			bytes += o->bytes;
			inside = 0;
		} else if (inside == 2 && answer->output[output].type != KSERVE_BYTES) {
			enum kserve_datatype type = answer->output[output].type;

			require(is_value(type, bytes + done, &token), "a value is another");
			done += kserve_datatype_size(type);
		}
	}
	require(json_is_complete(&reader), "the answer is not complete");
}

static const uint8_t *next(const uint8_t **data, size_t *size, size_t n)
{
	const uint8_t *at = *data;

	*data += n;
	*size -= n;
	return at;
}

/* Two bytes of options per output. Returns how many bytes their values have. */
static size_t describe(struct kserve_answer *answer, const char *name, const uint8_t **data,
		       size_t *size)
{
	size_t n = 0;

	for (uint8_t i = 0; i < answer->outputs; i++) {
		const uint8_t *options = next(data, size, 2);
		struct kserve_answer_output *o = &answer->output[i];

		*o = (struct kserve_answer_output){
			.name = name,
			.type = (enum kserve_datatype)(KSERVE_BOOL + options[0] % KSERVE_BYTES),
			.binary = options[0] >= 0xc0,
			.dims = options[1] % (KSERVE_DIMS_MAX + 1),
			.bytes = options[1] & 0x7f};
		n += o->binary ? 0 : o->bytes;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct text whole, cut;
	struct kserve_answer answer = {.version = "1", .id_length = 4};
	char model[5] = "", name[5] = "";
	uint32_t seed;
	size_t n;

	if (size < 24)
		return 0;
	seed = *next(&data, &size, 1) + 1;
	memcpy(model, next(&data, &size, 4), 4);
	memcpy(name, next(&data, &size, 4), 4);
	answer.model = model;
	answer.id = (const char *)next(&data, &size, 4);
	answer.outputs = *next(&data, &size, 1) % 4;
	n = describe(&answer, name, &data, &size);
	if (n > size)
		return 0;
	write_answer(&whole, &answer, data, n, 0);
	write_answer(&cut, &answer, data, n, seed << 16);
	require(whole.failed == cut.failed, "cuts change the verdict");
	if (whole.failed)
		return 0;
	require(whole.length == cut.length && memcmp(whole.at, cut.at, whole.length) == 0,
		"cuts change the text");
	check_values(&answer, &whole, data);
	return 0;
}
