/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/kserve_tensors.h"

#include <string.h>

#define PRIORITY_LAST 4

uint32_t kserve_tensors_size(const struct kserve_model *m, uint8_t place)
{
	return kserve_datatype_size(m->input[place].type);
}

void kserve_tensors_know_fixed(struct kserve_reader *r, const struct kserve_model *m)
{
	for (uint8_t i = 0; i < m->inputs; i++) {
		uint64_t bytes = kserve_tensors_size(m, i);

		for (uint8_t k = 0; k < m->input[i].dims && bytes > 0; k++)
			bytes = m->input[i].shape[k] < 0 ? 0
							 : bytes * (uint64_t)m->input[i].shape[k];
		r->bytes_of[i] = bytes;
		r->known |= (uint16_t)((bytes > 0) << i);
	}
}

void kserve_tensors_know(struct kserve_reader *r, uint8_t place, uint64_t bytes)
{
	r->bytes_of[place] = bytes;
	r->known |= (uint16_t)(1u << place);
}

bool kserve_tensors_sum(const struct kserve_reader *r, unsigned int n, uint64_t *sum)
{
	*sum = 0;
	for (unsigned int i = 0; i < n; i++) {
		if ((r->known & 1u << i) == 0)
			return false;
		*sum += r->bytes_of[i];
	}
	return true;
}

bool kserve_tensors_hold(struct kserve_reader *r, uint64_t offset)
{
	uint64_t end = offset + r->run.length;

	if (end > sizeof(r->held))
		return false;
	memcpy(r->held + offset, r->run.at, r->run.length);
	if (r->held_bytes == 0 || offset < r->held_from)
		r->held_from = (uint32_t)offset;
	if (end > r->held_to)
		r->held_to = (uint32_t)end;
	r->held_bytes += r->run.length;
	return true;
}

uint32_t kserve_tensors_deadline(const struct kserve_infer *infer)
{
	return infer->timeout_us > UINT32_MAX ? UINT32_MAX : (uint32_t)infer->timeout_us;
}

uint8_t kserve_tensors_priority(const struct kserve_infer *infer)
{
	return infer->priority > PRIORITY_LAST ? PRIORITY_LAST : (uint8_t)infer->priority;
}
