/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests beside the description of their model. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "kserve/match.h"

static struct kserve_model model(uint32_t max_batch)
{
	return (struct kserve_model){
		.name = "m",
		.inputs = 2,
		.outputs = 1,
		.max_batch = max_batch,
		.input = {{.name = "a",
			   .type = KSERVE_UINT8,
			   .dims = 2,
			   .shape = {2, KSERVE_ANY_SIZE}},
			  {.name = "b", .type = KSERVE_UINT8}},
		.output = {{.name = "y", .type = KSERVE_FP32, .dims = 1, .shape = {3}}},
	};
}

/* Reads the request; the result is its error, or "rows N" with the places of its inputs. */
static const char *matched(uint32_t max_batch, const char *text)
{
	static char result[KSERVE_ERROR_MAX + 8];
	struct kserve_model m = model(max_batch);
	static struct kserve_infer r;
	uint8_t room[KSERVE_RUN_MIN];
	struct kserve_run run = {.at = room, .room = sizeof(room)};
	const char *at = text, *end = text + strlen(text);
	char places[16] = "";
	uint64_t rows = 0;
	enum kserve_step step;

	kserve_infer_init(&r, 1000, NULL, 0);
	while ((step = kserve_infer_read(&r, &at, end, &run)) == KSERVE_INPUT ||
	       step == KSERVE_RUN) {
		if (step == KSERVE_INPUT)
			snprintf(places + strlen(places), 4, " %d",
				 kserve_match_input(&m, &r, run.input, &rows));
	}
	if (step == KSERVE_MORE && kserve_infer_end(&r) == KSERVE_MORE)
		step = kserve_match_end(&m, &r);
	if (r.status != 0)
		snprintf(result, sizeof(result), "%u %s", r.status, r.error);
	else
		snprintf(result, sizeof(result), "rows %lu at%s", rows, places);
	cr_assert_eq(r.status != 0, step == KSERVE_REFUSED);
	return result;
}

#define INPUT(name, type, shape, data)                                                             \
	"{\"name\":\"" name "\",\"datatype\":\"" type "\",\"shape\":" shape ",\"data\":" data "}"
#define REQUEST(inputs) "{\"inputs\":[" inputs "]}"

Test(lb_kserve_match, without_batches)
{
	cr_assert_str_eq(matched(0, REQUEST(INPUT("b", "UINT8", "[]", "[1]") "," INPUT(
					    "a", "UINT8", "[2,1]", "[1,2]"))),
			 "rows 1 at 1 0");
	cr_assert_str_eq(matched(0, REQUEST(INPUT("a", "UINT8", "[3,1]", "[1,2,3]"))),
			 "400 inputs[0] ('a'): the model takes the shape [2,-1]");
	cr_assert_str_eq(matched(0, REQUEST(INPUT("a", "UINT8", "[2]", "[1,2]"))),
			 "400 inputs[0] ('a'): the model takes the shape [2,-1]");
	cr_assert_str_eq(matched(0, REQUEST(INPUT("a", "INT8", "[2,1]", "[1,2]"))),
			 "400 inputs[0] ('a'): datatype INT8, the model takes UINT8");
	cr_assert_str_eq(matched(0, REQUEST(INPUT("c", "INT8", "[2,1]", "[1,2]"))),
			 "400 inputs[0] ('c'): the model 'm' has no such input");
	cr_assert_str_eq(matched(0, REQUEST(INPUT("a", "UINT8", "[2,1]", "[1,2]"))),
			 "400 the input 'b' of the model 'm' is missing");
}

Test(lb_kserve_match, with_batches)
{
	cr_assert_str_eq(
		matched(4, REQUEST(INPUT("a", "UINT8", "[3,2,1]", "[1,2,3,4,5,6]") "," INPUT(
				   "b", "UINT8", "[3]", "[1,2,3]"))),
		"rows 3 at 0 1");
	cr_assert_str_eq(
		matched(4, REQUEST(INPUT("a", "UINT8", "[3,2,1]",
					 "[1,2,3,4,5,6]") "," INPUT("b", "UINT8", "[2]", "[1,2]"))),
		"400 inputs[1] ('b'): 2 rows, the inputs before have 3");
	cr_assert_str_eq(matched(4, REQUEST(INPUT("b", "UINT8", "[5]", "[1,2,3,4,5]"))),
			 "400 inputs[0] ('b'): 5 rows, the model takes 1 to 4");
	cr_assert_str_eq(matched(4, REQUEST(INPUT("b", "UINT8", "[0]", "[]"))),
			 "400 inputs[0] ('b'): 0 rows, the model takes 1 to 4");
	cr_assert_str_eq(matched(4, REQUEST(INPUT("b", "UINT8", "[]", "[1]"))),
			 "400 inputs[0] ('b'): the model takes the shape [-1]");
	cr_assert_str_eq(matched(4, REQUEST(INPUT("a", "UINT8", "[1,3,1]", "[1,2,3]"))),
			 "400 inputs[0] ('a'): the model takes the shape [-1,2,-1]");
}

