/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring contract: a layout that two programs and a GPU share, so it must not change. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

Test(ring, keeps_every_offset_of_version_2)
{
	cr_expect_eq(RING_VERSION, 2);
	cr_expect_eq(sizeof(struct ring_descriptor), 64);
	cr_expect_eq(offsetof(struct ring_descriptor, slot), 0);
	cr_expect_eq(offsetof(struct ring_descriptor, length), 4);
	cr_expect_eq(offsetof(struct ring_descriptor, service), 8);
	cr_expect_eq(offsetof(struct ring_descriptor, flags), 12);
	cr_expect_eq(offsetof(struct ring_descriptor, payload), 16);
	cr_expect_eq(offsetof(struct ring_descriptor, reply), 20);
	cr_expect_eq(offsetof(struct ring_descriptor, deadline_us), 24);
	cr_expect_eq(offsetof(struct ring_descriptor, crc32), 28);
	cr_expect_eq(offsetof(struct ring_descriptor, flow), 32);
	cr_expect_eq(offsetof(struct ring_descriptor, sent_us), 40);
	cr_expect_eq(offsetof(struct ring_descriptor, sequence), 56);
	cr_expect_eq(sizeof(struct ring_reply), 40);
	cr_expect_eq(offsetof(struct ring_reply, sequence), 0);
	cr_expect_eq(offsetof(struct ring_reply, seen_ns), 8);
	cr_expect_eq(offsetof(struct ring_reply, start_ns), 16);
	cr_expect_eq(offsetof(struct ring_reply, done_ns), 24);
	cr_expect_eq(offsetof(struct ring_reply, length), 32);
	cr_expect_eq(offsetof(struct ring_reply, chunk), 36);
	cr_expect_eq(offsetof(struct ring_reply, backlog), 38);
}

Test(ring, keeps_every_status_number)
{
	cr_expect_eq(RING_OK, 0);
	cr_expect_eq(RING_ERROR, 1);
	cr_expect_eq(RING_EXPIRED, 2);
	cr_expect_eq(RING_CANCELLED, 3);
	cr_expect_eq(RING_BAD, 4);
}

Test(ring, is_little_endian_in_memory)
{
	struct ring_descriptor d = {.slot = 0x01020304, .sequence = 0x1122334455667788};
	const uint8_t *bytes = (const uint8_t *)&d;

	cr_expect_arr_eq(bytes, "\x04\x03\x02\x01", 4);
	cr_expect_arr_eq(bytes + 56, "\x88\x77\x66\x55\x44\x33\x22\x11", 8);
}

Test(ring, packs_slot_status_and_more_into_the_immediate)
{
	static const struct {
		uint32_t slot, status, more, imm;
	} rows[] = {
		{0, RING_OK, 0, 0},
		{1, RING_OK, 0, 1},
		{RING_SLOTS_MAX - 1, RING_OK, 0, 0xffff},
		{0xfffff, 0, 0, 0xfffff},
		{0, RING_BAD, 0, 0x00400000},
		{0, 0xff, 0, 0x0ff00000},
		{0, 0, 1, 0x10000000},
		{0, 0, 0x80000000, 0x10000000},
		{5, RING_CANCELLED, 1, 0x10300005},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t imm = ring_imm(rows[i].slot, rows[i].status, rows[i].more);

		cr_expect_eq(imm, rows[i].imm, "row %u: %08x", i, imm);
		cr_expect_eq(ring_imm_slot(imm), rows[i].slot, "row %u", i);
		cr_expect_eq(ring_imm_status(imm), rows[i].status, "row %u", i);
		cr_expect_eq((imm & RING_IMM_MORE) != 0, rows[i].more != 0, "row %u", i);
	}
}

Test(ring, never_takes_a_reply_for_a_heartbeat)
{
	cr_expect_eq(ring_imm(UINT32_MAX, UINT32_MAX, UINT32_MAX) & RING_IMM_HEARTBEAT, 0);
	cr_expect_eq(ring_imm_slot(RING_IMM_HEARTBEAT | 0xfffff), 0xfffff);
	cr_expect_eq(ring_imm_status(RING_IMM_HEARTBEAT | 0xfffff), 0);
}

Test(ring, tells_a_backlog_of_any_size)
{
	static const uint32_t rows[][2] = {
		{0, 0}, {1, 1}, {0xfffff, 0xfffff}, {0x100000, 0xfffff}, {UINT32_MAX, 0xfffff}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t imm = ring_imm_heartbeat(rows[i][0]);

		cr_expect_eq(imm, RING_IMM_HEARTBEAT | rows[i][1], "row %u: %08x", i, imm);
		cr_expect_eq(ring_imm_backlog(imm), rows[i][1], "row %u", i);
		cr_expect(!ring_imm_by_deadline(imm), "row %u", i);
		imm |= RING_IMM_BY_DEADLINE;
		cr_expect(ring_imm_by_deadline(imm), "row %u", i);
		cr_expect_eq(ring_imm_backlog(imm), rows[i][1], "row %u", i);
	}
	cr_expect_eq(ring_reply_backlog(0), 0);
	cr_expect_eq(ring_reply_backlog(65534), 65534);
	cr_expect_eq(ring_reply_backlog(65536), 65535);
	cr_expect_eq(ring_reply_backlog(UINT32_MAX), 65535);
}

