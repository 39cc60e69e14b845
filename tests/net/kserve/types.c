/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model for tests with an input and an output of each datatype, two elements each: the reply is
 * the request. It fails if the first UINT8 is 66. FP16 and BF16, which have no JSON form and no
 * typed contents in gRPC, come first, and BYTES, whose elements say how long they are, last.
 * Compiled with TYPES_NAME, the model's name, and TYPES_FIRST, the number of its first datatype.
 */
#include <errno.h>
#include <string.h>

#include "models/model.h"

#define ELEMENTS 2
#define FAILS    66
#define MOST     65536 /* bytes */

static const struct {
	const char *name, *datatype;
	uint32_t size;
} types[] = {
	{"fp16", "FP16", 2},     {"bf16", "BF16", 2},     {"bool", "BOOL", 1},
	{"uint8", "UINT8", 1},   {"uint16", "UINT16", 2}, {"uint32", "UINT32", 4},
	{"uint64", "UINT64", 8}, {"int8", "INT8", 1},     {"int16", "INT16", 2},
	{"int32", "INT32", 4},   {"int64", "INT64", 8},   {"fp32", "FP32", 4},
	{"fp64", "FP64", 8},     {"bytes", "BYTES", 4},
};
#define TYPES (sizeof(types) / sizeof(types[0]))

/* Bytes in front of a datatype. */
static uint32_t types_offset(size_t type)
{
	uint32_t offset = 0;

	for (size_t i = TYPES_FIRST; i < type; i++)
		offset += ELEMENTS * types[i].size;
	return offset;
}

static int types_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
		      void **state, char *error, size_t error_size)
{
	*shape = (struct agent_model_shape){.max_request = MOST,
					    .max_reply = MOST,
					    .max_batch = max_batch,
					    .min_request = types_offset(TYPES)};
	*state = NULL;
	return 0;
}

static void types_run(void *state, struct agent_model_item *items, uint32_t n)
{
	size_t uint8 = TYPES_FIRST;
	uint32_t at;

	while (strcmp(types[uint8].name, "uint8") != 0)
		uint8++;
	at = types_offset(uint8);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *request = items[i].request;

		memcpy(items[i].reply, request, items[i].request_length);
		items[i].reply_length = items[i].request_length;
		items[i].status = request[at] == FAILS ? -EIO : 0;
	}
}

static void types_describe(const void *state, struct agent_model_description *description)
{
	description->platform = "test";
	description->n_inputs = description->n_outputs = TYPES - TYPES_FIRST;
	for (size_t i = TYPES_FIRST; i < TYPES; i++)
		description->input[i - TYPES_FIRST] = description->output[i - TYPES_FIRST] =
			(struct agent_model_tensor){
				types[i].name, types[i].datatype, 1, {ELEMENTS}};
}

static void types_close(void *state)
{
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = TYPES_NAME,
	.open = types_open,
	.run = types_run,
	.close = types_close,
	.describe = types_describe,
};
