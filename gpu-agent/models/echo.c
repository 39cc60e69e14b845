/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The echo model: the reply is the request. Arguments: max_request, bytes of the longest request;
 * min_request, bytes of the shortest; delay_us, us of work per request, for tests that need a slow
 * worker; batch_us, us per batch; sleep=1, the CPU sleeps for these times, as a host does beside
 * its GPU; fail_every=N, each N-th request gets an error; kernel=1, on a GPU a kernel copies the
 * request, as a model that computes something would, instead of sending the input; in_place=1, it
 * does so where requests and replies lie; buckets=1, batches of 1, 2, 4 ... rows, each of which
 * takes the time of all its rows, used or not; datatype, the datatype of the one tensor that
 * requests and replies are, UINT8 if not given.
 */
#include "models/arguments.h"
#include "models/echo_cuda.h"
#include "models/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ECHO_REQUEST_DEFAULT 1472 /* one UDP datagram of IPv4 in a 1500-byte packet */
#define ECHO_REQUEST_MAX     (64u << 20)
#define ECHO_DELAY_MAX_US    10000000
#define ECHO_WAKE_UP_NS      100000
#define ECHO_DATATYPE_SIZE   16

struct echo {
	uint32_t delay_us, batch_us, sleep, fail_every, kernel, in_place, buckets;
	uint32_t requests; /* since the last one that failed */
	char datatype[ECHO_DATATYPE_SIZE];
};

static uint64_t echo_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Busy-wait: a slow model keeps its worker busy. */
static void echo_work(uint64_t ns)
{
	uint64_t end = echo_now_ns() + ns;

	while (echo_now_ns() < end)
		;
}

/* Sleep until shortly before the end, as the system wakes late, and busy-wait for the rest. */
static void echo_sleep(uint64_t ns)
{
	uint64_t now = echo_now_ns(), end = now + ns;
	struct timespec until;

	if (ns > ECHO_WAKE_UP_NS) {
		until.tv_sec = (time_t)((end - ECHO_WAKE_UP_NS) / 1000000000);
		until.tv_nsec = (long)((end - ECHO_WAKE_UP_NS) % 1000000000);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
			;
		now = echo_now_ns();
	}
	if (now < end)
		echo_work(end - now);
}

static int echo_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		     void **state, char *error, size_t error_size)
{
	uint32_t max_request = ECHO_REQUEST_DEFAULT, min_request = 0;
	uint32_t delay_us = 0, batch_us = 0, asleep = 0, fail_every = 0, kernel = 0;
	uint32_t in_place = 0, buckets = 0;
	char datatype[ARGUMENT_TEXT_SIZE] = "UINT8";
	const struct argument table[] = {
		{.key = "max_request", .number = &max_request, .min = 1, .max = ECHO_REQUEST_MAX},
		{.key = "min_request", .number = &min_request, .max = ECHO_REQUEST_MAX},
		{.key = "delay_us", .number = &delay_us, .max = ECHO_DELAY_MAX_US},
		{.key = "batch_us", .number = &batch_us, .max = ECHO_DELAY_MAX_US},
		{.key = "sleep", .number = &asleep, .max = 1},
		{.key = "fail_every", .number = &fail_every, .max = UINT32_MAX},
		{.key = "kernel", .number = &kernel, .max = 1},
		{.key = "in_place", .number = &in_place, .max = 1},
		{.key = "buckets", .number = &buckets, .max = 1},
		{.key = "datatype", .text = datatype},
	};
	struct echo *echo;
	int ret;

	ret = arguments_parse(arguments, table, sizeof(table) / sizeof(table[0]), error,
			      error_size);
	if (ret != 0)
		return ret;
	if (min_request > max_request) {
		snprintf(error, error_size, "min_request=%u: must not be more than max_request, %u",
			 min_request, max_request);
		return -EINVAL;
	}
	if (in_place && !kernel) {
		snprintf(error, error_size, "in_place=1: needs kernel=1, which works in place");
		return -EINVAL;
	}
	echo = calloc(1, sizeof(*echo));
	if (echo == NULL) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	echo->delay_us = delay_us;
	echo->batch_us = batch_us;
	echo->sleep = asleep;
	echo->fail_every = fail_every;
	echo->kernel = kernel;
	echo->in_place = in_place;
	echo->buckets = buckets;
	/* One that is cut is no datatype either: the agent refuses it by name. */
	snprintf(echo->datatype, sizeof(echo->datatype), "%.*s", ECHO_DATATYPE_SIZE - 1, datatype);
	*shape = (struct agent_model_shape){
		.min_request = min_request,
		.max_request = max_request,
		.max_reply = max_request,
		.max_batch = max_batch,
	};
	if (buckets)
		agent_model_offer_powers(shape);
	*state = echo;
	return 0;
}

/* Answer <n> requests in a batch of <rows>. */
static void echo_run_bucket(void *state, struct agent_model_item *items, uint32_t n, uint32_t rows)
{
	struct echo *echo = state;
	uint64_t takes_ns = (echo->batch_us + (uint64_t)rows * echo->delay_us) * 1000;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(items[i].reply, items[i].request, items[i].request_length);
		items[i].reply_length = items[i].request_length;
		items[i].status = 0;
		if (echo->fail_every != 0 && ++echo->requests == echo->fail_every) {
			echo->requests = 0;
			items[i].status = -EIO;
		}
	}
	if (echo->sleep)
		echo_sleep(takes_ns);
	else
		echo_work(takes_ns);
}

static void echo_run(void *state, struct agent_model_item *items, uint32_t n)
{
	echo_run_bucket(state, items, n, n);
}

/* Record the time that a batch takes, if it takes any. */
static int echo_capture_delay(const struct echo *echo, const struct agent_model_gpu *gpu,
			      char *error, size_t error_size)
{
	if (echo->delay_us == 0 && echo->batch_us == 0)
		return 0;
	if (echo->buckets)
		return echo_cuda_delay(gpu, echo->batch_us + gpu->max_batch * echo->delay_us, 0,
				       error, error_size);
	return echo_cuda_delay(gpu, echo->batch_us, echo->delay_us, error, error_size);
}

/* No work to record: what was gathered is sent, unless a kernel is asked for. That one is the last,
 * as it may send the reply. */
static int echo_capture(void *state, struct agent_model_gpu *gpu, char *error, size_t error_size)
{
	const struct echo *echo = state;
	int ret;

	if (echo->fail_every != 0) {
		snprintf(error, error_size,
			 "fail_every=N works on CPUs only; leave it out, or give --gpu none");
		return -ENOTSUP;
	}
	gpu->reply_lengths = gpu->lengths;
	gpu->statuses = NULL;
	gpu->in_place = echo->in_place;
	ret = echo_capture_delay(echo, gpu, error, error_size);
	if (ret < 0)
		return ret;
	if (echo->kernel)
		return echo_cuda_copy(gpu, error, error_size);
	gpu->output = gpu->input;
	gpu->output_stride = gpu->input_stride;
	return 0;
}

static void echo_describe(const void *state, struct agent_model_description *description)
{
	const struct echo *echo = state;

	description->platform = "doorbell_echo";
	description->n_inputs = description->n_outputs = 1;
	description->input[0] = (struct agent_model_tensor){"input0", echo->datatype, 1, {-1}};
	description->output[0] = (struct agent_model_tensor){"output0", echo->datatype, 1, {-1}};
}

static void echo_close(void *state)
{
	free(state);
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = "echo",
	.open = echo_open,
	.run = echo_run,
	.close = echo_close,
	.capture = echo_capture,
	.describe = echo_describe,
	.run_bucket = echo_run_bucket,
};
