/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's first inference: who passes it, and why others do not. */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "canary.h"

static const uint8_t question[8] = "question", answer[8] = "answers!";
static struct agent_options options = {.hang_ms = 2000, .heartbeat_ms = 10};
static struct agent_setup setup = {.options = &options, .loop = &agent_loop_cpu};
static struct agent_model model;
static struct agent_model_sample sample;
static char why[256];
static uint32_t sizes[16], n_sizes; /* of batches, as they were run */
static float says;                  /* 4 bytes of each reply */
static int32_t fails;

static int open_none(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		     void **state, char *error, size_t size)
{
	*shape = (struct agent_model_shape){
		.min_request = 8, .max_request = 8, .max_reply = 8, .max_batch = max_batch};
	agent_model_offer_powers(shape);
	*state = &says;
	return 0;
}

static void run_bucket(void *state, struct agent_model_item *items, uint32_t n, uint32_t rows)
{
	sizes[n_sizes++] = rows;
	for (uint32_t i = 0; i < n; i++) {
		static const uint8_t zeros[8];

		items[i].reply_length = 8;
		items[i].status = fails;
		if (memcmp(items[i].request, question, 8) == 0) {
			memcpy(items[i].reply, answer, 8);
			continue;
		}
		if (memcmp(items[i].request, zeros, 8) != 0)
			items[i].status = -EIO;
		memset(items[i].reply, 0, 8);
		memcpy((uint8_t *)items[i].reply + 4, &says, 4);
	}
}

static void run(void *state, struct agent_model_item *items, uint32_t n)
{
	run_bucket(state, items, n, n);
}

static void hang(void *state, struct agent_model_item *items, uint32_t n, uint32_t rows)
{
	for (;;)
		pause();
}

static void close_none(void *state)
{
}

static void describe(const void *state, struct agent_model_description *d)
{
	*d = (struct agent_model_description){
		.n_inputs = 1,
		.input = {{"x", "FP32", 1, {2}}},
		.n_outputs = 2,
		.output = {{"y", "INT32", 1, {1}}, {"z", "FP32", 1, {1}}},
	};
}

static void give_sample(const void *state, struct agent_model_sample *out)
{
	*out = sample;
}

static int try(void)
{
	char error[256] = "";
	int ret;

	n_sizes = 0;
	cr_assert_eq(agent_model_open(&setup.model, &model, "", 5, error, sizeof(error)), 0, "%s",
		     error);
	ret = agent_canary(&setup, why, sizeof(why));
	if (ret != -ETIMEDOUT)
		agent_model_unload(&setup.model);
	return ret;
}

static void set_up(void)
{
	model = (struct agent_model){.abi = AGENT_MODEL_ABI,
				     .name = "m",
				     .open = open_none,
				     .run = run,
				     .close = close_none,
				     .describe = describe,
				     .run_bucket = run_bucket,
				     .sample = give_sample};
}

TestSuite(agent_canary, .init = set_up, .timeout = 60);

Test(agent_canary, each_size_of_batch_answers_zeros)
{
	cr_assert_eq(try(), 0, "%s", why);
	cr_expect_str_eq(why, "");
	cr_expect_eq(n_sizes, 4);
	cr_expect_eq(sizes[0], 1);
	cr_expect_eq(sizes[1], 2);
	cr_expect_eq(sizes[2], 4);
	cr_expect_eq(sizes[3], 5);
}

Test(agent_canary, a_reply_that_is_nan_is_refused_by_the_outputs_name)
{
	says = NAN;
	cr_assert_eq(try(), -EIO);
	cr_expect_str_eq(why, "its output 'z' is NaN");
	cr_expect_eq(n_sizes, 1, "the first one is enough");
}

Test(agent_canary, an_error_is_refused_where_zeros_are_a_request)
{
	fails = -EIO;
	cr_assert_eq(try(), -EIO);
	cr_expect_str_eq(why, "it fails (status 1 of ring.h)");
	/* Nothing is known of the requests of this one: it may want others than zeros. */
	model.describe = NULL;
	cr_assert_eq(try(), 0);
	cr_expect_str_eq(why,
			 "it refuses 8 bytes of zeros; with sample() it has a canary of its own");
}

Test(agent_canary, a_sample_must_have_its_reply)
{
	sample = (struct agent_model_sample){question, 8, answer, 8};
	cr_assert_eq(try(), 0, "%s", why);
	sample.reply = question;
	cr_assert_eq(try(), -EIO);
	cr_expect_str_eq(why, "it answers its sample otherwise than it should");
	sample = (struct agent_model_sample){answer, 8, NULL, 0};
	cr_assert_eq(try(), -EIO);
	cr_expect_str_eq(why, "it fails (status 1 of ring.h)");
	sample.request_length = 9;
	cr_assert_eq(try(), -EINVAL);
	cr_expect_str_eq(why, "its sample has 9 bytes; requests have 8 to 8");
}

Test(agent_canary, a_model_that_does_not_answer_is_refused)
{
	options.hang_ms = 200;
	model.run_bucket = hang;
	cr_assert_eq(try(), -ETIMEDOUT);
	cr_expect_str_eq(why, "it has not answered within 200 ms");
}

Test(agent_canary, nan_has_a_form_in_each_type)
{
	static const uint8_t half[] = {0x01, 0x7c}, infinite[] = {0x00, 0xfc},
			     brain[] = {0x81, 0xff};
	const double twice = NAN;
	struct model_description d = {.n_outputs = 1, .output = {{"o", DATATYPE_FP16, 1, {1}}}};

	cr_expect_not_null(canary_nan(&d, half, 2));
	cr_expect_null(canary_nan(&d, infinite, 2), "infinity is a number here");
	d.output[0].datatype = DATATYPE_BF16;
	cr_expect_not_null(canary_nan(&d, brain, 2));
	d.output[0].datatype = DATATYPE_FP64;
	cr_expect_not_null(canary_nan(&d, (const uint8_t *)&twice, 8));
	cr_expect_null(canary_nan(&d, (const uint8_t *)&twice, 4), "the reply ends before it");
	d.output[0].shape[0] = DESCRIPTION_FREE;
	cr_expect_null(canary_nan(&d, (const uint8_t *)&twice, 8));
}
