/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lcore/payload_room.h"

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 20) % below);
}

Test(payload_room, all_of_it_can_be_taken_in_one_piece)
{
	struct payload_room room;

	cr_assert_eq(payload_room_init(&room, 1000), 0);
	cr_expect_eq(payload_room_take(&room, 1001), PAYLOAD_ROOM_NONE);
	cr_expect_eq(payload_room_take(&room, 1000), 0);
	cr_expect_eq(payload_room_take(&room, 1), PAYLOAD_ROOM_NONE);
	payload_room_give(&room, 0, 1000);
	cr_expect_eq(room.free, 1000);
	payload_room_fini(&room);
}

Test(payload_room, any_size_can_be_made)
{
	for (uint32_t pages = 1; pages < 300; pages++) {
		struct payload_room room;
		uint32_t n = 0;

		cr_assert_eq(payload_room_init(&room, pages), 0);
		cr_assert_eq(room.free, pages);
		while (payload_room_take(&room, 1) != PAYLOAD_ROOM_NONE)
			n++;
		cr_assert_eq(n, pages);
		payload_room_fini(&room);
	}
	cr_expect_neq(payload_room_init(&(struct payload_room){0}, 0), 0);
	cr_expect_neq(payload_room_init(&(struct payload_room){0}, PAYLOAD_ROOM_PAGES_MAX + 1), 0);
}

Test(payload_room, the_lowest_place_that_fits)
{
	struct payload_room room;

	cr_assert_eq(payload_room_init(&room, 200), 0);
	cr_assert_eq(payload_room_take(&room, 200), 0);
	payload_room_give(&room, 60, 8); /* across two words of the map */
	payload_room_give(&room, 10, 3);
	cr_expect_eq(payload_room_take(&room, 9), PAYLOAD_ROOM_NONE);
	cr_expect_eq(payload_room_take(&room, 4), 60);
	cr_expect_eq(payload_room_take(&room, 3), 10);
	payload_room_give(&room, 199, 1);
	cr_expect_eq(payload_room_take(&room, 4), 64);
	cr_expect_eq(payload_room_take(&room, 1), 199);
	payload_room_fini(&room);
}

#define PAGES   5000
#define EXTENTS 600

/* Random operations, compared with a model that has a byte per page. */
Test(payload_room, model)
{
	static uint8_t taken[PAGES];
	static struct {
		uint32_t offset, pages;
	} extent[EXTENTS];
	struct payload_room room;
	uint32_t n = 0, used = 0;

	state = 88172645463325252;
	cr_assert_eq(payload_room_init(&room, PAGES), 0);
	for (unsigned int step = 0; step < 400000; step++) {
		if (n < EXTENTS && draw(100) < 52) {
			uint32_t pages = 1 + draw(draw(4) == 0 ? 700 : 20);
			uint32_t at = payload_room_take(&room, pages);

			if (at == PAYLOAD_ROOM_NONE)
				continue;
			cr_assert(at + pages <= PAGES);
			for (uint32_t i = at; i < at + pages; i++) {
				cr_assert_eq(taken[i], 0);
				taken[i] = 1;
			}
			extent[n].offset = at;
			extent[n++].pages = pages;
			used += pages;
		} else if (n > 0) {
			uint32_t i = draw(n);

			memset(taken + extent[i].offset, 0, extent[i].pages);
			payload_room_give(&room, extent[i].offset, extent[i].pages);
			used -= extent[i].pages;
			extent[i] = extent[--n];
		}
		cr_assert_eq(room.free, PAGES - used);
	}
	while (n-- > 0)
		payload_room_give(&room, extent[n].offset, extent[n].pages);
	cr_expect_eq(payload_room_take(&room, PAGES), 0);
	payload_room_fini(&room);
}

/*
 * The cost of fragments. Requests of 1 to <largest> pages, log-uniform, end in any order; a request
 * that finds no place waits for the next to end, and holds up all behind it. Returns the share of
 * the room that is in use when a waiting request has just been served.
 */
static double room_in_use(uint32_t pages, uint32_t largest)
{
	static struct {
		uint32_t offset, pages;
	} extent[100000];
	struct payload_room room;
	uint32_t n = 0, waits = 0;
	double used = 0;

	state = 1;
	cr_assert_eq(payload_room_init(&room, pages), 0);
	for (uint32_t served = 0; served < 200000; served++) {
		uint32_t want = (uint32_t)exp(log((double)largest + 1) * draw(1 << 20) / (1 << 20));
		uint32_t at;

		while ((at = payload_room_take(&room, want)) == PAYLOAD_ROOM_NONE) {
			uint32_t i = draw(n);

			cr_assert_gt(n, 0, "nothing is taken and nothing fits");
			payload_room_give(&room, extent[i].offset, extent[i].pages);
			extent[i] = extent[--n];
			waits++;
		}
		extent[n].offset = at;
		extent[n++].pages = want;
		used += (double)(pages - room.free) / pages;
	}
	cr_expect_gt(waits, 100000, "it was never full");
	payload_room_fini(&room);
	return used / 200000;
}

Test(payload_room, fragments_cost_little)
{
	double few = room_in_use(4 * 256, 256), many = room_in_use(64 * 256, 256);

	cr_expect_gt(few, 0.75, "%.3f of room for four of the largest", few);
	cr_expect_gt(many, 0.82, "%.3f of room for 64 of the largest", many);
}
