/* SPDX-License-Identifier: BSD-3-Clause */
/* ModelInferRequests, written by Google's library for Python (those with fields in another order by
 * hand), cut at every byte. */
#include <criterion/criterion.h>
#include <string.h>

#include "grpc_reader.h"

#define TENSOR_MAX 256

static const char of_raw[] =
	"\x0a\x01\x6d\x12\x01\x31\x1a\x03\x61\x62\x63\x22\x0e\x0a\x08\x70\x72\x69"
	"\x6f\x72\x69\x74\x79\x12\x02\x28\x02\x22\x0f\x0a\x07\x74\x69\x6d\x65\x6f"
	"\x75\x74\x12\x04\x10\x90\xa1\x0f\x2a\x0c\x0a\x01\x61\x12\x04\x46\x50\x33"
	"\x32\x1a\x01\x02\x2a\x0d\x0a\x01\x62\x12\x05\x42\x59\x54\x45\x53\x1a\x01"
	"\x02\x32\x03\x0a\x01\x63\x3a\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0\x3a\x0b"
	"\x03\x00\x00\x00\x78\x79\x7a\x00\x00\x00\x00";
static const char of_typed[] =
	"\x0a\x01\x6d\x2a\x13\x0a\x01\x61\x12\x04\x42\x4f\x4f\x4c\x1a\x01\x03\x2a"
	"\x05\x0a\x03\x01\x00\x01\x2a\x1b\x0a\x01\x62\x12\x04\x49\x4e\x54\x38\x1a"
	"\x01\x02\x2a\x0d\x12\x0b\x80\xff\xff\xff\xff\xff\xff\xff\xff\x01\x7f\x2a"
	"\x1d\x0a\x01\x63\x12\x05\x49\x4e\x54\x31\x36\x1a\x01\x02\x2a\x0e\x12\x0c"
	"\x80\x80\xfe\xff\xff\xff\xff\xff\xff\x01\xac\x02\x2a\x20\x0a\x01\x64\x12"
	"\x05\x49\x4e\x54\x33\x32\x1a\x01\x02\x2a\x11\x12\x0f\xff\xff\xff\xff\xff"
	"\xff\xff\xff\xff\x01\xff\xff\xff\xff\x07\x2a\x24\x0a\x01\x65\x12\x05\x49"
	"\x4e\x54\x36\x34\x1a\x01\x02\x2a\x15\x1a\x13\xff\xff\xff\xff\xff\xff\xff"
	"\xff\xff\x01\x80\x80\x80\x80\x80\x80\x80\x80\x40\x2a\x14\x0a\x01\x66\x12"
	"\x05\x55\x49\x4e\x54\x38\x1a\x01\x02\x2a\x05\x22\x03\x00\xff\x01\x2a\x15"
	"\x0a\x01\x67\x12\x06\x55\x49\x4e\x54\x31\x36\x1a\x01\x01\x2a\x05\x22\x03"
	"\xff\xff\x03\x2a\x17\x0a\x01\x68\x12\x06\x55\x49\x4e\x54\x33\x32\x1a\x01"
	"\x01\x2a\x07\x22\x05\xff\xff\xff\xff\x0f\x2a\x1c\x0a\x01\x69\x12\x06\x55"
	"\x49\x4e\x54\x36\x34\x1a\x01\x01\x2a\x0c\x2a\x0a\xff\xff\xff\xff\xff\xff"
	"\xff\xff\xff\x01\x2a\x18\x0a\x01\x6a\x12\x04\x46\x50\x33\x32\x1a\x01\x02"
	"\x2a\x0a\x32\x08\x00\x00\x00\x3f\x00\x00\x80\xbf\x2a\x19\x0a\x01\x6b\x12"
	"\x04\x46\x50\x36\x34\x1a\x02\x01\x01\x2a\x0a\x3a\x08\x9c\x75\x00\x88\x3c"
	"\xe4\x37\x7e\x2a\x1a\x0a\x01\x6c\x12\x05\x42\x59\x54\x45\x53\x1a\x01\x03"
	"\x2a\x0b\x42\x00\x42\x05\x68\x65\x6c\x6c\x6f\x42\x00";
static const char of_backwards[] =
	"\x3a\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0\x32\x03\x0a\x01\x63\x2a\x0c\x1a"
	"\x01\x02\x12\x04\x46\x50\x33\x32\x0a\x01\x61\x1a\x03\x61\x62\x63\x12\x01"
	"\x31\x0a\x01\x6d";
static const char of_unpacked[] =
	"\x0a\x01\x6d\x2a\x1b\x2a\x0d\x10\x05\x10\xff\xff\xff\xff\xff\xff\xff\xff"
	"\xff\x01\x18\x02\x12\x05\x49\x4e\x54\x33\x32\x0a\x01\x61";

/* Reads the message in parts of <part> bytes. */
static struct grpc_reader *read_parts(const char *bytes, size_t n, size_t part, uint32_t early)
{
	static struct grpc_reader r;

