/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The echo model: the reply is the request. Arguments: max_request, the longest request in bytes;
 * delay_us, for tests that need a slow worker: so much busy work per request; run_us: every batch
 * takes this long, asleep, as if a device did the work; fail_every=N: every N-th request is
 * refused; kernel=1: on a GPU, copy by a kernel, as a model that computes something would be run,
 * instead of sending the input.
 */
#include "arguments.h"
#include "echo_cuda.h"
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ECHO_REQUEST_DEFAULT 1472 /* one UDP datagram of IPv4 in a 1500-byte packet */
#define ECHO_REQUEST_MAX     (16u << 20)
#define ECHO_DELAY_MAX_US    10000000

struct echo {
	uint32_t delay_us, run_us, fail_every, kernel;
	uint32_t requests; /* since the last that failed */
};

static uint64_t echo_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Works instead of sleeping: a slow model keeps its worker busy. */
static void echo_work(uint32_t delay_us)
{
	uint64_t end = echo_now_ns() + (uint64_t)delay_us * 1000;

	while (echo_now_ns() < end)
		;
}

/* The device is busy, its host is not. */
static void echo_wait(uint32_t run_us)
{
	uint64_t end = echo_now_ns() + (uint64_t)run_us * 1000;
	struct timespec until = {.tv_sec = end / 1000000000, .tv_nsec = end % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static int echo_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		     void **state, char *error, size_t error_size)
{
	uint32_t max_request = ECHO_REQUEST_DEFAULT;
	uint32_t delay_us = 0, run_us = 0, fail_every = 0, kernel = 0;
	const struct argument table[] = {
		{.key = "max_request", .number = &max_request, .min = 1, .max = ECHO_REQUEST_MAX},
		{.key = "delay_us", .number = &delay_us, .max = ECHO_DELAY_MAX_US},
		{.key = "run_us", .number = &run_us, .max = ECHO_DELAY_MAX_US},
		{.key = "fail_every", .number = &fail_every, .max = UINT32_MAX},
		{.key = "kernel", .number = &kernel, .max = 1},
	};
	struct echo *echo;
	int ret;

	ret = arguments_parse(arguments, table, sizeof(table) / sizeof(table[0]), error,
			      error_size);
	if (ret != 0)
		return ret;
	echo = calloc(1, sizeof(*echo));
	if (echo == NULL) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	echo->delay_us = delay_us;
	echo->run_us = run_us;
	echo->fail_every = fail_every;
	echo->kernel = kernel;
	*shape = (struct agent_model_shape){
		.max_request = max_request, .max_reply = max_request, .max_batch = max_batch};
	*state = echo;
	return 0;
}

static void echo_run(void *state, struct agent_model_item *items, uint32_t n)
{
	struct echo *echo = state;

	if (echo->run_us != 0)
		echo_wait(echo->run_us);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(items[i].reply, items[i].request, items[i].request_length);
		items[i].reply_length = items[i].request_length;
		items[i].status = 0;
		if (echo->fail_every != 0 && ++echo->requests == echo->fail_every) {
			echo->requests = 0;
			items[i].status = -EIO;
		}
		if (echo->delay_us != 0)
			echo_work(echo->delay_us);
	}
}

/* Nothing to compute: what was gathered is what is sent, unless a kernel is asked for. */
static int echo_capture(void *state, struct agent_model_gpu *gpu, char *error, size_t error_size)
{
	const struct echo *echo = state;

	gpu->reply_lengths = gpu->lengths;
	gpu->statuses = NULL;
	if (echo->kernel) {
		int ret = echo_cuda_copy(gpu, error, error_size);

		if (ret < 0)
			return ret;
	} else {
		gpu->output = gpu->input;
		gpu->output_stride = gpu->input_stride;
	}
	if (echo->fail_every != 0) {
		snprintf(error, error_size, "fail_every is for CPUs only");
		return -ENOTSUP;
	}
	if (echo->delay_us + echo->run_us == 0)
		return 0;
	return echo_cuda_delay(gpu, echo->delay_us + echo->run_us, error, error_size);
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
};
