/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON of infer requests: what workers get for it, and what is refused with which words. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kserve_reader.h"

#define EARLY_ROOM 64
#define TENSOR_MAX 65536

/* Reads <text>, cut at <cut>; 0: byte by byte. */
static void read_request(struct kserve_reader *r, const char *text, size_t n, size_t cut)
{
	kserve_reader_init(r, TENSOR_MAX, EARLY_ROOM, KSERVE_RUN_MIN);
	if (cut == 0) {
		for (size_t i = 0; i < n && r->step != KSERVE_REFUSED; i++)
			kserve_reader_take(r, text + i, 1);
	} else {
		kserve_reader_take(r, text, cut);
		kserve_reader_take(r, text + cut, n - cut);
	}
	kserve_reader_end(r);
}

/* The same result for all cuts; the caller gives the last one back. */
static void read_all(struct kserve_reader *r, const char *text)
{
	size_t n = strlen(text);
	char error[KSERVE_ERROR_MAX];

	read_request(r, text, n, n);
	snprintf(error, sizeof(error), "%s", r->step == KSERVE_REFUSED ? r->infer.error : "");
	for (size_t cut = 0; cut < n; cut++) {
		struct kserve_reader other;

		read_request(&other, text, n, cut);
		cr_assert_eq(other.step, r->step, "%s cut at %zu", text, cut);
		if (r->step == KSERVE_REFUSED) {
			cr_assert_str_eq(other.infer.error, error, "%s cut at %zu", text, cut);
			cr_assert_eq(other.infer.status, r->infer.status);
		} else {
			for (uint32_t i = 0; i < r->inputs; i++)
				cr_assert_eq(memcmp(other.tensor[i], r->tensor[i], TENSOR_MAX), 0,
					     "%s cut at %zu", text, cut);
		}
		kserve_reader_fini(&other);
	}
}

static void expect_refused(const char *text, uint16_t status, const char *error)
{
	struct kserve_reader r;

	read_all(&r, text);
	cr_assert_eq(r.step, KSERVE_REFUSED, "%s", text);
	cr_assert_str_eq(r.infer.error, error, "%s: %s", text, r.infer.error);
	cr_assert_eq(r.infer.status, status);
	kserve_reader_fini(&r);
}

/* A request of one input with these values becomes these bytes, in hexadecimal. */
static void expect_values(const char *type, const char *shape, const char *values, const char *hex)
{
	struct kserve_reader r;
	char text[2048], got[2048] = "";

	snprintf(text, sizeof(text),
		 "{\"inputs\":[{\"name\":\"x\",\"shape\":%s,\"datatype\":\"%s\",\"data\":%s}]}",
		 shape, type, values);
	read_all(&r, text);
	cr_assert_eq(r.step, KSERVE_MORE, "%s: %s", text, r.infer.error);
	for (uint64_t i = 0; i < r.infer.input[0].bytes; i++)
		sprintf(got + 2 * i, "%02x", r.tensor[0][i]);
	cr_assert_str_eq(got, hex, "%s: %s", text, got);
	kserve_reader_fini(&r);
}

static void expect_bad_values(const char *type, const char *shape, const char *values,
			      const char *error)
{
	char text[2048], want[512];

	snprintf(text, sizeof(text),
		 "{\"inputs\":[{\"name\":\"x\",\"shape\":%s,\"datatype\":\"%s\",\"data\":%s}]}",
		 shape, type, values);
	snprintf(want, sizeof(want), "inputs[0] ('x').data: %s", error);
	expect_refused(text, 400, want);
}

/* --- Triton's text extension --- */

