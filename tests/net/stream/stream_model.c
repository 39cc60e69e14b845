/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model of stream.h's drawn sizes: a request says how many bytes it wants, which its own bytes
 * are the seed of. Arguments: "max_request,max_reply", in bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "exchange.h"
#include "models/model.h"
#include "stream.h"

static uint32_t stream_max_reply;

static int stream_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		       void **state, char *error, size_t error_size)
{
	uint32_t max_request = 1400, max_reply = 1400;

	if (arguments[0] != '\0' && sscanf(arguments, "%u,%u", &max_request, &max_reply) != 2) {
		snprintf(error, error_size, "'%s': not max_request,max_reply", arguments);
		return -EINVAL;
	}
	stream_max_reply = max_reply;
	*shape = (struct agent_model_shape){
		.min_request = sizeof(struct stream_head),
		.max_request = max_request,
		.max_reply = max_reply,
		.max_batch = max_batch,
	};
	*state = NULL;
	return 0;
}

static void stream_run(void *state, struct agent_model_item *items, uint32_t n)
{
	struct stream_head head;

	for (uint32_t i = 0; i < n; i++) {
		struct agent_model_item *item = &items[i];

		memcpy(&head, item->request, sizeof(head));
		item->status = head.wanted > stream_max_reply ? -EMSGSIZE : 0;
		item->reply_length = item->status == 0 ? head.wanted : 0;
		exchange_fill(stream_hash(0, item->request, item->request_length), 0, item->reply,
			      item->reply_length);
	}
}

static void stream_describe(const void *state, struct agent_model_description *description)
{
	description->n_inputs = description->n_outputs = 1;
	description->input[0] = (struct agent_model_tensor){"input0", "UINT8", 1, {-1}};
	description->output[0] = (struct agent_model_tensor){"output0", "UINT8", 1, {-1}};
}

static void stream_close(void *state)
{
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = "stream",
	.open = stream_open,
	.run = stream_run,
	.close = stream_close,
	.describe = stream_describe,
};