	grpc_reader_init(&r, n, TENSOR_MAX, early, KSERVE_RUN_MIN);
	r.budget = part % 2 == 0 ? 8 : 0; /* what is read is the same */
	for (size_t at = 0; at < n; at += part)
		grpc_reader_take(&r, (const uint8_t *)bytes + at, n - at < part ? n - at : part);
	if (n == 0)
		grpc_reader_take(&r, NULL, 0);
	return &r;
}

static void expect_tensor(const struct grpc_reader *r, uint8_t input, const char *bytes, size_t n)
{
	cr_assert_eq(r->came[input], n, "%u has %zu bytes", input, (size_t)r->came[input]);
	cr_assert_eq(memcmp(r->tensor[input], bytes, n), 0, "bytes of %u", input);
}

#define TENSOR(r, input, bytes) expect_tensor(r, input, bytes, sizeof(bytes) - 1)

Test(lb_grpc_infer, raw_contents_are_the_tensors)
{
	for (size_t part = 1; part < sizeof(of_raw); part++) {
		struct grpc_reader *r = read_parts(of_raw, sizeof(of_raw) - 1, part, 64);

		cr_assert_eq(r->step, GRPC_INFER_DONE, "parts of %zu: %s", part, r->said.error);
		cr_expect_str_eq(r->infer.model, "m");
		cr_expect_str_eq(r->infer.version, "1");
		cr_expect(r->said.has_id && r->said.id_length == 3);
		cr_expect_eq(r->said.timeout_us, 250000);
		cr_expect_eq(r->said.priority, 2);
		cr_expect_eq(r->said.outputs, 1);
		cr_expect_str_eq(r->said.output[0].name, "c");
		TENSOR(r, 0, "\0\0\xc0\x3f\0\0\0\xc0");
		TENSOR(r, 1, "\3\0\0\0xyz\0\0\0\0");
		grpc_reader_fini(r);
	}
}

Test(lb_grpc_infer, typed_contents_of_every_datatype)
{
	for (size_t part = 1; part < sizeof(of_typed); part++) {
		struct grpc_reader *r = read_parts(of_typed, sizeof(of_typed) - 1, part, 64);

		cr_assert_eq(r->step, GRPC_INFER_DONE, "parts of %zu: %s", part, r->said.error);
		TENSOR(r, 0, "\1\0\1");
		TENSOR(r, 1, "\x80\x7f");
		TENSOR(r, 2, "\x00\x80\x2c\x01");
		TENSOR(r, 3, "\xff\xff\xff\xff\xff\xff\xff\x7f");
		TENSOR(r, 4, "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\x40");
		TENSOR(r, 5, "\x00\xff");
		TENSOR(r, 6, "\xff\xff");
		TENSOR(r, 7, "\xff\xff\xff\xff");
		TENSOR(r, 8, "\xff\xff\xff\xff\xff\xff\xff\xff");
		TENSOR(r, 9, "\0\0\0\x3f\0\0\x80\xbf");
		cr_expect_eq(r->came[10], 8);
		TENSOR(r, 11, "\0\0\0\0\5\0\0\0hello\0\0\0\0");
		grpc_reader_fini(r);
	}
}

/* 200 numbers: a call reads as many as it may, and the last one is there. */
Test(lb_grpc_infer, a_call_does_as_much_work_as_it_may)
{
	static const char head[] = "\x0a\1m\x2a\xdc\1\x0a\1a\x12\5UINT8\x1a\2\xc8\1\x2a\xcb\1\x22\xc8\1";
	char message[300], expected[200];
	struct grpc_reader r;

	memcpy(message, head, sizeof(head) - 1);
	for (unsigned int i = 0; i < 200; i++)
		message[sizeof(head) - 1 + i] = expected[i] = (char)(i % 128);
	for (uint32_t budget = 16; budget <= 64; budget *= 2) {
		grpc_reader_init(&r, sizeof(head) - 1 + 200, TENSOR_MAX, 64, KSERVE_RUN_MIN);
		r.budget = budget;
		grpc_reader_take(&r, (const uint8_t *)message, sizeof(head) - 1 + 200);
		cr_assert_eq(r.step, GRPC_INFER_DONE, "%u: %s", budget, r.said.error);
		expect_tensor(&r, 0, expected, 200);
		cr_expect_lt(r.most, budget + 16, "%u of %u", r.most, budget);
		grpc_reader_fini(&r);
	}
}

Test(lb_grpc_infer, fields_in_any_order)
{
	for (size_t part = 1; part < sizeof(of_backwards); part++) {
		struct grpc_reader *r = read_parts(of_backwards, sizeof(of_backwards) - 1, part, 8);

		cr_assert_eq(r->step, GRPC_INFER_DONE, "parts of %zu: %s", part, r->said.error);
		cr_expect_str_eq(r->infer.model, "m");
		TENSOR(r, 0, "\0\0\xc0\x3f\0\0\0\xc0");
		grpc_reader_fini(r);
		r = read_parts(of_unpacked, sizeof(of_unpacked) - 1, part, 64);
		cr_assert_eq(r->step, GRPC_INFER_DONE, "unpacked, %zu: %s", part, r->said.error);
		TENSOR(r, 0, "\5\0\0\0\xff\xff\xff\xff");
		grpc_reader_fini(r);
	}
}

