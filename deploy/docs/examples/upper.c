/* SPDX-License-Identifier: BSD-3-Clause */
/* A model: the request in upper case. Argument: greeting=TEXT, which goes in front of each reply. */
#include <ctype.h>
#include <doorbell/model.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct upper {
	char greeting[32];
};

static int upper_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		      void **state, char *error, size_t error_size)
{
	const char *greeting = strncmp(arguments, "greeting=", 9) == 0 ? arguments + 9 : "";
	struct upper *upper = calloc(1, sizeof(*upper));

	if (upper == NULL || strlen(greeting) >= sizeof(upper->greeting) || (*arguments && !*greeting)) {
		snprintf(error, error_size, "arguments '%s': give greeting=TEXT, of %zu bytes at most",
			 arguments, sizeof(upper->greeting) - 1);
		free(upper);
		return -EINVAL;
	}
	strcpy(upper->greeting, greeting);
	*shape = (struct agent_model_shape){.min_request = 1, .max_request = 1440, .max_reply = 1472,
					    .max_batch = max_batch};
	*state = upper;
	return 0;
}

static void upper_run(void *state, struct agent_model_item *items, uint32_t n)
{
	const struct upper *upper = state;
	size_t length = strlen(upper->greeting);

	for (uint32_t i = 0; i < n; i++) {
		const char *from = items[i].request;
		char *to = items[i].reply;

		memcpy(to, upper->greeting, length);
		for (uint32_t k = 0; k < items[i].request_length; k++)
			to[length + k] = (char)toupper((unsigned char)from[k]);
		items[i].reply_length = (uint32_t)length + items[i].request_length;
		items[i].status = from[0] == '\0' ? -EINVAL : 0; /* the client gets model_error */
	}
}

/* A text in and a longer one out, as bytes: each has one dimension, which is free. */
static void upper_describe(const void *state, struct agent_model_description *description)
{
	*description = (struct agent_model_description){
		.version = "1",
		.n_inputs = 1,
		.input = {{"text", "UINT8", 1, {-1}}},
		.n_outputs = 1,
		.output = {{"upper", "UINT8", 1, {-1}}},
	};
}

static void upper_close(void *state)
{
	free(state);
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = "upper", /* what services call it: model: upper */
	.open = upper_open,
	.run = upper_run,
	.close = upper_close,
	.describe = upper_describe,
};
