/* SPDX-License-Identifier: BSD-3-Clause */
#include <isa-l/crc.h>

#include "loop/intake.h"

/* Load-acquire of the mark: what was written before it (the payload, the rest of the descriptor) is
 * visible after it. */
static uint64_t sequence_before_descriptor(const struct ring_descriptor *d)
{
	return __atomic_load_n(&d->sequence, __ATOMIC_ACQUIRE);
}

bool intake_take(const struct ring_descriptor *at, uint64_t position,
		 const struct intake_ring *ring, uint64_t now_ns, struct intake *out)
{
	uint64_t sequence = sequence_before_descriptor(at);

	if (sequence != position + 1)
		return false;
	*out = (struct intake){
		.sequence = sequence,
		.seen_ns = now_ns,
		.slot = at->slot,
		.length = at->length,
		.payload = at->payload,
		.reply = at->reply,
		.deadline_us = at->deadline_us,
		.sent_us = at->sent_us,
		.status = RING_OK,
	};
	if (out->slot >= ring->slot_count) {
		out->slot = UINT32_MAX;
		out->status = RING_BAD;
	} else if (out->length > ring->max_request || out->length < ring->min_request ||
		   !ring_payload_fits(out->slot, out->payload, out->length, ring->stride,
				      ring->room_at, ring->room)) {
		out->status = RING_BAD;
	} else if (at->flags & RING_HAS_CRC &&
		   crc32_gzip_refl(0, ring->payloads + (uint64_t)out->payload * RING_ALIGNMENT,
				   out->length) != at->crc32) {
		out->status = RING_BAD;
	}
	return true;
}

uint8_t intake_recheck(const struct intake *request, const uint64_t *cancels, uint64_t now_ns)
{
	if (request->status != RING_OK)
		return request->status;
	if (__atomic_load_n(&cancels[request->slot], __ATOMIC_RELAXED) == request->sequence)
		return RING_CANCELLED;
	if (request->deadline_us != 0 && now_ns - request->seen_ns + request->waited_us * 1000ull >
						 request->deadline_us * 1000ull)
		return RING_EXPIRED;
	return RING_OK;
}
