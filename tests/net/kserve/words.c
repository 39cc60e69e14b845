/* SPDX-License-Identifier: BSD-3-Clause */
/* A model for tests that takes batches of rows with an element of BYTES, and says each again. */
#include <string.h>

#include "models/model.h"

#define MOST 65536 /* bytes of a row */

static int words_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		      void **state, char *error, size_t error_size)
{
	*shape = (struct agent_model_shape){.max_request = MOST,
					    .max_reply = MOST,
					    .max_batch = max_batch,
					    .min_request = sizeof(uint32_t)};
	*state = NULL;
	return 0;
}

static void words_run(void *state, struct agent_model_item *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		memcpy(items[i].reply, items[i].request, items[i].request_length);
		items[i].reply_length = items[i].request_length;
		items[i].status = 0;
	}
}

static void words_describe(const void *state, struct agent_model_description *description)
{
	description->platform = "test";
	description->batch = 1;
	description->n_inputs = description->n_outputs = 1;
	description->input[0] = (struct agent_model_tensor){"text", "BYTES", 2, {-1, 1}};
	description->output[0] = (struct agent_model_tensor){"said", "BYTES", 2, {-1, 1}};
}

static void words_close(void *state)
{
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = "words",
	.open = words_open,
	.run = words_run,
	.close = words_close,
	.describe = words_describe,
};