Test(ring, begins_the_room_at_a_page_behind_the_tiles)
{
	cr_expect_eq(ring_room_at(4, 64), 4096);
	cr_expect_eq(ring_room_at(64, 64), 4096);
	cr_expect_eq(ring_room_at(128, 64), 8192);
	cr_expect_eq(ring_room_at(RING_SLOTS_MAX, RING_STRIDE_MAX), 1ull << 30);
	cr_expect_eq(RING_STRIDE_MAX % RING_ALIGNMENT, 0);
	cr_expect_eq(RING_PAGE % RING_ALIGNMENT, 0);
}

Test(ring, has_room_for_every_slot_number)
{
	cr_expect_eq(RING_SLOTS_MAX & (RING_SLOTS_MAX - 1), 0);
	cr_expect_eq(RING_SLOTS_MIN & (RING_SLOTS_MIN - 1), 0);
	cr_expect_leq(RING_SLOTS_MAX, 1u << 20);
}

/* The bytes of one dump in workers/ring.md: lines of an address, bytes, and a note behind two blanks. */
static size_t read_dump(const char *name, uint8_t *bytes, size_t size)
{
	FILE *page = fopen(RING_MD, "r");
	char line[256], mark[64];
	bool found = false;
	size_t n = 0;

	cr_assert_not_null(page);
	snprintf(mark, sizeof(mark), "<!-- bytes: %s -->\n", name);
	while (fgets(line, sizeof(line), page) != NULL) {
		char *at = line, *end;

		if (!found) {
			found = strcmp(line, mark) == 0;
			continue;
		}
		if (strcmp(line, "```\n") == 0) {
			if (n > 0)
				break;
			continue;
		}
		strtoul(at, &end, 16);
		at = end + 1; /* one of the two blanks behind the address */
		while (at[0] == ' ' && at[1] != ' ' && at[1] != '\n') {
			cr_assert_lt(n, size);
			bytes[n++] = (uint8_t)strtoul(at, &end, 16);
			cr_assert_eq(end - at, 3, "%s: not a byte: %s", name, at);
			at = end;
		}
	}
	cr_assert(found, "%s has no dump '%s'", RING_MD, name);
	fclose(page);
	return n;
}

static void expect_dump(const char *name, const void *bytes, size_t length)
{
	uint8_t told[256];
	size_t n = read_dump(name, told, sizeof(told));

	cr_expect_eq(n, length, "%s: the page has %zu bytes, not %zu", name, n, length);
	cr_expect_arr_eq(told, bytes, length, "%s: the page has other bytes", name);
}

Test(ring, is_what_its_page_shows_byte_by_byte)
{
	const struct ring_descriptor d = {
		.slot = 1,
		.length = 5,
		.service = 0,
		.flags = RING_HAS_CRC,
		.payload = 1,
		.reply = 32,
		.flow = 0x0000000700000042,
		.deadline_us = 500000,
		.crc32 = 0x3610a686, /* of "hello" */
		.sequence = 3,
	};
	const struct ring_reply header = {
		.sequence = 3,
		.seen_ns = 1000000,
		.start_ns = 1004000,
		.done_ns = 1054000,
		.length = 5,
		.backlog = 2,
	};
	uint8_t reply[sizeof(header) + 5];
	uint32_t immediate = ring_imm(1, RING_OK, 0), refusal = ring_imm(1, RING_ERROR, 0);
	uint32_t heartbeat = ring_imm_heartbeat(9);
	uint64_t cancel = d.sequence;

	memcpy(reply, &header, sizeof(header));
	memcpy(reply + sizeof(header), "HELLO", 5);
	expect_dump("payload", "hello", 5);
	expect_dump("descriptor", &d, sizeof(d));
	expect_dump("reply", reply, sizeof(reply));
	expect_dump("immediate", &immediate, sizeof(immediate));
	expect_dump("refusal", &refusal, sizeof(refusal));
	expect_dump("cancel", &cancel, sizeof(cancel));
	expect_dump("heartbeat", &heartbeat, sizeof(heartbeat));
}

/* --- how long a request has waited -------------------------------------------------------------
 */

#define START UINT64_C(5000000000) /* us, of the worker's clock */

/* Stamps of a clock that is <ppm> slower than the worker's, and wraps on the way. */
static uint32_t stamp_at(uint64_t now_us, int64_t ppm)
{
	int64_t since = (int64_t)(now_us - START);

	return (uint32_t)(UINT32_MAX - 1000000 + (uint64_t)(since - since * ppm / 1000000)) | 1;
}