/* Cut at each byte, <json> is refused with <error>, or has <text> if that is NULL. */
static void expect_text(const char *json, const char *text, const char *error)
{
	size_t n = strlen(json);

	for (size_t cut = 0; cut <= n; cut++) {
		struct kserve_reader r;

		kserve_reader_init(&r, 300, 0, KSERVE_RUN_MIN);
		kserve_reader_read_text(&r);
		kserve_reader_take(&r, json, cut);
		kserve_reader_take(&r, json + cut, n - cut);
		kserve_reader_end(&r);
		if (error != NULL) {
			cr_assert_str_eq(r.infer.error, error, "%s cut at %zu", json, cut);
		} else {
			cr_assert_eq(r.step, KSERVE_MORE, "%s: %s", json, r.infer.error);
			cr_assert_eq(r.infer.text_bytes, strlen(text), "%s cut at %zu", json, cut);
			cr_assert_eq(memcmp(r.tensor[0], text, strlen(text)), 0, "%s", json);
			cr_assert_eq(r.infer.timeout_us, 7);
		}
		kserve_reader_fini(&r);
	}
}

Test(lb_kserve_infer, a_text)
{
	expect_text("{\"text_input\":\"a\\u00e9\\ud83d\\ude00\\n\",\"parameters\":{\"timeout\":7}}",
		    "a\xc3\xa9\xf0\x9f\x98\x80\n", NULL);
	expect_text("{\"parameters\":{\"timeout\":7,\"text_input\":\"no\"},\"inputs\":7,"
		    "\"outputs\":[\"no\"],\"text_input\":\"\"}",
		    "", NULL);
	expect_text("{\"parameters\":{}}", NULL, "no text_input");
	expect_text("{\"text_input\":null}", NULL, "text_input: expected a string");
	expect_text("{\"text_input\":\"a\",\"text_input\":\"a\"}", NULL,
		    "text_input: is there twice");
	/* For others it is a member that is not known. */
	expect_refused("{\"text_input\":{\"a\":1}}", 400, "no inputs");
}

Test(lb_kserve_infer, a_text_that_is_too_long)
{
	char json[400];

	memset(json, 'x', sizeof(json));
	memcpy(json, "{\"text_input\":\"", 15);
	memcpy(json + 15 + 301, "\"}", 3);
	expect_text(json, NULL, "text_input: more than 300 bytes");
	/* A fault in it comes first, however it is cut. */
	memcpy(json + 15 + 350, "\xff\"}", 4);
	memset(json + 15 + 301, 'x', 49);
	expect_text(json, NULL, "text_input: a string is not UTF-8, behind byte 13");
}

Test(lb_kserve_infer, a_request_with_everything)
{
	struct kserve_reader r;

	read_all(&r,
		 "{\"id\":\"a\\\"1\",\"parameters\":{\"timeout\":1500000,\"priority\":2,"
		 "\"sequence_id\":18446744073709551615,\"sequence_start\":true,"
		 "\"sequence_end\":false,\"binary_data_output\":true,\"other\":[1,{\"a\":null}]},"
		 "\"unknown\":{\"inputs\":[{}]},"
		 "\"inputs\":[{\"name\":\"x\",\"shape\":[2,2],\"datatype\":\"INT16\","
		 "\"data\":[[1,2],[3,-4]],\"parameters\":{\"z\":\"q\"}},"
		 "{\"name\":\"y\",\"shape\":[1,3],\"datatype\":\"FP16\","
		 "\"parameters\":{\"binary_data_size\":6}}],"
		 "\"outputs\":[{\"name\":\"p\"},{\"name\":\"q\",\"parameters\":{\"binary_data\":"
		 "false}}]}");
	cr_assert_eq(r.step, KSERVE_MORE, "%s", r.infer.error);
	cr_assert(r.infer.has_id);
	cr_assert_eq(r.infer.id_length, 3);
	cr_assert_eq(memcmp(r.infer.id, "a\"1", 3), 0);
	cr_assert_eq(r.infer.timeout_us, 1500000);
	cr_assert_eq(r.infer.priority, 2);
	cr_assert_eq(r.infer.sequence, UINT64_MAX);
	cr_assert(r.infer.sequence_start && !r.infer.sequence_end && r.infer.binary_outputs);
	cr_assert_eq(r.infer.inputs, 2);
	cr_assert_str_eq(r.infer.input[0].name, "x");
	cr_assert_eq(r.infer.input[0].type, KSERVE_INT16);
	cr_assert_eq(r.infer.input[0].dims, 2);
	cr_assert_eq(r.infer.input[0].shape[1], 2);
	cr_assert_eq(memcmp(r.tensor[0], "\x01\0\x02\0\x03\0\xfc\xff", 8), 0);
	cr_assert(r.infer.input[1].binary);
	cr_assert_eq(r.infer.input[1].bytes, 6);
	cr_assert_eq(r.infer.binary_bytes, 6);
	cr_assert_eq(r.infer.outputs, 2);
	cr_assert_str_eq(r.infer.output[0].name, "p");
	cr_assert_not(r.infer.output[0].is_chosen);
	cr_assert(r.infer.output[1].is_chosen && !r.infer.output[1].binary);
	kserve_reader_fini(&r);
}

