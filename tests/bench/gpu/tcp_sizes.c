/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model without a GPU, with the sizes of one that wants it: all requests have <request> bytes, and
 * a reply is the first <reply> bytes of the request, repeated when it is longer. Arguments: request
 * and reply, in bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/arguments.h"
#include "models/model.h"

#define SIZES_MAX (64u << 20)

struct sizes {
	uint32_t request, reply;
};

static int sizes_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		      void **state, char *error, size_t error_size)
{
	struct sizes *s = calloc(1, sizeof(*s));
	int ret;

	if (s == NULL)
		return -ENOMEM;
	const struct argument table[] = {
		{.key = "request", .number = &s->request, .min = 1, .max = SIZES_MAX},
		{.key = "reply", .number = &s->reply, .min = 1, .max = SIZES_MAX},
	};
	ret = arguments_parse(arguments, table, sizeof(table) / sizeof(table[0]), error,
			      error_size);
	if (ret == 0 && (s->request == 0 || s->reply == 0)) {
		snprintf(error, error_size, "both sizes must be given");
		ret = -EINVAL;
	}
	if (ret < 0) {
		free(s);
		return ret;
	}
	*shape = (struct agent_model_shape){
		.min_request = s->request,
		.max_request = s->request,
		.max_reply = s->reply,
		.max_batch = max_batch,
	};
	*state = s;
	return 0;
}

static void sizes_run(void *state, struct agent_model_item *items, uint32_t n)
{
	const struct sizes *s = state;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t at = 0; at < s->reply; at += s->request) {
			uint32_t left = s->reply - at;

			memcpy((uint8_t *)items[i].reply + at, items[i].request,
			       left < s->request ? left : s->request);
		}
		items[i].reply_length = s->reply;
		items[i].status = 0;
	}
}

static void sizes_describe(const void *state, struct agent_model_description *description)
{
	const struct sizes *s = state;

	description->n_inputs = description->n_outputs = 1;
	description->input[0] = (struct agent_model_tensor){"request", "UINT8", 1, {s->request}};
	description->output[0] = (struct agent_model_tensor){"reply", "UINT8", 1, {s->reply}};
}

static void sizes_close(void *state)
{
	free(state);
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = "sizes",
	.open = sizes_open,
	.run = sizes_run,
	.close = sizes_close,
	.describe = sizes_describe,
};
