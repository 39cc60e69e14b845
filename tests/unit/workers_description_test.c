/* SPDX-License-Identifier: BSD-3-Clause */
/* A description names its faults, tells the sizes that follow from it, and agrees with another or
 * not. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "description.h"

static char error[256];

/* Two inputs and an output, of 72 and 40 bytes for each row of a batch. */
static struct model_description digits(void)
{
	return (struct model_description){
		.version = "1",
		.platform = "doorbell_mlp",
		.batch = true,
		.n_inputs = 2,
		.n_outputs = 1,
		.input = {{"id", DATATYPE_UINT64, 2, {-1, 1}},
			  {"pixels", DATATYPE_UINT8, 3, {-1, 8, 8}}},
		.output = {{"scores", DATATYPE_FP32, 2, {-1, 10}}},
	};
}

static void expect_fault(const struct model_description *d, const char *fault)
{
	error[0] = '\0';
	cr_expect_not(workers_description_is_valid(d, error, sizeof(error)), "%s is no fault",
		      fault);
	cr_expect(strncmp(error, fault, strlen(fault)) == 0, "said '%s', not '%s'", error, fault);
}

Test(workers_description, each_datatype_has_kserves_name_and_its_bytes)
{
	static const struct {
		const char *name;
		unsigned int bytes;
	} rows[] = {{"BOOL", 1}, {"UINT8", 1}, {"UINT16", 2}, {"UINT32", 4}, {"UINT64", 8},
		    {"INT8", 1}, {"INT16", 2}, {"INT32", 4},  {"INT64", 8},  {"FP16", 2},
		    {"FP32", 4}, {"FP64", 8},  {"BF16", 2},   {"BYTES", 4}};

	cr_assert_eq(sizeof(rows) / sizeof(rows[0]), DATATYPES);
	for (unsigned int i = 0; i < DATATYPES; i++) {
		enum datatype datatype = workers_datatype_find(rows[i].name);

		cr_expect_neq(datatype, DATATYPES, "%s", rows[i].name);
		cr_expect_str_eq(workers_datatype_name(datatype), rows[i].name);
		cr_expect_eq(workers_datatype_bytes(datatype), rows[i].bytes, "%s", rows[i].name);
	}
	cr_expect_eq(workers_datatype_find("FP8"), DATATYPES);
	cr_expect_eq(workers_datatype_find(""), DATATYPES);
	cr_expect_eq(workers_datatype_bytes(DATATYPES), 0);
}

Test(workers_description, a_good_one_has_the_bytes_of_one_row)
{
	struct model_description d = digits();
	struct description_bytes bytes;

	cr_assert(workers_description_is_valid(&d, error, sizeof(error)), "%s", error);
	bytes = workers_description_request(&d);
	cr_expect(bytes.fixed && bytes.least == 72, "%lu", bytes.least);
	bytes = workers_description_reply(&d);
	cr_expect(bytes.fixed && bytes.least == 40, "%lu", bytes.least);
}

Test(workers_description, a_free_dimension_or_bytes_make_the_size_variable)
{
	struct model_description d = digits();
	struct description_bytes bytes;

	d.input[1].shape[1] = DESCRIPTION_FREE;
	bytes = workers_description_request(&d);
	cr_expect(!bytes.fixed && bytes.least == 8, "%lu", bytes.least);
	d.output[0] = (struct model_tensor){"text", DATATYPE_BYTES, 2, {-1, 3}};
	cr_assert(workers_description_is_valid(&d, error, sizeof(error)), "%s", error);
	bytes = workers_description_reply(&d);
	cr_expect(!bytes.fixed && bytes.least == 12, "%lu", bytes.least);
}

Test(workers_description, without_a_batch_a_scalar_has_no_dimension)
{
	struct model_description d = digits();

	d.batch = false;
	d.n_inputs = 1;
	d.input[0] = (struct model_tensor){"x", DATATYPE_FP64, 0, {0}};
	cr_assert(workers_description_is_valid(&d, error, sizeof(error)), "%s", error);
	cr_expect_eq(workers_description_request(&d).least, 8);
}