/* pydantic and others write null for what is not there. */
Test(lb_kserve_infer, null_is_nothing)
{
	struct kserve_reader r;

	read_all(&r,
		 "{\"id\":null,\"parameters\":{\"timeout\":null,\"sequence_id\":null,"
		 "\"binary_data_output\":null},\"inputs\":[{\"name\":\"x\",\"shape\":[1],"
		 "\"datatype\":\"INT8\",\"parameters\":{\"binary_data_size\":null},\"data\":[1]},"
		 "{\"name\":\"y\",\"shape\":[1],\"datatype\":\"INT8\",\"parameters\":null,"
		 "\"data\":[1]}],\"outputs\":null}");
	cr_assert_eq(r.step, KSERVE_MORE, "%s", r.infer.error);
	cr_assert_not(r.infer.has_id);
	cr_assert_eq(r.infer.outputs, 0);
	kserve_reader_fini(&r);
	expect_refused("{\"inputs\":null}", 400, "inputs: expected an array");
	expect_refused("{\"inputs\":[{\"name\":null}]}", 400, "inputs[0].name: expected a string");
	expect_refused("{\"inputs\":[{\"data\":null}]}", 400, "inputs[0].data: expected an array");
	expect_refused("{\"id\":null,\"id\":\"a\"}", 400, "id: is there twice");
}

Test(lb_kserve_infer, a_sequence_may_have_a_name)
{
	static const char *const names[] = {"\"a\"", "\"b\"", "\"\"", "0"};
	uint64_t sequence[4];

	for (int i = 0; i < 4; i++) {
		struct kserve_reader r;
		char text[256];

		snprintf(text, sizeof(text),
			 "{\"parameters\":{\"sequence_id\":%s},\"inputs\":[{\"name\":\"x\","
			 "\"shape\":[1],"
			 "\"datatype\":\"BOOL\",\"data\":[true]}]}",
			 names[i]);
		read_all(&r, text);
		cr_assert_eq(r.step, KSERVE_MORE, "%s", r.infer.error);
		sequence[i] = r.infer.sequence;
		kserve_reader_fini(&r);
	}
	cr_assert(sequence[0] != sequence[1] && sequence[0] != 0 && sequence[1] != 0);
	cr_assert(sequence[2] == 0 && sequence[3] == 0);
}

