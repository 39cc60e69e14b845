/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model without a GPU for the bench `predictable`: a batch takes a shared device for a known
 * time. A reply is the beginning of its request. Arguments: max_request, bytes; reply, bytes of a
 * reply at most; base_us and each_us, us per batch and per request; device, the file of a device
 * that other models may share. Built once for each name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/arguments.h"
#include "models/model.h"
#include "predictable/device.h"

#define TIMED_BYTES_MAX (64u << 20)
#define TIMED_US_MAX    10000000

struct timed {
	struct device device;
	uint32_t reply, base_us, each_us;
};

static int timed_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		      void **state, char *error, size_t error_size)
{
	char device[ARGUMENT_TEXT_SIZE] = "";
	uint32_t max_request = 1400;
	struct timed *timed = calloc(1, sizeof(*timed));
	int ret;

	if (timed == NULL)
		return -ENOMEM;
	timed->reply = TIMED_BYTES_MAX;
	const struct argument table[] = {
		{.key = "max_request", .number = &max_request, .min = 1, .max = TIMED_BYTES_MAX},
		{.key = "reply", .number = &timed->reply, .min = 1, .max = TIMED_BYTES_MAX},
		{.key = "base_us", .number = &timed->base_us, .max = TIMED_US_MAX},
		{.key = "each_us", .number = &timed->each_us, .max = TIMED_US_MAX},
		{.key = "device", .text = device},
	};
	ret = arguments_parse(arguments, table, sizeof(table) / sizeof(table[0]), error,
			      error_size);
	if (ret == 0) {
		ret = device_open(&timed->device, device);
		if (ret != 0)
			snprintf(error, error_size, "device=%s: %s", device, strerror(-ret));
	}
	if (ret != 0) {
		free(timed);
		return ret;
	}
	*shape = (struct agent_model_shape){
		.max_request = max_request,
		.max_reply = timed->reply < max_request ? timed->reply : max_request,
		.max_batch = max_batch,
	};
	*state = timed;
	return 0;
}

/* The replies are written while the device works. */
static void timed_run(void *state, struct agent_model_item *items, uint32_t n)
{
	struct timed *timed = state;
	uint64_t end = device_run(&timed->device, timed->base_us, timed->each_us, n);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t length = items[i].request_length;

		items[i].reply_length = length < timed->reply ? length : timed->reply;
		memcpy(items[i].reply, items[i].request, items[i].reply_length);
		items[i].status = 0;
	}
	device_wait(end);
}

static void timed_close(void *state)
{
	struct timed *timed = state;

	device_close(&timed->device);
	free(timed);
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = TIMED_NAME,
	.open = timed_open,
	.run = timed_run,
	.close = timed_close,
};
