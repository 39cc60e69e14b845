/* SPDX-License-Identifier: BSD-3-Clause */
/* Infer responses in pieces: the same text, however bytes and room come. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kserve/answer.h"

#define TEXT_MAX 65536

struct written {
	struct kserve_writer writer;
	char text[TEXT_MAX];
	uint32_t length;
	uint32_t largest; /* of the pieces */
};

/* Writes an answer with <step> bytes of tensors and <room> bytes of room at a time. */
static const char *write_in_steps(struct written *w, const struct kserve_answer *answer,
				  const void *bytes, size_t n, size_t step, uint32_t room)
{
	size_t at = 0;

	memset(w, 0, sizeof(*w));
	while (!w->writer.done && !w->writer.failed) {
		size_t part = n - at < step ? n - at : step;
		uint8_t *copy = malloc(part > 0 ? part : 1);
		char *out = malloc(room);
		const uint8_t *from = copy;
		uint32_t length;

		if (part > 0)
			memcpy(copy, (const uint8_t *)bytes + at, part);
		length = kserve_answer_write(answer, &w->writer, &from, copy + part, out, room);
		cr_assert(length > 0 || from > copy || w->writer.failed, "it goes on");
		cr_assert(w->length + length < TEXT_MAX);
		memcpy(w->text + w->length, out, length);
		w->length += length;
		w->largest = length > w->largest ? length : w->largest;
		at += (size_t)(from - copy);
		free(copy);
		free(out);
	}
	w->text[w->length] = '\0';
	cr_assert(w->writer.failed || at == n, "all bytes are taken");
	return w->text;
}

static void expect(const struct kserve_answer *answer, const void *bytes, size_t n,
		   const char *want)
{
	static struct written w;
	static const size_t steps[] = {1, 2, 3, 5, 7, 8, 13, 64, 100000};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		for (uint32_t room = KSERVE_ANSWER_ROOM; room < KSERVE_ANSWER_ROOM + 9; room += 4)
			cr_assert_str_eq(write_in_steps(&w, answer, bytes, n, steps[i], room), want,
					 "%zu at a time: %s", steps[i], w.text);
	}
}

/* An answer of one output with these bytes has these values. */
static void expect_values(enum kserve_datatype type, const void *bytes, size_t n,
			  const char *values)
{
	struct kserve_answer answer = {
		.model = "m",
		.version = "",
		.outputs = 1,
		.output = {{.name = "y", .type = type, .dims = 1, .bytes = n}}};
	char want[1024];

	snprintf(want, sizeof(want),
		 "{\"model_name\":\"m\",\"outputs\":[{\"name\":\"y\",\"datatype\":\"%s\",\"shape\":"
		 "[0],"
		 "\"data\":[%s]}]}",
		 kserve_datatype_name(type), values);
	expect(&answer, bytes, n, want);
}

#define VALUES(type, c_type, text, ...)                                                            \
	do {                                                                                       \
		const c_type values[] = {__VA_ARGS__};                                             \
		expect_values(type, values, sizeof(values), text);                                 \
	} while (0)

Test(lb_kserve_answer, values)
{
	VALUES(KSERVE_BOOL, uint8_t, "true,false,true", 1, 0, 255);
	VALUES(KSERVE_UINT8, uint8_t, "0,255", 0, 255);
	VALUES(KSERVE_UINT16, uint16_t, "0,65535", 0, 65535);
	VALUES(KSERVE_UINT32, uint32_t, "0,4294967295", 0, UINT32_MAX);
	VALUES(KSERVE_UINT64, uint64_t, "0,18446744073709551615", 0, UINT64_MAX);
	VALUES(KSERVE_INT8, int8_t, "-128,127", -128, 127);
	VALUES(KSERVE_INT16, int16_t, "-32768,32767", INT16_MIN, INT16_MAX);
	VALUES(KSERVE_INT32, int32_t, "-2147483648,2147483647", INT32_MIN, INT32_MAX);
	VALUES(KSERVE_INT64, int64_t, "-9223372036854775808,9223372036854775807", INT64_MIN,
	       INT64_MAX);
	VALUES(KSERVE_FP32, float, "1.0,0.1,3.4028235e+38,-0.0,null,null", 1, 0.1f, FLT_MAX, -0.0f,
	       NAN, INFINITY);
	VALUES(KSERVE_FP64, double, "1.0,0.1,1.7976931348623157e+308,5e-324,null", 1, 0.1, DBL_MAX,
	       5e-324, -INFINITY);
}