Test(lb_kserve_infer, values_become_bytes)
{
	expect_values("BOOL", "[3]", "[true,false,true]", "010001");
	expect_values("UINT8", "[2]", "[0,255]", "00ff");
	expect_values("UINT16", "[2]", "[1,65535]", "0100ffff");
	expect_values("UINT32", "[2]", "[1,4294967295]", "01000000ffffffff");
	expect_values("UINT64", "[1]", "[18446744073709551615]", "ffffffffffffffff");
	expect_values("INT8", "[3]", "[-128,127,-0]", "807f00");
	expect_values("INT16", "[2]", "[-32768,32767]", "0080ff7f");
	expect_values("INT32", "[2]", "[-2147483648,2147483647]", "00000080ffffff7f");
	expect_values("INT64", "[2]", "[-9223372036854775808,9007199254740993]",
		      "0000000000000080"
		      "0100000000002000");
	expect_values("FP32", "[4]", "[1,-0.0,0.1,3.4028235e38]",
		      "0000803f00000080cdcccc3dffff7f7f");
	expect_values("FP64", "[2]", "[0.1,-2]", "9a9999999999b93f00000000000000c0");
	expect_values("FP32", "[2]", "[1e-50,16777217]", "000000000000804b");
	expect_values("BYTES", "[3]", "[\"ab\",\"\",\"\\u20ac\"]",
		      "020000006162"
		      "00000000"
		      "03000000e282ac");
	expect_values("UINT8", "[0]", "[]", "");
	expect_values("UINT8", "[]", "[7]", "07");
}

Test(lb_kserve_infer, values_are_flat_or_nested)
{
	expect_values("UINT8", "[2,3]", "[1,2,3,4,5,6]", "010203040506");
	expect_values("UINT8", "[2,3]", "[[1,2,3],[4,5,6]]", "010203040506");
	expect_values("UINT8", "[2,1,2]", "[ [ [1, 2] ] , [ [3 ,4] ] ]", "01020304");
	expect_values("UINT8", "[2,2,1]", "[[1,2],[3,4]]", "01020304");
	expect_values("UINT8", "[2,0]", "[[],[]]", "");
	expect_bad_values("UINT8", "[2,3]", "[[1,2],[3,4,5,6]]",
			  "element 2: the array has 2 elements, the shape says 3");
	expect_bad_values(
		"UINT8", "[2,3]", "[1,2,3,[4,5,6]]",
		"element 3: values are nested deeper than the shape, or to different depths");
	expect_bad_values("UINT8", "[2,3]", "[[1,2,3],4,5,6]",
			  "element 3: values are nested to different depths");
	expect_bad_values(
		"UINT8", "[2]", "[[1,2]]",
		"element 0: values are nested deeper than the shape, or to different depths");
	expect_bad_values(
		"UINT8", "[]", "[[1]]",
		"element 0: values are nested deeper than the shape, or to different depths");
}

Test(lb_kserve_infer, wrong_values_are_named)
{
	expect_bad_values("UINT8", "[3]", "[1,2,256]", "element 2: 256 is out of range of UINT8");
	expect_bad_values("UINT8", "[1]", "[-1]", "element 0: -1 is out of range of UINT8");
	expect_bad_values("INT8", "[1]", "[128]", "element 0: 128 is out of range of INT8");
	expect_bad_values("INT8", "[1]", "[-129]", "element 0: -129 is out of range of INT8");
	expect_bad_values("INT32", "[1]", "[2147483648]",
			  "element 0: 2147483648 is out of range of INT32");
	expect_bad_values("UINT64", "[1]", "[18446744073709551616]",
			  "element 0: 18446744073709551616 is out of range of UINT64");
	expect_bad_values("INT64", "[1]", "[9223372036854775808]",
			  "element 0: 9223372036854775808 is out of range of INT64");
	expect_bad_values("INT32", "[1]", "[1.5]", "element 0: 1.5 is no INT32");
	expect_bad_values("INT32", "[1]", "[1e3]", "element 0: 1e3 is no INT32");
	expect_bad_values("FP32", "[1]", "[1e39]", "element 0: 1e39 is out of range of FP32");
	expect_bad_values("FP64", "[1]", "[-1e309]", "element 0: -1e309 is out of range of FP64");
	expect_bad_values("FP32", "[1]", "[1234567890123456789012345678901234567890]",
			  "element 0: 123456789012345678901234... is out of range of FP32");
	expect_bad_values("BOOL", "[1]", "[1]", "element 0: 1 is no BOOL");
	expect_bad_values("FP32", "[1]", "[true]", "element 0: true and false are for BOOL");
	expect_bad_values("FP32", "[1]", "[\"NaN\"]", "element 0: strings are for BYTES");
	expect_bad_values("BYTES", "[1]", "[5]", "element 0: 5 is no BYTES");
	expect_bad_values("FP32", "[1]", "[null]", "element 0: null is no value");
	expect_bad_values("FP32", "[1]", "[{}]", "element 0: an object is no value");
	expect_bad_values("FP32", "[1]", "[NaN]", "expected a value, behind byte 61");
	expect_bad_values("FP32", "[2]", "[1]",
			  "element 1: the array has 1 elements, the shape says 2");
	expect_bad_values("FP32", "[2]", "[1,2,3]", "more elements than the 2 of the shape");
	expect_bad_values("FP16", "[1]", "[1]", "FP16 has no JSON form, only a binary one");
	expect_bad_values("BF16", "[1]", "[1]", "BF16 has no JSON form, only a binary one");
}

