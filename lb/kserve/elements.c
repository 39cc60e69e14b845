/* SPDX-License-Identifier: BSD-3-Clause */
#include "kserve/elements.h"

#include <string.h>

void kserve_elements_begin(struct kserve_elements *e, uint64_t elements, uint64_t bytes)
{
	*e = (struct kserve_elements){.left = elements, .bytes = bytes};
}

static uint32_t elements_word(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* Reads of the next length what is shown, which may be a part of it. Returns the bytes. */
static uint32_t elements_read_length(struct kserve_elements *e, const uint8_t *bytes,
				     uint64_t length)
{
	uint32_t n = 0;

	if (e->got == 0 && length >= sizeof(e->word)) {
		n = sizeof(e->word);
		e->open = elements_word(bytes);
	} else {
		while (n < length && e->got < sizeof(e->word))
			e->word[e->got++] = bytes[n++];
		if (e->got < sizeof(e->word)) {
			e->bytes -= n;
			return n;
		}
		e->open = elements_word(e->word);
	}
	e->bytes -= n;
	e->got = 0;
	e->left--;
	e->broken = e->open > e->bytes;
	return n;
}

uint64_t kserve_elements_follow(struct kserve_elements *e, const uint8_t *bytes, uint32_t length,
				uint64_t most, uint32_t *budget)
{
	uint64_t n = 0, shown;

	most = most < e->bytes ? most : e->bytes;
	shown = most < length ? most : length;
	while (n < most && !e->broken) {
		if (e->open > 0) {
			uint64_t part = e->open < most - n ? e->open : most - n;

			e->open -= (uint32_t)part;
			e->bytes -= part;
			n += part;
		} else if (e->left == 0) {
			e->broken = e->behind = true;
		} else if (n >= shown || *budget == 0) {
			break;
		} else {
			n += elements_read_length(e, bytes + n, shown - n);
			--*budget;
		}
	}
	e->broken |= e->bytes == 0 && e->left > 0;
	return n;
}

const char *kserve_elements_fault(const struct kserve_elements *e)
{
	return e->behind ? "bytes follow its last element" : "an element ends behind the tensor";
}
