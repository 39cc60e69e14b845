/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reader of infer requests that holds kserve/infer.h to its promises: shows it the bytes cut as
 * the test wants, in buffers of their exact size, and puts the runs of each tensor in their place.
 * It aborts when a byte is written twice or left out.
 */
#ifndef KSERVE_READER_H
#define KSERVE_READER_H

#include <stddef.h>

#include "kserve/infer.h"

struct kserve_reader {
	struct kserve_infer infer;
	enum kserve_step step;
	uint32_t inputs; /* that were described */
	uint8_t *run;
	uint32_t room; /* of a run */
	uint32_t tensor_max;
	uint8_t *tensor[KSERVE_TENSORS_MAX];
	uint8_t *written[KSERVE_TENSORS_MAX]; /* a byte of the tensor: times */
	char *early;
};

/* <tensor_max>: bytes that a tensor may have. */
void kserve_reader_init(struct kserve_reader *r, uint32_t tensor_max, uint32_t early_room,
			uint32_t run_room);
/* The next bytes are the first ones of a request of text, which becomes tensor 0. */
void kserve_reader_read_text(struct kserve_reader *r);
void kserve_reader_fini(struct kserve_reader *r);

/* The next bytes. Nothing happens after a refusal. */
void kserve_reader_take(struct kserve_reader *r, const char *bytes, size_t n);

/* All bytes came: the request is valid, and its tensors are complete; or it is refused. */
void kserve_reader_end(struct kserve_reader *r);

#endif