Test(lb_kserve_infer, members_are_checked)
{
	expect_refused("", 400, "the JSON ends too early, behind byte 0");
	expect_refused("[]", 400, "expected an object");
	expect_refused("{}", 400, "no inputs");
	expect_refused("{\"inputs\":[]}", 400, "no inputs");
	expect_refused("{\"inputs\":[{", 400, "inputs[0]: the JSON ends too early, behind byte 12");
	expect_refused("{\"inputs\":{}}", 400, "inputs: expected an array");
	expect_refused("{\"inputs\":[1]}", 400, "inputs: expected an object");
	expect_refused("{\"inputs\":[\"abc\"]}", 400, "inputs: expected an object");
	expect_refused("{\"id\":5}", 400, "id: expected a string");
	expect_refused("{\"id\":\"a\",\"id\":\"a\"}", 400, "id: is there twice");
	expect_refused("{\"parameters\":{\"timeout\":-1}}", 400,
		       "parameters.timeout: expected an integer from 0 to 2^64 - 1");
	expect_refused("{\"parameters\":{\"timeout\":\"5\"}}", 400,
		       "parameters.timeout: expected a number");
	expect_refused("{\"parameters\":{\"sequence_start\":1}}", 400,
		       "parameters.sequence_start: expected true or false");
}

Test(lb_kserve_infer, inputs_and_outputs_are_checked)
{
	expect_refused("{\"inputs\":[{}]}", 400, "inputs[0]: needs name, shape and datatype");
	expect_refused("{\"inputs\":[{\"name\":\"\"}]}", 400,
		       "inputs[0].name: expected 1 to 63 bytes, none of them 0");
	expect_refused("{\"inputs\":[{\"name\":\"a\\u0000\"}]}", 400,
		       "inputs[0].name: expected 1 to 63 bytes, none of them 0");
	expect_refused("{\"inputs\":[{\"name\":\"a\",\"datatype\":\"FP31\"}]}", 400,
		       "inputs[0] ('a').datatype: unknown");
	expect_refused("{\"inputs\":[{\"shape\":[1,-1]}]}", 400,
		       "inputs[0].shape: expected an integer from 0 to 2^64 - 1");
	expect_refused("{\"inputs\":[{\"shape\":[\"1\"]}]}", 400,
		       "inputs[0].shape: expected an integer");
	expect_refused("{\"inputs\":[{\"shape\":[1,1,1,1,1,1,1,1,1]}]}", 400,
		       "inputs[0].shape: more than 8 dimensions");
	expect_refused("{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":\"FP32\"}]}", 400,
		       "inputs[0] ('a'): needs data or binary_data_size");
	expect_refused(
		"{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1],"
		"\"parameters\":{\"binary_data_size\":4}}]}",
		400, "inputs[0] ('a'): has both data and binary_data_size");
	expect_refused("{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":\"FP32\","
		       "\"parameters\":{\"binary_data_size\":4},\"data\":[1]}]}",
		       400, "inputs[0] ('a').data: is there, and binary_data_size, too");
	expect_refused("{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\","
		       "\"parameters\":{\"binary_data_size\":4}}]}",
		       400, "inputs[0] ('a'): binary_data_size is 4, shape and datatype say 8");
	expect_refused(
		"{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]},"
		"{\"name\":\"a\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}]}",
		400, "inputs[1] ('a'): inputs[0] has the same name");
	expect_refused("{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":\"FP32\","
		       "\"parameters\":{\"shared_memory_region\":\"r\"}}]}",
		       501, "inputs[0] ('a').shared_memory_region: is not supported");
	expect_refused("{\"outputs\":[{\"name\":\"a\",\"parameters\":{\"classification\":3}}]}",
		       501, "outputs[0].classification: is not supported");
	expect_refused("{\"outputs\":[{\"name\":\"a\",\"parameters\":{\"classification\":0}}]}",
		       400, "no inputs");
	expect_refused("{\"outputs\":[{}]}", 400, "outputs[0]: needs a name");
	expect_refused("{\"id\":\"a\"} x", 400, "bytes behind the JSON value, behind byte 10");
}