Test(lb_kserve_answer, strings)
{
	expect_values(KSERVE_BYTES, "", 0, "");
	expect_values(KSERVE_BYTES, "\0\0\0\0", 4, "\"\"");
	expect_values(KSERVE_BYTES, "\2\0\0\0a\"\0\0\0\0\3\0\0\0\xe2\x82\xac", 17,
		      "\"a\\\"\",\"\",\"\xe2\x82\xac\"");
	expect_values(KSERVE_BYTES, "\1\0\0\0\xff\2\0\0\0\xe2\x82\1\0\0\0\xac", 16,
		      "\"\xef\xbf\xbd\",\"\xef\xbf\xbd\",\"\xef\xbf\xbd\"");
	expect_values(KSERVE_BYTES, "\3\0\0\0\n\1\0", 7, "\"\\n\\u0001\\u0000\"");
}

Test(lb_kserve_answer, several_outputs)
{
	const struct kserve_answer answer = {
		.model = "m",
		.version = "3",
		.id = "i\"d",
		.id_length = 3,
		.outputs = 3,
		.output = {{.name = "a",
			    .type = KSERVE_UINT8,
			    .dims = 2,
			    .shape = {1, 3},
			    .bytes = 3},
			   {.name = "b",
			    .type = KSERVE_FP16,
			    .dims = 1,
			    .binary = true,
			    .shape = {4},
			    .bytes = 8},
			   {.name = "c", .type = KSERVE_INT16, .dims = 0, .bytes = 2}},
	};

	expect(&answer, "\1\2\3\4\0", 5,
	       "{\"model_name\":\"m\",\"model_version\":\"3\",\"id\":\"i\\\"d\",\"outputs\":["
	       "{\"name\":\"a\",\"datatype\":\"UINT8\",\"shape\":[1,3],\"data\":[1,2,3]},"
	       "{\"name\":\"b\",\"datatype\":\"FP16\",\"shape\":[4],\"parameters\":{\"binary_data_"
	       "size\":8}},"
	       "{\"name\":\"c\",\"datatype\":\"INT16\",\"shape\":[],\"data\":[4]}]}");
}

Test(lb_kserve_answer, without_outputs)
{
	const struct kserve_answer answer = {.model = "m", .version = "", .id = "", .id_length = 0};

	expect(&answer, "", 0, "{\"model_name\":\"m\",\"id\":\"\",\"outputs\":[]}");
}

/* Names and an id that take six characters per byte need the room that is said, and no more. */
Test(lb_kserve_answer, the_longest_head_fits)
{
	static char name[KSERVE_NAME_MAX], version[KSERVE_VERSION_MAX], id[KSERVE_ID_MAX];
	struct kserve_answer answer = {.model = name,
				       .version = version,
				       .id = id,
				       .id_length = KSERVE_ID_MAX,
				       .outputs = 1,
				       .output = {{.name = name,
						   .type = KSERVE_UINT64,
						   .dims = KSERVE_DIMS_MAX,
						   .binary = true,
						   .bytes = UINT64_MAX}}};
	static struct written w, roomy;

	memset(name, 1, sizeof(name) - 1);
	memset(version, 1, sizeof(version) - 1);
	memset(id, 1, sizeof(id));
	memset(answer.output[0].shape, 0xff, sizeof(answer.output[0].shape));
	write_in_steps(&w, &answer, "", 0, 1, KSERVE_ANSWER_ROOM);
	write_in_steps(&roomy, &answer, "", 0, 1, 2 * KSERVE_ANSWER_ROOM);
	cr_assert_str_eq(w.text, roomy.text);
	cr_assert_gt(w.length,
		     6 * (2 * (KSERVE_NAME_MAX - 1) + KSERVE_VERSION_MAX - 1 + KSERVE_ID_MAX));
}