Test(workers_description, faults_of_the_whole_name_the_field)
{
	struct model_description d = digits();

	d.version[0] = '\0';
	expect_fault(&d, "version: use 1 to 31 letters");
	strcpy(d.version, "1/2");
	expect_fault(&d, "version: use 1 to 31 letters");
	memset(d.version, 'v', sizeof(d.version));
	expect_fault(&d, "version: use 1 to 31 letters");
	d = digits();
	strcpy(d.platform, "a b");
	expect_fault(&d, "platform: use at most 63 printable");
	memset(d.platform, 'p', sizeof(d.platform));
	expect_fault(&d, "platform: ");
	d = digits();
	d.n_inputs = 0;
	expect_fault(&d, "inputs: 0 tensors; use 1 to 16");
	d.n_inputs = 17;
	expect_fault(&d, "inputs: 17 tensors; use 1 to 16");
	d = digits();
	d.n_outputs = 0;
	expect_fault(&d, "outputs: 0 tensors; use 1 to 16");
}

Test(workers_description, faults_of_a_tensor_name_it_and_the_field)
{
	struct model_description d = digits();

	d.input[1].name[0] = '\0';
	expect_fault(&d, "inputs[1].name: use 1 to 63 printable ASCII characters");
	memset(d.input[1].name, 'n', sizeof(d.input[1].name));
	expect_fault(&d, "inputs[1].name: use 1 to 63 printable ASCII characters");
	strcpy(d.input[1].name, "two words");
	expect_fault(&d, "inputs[1].name: use 1 to 63 printable ASCII characters");
	strcpy(d.input[1].name, "\xc3\xa4");
	expect_fault(&d, "inputs[1].name: use 1 to 63 printable ASCII characters");
	strcpy(d.input[1].name, "id");
	expect_fault(&d, "inputs[1].name: 'id' is the name of inputs[0], too; use another");
	d = digits();
	d.output[0].datatype = DATATYPES;
	expect_fault(&d, "outputs[0].datatype: unknown; use BOOL, ");
	d = digits();
	d.output[0].rank = 9;
	expect_fault(&d, "outputs[0].shape: 9 dimensions; use at most 8");
	d = digits();
	d.input[0].rank = 0;
	expect_fault(&d, "inputs[0].shape: the first dimension is the batch; make it -1");
	d = digits();
	d.input[0].shape[0] = 4;
	expect_fault(&d, "inputs[0].shape: the first dimension is the batch; make it -1");
	d = digits();
	d.input[1].shape[2] = 0;
	expect_fault(&d, "inputs[1].shape[2]: 0; use 1 or more, or -1");
	d.input[1].shape[2] = -2;
	expect_fault(&d, "inputs[1].shape[2]: -2; use 1 or more, or -1");
}

Test(workers_description, sizes_cannot_wrap)
{
	struct model_description d = digits();

	d.input[1] = (struct model_tensor){
		"all", DATATYPE_FP64, 8, {-1, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, 2, 2, 2}};
	expect_fault(&d, "inputs[1].shape: more than 67108864 bytes");
	d.input[1] = (struct model_tensor){"all", DATATYPE_UINT8, 2, {-1, 64 << 20}};
	expect_fault(&d, "inputs: together more than 67108864 bytes");
	d.n_inputs = 1;
	d.input[0] = d.input[1];
	cr_expect(workers_description_is_valid(&d, error, sizeof(error)), "%s", error);
}

/* A reply's length is all that tells the shapes. Requests come with theirs. */
Test(workers_description, free_dimensions_of_outputs_follow_from_the_length)
{
	struct model_description d = digits();

	d.output[0].shape[1] = DESCRIPTION_FREE;
	cr_expect(workers_description_is_valid(&d, error, sizeof(error)), "%s", error);
	d.output[1] = (struct model_tensor){"last", DATATYPE_FP32, 2, {-1, 2}};
	d.n_outputs = 2;
	expect_fault(&d, "outputs[0].shape: only the last output may have a free dimension beside "
			 "the batch, as ");
	d = digits();
	d.output[0] = (struct model_tensor){"box", DATATYPE_FP32, 3, {-1, -1, -1}};
	expect_fault(&d, "outputs[0].shape: 2 free dimensions beside the batch; use one at most");
	d = digits();
	d.input[0].shape[1] = d.input[1].shape[1] = d.input[1].shape[2] = DESCRIPTION_FREE;
	cr_expect(workers_description_is_valid(&d, error, sizeof(error)), "%s", error);
}

