/* SPDX-License-Identifier: BSD-3-Clause */
#include "grpc_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

void grpc_reader_init(struct grpc_reader *r, uint64_t length, uint32_t tensor_max,
		      uint32_t early_room, uint32_t run_room)
{
	memset(r, 0, sizeof(*r));
	r->tensor_max = tensor_max;
	r->room = run_room;
	r->early = malloc(early_room + 1);
	for (unsigned int i = 0; i < KSERVE_TENSORS_MAX; i++) {
		r->tensor[i] = calloc(1, tensor_max + run_room);
		r->written[i] = calloc(1, tensor_max + run_room);
	}
	grpc_infer_init(&r->infer, &r->said, length, tensor_max, r->early, early_room);
}

void grpc_reader_fini(struct grpc_reader *r)
{
	for (unsigned int i = 0; i < KSERVE_TENSORS_MAX; i++) {
		free(r->tensor[i]);
		free(r->written[i]);
	}
	free(r->early);
}

static void reader_put(struct grpc_reader *r, uint8_t input, uint64_t offset, const uint8_t *bytes,
		       uint64_t n)
{
	require((r->described >> input & 1) != 0, "bytes are of an input that was described");
	require(offset + n <= r->tensor_max + r->room, "an input ends somewhere");
	for (uint64_t i = 0; i < n; i++)
		require(r->written[input][offset + i]++ == 0, "a byte is written once");
	memcpy(r->tensor[input] + offset, bytes, n);
	r->came[input] += n;
}

static void reader_done(struct grpc_reader *r)
{
	for (uint8_t i = 0; i < r->said.inputs; i++) {
		require((r->described >> i & 1) != 0, "every input was described");
		require(r->came[i] == r->said.input[i].bytes, "all bytes of an input came");
		for (uint64_t k = 0; k < r->came[i]; k++)
			require(r->written[i][k] == 1, "without a gap");
	}
}

static void reader_step(struct grpc_reader *r, const struct kserve_run *run)
{
	switch (r->step) {
	case GRPC_INFER_INPUT:
		require((r->described >> run->input & 1) == 0, "an input is described once");
		r->described |= 1u << run->input;
		return;
	case GRPC_INFER_RUN:
		if (run->length == 0 && r->budget > 0)
			return;
		require(run->length > 0 && run->length <= r->room, "a run has bytes");
		return reader_put(r, run->input, run->offset, run->at, run->length);
	case GRPC_INFER_RAW:
		require(run->input < r->said.inputs, "raw bytes are of an input that was read");
		r->raw = run->input;
		r->raw_at = 0;
		return;
	case GRPC_INFER_DONE:
		return reader_done(r);
	default:
		return;
	}
}

/* Raw bytes, as far as they have come. */
static const uint8_t *reader_take_raw(struct grpc_reader *r, const uint8_t *at, const uint8_t *end)
{
	uint64_t n = grpc_infer_raw_left(&r->infer);

	n = n < (uint64_t)(end - at) ? n : (uint64_t)(end - at);
	reader_put(r, r->raw, r->raw_at, at, n);
	r->raw_at += n;
	grpc_infer_take_raw(&r->infer, n);
	return at + n;
}

void grpc_reader_take(struct grpc_reader *r, const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n + 1), *text = malloc(r->room);
	const uint8_t *at = copy, *end = copy + n;

	if (n > 0)
		memcpy(copy, bytes, n);
	while (r->step != GRPC_INFER_REFUSED && r->step != GRPC_INFER_DONE) {
		struct kserve_run run = {.at = text, .room = r->room, .budget = r->budget};

		if (grpc_infer_raw_left(&r->infer) > 0 && at < end)
			at = reader_take_raw(r, at, end);
		r->step = grpc_infer_read(&r->infer, &at, end, &run);
		require(at <= end, "it reads what it is shown");
		r->most = run.work > r->most ? run.work : r->most;
		reader_step(r, &run);
		if (r->step == GRPC_INFER_MORE &&
		    (at == end || grpc_infer_raw_left(&r->infer) == 0))
			break;
	}
	require(r->step != GRPC_INFER_MORE || at == end, "all is read");
	free(text);
	free(copy);
}
