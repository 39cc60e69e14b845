/* SPDX-License-Identifier: BSD-3-Clause */
/* gRPC's small messages, statuses and times. The expected bytes are those of Google's library for
 * Python. */
#include <criterion/criterion.h>
#include <string.h>

#include "grpc/message.h"
#include "grpc/status.h"

static const struct kserve_model model = {
	.name = "mlp",
	.version = {"1"},
	.versions = 1,
	.platform = "c",
	.max_batch = 1,
	.inputs = 1,
	.outputs = 1,
	.input = {{.name = "a", .type = KSERVE_FP32, .dims = 1, .shape = {KSERVE_ANY_SIZE}}},
	.output = {{.name = "d", .type = KSERVE_BF16, .dims = 1, .shape = {300}}},
};

static void expect(const struct grpc_out *out, const uint8_t *at, const char *bytes, size_t n)
{
	cr_assert(!out->full);
	cr_assert_eq((size_t)(out->at - at), n, "%zu bytes", (size_t)(out->at - at));
	cr_assert_eq(memcmp(at, bytes, n), 0);
}

#define EXPECT(out, at, bytes) expect(out, at, bytes, sizeof(bytes) - 1)

Test(lb_grpc_message, answers_of_the_load_balancer)
{
	uint8_t at[256];
	struct grpc_out out = {at, at + sizeof(at), false};

	grpc_write_bool(&out, false);
	EXPECT(&out, at, "");
	grpc_write_bool(&out, true);
	EXPECT(&out, at, "\x08\1");
	out.at = at;
	grpc_write_health(&out, GRPC_NOT_SERVING);
	EXPECT(&out, at, "\x08\2");
	out.at = at;
	grpc_write_model(&out, &model);
	EXPECT(&out, at,
	       "\x0a\3mlp\x12\1"
	       "1\x1a\1"
	       "c\x22\x1f\x0a\1"
	       "a\x12\4FP32\x1a\x14\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"
	       "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"
	       "\x2a\x17\x0a\1"
	       "d\x12\4BF16\x1a\x0c\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\xac\2");
	out.at = at;
	grpc_write_config(&out, &model);
	EXPECT(&out, at,
	       "\x0a\x28\x0a\3mlp\x12\1"
	       "c\x20\1\x2a\x11\x0a\1"
	       "a\x10\x0b\x22\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"
	       "\x32\x09\x0a\1"
	       "d\x10\x0e\x1a\2\xac\2");
}

Test(lb_grpc_message, statistics_and_index)
{
	static struct kserve_model counted;
	uint8_t at[256];
	struct grpc_out out = {at, at + sizeof(at), false};

	counted = model;
	counted.counters = (struct kserve_counters){.success = {5, 500},
						    .fail = {1, 0},
						    .queue = {5, 60},
						    .input = {5, 50},
						    .infer = {5, 250},
						    .output = {5, 5},
						    .inferences = 7,
						    .executions = 3,
						    .last_inference = 300};
	grpc_write_statistics(&out, &counted);
	EXPECT(&out, at,
	       "\x0a\x35\x0a\3mlp\x12\1\x31\x18\xac\2\x20\7\x28\3\x32\x24\x0a\5\x08\5\x10\xf4\3"
	       "\x12\2\x08\1\x1a\4\x08\5\x10\x3c\x22\4\x08\5\x10\x32\x2a\5\x08\5\x10\xfa\1\x32\4"
	       "\x08\5\x10\5");
	out.at = at;
	counted.ready = true;
	grpc_write_index(&out, &counted);
	counted.ready = false;
	grpc_write_index(&out, &counted);
	EXPECT(&out, at,
	       "\x0a\x0f\x0a\3mlp\x12\1\x31\x1a\5READY"
	       "\x0a\x2a\x0a\3mlp\x12\1\x31\x1a\x0bUNAVAILABLE\x22\x13no worker serves it");
}

Test(lb_grpc_message, what_does_not_fit_is_said)
{
	uint8_t at[20];
	struct grpc_out out = {at, at + sizeof(at), false};

	grpc_write_model(&out, &model);
	cr_expect(out.full);
}

Test(lb_grpc_message, names_are_read_whole_or_not)
{
	static const char both[] = "\x0a\3mlp\x12\1"
				   "1\x18\7";
	struct grpc_names names;

	cr_assert(grpc_names_read(&names, (const uint8_t *)both, sizeof(both) - 1));
	cr_expect_str_eq(names.name, "mlp");
	cr_expect_str_eq(names.version, "1");
	cr_expect(grpc_names_read(&names, NULL, 0));
	cr_expect_str_eq(names.name, "");
	cr_expect(grpc_names_read(&names, (const uint8_t *)"\x10\1", 2));
	cr_expect(names.ready);
	cr_expect_not(grpc_names_read(&names, (const uint8_t *)both, sizeof(both) - 2));
	cr_expect_not(grpc_names_read(&names,
				      (const uint8_t *)"\x12\x10"
						       "1234567890123456",
				      18));
}