Test(ring, waiting_is_what_exceeds_the_quickest_request)
{
	struct ring_clock c = {0};

	cr_expect_eq(ring_clock_waited(&c, 17, START, UINT64_MAX), 0, "nothing is known yet");
	for (uint64_t us = 0; us < 4000000; us += 1000) {
		/* Every tenth does not wait, others up to 9 ms. */
		uint64_t waits = us / 1000 % 10 * 1000, now = START + us + waits;
		uint32_t sent = stamp_at(START + us, 0);

		ring_clock_note(&c, sent, now, UINT64_MAX);
		cr_expect_leq(ring_clock_waited(&c, sent, now, UINT64_MAX), waits + 1);
		cr_expect_geq(ring_clock_waited(&c, sent, now, UINT64_MAX) + 20, waits);
		cr_expect_leq(ring_clock_waited(&c, sent, now, 500), 500, "no longer than that");
	}
	cr_expect_eq(ring_clock_waited(&c, 0, START, UINT64_MAX), 0, "no stamp");
}

Test(ring, clocks_that_drift_apart_make_no_request_old)
{
	static const int64_t ppm[] = {-900, -100, 0, 100, 900};

	for (size_t i = 0; i < sizeof(ppm) / sizeof(ppm[0]); i++) {
		struct ring_clock c = {0};

		/* An hour, with a request each 50 ms that does not wait. */
		for (uint64_t us = 0; us < 3600000000; us += 50000) {
			uint32_t sent = stamp_at(START + us, ppm[i]);

			ring_clock_note(&c, sent, START + us, UINT64_MAX);
			cr_assert_leq(ring_clock_waited(&c, sent, START + us, UINT64_MAX), 2,
				      "%ld ppm, after %lu us", (long)ppm[i], (unsigned long)us);
		}
	}
}

/* While all requests wait, what is known of the clocks gets a millisecond per second worse, to the
 * side of more time. */
Test(ring, under_load_a_wait_is_underestimated_by_a_thousandth_of_its_duration)
{
	struct ring_clock c = {0};
	uint32_t sent = stamp_at(START, 0);

	ring_clock_note(&c, sent, START, UINT64_MAX);
	for (uint64_t us = 1000; us < 10000000; us += 1000) {
		uint32_t waited;

		sent = stamp_at(START + us, 0);
		ring_clock_note(&c, sent, START + us + 50000, UINT64_MAX);
		waited = ring_clock_waited(&c, sent, START + us + 50000, UINT64_MAX);
		cr_assert_leq(waited, 50001);
		cr_assert_geq(waited + 51 + us / 1000, 50000, "%lu", (unsigned long)us);
	}
}

/* The load balancer's machine was suspended: its clock stood, the worker's did not. The first
 * request after that cannot have waited for longer than the ring was not empty. */
Test(ring, a_clock_that_stood_makes_later_requests_no_older)
{
	static const uint64_t stood_us[] = {200000, 60000000, 2000000000};

	for (size_t i = 0; i < sizeof(stood_us) / sizeof(stood_us[0]); i++) {
		uint64_t now = START + stood_us[i];
		struct ring_clock c = {0};

		ring_clock_note(&c, stamp_at(START, 0), START, 10);
		ring_clock_note(&c, stamp_at(START + 1000, 0), now + 1000, 10);
		/* This one comes while the model runs for 50 ms, 2 ms before its end. */
		cr_expect_leq(ring_clock_waited(&c, stamp_at(START + 49000, 0), now + 51000, 50000),
			      2001, "after %lu us", (unsigned long)stood_us[i]);
	}
}

/* A spare is asked nothing for months. */
Test(ring, a_clock_that_was_not_noted_for_months_is_noted_again)
{
	for (uint64_t days = 1; days < 120; days++) {
		uint64_t now = START + days * 86400000000;
		uint32_t sent = stamp_at(now, 0);
		struct ring_clock c = {0};

		ring_clock_note(&c, stamp_at(START, 0), START, 10);
		ring_clock_note(&c, sent, now, UINT64_MAX);
		cr_expect_leq(ring_clock_waited(&c, sent, now, UINT64_MAX), 2, "%lu days",
			      (unsigned long)days);
	}
}

Test(ring, noting_a_request_tells_how_long_it_has_waited)
{
	static const uint64_t most[] = {0, 1, 500, 200000, 3000000000, UINT64_MAX};
	struct ring_clock c = {0};
	uint64_t random = 1, now = START;

	for (unsigned int i = 0; i < 200000; i++) {
		uint32_t sent, waited;

		random = random * 6364136223846793005u + 1442695040888963407u;
		now += random >> 33 & (i % 64 == 0 ? 0x3fffff : 0x3ff);
		/* Up to 8 s old, and no stamp now and then. */
		sent = i % 16 == 0 ? 0
				   : (uint32_t)now - (uint32_t)(random >> 40 & 0x7fffff >> i % 20);
		waited = ring_clock_note(&c, sent, now, most[i % 6]);
		cr_assert_eq(waited, ring_clock_waited(&c, sent, now, most[i % 6]), "%u", i);
	}
}
