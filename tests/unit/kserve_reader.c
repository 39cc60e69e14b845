/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kserve_reader.h"

static void reader_require(bool holds, const char *promise)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", promise);
	abort();
}

void kserve_reader_init(struct kserve_reader *r, uint32_t tensor_max, uint32_t early_room,
			uint32_t run_room)
{
	memset(r, 0, sizeof(*r));
	/* The memory may have held anything before. */
	memset(&r->infer, 0xa5, sizeof(r->infer));
	r->early = malloc(early_room > 0 ? early_room : 1);
	r->run = malloc(run_room);
	r->room = run_room;
	r->tensor_max = tensor_max;
	kserve_infer_init(&r->infer, tensor_max, r->early, early_room);
}

static void reader_add_tensor(struct kserve_reader *r, uint32_t i)
{
	r->tensor[i] = calloc(1, r->tensor_max);
	r->written[i] = calloc(1, r->tensor_max);
}

void kserve_reader_read_text(struct kserve_reader *r)
{
	r->infer.is_text = true;
	r->inputs = 1;
	reader_add_tensor(r, 0);
}

void kserve_reader_fini(struct kserve_reader *r)
{
	for (int i = 0; i < KSERVE_TENSORS_MAX; i++) {
		free(r->tensor[i]);
		free(r->written[i]);
	}
	free(r->run);
	free(r->early);
}

static void reader_describe(struct kserve_reader *r, const struct kserve_run *run)
{
	const struct kserve_input *input = &r->infer.input[run->input];

	reader_require(run->input == r->inputs++, "inputs are described in order, once");
	reader_require(input->name[0] != '\0' && input->type != KSERVE_NO_TYPE, "it is described");
	reader_add_tensor(r, run->input);
}

static void reader_place(struct kserve_reader *r, const struct kserve_run *run)
{
	reader_require(run->input == r->inputs - 1,
		       "runs are of the input that was described last");
	reader_require(run->length > 0 && run->length <= run->room, "a run has bytes and room");
	reader_require(run->offset + run->length <= r->tensor_max, "a tensor is not too large");
	memcpy(r->tensor[run->input] + run->offset, run->at, run->length);
	for (uint32_t i = 0; i < run->length; i++)
		reader_require(r->written[run->input][run->offset + i]++ == 0,
			       "a byte is written once");
}

void kserve_reader_take(struct kserve_reader *r, const char *bytes, size_t n)
{
	char *copy = malloc(n > 0 ? n : 1);
	struct kserve_run run = {.at = r->run, .room = r->room};
	const char *at = copy;

	memcpy(copy, bytes, n);
	do {
		r->step = kserve_infer_read(&r->infer, &at, copy + n, &run);
		if (r->step == KSERVE_INPUT)
			reader_describe(r, &run);
		else if (r->step == KSERVE_RUN)
			reader_place(r, &run);
	} while (r->step == KSERVE_INPUT || r->step == KSERVE_RUN);
	reader_require(at <= copy + n, "it reads no further than shown");
	reader_require(r->step == KSERVE_REFUSED || at == copy + n, "it reads all");
	free(copy);
}

static void reader_check_tensor(const struct kserve_reader *r, uint32_t i)
{
	const struct kserve_input *input = &r->infer.input[i];
	uint32_t size = kserve_datatype_size(input->type);

	reader_require(input->binary || size == 0 || input->bytes == input->elements * size,
		       "a tensor has as many bytes as its shape says");
	for (uint64_t at = 0; at < r->tensor_max; at++)
		reader_require(r->written[i][at] == (!input->binary && at < input->bytes),
			       "a tensor is complete");
}

void kserve_reader_end(struct kserve_reader *r)
{
	r->step = kserve_infer_end(&r->infer);
	reader_require((r->step == KSERVE_REFUSED) == (r->infer.status != 0),
		       "a refusal has a status");
	if (r->step == KSERVE_REFUSED)
		return;
	if (r->infer.is_text) {
		for (uint64_t at = 0; at < r->tensor_max; at++)
			reader_require(r->written[0][at] == (at < r->infer.text_bytes),
				       "the text is complete");
		return;
	}
	reader_require(r->inputs == r->infer.inputs, "each input was described");
	for (uint32_t i = 0; i < r->inputs; i++)
		reader_check_tensor(r, i);
}
