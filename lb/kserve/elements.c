/* SPDX-License-Identifier: BSD-3-Clause */
#include "kserve/elements.h"

#include <string.h>

void kserve_elements_begin(struct kserve_elements *e, uint64_t elements, uint64_t bytes)
{
	*e = (struct kserve_elements){.left = elements, .bytes = bytes};
}

/* Reads of the next length what is shown. Returns the bytes. */
static uint32_t elements_read_length(struct kserve_elements *e, const uint8_t *bytes,
				     uint64_t length)
{
	uint32_t n = (uint32_t)sizeof(e->word) - e->got;

	n = n < length ? n : (uint32_t)length;
	memcpy(e->word + e->got, bytes, n);
	e->got += (uint8_t)n;
	e->bytes -= n;
	if (e->got < sizeof(e->word))
		return n;
	e->open = (uint32_t)e->word[0] | (uint32_t)e->word[1] << 8 | (uint32_t)e->word[2] << 16 |
		  (uint32_t)e->word[3] << 24;
	e->got = 0;
	e->left--;
	e->broken = e->open > e->bytes;
	return n;
}

uint64_t kserve_elements_follow(struct kserve_elements *e, const uint8_t *bytes, uint32_t length,
				uint64_t most, uint32_t *budget)
{
	uint64_t n = 0;

	most = most < e->bytes ? most : e->bytes;
	while (n < most && !e->broken) {
		if (e->open > 0) {
			uint64_t part = e->open < most - n ? e->open : most - n;

			e->open -= (uint32_t)part;
			e->bytes -= part;
			n += part;
		} else if (e->left == 0) {
			e->broken = e->behind = true;
		} else if (n<length && * budget> 0) {
			uint64_t shown = length < most ? length : most;

			n += elements_read_length(e, bytes + n, shown - n);
			--*budget;
		} else {
			break;
		}
	}
	e->broken |= e->bytes == 0 && (e->left > 0 || e->got > 0);
	return n;
}

const char *kserve_elements_fault(const struct kserve_elements *e)
{
	return e->behind ? "bytes follow its last element" : "an element ends behind the tensor";
}
