/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the trained weights and the real images, which lie beside the model. */
#include "models/model.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIXELS       64
#define CLASSES      10
#define IMAGES       1797
#define REQUEST_SIZE (8 + PIXELS)
#define REPLY_SIZE   (12 + 4 * CLASSES)
#define BATCH_MAX    64
#define STRIDE       128

struct digit {
	uint8_t pixels[PIXELS];
	uint8_t label;
	uint8_t held_out;
};
_Static_assert(sizeof(struct digit) == 66, "a record of digits.bin");

struct bench {
	struct agent_model_shape shape;
	void *state;
	struct agent_model_item items[BATCH_MAX];
	_Alignas(64) uint8_t requests[BATCH_MAX][STRIDE];
	_Alignas(64) uint8_t replies[BATCH_MAX][STRIDE];
};

static struct bench bench;
static struct digit digits[IMAGES];

static int model_open(const char *arguments, char *error, size_t size)
{
	return agent_model.open(arguments, BATCH_MAX, &bench.shape, &bench.state, error, size);
}

static void setup(void)
{
	FILE *file = fopen(DIGITS_FOLDER "/digits.bin", "rb");
	uint32_t header[6];
	char error[256] = "";

	cr_assert_not_null(file);
	cr_assert_eq(fread(header, sizeof(header), 1, file), 1);
	cr_assert_eq(memcmp(header, "DBDIGITS", 8), 0);
	cr_assert_eq(header[2], 1);
	cr_assert_eq(header[3], IMAGES);
	cr_assert_eq(header[4], PIXELS);
	cr_assert_eq(header[5], CLASSES);
	cr_assert_eq(fread(digits, sizeof(digits), 1, file), 1);
	cr_assert_eq(fgetc(file), EOF);
	fclose(file);
	cr_assert_eq(model_open("weights=" DIGITS_FOLDER "/digits.safetensors", error, 256), 0,
		     "%s", error);
}

static void teardown(void)
{
	agent_model.close(bench.state);
}

TestSuite(agent_mlp, .init = setup, .fini = teardown);

static void request_put(uint32_t position, uint64_t id, const struct digit *digit)
{
	memcpy(bench.requests[position], &id, sizeof(id));
	memcpy(bench.requests[position] + 8, digit->pixels, PIXELS);
	memset(bench.replies[position], 0xee, STRIDE);
	bench.items[position] = (struct agent_model_item){
		.request = bench.requests[position],
		.request_length = REQUEST_SIZE,
		.reply = bench.replies[position],
		.status = 1,
	};
}

Test(agent_mlp, says_its_sizes)
{
	cr_assert_eq(agent_model.abi, AGENT_MODEL_ABI);
	cr_assert_str_eq(agent_model.name, "mlp");
	cr_assert_eq(bench.shape.max_request, REQUEST_SIZE);
	cr_assert_eq(bench.shape.max_reply, REPLY_SIZE);
	cr_assert_eq(bench.shape.max_batch, BATCH_MAX);
}

/* The names and shapes by which clients ask; model_tensors.c checks them against the sizes. */
Test(agent_mlp, describes_its_tensors_in_the_order_of_their_bytes)
{
	struct agent_model_description d = {0};

	agent_model.describe(bench.state, &d);
	cr_assert(d.batch == 1 && d.n_inputs == 2 && d.n_outputs == 3);
	cr_expect_str_eq(d.input[0].name, "id");
	cr_expect_str_eq(d.input[1].name, "pixels");
	cr_expect_str_eq(d.input[1].datatype, "UINT8");
	cr_expect(d.input[1].rank == 2 && d.input[1].shape[0] == -1);
	cr_expect_eq(d.input[1].shape[1], PIXELS);
	cr_expect_str_eq(d.output[1].name, "class");
	cr_expect_str_eq(d.output[1].datatype, "UINT32");
	cr_expect_str_eq(d.output[2].name, "scores");
	cr_expect_str_eq(d.output[2].datatype, "FP32");
	cr_expect_eq(d.output[2].shape[1], CLASSES);
}

