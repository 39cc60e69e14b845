/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors, good and hostile, and the status that the loop gives each. */
#include <criterion/criterion.h>
#include <isa-l/crc.h>
#include <string.h>

#include "loop/intake.h"

#define SLOTS       4
#define STRIDE      128
#define MAX_REQUEST 100
#define NOW         1000000000ull
#define ROOM_AT     4096 /* bytes */
#define ROOM        8192

static uint8_t payloads[ROOM_AT + ROOM];
static uint64_t cancels[SLOTS];

/* A good request at position 41: 10 bytes in slot 2. */
static const struct ring_descriptor good = {
	.slot = 2,
	.length = 10,
	.flow = 77,
	.deadline_us = 500,
	.payload = 2 * STRIDE / RING_ALIGNMENT,
	.reply = 99,
	.sequence = 42,
};

static const struct intake_ring ring = {
	.payloads = payloads,
	.slot_count = SLOTS,
	.stride = STRIDE,
	.room_at = ROOM_AT,
	.room = ROOM,
	.max_request = MAX_REQUEST,
};

static bool take(const struct ring_descriptor *d, struct intake *out)
{
	return intake_take(d, 41, &ring, NOW, out);
}

Test(agent_intake, takes_the_descriptor_of_its_position)
{
	struct intake request;

	cr_assert(take(&good, &request));
	cr_expect_eq(request.sequence, 42);
	cr_expect_eq(request.seen_ns, NOW);
	cr_expect_eq(request.slot, 2);
	cr_expect_eq(request.length, 10);
	cr_expect_eq(request.payload, 4);
	cr_expect_eq(request.reply, 99);
	cr_expect_eq(request.deadline_us, 500);
	cr_expect_eq(request.status, RING_OK);
}

Test(agent_intake, sees_nothing_while_the_mark_is_another)
{
	/* never written, the lap before, the next one, the lap after, garbage */
	static const uint64_t marks[] = {0,          42 - SLOTS,      41,        43,
					 42 + SLOTS, 42 | 1ull << 32, UINT64_MAX};
	struct ring_descriptor d = good;
	struct intake request;

	for (unsigned int i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		d.sequence = marks[i];
		cr_expect_not(take(&d, &request), "mark %lu", (unsigned long)marks[i]);
	}
}

struct row {
	const char *what;
	uint32_t slot, length, flags, crc32;
	uint32_t expected_slot;
	uint8_t status;
};

static const struct row rows[] = {
	{"the last slot", 3, 10, 0, 0, 3, RING_OK},
	{"an empty request", 0, 0, 0, 0, 0, RING_OK},
	{"the longest request", 0, MAX_REQUEST, 0, 0, 0, RING_OK},
	{"one byte too long", 0, MAX_REQUEST + 1, 0, 0, 0, RING_BAD},
	{"the whole slot, more than the model takes", 0, STRIDE, 0, 0, 0, RING_BAD},
	{"longer than the slot", 0, STRIDE + 1, 0, 0, 0, RING_BAD},
	{"the longest length there is", 3, UINT32_MAX, 0, 0, 3, RING_BAD},
	{"one slot too far", SLOTS, 10, 0, 0, UINT32_MAX, RING_BAD},
	{"the last slot number there is", UINT32_MAX, 10, 0, 0, UINT32_MAX, RING_BAD},
	{"bad slot and bad length", UINT32_MAX, UINT32_MAX, RING_HAS_CRC, 0, UINT32_MAX, RING_BAD},
	{"a CRC that nobody asked to check", 0, 10, 0, 0xdeadbeef, 0, RING_OK},
	{"a wrong CRC", 0, 10, RING_HAS_CRC, 0xdeadbeef, 0, RING_BAD},
	{"a CRC over bytes that are not there", 0, STRIDE + 1, RING_HAS_CRC, 0, 0, RING_BAD},
	{"the CRC of nothing", 0, 0, RING_HAS_CRC, 0, 0, RING_OK},
	{"unknown flags", 0, 10, 0xfffffffe, 0, 0, RING_OK},
};

Test(agent_intake, trusts_nothing_in_a_descriptor)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ring_descriptor d = good;
		struct intake request;

		d.slot = rows[i].slot;
		d.payload = rows[i].slot * (STRIDE / RING_ALIGNMENT);
		d.length = rows[i].length;
		d.flags = rows[i].flags;
		d.crc32 = rows[i].crc32;
		cr_assert(take(&d, &request), "%s", rows[i].what);
		cr_expect_eq(request.slot, rows[i].expected_slot, "%s", rows[i].what);
		cr_expect_eq(request.status, rows[i].status, "%s", rows[i].what);
		cr_expect_eq(request.sequence, 42, "%s", rows[i].what);
	}
}

