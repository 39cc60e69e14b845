/* SPDX-License-Identifier: BSD-3-Clause */
#include "models/model.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static struct agent_model_shape shape;
static void *state;
static char error[256];

static int echo_open(const char *arguments)
{
	return agent_model.open(arguments, 32, &shape, &state, error, sizeof(error));
}

Test(agent_echo, answers_each_request_with_its_own_bytes)
{
	_Alignas(64) uint8_t requests[3][64] = {"one", "two and more", ""};
	_Alignas(8) uint8_t replies[3][64] = {0};
	struct agent_model_item items[3];

	cr_assert_eq(echo_open(""), 0, "%s", error);
	cr_assert_eq(shape.max_request, 1472);
	cr_assert_eq(shape.max_reply, 1472);
	cr_assert_eq(shape.max_batch, 32);
	for (uint32_t i = 0; i < 3; i++)
		items[i] = (struct agent_model_item){
			.request = requests[i],
			.request_length = (uint32_t)strlen((char *)requests[i]),
			.reply = replies[i],
			.status = 1,
		};
	agent_model.run(state, items, 3);
	for (uint32_t i = 0; i < 3; i++) {
		cr_assert_eq(items[i].status, 0);
		cr_assert_eq(items[i].reply_length, items[i].request_length);
		cr_assert_str_eq((char *)replies[i], (char *)requests[i]);
	}
	agent_model.close(state);
}

Test(agent_echo, takes_its_size_and_its_delay_from_the_arguments)
{
	_Alignas(64) uint8_t request[64] = "slow", reply[64];
	struct agent_model_item item = {.request = request, .request_length = 4, .reply = reply};
	struct timespec start, end;

	cr_assert_eq(echo_open("max_request=4096,delay_us=3000"), 0, "%s", error);
	cr_assert_eq(shape.max_request, 4096);
	clock_gettime(CLOCK_MONOTONIC, &start);
	agent_model.run(state, &item, 1);
	clock_gettime(CLOCK_MONOTONIC, &end);
	cr_assert_geq((end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec,
		      3000000);
	agent_model.close(state);
}

Test(agent_echo, works_in_place_by_its_kernel_only)
{
	cr_assert_eq(echo_open("in_place=1"), -EINVAL);
	cr_expect_not_null(strstr(error, "needs kernel=1"), "%s", error);
	cr_assert_eq(echo_open("kernel=1,in_place=1"), 0, "%s", error);
	agent_model.close(state);
}

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* How often this thread has gone to sleep. */
static long sleeps(void)
{
	struct rusage usage;

	cr_assert_eq(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

/* 10 ms and 4 * 5 ms. */
Test(agent_echo, takes_time_for_a_batch_and_for_each_request_asleep)
{
	_Alignas(64) uint8_t request[64] = "slow", replies[4][64];
	struct agent_model_item items[4];
	uint64_t start;
	long slept;

	cr_assert_eq(echo_open("batch_us=10000,delay_us=5000,sleep=1"), 0, "%s", error);
	for (uint32_t i = 0; i < 4; i++)
		items[i] = (struct agent_model_item){
			.request = request, .request_length = 4, .reply = replies[i]};
	start = nanoseconds(CLOCK_MONOTONIC);
	slept = sleeps();
	agent_model.run(state, items, 4);
	cr_assert_geq(nanoseconds(CLOCK_MONOTONIC) - start, 30000000);
	cr_assert_gt(sleeps(), slept);
	agent_model.close(state);
}

Test(agent_echo, refuses_bad_arguments)
{
	static const struct {
		const char *arguments;
		const char *problem;
	} rows[] = {
		{"max_request=0", "max_request=0: must be a number from 1 to"},
		{"max_request=-1", "max_request=-1: must be a number"},
		{"max_request=1k", "max_request=1k: must be a number"},
		{"max_request=99999999999999999999", "must be a number"},
		{"delay_us=", "delay_us: the value must have"},
		{"delay_us", "delay_us: needs a value"},
		{",", "unknown argument ''"},
		{"max=1", "unknown argument 'max'; give "},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(echo_open(rows[i].arguments), -EINVAL, "row %zu", i);
		cr_expect_not_null(strstr(error, rows[i].problem), "row %zu said: %s", i, error);
	}
}

Test(agent_echo, describes_one_tensor_of_the_datatype_that_is_given)
{
	struct agent_model_description d = {0};

	cr_assert_eq(echo_open("datatype=FP32"), 0, "%s", error);
	agent_model.describe(state, &d);
	cr_expect(d.n_inputs == 1 && d.n_outputs == 1 && d.batch == 0);
	cr_expect_str_eq(d.input[0].name, "input0");
	cr_expect_str_eq(d.input[0].datatype, "FP32");
	cr_expect_str_eq(d.output[0].datatype, "FP32");
	cr_expect(d.input[0].rank == 1 && d.input[0].shape[0] == -1);
	agent_model.close(state);
}