Test(agent_mlp, reads_the_held_out_digits_well)
{
	uint32_t held_out = 0, right = 0;

	for (uint32_t i = 0; i < IMAGES; i++) {
		cr_assert_eq(digits[i].held_out, i % 3 == 2);
		cr_assert_lt(digits[i].label, CLASSES);
		for (uint32_t p = 0; p < PIXELS; p++)
			cr_assert_leq(digits[i].pixels[p], 16);
		request_put(0, i, &digits[i]);
		agent_model.run(bench.state, bench.items, 1);
		held_out += digits[i].held_out;
		right += digits[i].held_out && bench.replies[0][8] == digits[i].label;
	}
	cr_assert_eq(held_out, 599);
	cr_assert_gt(right, 599 * 97 / 100, "only %u of 599 right", right);
}

Test(agent_mlp, writes_the_reply_as_documented)
{
	float scores[CLASSES];
	uint64_t id;

	request_put(0, 0x0123456789abcdef, &digits[5]);
	agent_model.run(bench.state, bench.items, 1);
	cr_assert_eq(bench.items[0].status, 0);
	cr_assert_eq(bench.items[0].reply_length, REPLY_SIZE);
	memcpy(&id, bench.replies[0], sizeof(id));
	cr_assert_eq(id, 0x0123456789abcdef);
	cr_assert_eq(memcmp(bench.replies[0] + 9, "\0\0\0", 3), 0);
	memcpy(scores, bench.replies[0] + 12, sizeof(scores));
	for (uint32_t i = 0; i < CLASSES; i++)
		cr_assert(isfinite(scores[i]) && scores[i] <= scores[bench.replies[0][8]]);
	cr_assert_eq(bench.replies[0][REPLY_SIZE], 0xee, "wrote past the reply");
}

/* Compares BLAS with plain sums in double over the same weights: order of layers and rows, scale.
 */
Test(agent_mlp, agrees_with_plain_sums)
{
	static float weights[64 * 64 + 64 + 10 * 64 + 10];
	const float *w0 = weights, *b0 = w0 + 64 * 64, *w1 = b0 + 64, *b1 = w1 + 10 * 64;
	FILE *file = fopen(DIGITS_FOLDER "/digits.safetensors", "rb");
	float scores[CLASSES];
	double hidden[64];

	cr_assert_not_null(file);
	cr_assert_eq(fseek(file, -(long)sizeof(weights), SEEK_END), 0);
	cr_assert_eq(fread(weights, sizeof(weights), 1, file), 1);
	fclose(file);
	request_put(0, 1, &digits[100]);
	agent_model.run(bench.state, bench.items, 1);
	memcpy(scores, bench.replies[0] + 12, sizeof(scores));
	for (uint32_t o = 0; o < 64; o++) {
		hidden[o] = b0[o];
		for (uint32_t i = 0; i < PIXELS; i++)
			hidden[o] += (double)w0[o * 64 + i] * digits[100].pixels[i] / 16;
		hidden[o] = fmax(hidden[o], 0);
	}
	for (uint32_t o = 0; o < CLASSES; o++) {
		double score = b1[o];

		for (uint32_t i = 0; i < 64; i++)
			score += w1[o * 64 + i] * hidden[i];
		cr_assert_float_eq(scores[o], score, 1e-4);
	}
}

/* Every image alone, then the same images at each place of batches of every size. */
Test(agent_mlp, answers_the_same_bytes_in_any_batch)
{
	static uint8_t alone[IMAGES][REPLY_SIZE];
	uint32_t next = 0;

	for (uint32_t i = 0; i < IMAGES; i++) {
		request_put(0, i, &digits[i]);
		agent_model.run(bench.state, bench.items, 1);
		memcpy(alone[i], bench.replies[0], REPLY_SIZE);
	}
	for (uint32_t size = 1; size <= BATCH_MAX; size++) {
		uint32_t first = next;

		for (uint32_t i = 0; i < size; i++, next = (next + 1) % IMAGES)
			request_put(i, next, &digits[next]);
		agent_model.run(bench.state, bench.items, size);
		for (uint32_t i = 0; i < size; i++)
			cr_assert_eq(
				memcmp(bench.replies[i], alone[(first + i) % IMAGES], REPLY_SIZE),
				0, "place %u of %u", i, size);
	}
	for (uint32_t place = 0; place < BATCH_MAX; place++) {
		for (uint32_t i = 0; i < BATCH_MAX; i++)
			request_put(i, i == place ? 7 : 100 + i, &digits[i == place ? 7 : 100 + i]);
		agent_model.run(bench.state, bench.items, BATCH_MAX);
		cr_assert_eq(memcmp(bench.replies[place], alone[7], REPLY_SIZE), 0, "place %u",
			     place);
	}
}

