/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plug-in as it was built against the model.h of an earlier ABI: its struct ends where that one
 * ended. OLD_ABI says which ABI it claims.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct shape {
	uint32_t max_request, max_reply, max_batch, min_request;
};

struct item {
	const void *request;
	uint32_t request_length, reply_length;
	void *reply;
	int32_t status;
};

struct model {
	uint32_t abi;
	const char *name;
	int (*open)(const char *arguments, uint32_t max_batch, struct shape *shape, void **state,
		    char *error, size_t error_size);
	void (*run)(void *state, struct item *items, uint32_t n);
	void (*close)(void *state);
	int (*capture)(void *state, void *gpu, char *error, size_t error_size);
};

static int old_open(const char *arguments, uint32_t max_batch, struct shape *shape, void **state,
		    char *error, size_t error_size)
{
	*shape = (struct shape){.max_request = 64, .max_reply = 64, .max_batch = max_batch};
	*state = NULL;
	return 0;
}

static void old_run(void *state, struct item *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		memcpy(items[i].reply, items[i].request, items[i].request_length);
		items[i].reply_length = items[i].request_length;
		items[i].status = 0;
	}
}

static void old_close(void *state)
{
}

/* The bytes behind it are those that a newer agent would take for describe(). */
const struct {
	struct model model;
	uintptr_t beyond;
} agent_model __attribute__((visibility("default"))) = {
	.model = {.abi = OLD_ABI,
		  .name = "echo",
		  .open = old_open,
		  .run = old_run,
		  .close = old_close},
	.beyond = 1,
};