/* A model that takes anything: tiles and room are the only limits. */
Test(agent_intake, takes_a_payload_from_the_slots_own_tile_or_from_the_room)
{
	enum { UNIT = RING_ALIGNMENT, ROOM_END = ROOM_AT + ROOM };
	static const struct {
		const char *what;
		uint32_t slot, payload, length;
		uint8_t status;
	} places[] = {
		{"its tile", 2, 2 * STRIDE / UNIT, STRIDE, RING_OK},
		{"more than its tile", 2, 2 * STRIDE / UNIT, STRIDE + 1, RING_BAD},
		{"another slot's tile", 2, 1 * STRIDE / UNIT, 10, RING_BAD},
		{"the middle of its tile", 2, 2 * STRIDE / UNIT + 1, 10, RING_BAD},
		{"between tiles and room", 2, SLOTS * STRIDE / UNIT, 10, RING_BAD},
		{"before the room", 2, ROOM_AT / UNIT - 1, 10, RING_BAD},
		{"a short one in the room", 2, ROOM_AT / UNIT, 10, RING_OK},
		{"the whole room", 2, ROOM_AT / UNIT, ROOM, RING_OK},
		{"more than the room", 2, ROOM_AT / UNIT, ROOM + 1, RING_BAD},
		{"the end of the room", 2, ROOM_END / UNIT - 1, UNIT, RING_OK},
		{"beyond the end of the room", 2, ROOM_END / UNIT - 1, UNIT + 1, RING_BAD},
		{"behind the room", 2, ROOM_END / UNIT, 0, RING_BAD},
		{"the last offset there is", 2, UINT32_MAX, 10, RING_BAD},
		{"all that a length can say", 2, ROOM_AT / UNIT, UINT32_MAX, RING_BAD},
	};
	struct intake_ring greedy = ring, roomless = ring;
	struct ring_descriptor d = good;
	struct intake request;

	greedy.max_request = roomless.max_request = UINT32_MAX;
	roomless.room = 0;
	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		bool in_room = places[i].payload >= ROOM_AT / UNIT;

		d.slot = places[i].slot;
		d.payload = places[i].payload;
		d.length = places[i].length;
		cr_assert(intake_take(&d, 41, &greedy, NOW, &request));
		cr_expect_eq(request.status, places[i].status, "%s", places[i].what);
		cr_assert(intake_take(&d, 41, &roomless, NOW, &request));
		cr_expect_eq(request.status, in_room ? RING_BAD : places[i].status,
			     "%s, without a room", places[i].what);
	}
}

Test(agent_intake, refuses_what_is_too_short_for_the_model)
{
	struct intake_ring exact = ring;
	struct intake request;

	exact.min_request = good.length + 1;
	cr_assert(intake_take(&good, 41, &exact, NOW, &request));
	cr_expect_eq(request.status, RING_BAD);
	exact.min_request = good.length;
	cr_assert(intake_take(&good, 41, &exact, NOW, &request));
	cr_expect_eq(request.status, RING_OK);
}

Test(agent_intake, checks_the_crc_over_the_payload_of_its_own_slot)
{
	struct ring_descriptor d = good;
	struct intake request;

	d.flags = RING_HAS_CRC;
	d.length = 9;
	memcpy(payloads + 2 * STRIDE, "123456789", 9);
	d.crc32 = 0xcbf43926; /* the check value of CRC-32 */
	cr_assert(take(&d, &request));
	cr_expect_eq(request.status, RING_OK);
	payloads[2 * STRIDE + 8] ^= 1;
	cr_assert(take(&d, &request));
	cr_expect_eq(request.status, RING_BAD);
	cr_expect_eq(request.slot, 2, "a damaged request is still answered");
}

Test(agent_intake, drops_a_request_that_was_cancelled)
{
	struct intake request;

	take(&good, &request);
	cr_expect_eq(intake_recheck(&request, cancels, NOW), RING_OK);
	cancels[2] = 41;
	cr_expect_eq(intake_recheck(&request, cancels, NOW), RING_OK, "an older request's word");
	cancels[1] = 42;
	cr_expect_eq(intake_recheck(&request, cancels, NOW), RING_OK, "another slot's word");
	cancels[2] = 42;
	cr_expect_eq(intake_recheck(&request, cancels, NOW), RING_CANCELLED);
}

Test(agent_intake, drops_a_request_whose_deadline_passed)
{
	struct intake request;

	take(&good, &request);
	cr_expect_eq(intake_recheck(&request, cancels, NOW + 500000), RING_OK, "the last moment");
	cr_expect_eq(intake_recheck(&request, cancels, NOW + 500001), RING_EXPIRED);
	request.deadline_us = 0;
	cr_expect_eq(intake_recheck(&request, cancels, UINT64_MAX), RING_OK, "no limit");
	request.deadline_us = UINT32_MAX;
	cr_expect_eq(intake_recheck(&request, cancels, NOW + UINT32_MAX * 1000ull), RING_OK);
	cr_expect_eq(intake_recheck(&request, cancels, NOW + UINT32_MAX * 1000ull + 1),
		     RING_EXPIRED);
}

Test(agent_intake, says_cancelled_rather_than_expired)
{
	struct intake request;

	take(&good, &request);
	cancels[2] = 42;
	cr_expect_eq(intake_recheck(&request, cancels, NOW + 500001), RING_CANCELLED);
}

Test(agent_intake, rechecks_no_memory_of_a_request_without_a_slot)
{
	struct ring_descriptor d = good;
	struct intake request;

	d.slot = 1u << 30;
	take(&d, &request);
	/* cancels[UINT32_MAX] must not be read. */
	cr_expect_eq(intake_recheck(&request, cancels, NOW + 1000000000), RING_BAD);
}

Test(agent_intake, works_at_the_highest_position)
{
	struct ring_descriptor d = good;
	struct intake request;

	d.sequence = UINT64_MAX;
	cr_assert(intake_take(&d, UINT64_MAX - 1, &ring, NOW, &request));
	cr_expect_eq(request.sequence, UINT64_MAX);
}
