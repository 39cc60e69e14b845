/* SPDX-License-Identifier: BSD-3-Clause */
#include "models/safetensors.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_SIZE 48

struct image {
	uint8_t bytes[4096];
	size_t size;
};

/* A file of <header> and <data_size> bytes that count up. */
static struct image image_of(const char *header, size_t data_size)
{
	struct image image = {.size = 8 + strlen(header) + data_size};

	cr_assert(image.size <= sizeof(image.bytes));
	image.bytes[0] = (uint8_t)strlen(header);
	image.bytes[1] = (uint8_t)(strlen(header) >> 8);
	memcpy(image.bytes + 8, header, strlen(header));
	for (size_t i = 0; i < data_size; i++)
		image.bytes[8 + strlen(header) + i] = (uint8_t)i;
	return image;
}

/* Parses an exact-size heap copy, so that the sanitizer sees one byte too far. */
static int parse(const struct image *image, struct safetensors **file, void **copy, char *error)
{
	*copy = malloc(image->size);
	memcpy(*copy, image->bytes, image->size);
	return safetensors_parse(*copy, image->size, file, error, 256);
}

Test(agent_safetensors, reads_tensors_in_the_order_of_their_bytes)
{
	struct image image =
		image_of("{\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,48]},"
			 "\"__metadata__\":{\"input_scale\":\"0.5\"},"
			 "\"a\":{\"dtype\":\"U16\",\"shape\":[12],\"data_offsets\":[0,24]}}  ",
			 DATA_SIZE);
	const struct safetensors_tensor *tensor;
	struct safetensors *file;
	char error[256];
	void *copy;

	cr_assert_eq(parse(&image, &file, &copy, error), 0, "%s", error);
	cr_assert_str_eq(safetensors_at(file, 0)->name, "a");
	cr_assert_str_eq(safetensors_at(file, 1)->name, "b");
	cr_assert_null(safetensors_at(file, 2));
	tensor = safetensors_find(file, "b");
	cr_assert_eq(tensor->rank, 2);
	cr_assert_eq(tensor->shape[0], 2);
	cr_assert_eq(tensor->shape[1], 3);
	cr_assert_eq(tensor->elements, 6);
	cr_assert_eq(tensor->size, 24);
	cr_assert_eq(tensor->data[0], 24);
	cr_assert_null(safetensors_find(file, "c"));
	cr_assert_str_eq(safetensors_metadata(file, "input_scale"), "0.5");
	cr_assert_null(safetensors_metadata(file, "other"));
	safetensors_destroy(file);
	free(copy);
}

Test(agent_safetensors, reads_scalars_and_empty_tensors_and_no_tensors)
{
	struct image scalar =
		image_of("{\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
			 "\"e\":{\"dtype\":\"F32\",\"shape\":[4,0],\"data_offsets\":[8,8]}}",
			 8);
	struct image none = image_of("{}", 0);
	struct safetensors *file;
	char error[256];
	void *copy;

	cr_assert_eq(parse(&scalar, &file, &copy, error), 0, "%s", error);
	cr_assert_eq(safetensors_find(file, "s")->elements, 1);
	cr_assert_eq(safetensors_find(file, "e")->elements, 0);
	safetensors_destroy(file);
	free(copy);
	cr_assert_eq(parse(&none, &file, &copy, error), 0, "%s", error);
	cr_assert_null(safetensors_at(file, 0));
	safetensors_destroy(file);
	free(copy);
}

#define TENSOR(name, dtype, shape, begin, end)                                                     \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin       \
	"," end "]}"

static const struct refused {
	const char *header;
	const char *problem; /* part of the sentence */
} refused[] = {
	{"", "not JSON"},
	{"[]", "not a JSON object"},
	{"{\"w\":{}}x", "not JSON"},
	{"{\"w\":1}", "tensor 'w': its entry is not an object"},
	{"{\"w\":{\"shape\":[12],\"data_offsets\":[0,48]}}", "tensor 'w': dtype"},
	{"{" TENSOR("w", "F31", "[12]", "0", "48") "}", "tensor 'w': dtype is missing or unknown"},
	{"{" TENSOR("w", "F32", "12", "0", "48") "}", "tensor 'w': shape is not a list"},
	{"{" TENSOR("w", "F32", "[-12]", "0", "48") "}", "not a length"},
	{"{" TENSOR("w", "F32", "[12.0]", "0", "48") "}", "not a length"},
	{"{" TENSOR("w", "F32", "[1,1,1,1,1,1,1,1,12]", "0", "48") "}", "9 dimensions"},
	{"{" TENSOR("w", "F32", "[4294967296,4294967296]", "0", "48") "}", "shape overflows"},
	{"{" TENSOR("w", "F32", "[4611686018427387904,1]", "0", "48") "}", "do not add up"},
	{"{" TENSOR("w", "F32", "[12]", "0", "44") "}", "hold 44 bytes"},
	{"{" TENSOR("w", "F32", "[13]", "0", "52") "}", "leave the file's 48 data bytes"},
	{"{" TENSOR("w", "F32", "[12]", "48", "0") "}", "leave the file's"},
	{"{" TENSOR("w", "F32", "[12]", "-48", "0") "}", "not [begin, end]"},
	{"{" TENSOR("w", "F32", "[12]", "0", "48,48") "}", "not [begin, end]"},
	{"{" TENSOR("w", "F32", "[8]", "0", "32") "," TENSOR("v", "F32", "[8]", "16", "48") "}",
	 "tensor 'v': overlaps"},
	{"{" TENSOR("w", "F32", "[4]", "0", "16") "," TENSOR("v", "F32", "[4]", "32", "48") "}",
	 "tensor 'v': bytes before it belong to no tensor"},
	{"{" TENSOR("w", "F32", "[4]", "0", "16") "}", "after the last tensor"},
	{"{" TENSOR("w", "F32", "[12]", "0", "48") "," TENSOR("w", "F32", "[12]", "0", "48") "}",
	 "not JSON"},
	{"{\"__metadata__\":[]}", "__metadata__ is not an object"},
	{"{\"__metadata__\":{\"a\":1}}", "not text"},
	{"{" TENSOR("\\u001b[2J", "F31", "[12]", "0", "48") "}", "tensor '?[2J'"},
};

Test(agent_safetensors, refuses_what_does_not_add_up_and_names_it)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct image image = image_of(refused[i].header, DATA_SIZE);
		struct safetensors *file;
		char error[256] = "";
		void *copy;

		cr_expect_eq(parse(&image, &file, &copy, error), -EINVAL, "row %zu", i);
		cr_expect_not_null(strstr(error, refused[i].problem), "row %zu said: %s", i, error);
		free(copy);
	}
}

Test(agent_safetensors, refuses_a_file_cut_anywhere)
{
	struct image image = image_of("{" TENSOR("w", "F32", "[2,6]", "0", "48") "}", DATA_SIZE);

	for (size_t whole = image.size; image.size > 0;) {
		struct safetensors *file;
		char error[256];
		void *copy;

		image.size--;
		cr_expect_eq(parse(&image, &file, &copy, error), -EINVAL, "%zu of %zu", image.size,
			     whole);
		free(copy);
	}
}

Test(agent_safetensors, refuses_a_header_longer_than_any_file)
{
	uint8_t bytes[16];
	struct safetensors *file;
	char error[256];

	memset(bytes, 0xff, sizeof(bytes));
	cr_assert_eq(safetensors_parse(bytes, sizeof(bytes), &file, error, sizeof(error)), -EINVAL);
	cr_assert_not_null(strstr(error, "18446744073709551615"), "%s", error);
}