Test(lb_kserve_infer, sizes_are_bounded)
{
	char text[1024], id[400];

	memset(id, 'i', sizeof(id) - 1);
	for (int n = KSERVE_ID_MAX; n < 300; n += 57) {
		snprintf(text, sizeof(text), "{\"id\":\"%.*s\"}", n, id);
		expect_refused(text, 400,
			       n <= KSERVE_ID_MAX     ? "no inputs"
			       : n <= KSERVE_TEXT_MAX ? "id: more than 128 bytes"
						      : "id: more than 256 bytes");
	}
	snprintf(text, sizeof(text), "{\"%.*s\":0}", 390, id);
	expect_refused(text, 400, "no inputs");
	expect_refused(
		"{\"inputs\":[{\"name\":\"a\",\"shape\":[16385],\"datatype\":\"FP32\",\"data\":[",
		413, "inputs[0] ('a'): the shape says more than 65536 bytes");
	expect_refused("{\"inputs\":[{\"name\":\"a\",\"shape\":[4294967296,4294967296],"
		       "\"datatype\":\"UINT8\",\"data\":[",
		       413, "inputs[0] ('a'): the shape says more than 65536 bytes");
	expect_refused(
		"{\"inputs\":[{\"name\":\"a\",\"shape\":[16385],\"datatype\":\"BYTES\",\"data\":[",
		413, "inputs[0] ('a'): the shape says more than 65536 bytes");
	expect_refused("{\"inputs\":[{\"parameters\":{\"binary_data_size\":65537}}]}", 413,
		       "inputs[0].binary_data_size: more than 65536 bytes");
}