static bool fits(const struct model_description *d, uint32_t min, uint32_t max, uint32_t reply,
		 bool cut)
{
	error[0] = '\0';
	return workers_description_fits(d, min, max, reply, cut, error, sizeof(error));
}

Test(workers_description, fixed_tensors_are_exactly_the_request_and_the_reply)
{
	struct model_description d = digits();

	cr_expect(fits(&d, 72, 72, 40, false), "%s", error);
	cr_expect_not(fits(&d, 72, 73, 40, false));
	cr_expect_str_eq(error, "max_request: 73 bytes, and the inputs have 72");
	cr_expect_not(fits(&d, 0, 72, 40, false));
	cr_expect_str_eq(error, "min_request: 0 bytes, and the inputs have 72");
	cr_expect_not(fits(&d, 72, 72, 41, true));
	cr_expect_str_eq(error, "max_reply: 41 bytes, and the outputs have 40");
	cr_expect_not(fits(&d, 72, 72, 39, false));
	cr_expect_str_eq(error, "max_reply: 39 bytes, and the outputs have 40");
	cr_expect(fits(&d, 72, 72, 39, true), "a service may carry less: %s", error);
}

Test(workers_description, variable_tensors_have_a_least_size)
{
	struct model_description d = digits();

	d.input[1].shape[1] = DESCRIPTION_FREE;
	d.output[0].shape[1] = DESCRIPTION_FREE;
	cr_expect(fits(&d, 8, 1472, 1472, false), "%s", error);
	cr_expect_not(fits(&d, 7, 1472, 1472, false));
	cr_expect_str_eq(error, "min_request: 7 bytes, and the inputs have 8 or more");
	cr_expect_not(fits(&d, 7, 7, 1472, false));
	cr_expect_str_eq(error, "max_request: 7 bytes, and the inputs have 8 or more");
}

static void expect_disagreement(const struct model_description *a, const char *expect)
{
	struct model_description b = digits();

	error[0] = '\0';
	cr_expect_not(workers_description_agrees(a, &b, "worker w1", error, sizeof(error)), "%s",
		      expect);
	cr_expect_str_eq(error, expect);
}

Test(workers_description, a_disagreement_names_tensor_and_field)
{
	struct model_description d = digits();

	d.batch = false;
	expect_disagreement(&d, "batch: false, and true in worker w1");
	d = digits();
	d.n_inputs = 1;
	expect_disagreement(&d, "inputs: 1, and 2 in worker w1");
	d = digits();
	strcpy(d.input[0].name, "key");
	expect_disagreement(&d, "inputs[0].name: 'key', and 'id' in worker w1");
	d = digits();
	d.output[0].datatype = DATATYPE_BF16;
	expect_disagreement(&d,
			    "outputs[0].datatype: output 'scores' is BF16, and FP32 in worker w1");
	d = digits();
	d.input[1].shape[2] = 9;
	expect_disagreement(
		&d, "inputs[1].shape: input 'pixels' has [-1,8,9], and [-1,8,8] in worker w1");
	d.input[1].rank = 2;
	expect_disagreement(
		&d, "inputs[1].shape: input 'pixels' has [-1,8], and [-1,8,8] in worker w1");
}

Test(workers_description, versions_and_platforms_may_differ)
{
	struct model_description a = digits(), b = digits();

	strcpy(b.version, "2");
	strcpy(b.platform, "pytorch");
	/* dimensions beyond the rank say nothing */
	b.input[0].shape[5] = 7;
	cr_expect(workers_description_agrees(&a, &b, "worker w1", error, sizeof(error)), "%s",
		  error);
}

Test(workers_description, the_longest_shape_has_room)
{
	struct model_tensor t = {"x", DATATYPE_UINT8, 8, {0}};
	char text[DESCRIPTION_SHAPE_TEXT];

	for (unsigned int i = 0; i < 8; i++)
		t.shape[i] = INT32_MAX;
	workers_tensor_shape(&t, text);
	cr_expect_lt(strlen(text), sizeof(text));
	t.rank = 0;
	cr_expect_str_eq(workers_tensor_shape(&t, text), "[]");
}