Test(agent_mlp, refuses_a_request_of_the_wrong_length_and_answers_its_neighbours)
{
	for (uint32_t i = 0; i < 4; i++)
		request_put(i, i, &digits[i]);
	bench.items[0].request_length = REQUEST_SIZE - 1;
	bench.items[1].request_length = 0;
	bench.items[2].request_length = REQUEST_SIZE + 1;
	agent_model.run(bench.state, bench.items, 4);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(bench.items[i].status, -EINVAL);
		cr_assert_eq(bench.items[i].reply_length, 0);
	}
	cr_assert_eq(bench.items[3].status, 0);
	cr_assert_eq(bench.replies[3][8], digits[3].label);
}

/* Each row: a file, and what its error must say. It is opened beside the suite's own model. */
#define L0 "\"layers.0.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"
#define B0 ",\"layers.0.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}"

static const struct bad_weights {
	const char *header;
	uint32_t data_size;
	uint8_t fill;
	const char *problem;
} bad_weights[] = {
	{"{}", 0, 0, "tensor 'layers.0.weight': is missing"},
	{"{" L0 "}", 24, 0, "tensor 'layers.0.bias': is missing"},
	{"{" L0 B0 "}", 32, 0xff, "tensor 'layers.0.weight': holds a value that is not finite"},
	{"{" L0 B0 ",\"__metadata__\":{\"input_scale\":\"x\"}}", 32, 0, "input_scale 'x'"},
	{"{\"layers.0.weight\":{\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[0,24]}" B0 "}",
	 32, 0, "tensor 'layers.0.weight': must be F32"},
	{"{\"layers.0.weight\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}" B0 "}",
	 32, 0, "tensor 'layers.0.weight': must have the shape [out, in]"},
	{"{\"layers.0.weight\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}" B0 "}",
	 32, 0, "tensor 'layers.0.bias': has 2 values, its weight has 3 rows"},
	{"{\"layers.0.weight\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[0,0]}}", 0, 0,
	 "tensor 'layers.0.weight': has a width that is zero"},
	{"{" L0 B0
	 ",\"layers.1.weight\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[32,36]}}",
	 36, 0, "tensor 'layers.1.weight': takes 1 inputs, the layer before it has 2 outputs"},
};

static void weights_write(const char *path, const struct bad_weights *row)
{
	uint64_t length = strlen(row->header);
	FILE *file = fopen(path, "wb");

	cr_assert_not_null(file);
	fwrite(&length, sizeof(length), 1, file);
	fwrite(row->header, length, 1, file);
	for (uint32_t i = 0; i < row->data_size; i++)
		fputc(row->fill, file);
	cr_assert_eq(fclose(file), 0);
}

Test(agent_mlp, refuses_weights_it_cannot_use_and_names_the_tensor)
{
	char path[] = "/tmp/agent_mlp_test_XXXXXX", arguments[64], error[512];
	struct bench suite = bench;
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	snprintf(arguments, sizeof(arguments), "weights=%s", path);
	for (size_t i = 0; i < sizeof(bad_weights) / sizeof(bad_weights[0]); i++) {
		weights_write(path, &bad_weights[i]);
		cr_expect_eq(model_open(arguments, error, sizeof(error)), -EINVAL, "row %zu", i);
		cr_expect_not_null(strstr(error, bad_weights[i].problem), "row %zu said: %s", i,
				   error);
	}
	unlink(path);
	cr_expect_eq(model_open(arguments, error, sizeof(error)), -ENOENT);
	cr_expect_not_null(strstr(error, path), "%s", error);
	bench = suite;
}

Test(agent_mlp, refuses_arguments_it_does_not_know)
{
	static const struct {
		const char *arguments;
		const char *problem;
	} rows[] = {
		{"", "needs the argument weights=PATH"},
		{"weights", "weights: needs a value"},
		{"weights=", "weights: the value must have"},
		{"wieghts=x", "unknown argument 'wieghts'; give weights=..."},
		{"weights=x,scale=1", "unknown argument 'scale'"},
	};
	struct bench suite = bench;
	char error[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(model_open(rows[i].arguments, error, sizeof(error)), -EINVAL);
		cr_expect_not_null(strstr(error, rows[i].problem), "row %zu said: %s", i, error);
	}
	bench = suite;
}