Test(lb_grpc_message, the_prefix_says_how_long_the_answer_is)
{
	static const struct kserve_answer answer = {
		.model = "m",
		.version = "1",
		.id = "x",
		.id_length = 1,
		.outputs = 2,
		.output =
			{{.name = "c", .type = KSERVE_FP32, .dims = 2, .shape = {1, 2}, .bytes = 8},
			 {.name = "d",
			  .type = KSERVE_UINT8,
			  .dims = 1,
			  .shape = {200},
			  .bytes = 200}},
	};
	uint8_t at[GRPC_HEAD_MAX], raw[GRPC_FIELD_MAX];
	uint32_t n = grpc_write_answer(&answer, false, at);

	cr_assert_eq(n, 5 + 40, "%u", n);
	cr_expect_eq(memcmp(at + 5,
			    "\x0a\1m\x12\1"
			    "1\x1a\1x\x2a\x0d\x0a\1"
			    "c\x12\4FP32\x1a\2\1\2\x2a\x0e\x0a\1"
			    "d\x12\5UINT8\x1a\2\xc8\1",
			    40),
		     0);
	cr_expect_eq(grpc_prefix_length(at), 40 + 2 + 8 + 3 + 200);
	cr_expect_eq(grpc_write_raw(200, raw), 3);
	cr_expect_eq(memcmp(raw, "\x32\xc8\1", 3), 0);
}

Test(lb_grpc_message, times)
{
	static const struct {
		const char *text;
		uint64_t us;
	} rows[] = {
		{"100m", 100000},  {"1S", 1000000},    {"5u", 5},        {"1n", 1},
		{"0m", 1},         {"2H", 7200000000}, {"1M", 60000000}, {"99999999H", UINT64_MAX},
		{"", 0},           {"m", 0},           {"100", 0},       {"-1m", 0},
		{"123456789m", 0}, {"1 m", 0},
	};
	uint64_t us;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool valid = grpc_timeout_read(rows[i].text, (uint32_t)strlen(rows[i].text), &us);

		cr_expect_eq(valid, rows[i].us != 0, "%s", rows[i].text);
		if (valid)
			cr_expect_eq(us, rows[i].us, "%s: %zu", rows[i].text, (size_t)us);
	}
}

Test(lb_grpc_message, messages_of_errors_are_percent_encoded)
{
	char at[16];

	cr_expect_eq(grpc_message_write("a%b\n", at, sizeof(at)), 8);
	cr_expect_eq(memcmp(at, "a%25b%0A", 8), 0);
	cr_expect_eq(grpc_message_write("a\xc3\xa4", at, sizeof(at)), 7);
	cr_expect_eq(memcmp(at, "a%C3%A4", 7), 0);
	cr_expect_eq(grpc_message_write("%%%", at, 8), 6);
}

Test(lb_grpc_message, an_answer_in_a_stream_is_wrapped)
{
	static const struct kserve_answer answer = {
		.model = "m",
		.version = "",
		.outputs = 1,
		.output =
			{{.name = "c", .type = KSERVE_UINT8, .dims = 1, .shape = {3}, .bytes = 3}},
	};
	struct kserve_answer end = {.model = "m", .version = ""};
	uint8_t at[GRPC_HEAD_MAX];

	cr_expect_eq(grpc_write_answer(&answer, true, at), 5 + 2 + 18);
	cr_expect_eq(memcmp(at,
			    "\0\0\0\0\x19\x12\x17\x0a\1m\x2a\x0d\x0a\1"
			    "c\x12\5UINT8\x1a\1\3",
			    25),
		     0);
	/* The empty one behind the last piece says that it is. */
	end.final = KSERVE_FINAL;
	cr_expect_eq(grpc_write_answer(&end, true, at), 5 + 2 + 3 + 29);
	cr_expect_eq(memcmp(at,
			    "\0\0\0\0\x22\x12\x20\x0a\1m\x22\x1b\x0a\x15triton_final_response"
			    "\x12\2\x08\1",
			    5 + 2 + 3 + 29),
		     0);
	end.final = KSERVE_FINAL_FOLLOWS;
	cr_expect_eq(grpc_write_answer(&end, true, at), 5 + 2 + 3 + 29);
	cr_expect_eq(memcmp(at + 35, "\x12\2\x08\0", 4), 0);
	cr_expect_eq(grpc_write_stream_error("no", at, 64), 9);
	cr_expect_eq(memcmp(at, "\0\0\0\0\4\x0a\2no", 9), 0);
}
