/* SPDX-License-Identifier: BSD-3-Clause */
/* Models of the stream fuzzers whose rows differ in length: of BYTES, alone and beside numbers. And
 * what all requests with BYTES keep: elements have the lengths that they say. */
#ifndef FUZZ_ELEMENTS_H
#define FUZZ_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "description.h"

static const struct model_description described_elements = {
	.version = "1",
	.batch = true,
	.n_inputs = 1,
	.n_outputs = 1,
	.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 2}}},
	.output = {{.name = "c", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 2}}},
};

static const struct model_description described_both = {
	.version = "1",
	.batch = true,
	.n_inputs = 2,
	.n_outputs = 1,
	.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 1}},
		  {.name = "b", .datatype = DATATYPE_UINT16, .rank = 1, .shape = {-1}}},
	.output = {{.name = "c", .datatype = DATATYPE_UINT8, .rank = 2, .shape = {-1, -1}}},
};

/* Bytes of <n> elements at <at>; UINT64_MAX: they end behind <end>. */
static inline uint64_t elements_bytes(const uint8_t *at, const uint8_t *end, uint64_t n)
{
	const uint8_t *from = at;
	uint32_t length;

	for (; n > 0; n--) {
		if (end - at < (ptrdiff_t)sizeof(length))
			return UINT64_MAX;
		memcpy(&length, at, sizeof(length));
		at += sizeof(length);
		if (end - at < (ptrdiff_t)length)
			return UINT64_MAX;
		at += length;
	}
	return (uint64_t)(at - from);
}

/* Are the <n> bytes a row of this model, whose inputs with a free dimension are the last? */
static inline bool elements_are_whole(const struct model_description *d, const uint8_t *bytes,
				      uint64_t n)
{
	const uint8_t *end = bytes + n;

	for (unsigned int i = 0; i < d->n_inputs; i++) {
		const struct model_tensor *t = &d->input[i];
		bool is_bytes = t->datatype == DATATYPE_BYTES, is_free = false;
		uint64_t all = is_bytes                         ? 1
			       : t->datatype == DATATYPE_FP32   ? 4
			       : t->datatype == DATATYPE_UINT16 ? 2
								: 1;

		for (unsigned int k = d->batch; k < t->rank; k++) {
			is_free |= t->shape[k] < 0;
			all *= t->shape[k] < 0 ? 1 : (uint64_t)t->shape[k];
		}
		if (is_free && !is_bytes)
			return true;
		/* As many as there are. */
		while (is_free && bytes < end) {
			all = elements_bytes(bytes, end, 1);
			if (all == UINT64_MAX)
				return false;
			bytes += all;
		}
		if (is_free)
			continue;
		if (is_bytes)
			all = elements_bytes(bytes, end, all);
		if (all > (uint64_t)(end - bytes))
			return false;
		bytes += all;
	}
	return bytes == end;
}

/* The same of each row of a request; <rows> 0: it is one. */
static inline bool elements_are_whole_rows(const struct model_description *d, const uint8_t *bytes,
					   uint64_t n, const uint32_t *ends, uint32_t rows)
{
	uint32_t from = 0;

	for (uint32_t i = 0; i < rows; from = ends[i++])
		if (!elements_are_whole(d, bytes + from, ends[i] - from))
			return false;
	return rows > 0 || elements_are_whole(d, bytes, n);
}

#endif