Test(lb_kserve_answer, bytes_that_are_no_elements_fail)
{
	static const struct {
		enum kserve_datatype type;
		size_t n;
		const char *bytes;
	} rows[] = {
		{KSERVE_BYTES, 3, "\1\0\0"},
		{KSERVE_BYTES, 4, "\1\0\0\0"},
		{KSERVE_BYTES, 5, "\2\0\0\0a"},
		{KSERVE_BYTES, 6, "\1\0\0\0aa"},
		{KSERVE_BYTES, 6,
		 "\xff\xff\xff\xff"
		 "aa"},
		{KSERVE_FP32, 5, "aaaaa"},
		{KSERVE_FP16, 2, "aa"},
		{KSERVE_BF16, 2, "aa"},
	};
	static struct written w;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kserve_answer answer = {
			.model = "m",
			.version = "",
			.outputs = 1,
			.output = {{.name = "y", .type = rows[i].type, .bytes = rows[i].n}}};

		for (size_t step = 1; step < 10; step++) {
			write_in_steps(&w, &answer, rows[i].bytes, rows[i].n, step,
				       KSERVE_ANSWER_ROOM);
			cr_assert(w.writer.failed, "row %zu", i);
		}
	}
}

Test(lb_kserve_answer, a_large_tensor_leaves_in_pieces)
{
	static struct written w;
	static float values[5000];
	struct kserve_answer answer = {.model = "m",
				       .version = "",
				       .outputs = 1,
				       .output = {{.name = "y",
						   .type = KSERVE_FP32,
						   .dims = 1,
						   .shape = {5000},
						   .bytes = sizeof(values)}}};

	for (int i = 0; i < 5000; i++)
		values[i] = (float)i / 7;
	write_in_steps(&w, &answer, values, sizeof(values), 4096, 2048);
	cr_assert(w.largest <= 2048);
	cr_assert(w.length > 30000);
	cr_assert_str_eq(w.text + w.length - 4, "]}]}");
}

Test(lb_kserve_answer, errors)
{
	char text[64];

	text[kserve_error_write("no \"m\"\n", text, sizeof(text))] = '\0';
	cr_assert_str_eq(text, "{\"error\":\"no \\\"m\\\"\\n\"}");
	for (uint32_t room = 16; room < 40; room++) {
		char *exact = malloc(room);
		uint32_t n = kserve_error_write("\x01\x02 is a long message\xc3", exact, room);

		cr_assert(n <= room);
		cr_assert_eq(memcmp(exact + n - 2, "\"}", 2), 0);
		free(exact);
	}
}

/* The text of elements, and of tensors: what is cut between them is joined. */
Test(lb_kserve_answer, text_of_several_tensors)
{
	static const struct {
		const char *bytes;
		uint32_t n;
	} tensors[] = {{"\2\0\0\0a\"\0\0\0\0\1\0\0\0\xe4", 15},
		       {"\1\0\0\0\xb8\2\0\0\0\xad\xff", 11},
		       {"", 0},
		       {"\1\0\0\0\xc3", 5}};

	for (size_t step = 1; step < 20; step++) {
		struct kserve_writer w = {0};
		char text[64];
		struct json_out o = {text, text + sizeof(text), false};

		for (size_t i = 0; i < sizeof(tensors) / sizeof(tensors[0]); i++) {
			const uint8_t *at = (const uint8_t *)tensors[i].bytes,
				      *end = at + tensors[i].n;

			w.tensor_left = tensors[i].n;
			while (at < end)
				kserve_answer_text(&w, &at,
						   (size_t)(end - at) < step ? end : at + step, &o);
			cr_assert_eq(w.tensor_left, 0);
			cr_assert(!w.failed);
		}
		kserve_answer_text_end(&w, &o);
		*o.at = '\0';
		cr_assert_str_eq(text, "a\\\"\xe4\xb8\xad\xef\xbf\xbd\xef\xbf\xbd", "%zu", step);
	}
}

Test(lb_kserve_answer, no_text)
{
	static const char *const wrong[] = {"\5\0\0\0abcd", "\1\0\0\0abcd"};

	for (size_t i = 0; i < 2; i++) {
		struct kserve_writer w = {.tensor_left = 8};
		const uint8_t *at = (const uint8_t *)wrong[i];
		char text[64];
		struct json_out o = {text, text + sizeof(text), false};

		kserve_answer_text(&w, &at, at + 8, &o);
		cr_assert(w.failed);
	}
}
