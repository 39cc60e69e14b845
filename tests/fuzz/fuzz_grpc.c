/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a ModelInferRequest, and as the small messages. A byte of options comes first: the seed
 * of the cuts. However it is cut, the same is read, each byte of a tensor is written once, and the
 * same fault is told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grpc/message.h"
#include "grpc/status.h"
#include "grpc_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TENSOR_MAX 2048
#define EARLY_ROOM 96

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void read_cut(struct grpc_reader *r, const uint8_t *data, size_t size, uint32_t seed)
{
	grpc_reader_init(r, size, TENSOR_MAX, EARLY_ROOM, seed == 0 ? 4096 : KSERVE_RUN_MIN);
	if (size == 0)
		grpc_reader_take(r, data, 0);
	for (size_t at = 0; at < size;) {
		size_t n = size - at;

		seed = seed == 0 ? 0 : seed * 1664525 + 1013904223;
		if (seed != 0 && n > 1 + (seed >> 16) % 9)
			n = 1 + (seed >> 16) % 9;
		grpc_reader_take(r, data + at, n);
		at += n;
	}
}

static void compare(const struct grpc_reader *a, const struct grpc_reader *b)
{
	require(a->step == b->step, "the cuts change the end");
	require(a->said.status == b->said.status && strcmp(a->said.error, b->said.error) == 0,
		"the cuts change the fault");
	require(a->step == GRPC_INFER_DONE || a->step == GRPC_INFER_REFUSED, "a message ends");
	if (a->step != GRPC_INFER_DONE)
		return;
	require(strcmp(a->infer.model, b->infer.model) == 0, "the cuts change the model");
	require(a->said.inputs == b->said.inputs && a->said.outputs == b->said.outputs &&
			a->said.timeout_us == b->said.timeout_us,
		"the cuts change what it says");
	for (uint8_t i = 0; i < a->said.inputs; i++)
		require(a->came[i] == b->came[i] &&
				memcmp(a->tensor[i], b->tensor[i], a->came[i]) == 0,
			"the cuts change a tensor");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct grpc_reader whole, cut;
	struct grpc_names names;
	uint64_t us;

	if (size < 1 || size > 4096)
		return 0;
	if (grpc_names_read(&names, data + 1, (uint32_t)size - 1))
		require(strlen(names.name) < sizeof(names.name), "a name has an end");
	if (grpc_timeout_read((const char *)data + 1, (uint32_t)size - 1, &us))
		require(us > 0, "a time is not 0");
	read_cut(&whole, data + 1, size - 1, 0);
	read_cut(&cut, data + 1, size - 1, 1 + data[0]);
	compare(&whole, &cut);
	grpc_reader_fini(&whole);
	grpc_reader_fini(&cut);
	return 0;
}