/* Libraries that sort members by name put `data` first. */
Test(lb_kserve_infer, values_may_come_before_their_description)
{
	struct kserve_reader r;

	read_all(&r,
		 "{\"inputs\":[{\"data\":[ [1, 2],[3,4] ],\"datatype\":\"UINT8\",\"name\":\"x\","
		 "\"shape\":[2,2]},{\"datatype\":\"BYTES\",\"data\":[\"a]\\\"\"],\"name\":\"y\","
		 "\"shape\":[1]},{\"datatype\":\"INT8\",\"name\":\"z\",\"shape\":[1],\"data\":[5]}]"
		 "}");
	cr_assert_eq(r.step, KSERVE_MORE, "%s", r.infer.error);
	cr_assert_eq(memcmp(r.tensor[0], "\1\2\3\4", 4), 0);
	cr_assert_eq(memcmp(r.tensor[1], "\3\0\0\0a]\"", 7), 0);
	cr_assert_eq(r.tensor[2][0], 5);
	kserve_reader_fini(&r);
	expect_refused("{\"inputs\":[{\"data\":[1,300],\"datatype\":\"UINT8\",\"name\":\"x\","
		       "\"shape\":[2]}]}",
		       400, "inputs[0] ('x').data: element 1: 300 is out of range of UINT8");
	expect_refused("{\"inputs\":[{\"data\":[1,2],\"datatype\":\"UINT8\",\"name\":\"x\"}]}", 400,
		       "inputs[0] ('x'): needs name, shape and datatype");
	expect_refused("{\"inputs\":[{\"data\":[[1,{}]],\"datatype\":\"UINT8\",\"name\":\"x\","
		       "\"shape\":[2]}]}",
		       400,
		       "inputs[0] ('x').data: element 0: values are nested deeper than the shape, "
		       "or to different depths");
	/* EARLY_ROOM bytes, and one more */
	expect_refused("{\"inputs\":[{\"data\":["
		       "\"123456789012345678901234567890123456789012345678901234567890\"],"
		       "\"x\":0}]}",
		       400, "inputs[0]: needs name, shape and datatype");
	expect_refused("{\"inputs\":[{\"data\":["
		       "\"1234567890123456789012345678901234567890123456789012345678901\"],"
		       "\"x\":0}]}",
		       400,
		       "inputs[0].data: comes before name, shape or datatype, and has more than 64 "
		       "bytes of text: send it last");
}

/* Strings beyond what is kept leave before their length is known. */
Test(lb_kserve_infer, long_strings_arrive_whole)
{
	static const uint32_t lengths[] = {0,   1,   243, 244, 248, 249, 252,  255,
					   256, 257, 500, 508, 512, 513, 1000, 5000};
	char *text = malloc(20000);

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t n = lengths[i];
		int head = sprintf(
			text, "{\"inputs\":[{\"name\":\"x\",\"shape\":[3],\"datatype\":\"BYTES\","
			      "\"data\":[\"ab\",\"");
		struct kserve_reader r;
		uint32_t length;

		for (uint32_t c = 0; c < n; c++)
			text[(uint32_t)head + c] = (char)('a' + c % 26);
		sprintf(text + (uint32_t)head + n, "\",\"\\n\"]}]}");
		for (size_t step = 1; step < 600; step = step * 3 + 1) {
			size_t total = strlen(text);

			kserve_reader_init(&r, TENSOR_MAX, 0, KSERVE_RUN_MIN + (uint32_t)step % 7);
			for (size_t at = 0; at < total; at += step)
				kserve_reader_take(&r, text + at,
						   total - at < step ? total - at : step);
			kserve_reader_end(&r);
			cr_assert_eq(r.step, KSERVE_MORE, "%s", r.infer.error);
			cr_assert_eq(r.infer.input[0].bytes, 6 + 4 + n + 5);
			memcpy(&length, r.tensor[0] + 6, 4);
			cr_assert_eq(length, n);
			cr_assert_eq(memcmp(r.tensor[0] + 10, text + head, n), 0);
			cr_assert_eq(memcmp(r.tensor[0] + 10 + n, "\1\0\0\0\n", 5), 0);
			kserve_reader_fini(&r);
		}
	}
	free(text);
}

Test(lb_kserve_infer, strings_beyond_the_limit_are_refused_before_they_leave)
{
	char *text = malloc(TENSOR_MAX + 200);
	int head = sprintf(
		text,
		"{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"BYTES\",\"data\":[\"");

	for (uint32_t over = 0; over <= 1; over++) {
		struct kserve_reader r;
		uint32_t n = TENSOR_MAX - 4 + over;

		memset(text + head, 's', n);
		strcpy(text + (uint32_t)head + n, "\"]}]}");
		kserve_reader_init(&r, TENSOR_MAX, 0, KSERVE_RUN_MIN);
		kserve_reader_take(&r, text, strlen(text));
		kserve_reader_end(&r);
		if (over == 0)
			cr_assert_eq(r.step, KSERVE_MORE, "%s", r.infer.error);
		else
			cr_assert_str_eq(r.infer.error,
					 "inputs[0] ('x').data: element 0: more than 65536 "
					 "bytes in all");
		kserve_reader_fini(&r);
	}
	free(text);
}

