/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a ring that a hostile peer wrote: the agent must never access anything outside the
 * memory of its slots and cancel words, which lie on heap blocks of their exact size.
 *
 * Header: log2 of slots, stride in units of 64, largest request (16 bits), position (8 bytes). Then
 * descriptors of 64 bytes, each preceded by a byte of HELP_*.
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

struct ring {
	uint32_t slots, stride, max_request;
	uint64_t position;
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

static bool usable(const struct ring *r, uint32_t slot, uint32_t length)
{
	return slot < r->slots && length <= r->stride && length <= r->max_request;
}

static void help(const struct ring *r, struct ring_descriptor *d, uint8_t how)
{
	if (how & HELP_SEQUENCE)
		d->sequence = r->position + 1;
	if (how & HELP_CRC && usable(r, d->slot, d->length)) {
		d->flags |= RING_HAS_CRC;
		d->crc32 =
			crc32_gzip_refl(0, r->payload + (uint64_t)d->slot * r->stride, d->length);
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
	require(usable(r, in->slot, in->length), "bytes outside the slot");
	if (how & HELP_CANCEL)
		require(status == RING_CANCELLED, "a cancelled request would run");
	else if (how & HELP_LATE && in->deadline_us != 0)
		require(status == RING_EXPIRED || status == RING_CANCELLED, "too late, yet run");
}

static void run(struct ring *r, const uint8_t *data, size_t size)
{
	const size_t step = 1 + sizeof(struct ring_descriptor);
	const struct intake_ring ring = {
		.slots = r->payload,
		.slot_count = r->slots,
		.stride = r->stride,
		.max_request = r->max_request,
	};

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
		.stride = RING_ALIGNMENT * (1u + data[1] % 32),
		.max_request = data[2] | data[3] << 8,
	};
	memcpy(&r.position, data + 4, sizeof(r.position));
	r.payload = malloc((size_t)r.slots * r.stride);
	r.cancels = calloc(r.slots, sizeof(*r.cancels));
	memset(r.payload, data[1], (size_t)r.slots * r.stride);
	run(&r, data + 12, size - 12);
	free(r.payload);
	free(r.cancels);
	return 0;
}
