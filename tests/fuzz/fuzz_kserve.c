/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as the JSON of an infer request. The first two are the seed of the cuts, the third the room
 * for values that come before their description; 255: it is one of the text extension. Whole and
 * cut give the same description, tensors and refusals; kserve_reader.c checks that each byte of a
 * tensor is written once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kserve_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TENSOR_MAX 4096

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void compare_inputs(const struct kserve_reader *a, const struct kserve_reader *b)
{
	require(a->inputs == b->inputs, "cuts change the number of inputs");
	for (uint32_t i = 0; i < a->inputs; i++) {
		const struct kserve_input *x = &a->infer.input[i], *y = &b->infer.input[i];

		require(memcmp(x, y, sizeof(*x)) == 0, "cuts change an input");
		require(memcmp(a->tensor[i], b->tensor[i], TENSOR_MAX) == 0, "cuts change values");
	}
}

static void compare(const struct kserve_reader *a, const struct kserve_reader *b)
{
	const struct kserve_infer *x = &a->infer, *y = &b->infer;

	require(a->step == b->step, "cuts change the verdict");
	if (a->step == KSERVE_REFUSED) {
		if (strcmp(x->error, y->error) != 0)
			fprintf(stderr, "whole: %s\ncut:   %s\n", x->error, y->error);
		require(x->status == y->status && strcmp(x->error, y->error) == 0,
			"cuts change the refusal");
		return;
	}
	require(x->timeout_us == y->timeout_us && x->priority == y->priority &&
			x->sequence == y->sequence && x->sequence_start == y->sequence_start &&
			x->sequence_end == y->sequence_end &&
			x->binary_outputs == y->binary_outputs && x->has_id == y->has_id &&
			x->id_length == y->id_length && memcmp(x->id, y->id, x->id_length) == 0 &&
			x->binary_bytes == y->binary_bytes,
		"cuts change the parameters");
	require(x->text_bytes == y->text_bytes, "cuts change the length of the text");
	require(x->outputs == y->outputs &&
			memcmp(x->output, y->output, x->outputs * sizeof(x->output[0])) == 0,
		"cuts change the outputs");
	compare_inputs(a, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kserve_reader whole, cut;
	uint32_t seed;

	if (size < 3)
		return 0;
	seed = data[0] | (uint32_t)data[1] << 8;
	kserve_reader_init(&whole, TENSOR_MAX, data[2], KSERVE_RUN_MIN);
	kserve_reader_init(&cut, TENSOR_MAX, data[2], KSERVE_RUN_MIN + seed % 100);
	if (data[2] == UINT8_MAX) {
		kserve_reader_read_text(&whole);
		kserve_reader_read_text(&cut);
	}
	data += 3;
	size -= 3;
	kserve_reader_take(&whole, (const char *)data, size);
	kserve_reader_end(&whole);
	for (size_t at = 0, n; at < size; at += n) {
		seed = seed * 1664525 + 1013904223;
		n = 1 + (seed >> 16) % (seed >> 31 == 0 ? 256 : 16);
		n = n < size - at ? n : size - at;
		kserve_reader_take(&cut, (const char *)data + at, n);
	}
	kserve_reader_end(&cut);
	compare(&whole, &cut);
	kserve_reader_fini(&whole);
	kserve_reader_fini(&cut);
	return 0;
}