Test(lb_kserve_infer, a_caller_can_refuse)
{
	struct kserve_infer r;
	struct kserve_run run = {0};
	const char text[] = "{\"inputs\":[]}", *at = text;

	kserve_infer_init(&r, 100, NULL, 0);
	cr_assert_eq(kserve_infer_refuse(&r, 404, "unknown model '%s'", "m"), KSERVE_REFUSED);
	cr_assert_eq(kserve_infer_read(&r, &at, text + 12, &run), KSERVE_REFUSED);
	cr_assert_eq(kserve_infer_end(&r), KSERVE_REFUSED);
	cr_assert_eq(r.status, 404);
	cr_assert_str_eq(r.error, "unknown model 'm'");
}

/* Numbers, and lists that are skipped: a call ends when it has done so much. */
Test(lb_kserve_infer, a_call_does_as_much_work_as_it_may)
{
	char *text = malloc(20000);
	int n = sprintf(text, "{\"x\":[");
	struct kserve_infer r;
	uint8_t room[KSERVE_RUN_MIN];
	struct kserve_run run = {.at = room, .room = sizeof(room), .budget = 100};
	const char *at = text;
	uint64_t bytes = 0, calls = 0;
	enum kserve_step step;

	for (int i = 0; i < 500; i++)
		n += sprintf(text + n, "[],");
	n += sprintf(text + n, "0],\"inputs\":[{\"name\":\"x\",\"shape\":[4000],\"datatype\":\"UINT8\","
			       "\"data\":[0");
	for (int i = 1; i < 4000; i++)
		n += sprintf(text + n, ",%d", i % 10);
	n += sprintf(text + n, "]}]}");
	kserve_infer_init(&r, 1 << 20, NULL, 0);
	while ((step = kserve_infer_read(&r, &at, text + n, &run)) != KSERVE_MORE) {
		cr_assert_neq(step, KSERVE_REFUSED, "%s", r.error);
		cr_assert_leq(run.work, run.budget + 12);
		calls++;
		for (uint32_t i = 0; step == KSERVE_RUN && i < run.length; i++)
			cr_assert_eq(run.at[i], (bytes + i) % 10);
		bytes += step == KSERVE_RUN ? run.length : 0;
	}
	cr_assert_eq(bytes, 4000);
	cr_expect_gt(calls, 250);
	cr_assert_eq(kserve_infer_end(&r), KSERVE_MORE);
	free(text);
}

Test(lb_kserve_infer, a_call_writes_one_run_at_most)
{
	char *text = malloc(20000);
	int n = sprintf(
		text,
		"{\"inputs\":[{\"name\":\"x\",\"shape\":[4000],\"datatype\":\"FP64\",\"data\":[0");
	struct kserve_infer r;
	uint8_t room[KSERVE_RUN_MIN];
	struct kserve_run run = {.at = room, .room = sizeof(room)};
	const char *at = text;
	uint64_t bytes = 0;
	enum kserve_step step;

	for (int i = 1; i < 4000; i++)
		n += sprintf(text + n, ",%d", i % 10);
	n += sprintf(text + n, "]}]}");
	kserve_infer_init(&r, 1 << 20, NULL, 0);
	while ((step = kserve_infer_read(&r, &at, text + n, &run)) != KSERVE_MORE) {
		cr_assert_neq(step, KSERVE_REFUSED, "%s", r.error);
		if (step == KSERVE_RUN) {
			cr_assert_leq(run.length, sizeof(room));
			cr_assert_eq(run.offset, bytes);
			bytes += run.length;
		}
	}
	cr_assert_eq(bytes, 32000);
	cr_assert_eq(kserve_infer_end(&r), KSERVE_MORE);
	free(text);
}
