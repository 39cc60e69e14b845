/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a ring that a hostile peer wrote: the agent must never access anything outside the
 * memory of its payloads and cancel words, which lie on heap blocks of their exact size.
 *
 * Header: log2 of slots and pages of room, stride in units of 64, largest request (16 bits),
 * position (8 bytes). Then descriptors of 64 bytes, each preceded by a byte of HELP_*.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>

#include "loop/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fields that random bytes would hardly ever get right. */
#define HELP_SEQUENCE 0x01 /* the descriptor is due */
#define HELP_CRC      0x02 /* its CRC is right, if there are bytes to sum */
#define HELP_CANCEL   0x04 /* the client has gone */
#define HELP_LATE     0x08 /* time has passed */
#define HELP_TILE     0x10 /* the payload lies in its slot's tile */
#define HELP_ROOM     0x20 /* it lies in the room, at least its beginning */

struct ring {
	uint32_t slots, stride, max_request;
	uint64_t position, room_at, room;
	size_t size; /* of the payload region */
	uint8_t *payload;
	uint64_t *cancels;
};

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* Do the bytes lie within the region? */
static bool usable(const struct ring *r, uint32_t slot, uint32_t payload, uint32_t length)
{
	return slot < r->slots && length <= r->max_request && payload <= r->size / RING_ALIGNMENT &&
	       length <= r->size - (size_t)payload * RING_ALIGNMENT;
}

static void help(const struct ring *r, struct ring_descriptor *d, uint8_t how)
{
	if (how & HELP_SEQUENCE)
		d->sequence = r->position + 1;
	if (how & HELP_TILE)
		d->payload = (uint32_t)((uint64_t)d->slot * r->stride / RING_ALIGNMENT);
	if (how & HELP_ROOM && r->room > 0)
		d->payload = (uint32_t)(r->room_at / RING_ALIGNMENT) +
			     d->payload % (uint32_t)(r->room / RING_ALIGNMENT);
	if (how & HELP_CRC && usable(r, d->slot, d->payload, d->length)) {
		d->flags |= RING_HAS_CRC;
		d->crc32 = crc32_gzip_refl(0, r->payload + (size_t)d->payload * RING_ALIGNMENT,
					   d->length);
	}
	if (how & HELP_CANCEL && d->slot < r->slots)
		r->cancels[d->slot] = d->sequence;
}

static void check_request(const struct ring *r, const struct ring_descriptor *d,
			  const struct intake *in, uint8_t how)
{
	uint64_t now = in->seen_ns + (how & HELP_LATE ? UINT32_MAX * 1001ull : 0);
	uint8_t status = intake_recheck(in, r->cancels, now);

	require(in->sequence == d->sequence && d->sequence == r->position + 1, "not due");
	require(in->status == RING_OK || in->status == RING_BAD, "no such status");
	require(in->slot == UINT32_MAX ? in->status == RING_BAD : in->slot < r->slots,
		"a slot that is none");
	if (in->status != RING_OK) {
		require(status == in->status, "a bad request turned good");
		return;
	}
	require(usable(r, in->slot, in->payload, in->length), "bytes outside the region");
	require(in->payload == d->payload && in->reply == d->reply, "other places");
	require((uint64_t)in->payload * RING_ALIGNMENT >= r->room_at ||
			((uint64_t)in->payload * RING_ALIGNMENT == (uint64_t)in->slot * r->stride &&
			 in->length <= r->stride),
		"bytes of another slot");
	if (how & HELP_CANCEL)
		require(status == RING_CANCELLED, "a cancelled request would run");
	else if (how & HELP_LATE && in->deadline_us != 0)
		require(status == RING_EXPIRED || status == RING_CANCELLED, "too late, yet run");
}

static void run(struct ring *r, const uint8_t *data, size_t size)
{
	const size_t step = 1 + sizeof(struct ring_descriptor);
	const struct intake_ring ring = {
		.payloads = r->payload,
		.slot_count = r->slots,
		.stride = r->stride,
		.room_at = r->room_at,
		.room = r->room,
		.max_request = r->max_request,
	};

	struct ring_clock clock = {0};

	for (; size >= step; data += step, size -= step) {
		struct ring_descriptor d;
		struct intake in;
		bool taken;

		memcpy(&d, data + 1, sizeof(d));
		help(r, &d, data[0]);
		taken = intake_take(&d, r->position, &ring, 1000, &in);
		require(taken == (d.sequence == r->position + 1), "seen too early or never");
		if (!taken)
			continue;
		check_request(r, &d, &in, data[0]);
		ring_clock_note(&clock, in.sent_us, r->position, in.length);
		require(ring_clock_waited(&clock, in.sent_us, r->position, data[0]) <= data[0],
			"older than the last look at the ring");
		r->position++;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ring r;

	if (size < 12)
		return 0;
	r = (struct ring){
		.slots = 1u << (1 + data[0] % 8),
		.room = (uint64_t)RING_PAGE * (data[0] / 8),
		.stride = RING_ALIGNMENT * (1u + data[1] % 32),
		.max_request = data[2] | data[3] << 8,
	};
	memcpy(&r.position, data + 4, sizeof(r.position));
	r.room_at = ring_room_at(r.slots, r.stride);
	r.size = r.room > 0 ? r.room_at + r.room : (size_t)r.slots * r.stride;
	r.payload = malloc(r.size);
	r.cancels = calloc(r.slots, sizeof(*r.cancels));
	memset(r.payload, data[1], r.size);
	run(&r, data + 12, size - 12);
	free(r.payload);
	free(r.cancels);
	return 0;
}