Test(lb_grpc_infer, no_more_is_kept_than_there_is_room)
{
	struct grpc_reader *r = read_parts(of_backwards, sizeof(of_backwards) - 1, 9, 7);

	cr_expect_eq(r->step, GRPC_INFER_REFUSED);
	cr_expect_eq(r->said.status, 501);
	cr_expect_str_eq(r->said.error, "raw_input_contents before their inputs");
	grpc_reader_fini(r);
	r = read_parts(of_unpacked, sizeof(of_unpacked) - 1, 9, 5);
	cr_expect_eq(r->said.status, 501);
	grpc_reader_fini(r);
}

/* An input with name a, <fields> between, and shape [1]. */
#define INPUT(length, fields) "\x0a\1m\x2a" length "\x0a\1a" fields "\x1a\1\1"

static const struct refusal {
	const char *bytes;
	size_t n;
	uint16_t status;
	const char *error;
} refusals[] = {
#define REFUSAL(text, status, error)                                                               \
	{                                                                                          \
		text, sizeof(text) - 1, status, error                                              \
	}
	REFUSAL("", 400, "no inputs"),
	REFUSAL("\x0b", 400, "the message is no ModelInferRequest"),
	REFUSAL("\x0a\x05m", 400, "the message is no ModelInferRequest"),
	REFUSAL(INPUT("\x0b", "\x12\3X32"), 400, "a datatype that does not exist"),
	REFUSAL(INPUT("\x0c", "\x12\4FP32"), 400, "an input has no contents"),
	REFUSAL("\x0a\1m\x2a\6\x12\4FP32", 400, "an input has no name or no datatype"),
	REFUSAL(INPUT("\x10", "\x12\4INT8\x2a\2\x18\1"), 400,
		"inputs[0] ('a').contents: values of another datatype than the input has"),
	REFUSAL(INPUT("\x11", "\x12\4INT8\x2a\3\x10\x80\1"), 400,
		"inputs[0] ('a').contents: a number that its datatype has not"),
	REFUSAL(INPUT("\x12", "\x12\4INT8\x2a\4\x10\1\x10\1"), 400,
		"inputs[0] ('a').contents: more values than the shape says"),
	REFUSAL("\x2a\x15\x0a\1a\x12\4INT8\x1a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 400,
		"a shape has a negative dimension"),
	REFUSAL("\x2a\x0d\x0a\1a\x12\4INT8\x1a\2\x80\x10", 413,
		"an input has more elements than the service takes"),
	REFUSAL("\x32\x12\x12\x10\x0a\x0e"
		"classification",
		501, "shared memory and classification are not there"),
	REFUSAL("\x22\x11\x0a\7timeout\x12\6\x1a\4soon", 400,
		"parameters.timeout: expected an integer from 0 on"),
	REFUSAL("\x22\x0b\x0a\7timeout\x12\0", 400,
		"parameters.timeout: expected an integer from 0 on"),
	REFUSAL("\x22\x17\x0a\x08priority\x12\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 400,
		"parameters.priority: expected an integer from 0 on"),
};

Test(lb_grpc_infer, what_is_not_valid_is_refused_with_its_reason)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		for (size_t part = 1; part <= refusals[i].n + 1; part++) {
			struct grpc_reader *r =
				read_parts(refusals[i].bytes, refusals[i].n, part, 64);

			cr_assert_eq(r->step, GRPC_INFER_REFUSED, "row %zu", i);
			cr_assert_eq(r->said.status, refusals[i].status, "row %zu: %u", i,
				     r->said.status);
			cr_assert_str_eq(r->said.error, refusals[i].error, "row %zu: %s", i,
					 r->said.error);
			grpc_reader_fini(r);
		}
	}
}

/* The name of a sequence, cut anywhere, is its number as in JSON; a number is itself. */
Test(lb_grpc_infer, sequences)
{
	static const char named[] = "\x0a\1m\x22\x15\x0a\x0bsequence_id\x12\6\x1a\4user";
	static const char numbered[] = "\x0a\1m\x22\x12\x0a\x0bsequence_id\x12\3\x10\xac\2";
	static const char unnamed[] = "\x0a\1m\x22\x11\x0a\x0bsequence_id\x12\2\x1a\0";

	for (size_t part = 1; part < sizeof(named); part++) {
		struct grpc_reader *r = read_parts(named, sizeof(named) - 1, part, 64);

		cr_expect_eq(r->said.sequence, kserve_infer_sequence(KSERVE_SEQUENCE, "user", 4));
		r = read_parts(numbered, sizeof(numbered) - 1, part, 64);
		cr_expect_eq(r->said.sequence, 300);
		r = read_parts(unnamed, sizeof(unnamed) - 1, part, 64);
		cr_expect_eq(r->said.sequence, 0);
	}
}
