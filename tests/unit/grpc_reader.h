/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reader of ModelInferRequests that holds grpc/infer.h to its promises: shows it the bytes cut as
 * the test wants, in buffers of their exact size, takes raw bytes itself, and puts all of a tensor
 * in its place. It aborts when a byte is written twice or left out.
 */
#ifndef GRPC_READER_H
#define GRPC_READER_H

#include <stddef.h>

#include "grpc/infer.h"

struct grpc_reader {
	struct kserve_infer said;
	struct grpc_infer infer;
	enum grpc_infer_step step;
	uint32_t room; /* of a run */
	uint32_t budget, most; /* work of a call, 0: any; and of the call with most of it */
	uint32_t tensor_max;
	uint32_t described; /* bit per input */
	uint8_t raw;        /* input whose raw bytes come, and where the next goes */
	uint64_t raw_at;
	uint64_t came[KSERVE_TENSORS_MAX]; /* bytes of each tensor */
	uint8_t *tensor[KSERVE_TENSORS_MAX];
	uint8_t *written[KSERVE_TENSORS_MAX];
	uint8_t *early;
};

void grpc_reader_init(struct grpc_reader *r, uint64_t length, uint32_t tensor_max,
		      uint32_t early_room, uint32_t run_room);
void grpc_reader_fini(struct grpc_reader *r);

/* The next bytes. Nothing happens after a refusal. */
void grpc_reader_take(struct grpc_reader *r, const uint8_t *bytes, size_t n);

#endif
