/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model for tests that echoes all but two requests. A request that begins with "CRASH" ends the
 * process by a fault, as a bug in a model would; one that begins with "HANG" never returns. Given
 * the argument hang=FILE, the first process that finds FILE removes it and hangs while it opens the
 * model. Given the argument mute, it answers nothing and cannot be closed, as a model on a GPU
 * whose kernel does not end.
 */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "models/model.h"

#define REQUEST_MAX 1472

static char faulty_mute[] = "mute"; /* the state of one that is */

static int faulty_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		       void **state, char *error, size_t error_size)
{
	*shape = (struct agent_model_shape){
		.max_request = REQUEST_MAX,
		.max_reply = REQUEST_MAX,
		.max_batch = max_batch,
	};
	*state = arguments != NULL && strcmp(arguments, "mute") == 0 ? faulty_mute : NULL;
	if (arguments != NULL && strncmp(arguments, "hang=", 5) == 0 && unlink(arguments + 5) == 0)
		for (;;)
			pause();
	return 0;
}

static bool begins(const struct agent_model_item *item, const char *word)
{
	size_t n = strlen(word);

	return item->request_length >= n && memcmp(item->request, word, n) == 0;
}

static void faulty_run(void *state, struct agent_model_item *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (begins(&items[i], "CRASH"))
			raise(SIGSEGV);
		while (state == faulty_mute || begins(&items[i], "HANG"))
			pause();
		memcpy(items[i].reply, items[i].request, items[i].request_length);
		items[i].reply_length = items[i].request_length;
		items[i].status = 0;
	}
}

static void faulty_describe(const void *state, struct agent_model_description *description)
{
	description->n_inputs = description->n_outputs = 1;
	description->input[0] = (struct agent_model_tensor){"input0", "UINT8", 1, {-1}};
	description->output[0] = (struct agent_model_tensor){"output0", "UINT8", 1, {-1}};
}

static void faulty_close(void *state)
{
	while (state == faulty_mute)
		pause();
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = "faulty",
	.open = faulty_open,
	.run = faulty_run,
	.close = faulty_close,
	.describe = faulty_describe,
};