Test(lb_kserve_match, outputs)
{
	cr_assert_str_eq(matched(0, "{\"outputs\":[{\"name\":\"z\"}],\"inputs\":[" INPUT(
					    "b", "UINT8", "[]",
					    "[1]") "," INPUT("a", "UINT8", "[2,0]", "[]") "]}"),
			 "400 outputs[0] ('z'): the model 'm' has no such output");
	cr_assert_str_eq(matched(0, "{\"outputs\":[{\"name\":\"y\"}],\"inputs\":[" INPUT(
					    "b", "UINT8", "[]",
					    "[1]") "," INPUT("a", "UINT8", "[2,0]", "[]") "]}"),
			 "rows 1 at 1 0");
}

/* The shape that a body of so many bytes gets, or the error. */
static const char *raw(const struct kserve_model *m, uint64_t bytes)
{
	static char result[KSERVE_ERROR_MAX + 8];
	static struct kserve_infer r;
	int n = 0;

	kserve_infer_init(&r, 1000, NULL, 0);
	if (kserve_match_raw(m, &r, bytes) == KSERVE_REFUSED) {
		snprintf(result, sizeof(result), "%u %s", r.status, r.error);
		return result;
	}
	cr_assert_eq(r.inputs, 1);
	cr_assert(r.binary_outputs && r.input[0].binary);
	cr_assert_eq(r.binary_bytes, bytes);
	cr_assert_eq(r.input[0].bytes, bytes);
	cr_assert_str_eq(r.input[0].name, "a");
	for (uint8_t i = 0; i < r.input[0].dims; i++)
		n += snprintf(result + n, sizeof(result) - (size_t)n, "%lu ", r.input[0].shape[i]);
	return result;
}

Test(lb_kserve_match, without_json)
{
	struct kserve_model m = {
		.name = "m",
		.inputs = 1,
		.input = {{.name = "a", .type = KSERVE_FP32, .dims = 2, .shape = {2, 3}}}};

	cr_assert_str_eq(raw(&m, 24), "2 3 ");
	cr_assert_str_eq(raw(&m, 20),
			 "400 the input 'a' of the model 'm' has no shape of 20 bytes");
	cr_assert_str_eq(raw(&m, 25),
			 "400 the input 'a' of the model 'm' has no shape of 25 bytes");
	cr_assert_str_eq(raw(&m, 0), "400 the input 'a' of the model 'm' has no shape of 0 bytes");
	m.max_batch = 8;
	cr_assert_str_eq(raw(&m, 24), "1 2 3 ");
	cr_assert_str_eq(raw(&m, 48),
			 "400 the input 'a' of the model 'm' has no shape of 48 bytes");
	m.input[0].shape[0] = KSERVE_ANY_SIZE;
	cr_assert_str_eq(raw(&m, 60), "1 5 3 ");
	cr_assert_str_eq(raw(&m, 64),
			 "400 the input 'a' of the model 'm' has no shape of 64 bytes");
	m.input[0].shape[1] = KSERVE_ANY_SIZE;
	cr_assert_str_eq(raw(&m, 60),
			 "400 the input 'a' of the model 'm' has no shape of 60 bytes");
	m.input[0].shape[0] = 0;
	cr_assert_str_eq(raw(&m, 60),
			 "400 the input 'a' of the model 'm' has no shape of 60 bytes");
	m.input[0] = (struct kserve_tensor){
		.name = "a", .type = KSERVE_UINT8, .dims = 8, .shape = {1, 1, 1, 1, 1, 1, 1, 1}};
	cr_assert_str_eq(raw(&m, 1), "400 the input 'a' of the model 'm' has no shape of 1 bytes");
	m.input[0] = (struct kserve_tensor){.name = "a", .type = KSERVE_BYTES};
	cr_assert_str_eq(raw(&m, 4),
			 "400 a request without JSON needs a model with one input that is not "
			 "BYTES, which 'm' is not");
	m = model(0);
	cr_assert_str_eq(raw(&m, 4),
			 "400 a request without JSON needs a model with one input that is not "
			 "BYTES, which 'm' is not");
}

/* Those of replies with several outputs cannot be told apart; others may differ in length. */
Test(lb_kserve_match, rows_beside_bytes_among_several_outputs_are_requests_of_their_own)
{
	struct kserve_model m = model(8);
	static struct kserve_infer r;
	uint64_t rows;

	m.rows_differ = true;
	m.input[1].type = KSERVE_BYTES;
	for (uint64_t n = 1; n < 5; n++) {
		uint64_t shape = n > 2 ? n - 2 : n;

		rows = 0;
		m.rows_alone = n > 2;
		kserve_infer_init(&r, 1000, NULL, 0);
		r.inputs = 1;
		r.input[0] = (struct kserve_input){
			.name = "b", .type = KSERVE_BYTES, .dims = 1, .shape = {shape}};
		cr_assert_eq(kserve_match_input(&m, &r, 0, &rows), n == 4 ? -1 : 1);
		cr_assert_eq(r.status, n == 4 ? 501 : 0, "%u %s", r.status, r.error);
		cr_assert(n == 4 || rows == shape);
	}
	cr_assert_str_eq(r.error, "inputs[0] ('b'): 2 rows of a model with BYTES among several "
				  "outputs; send each as a request");
}
