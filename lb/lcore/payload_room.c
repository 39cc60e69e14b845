/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/payload_room.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

int payload_room_init(struct payload_room *room, uint32_t pages)
{
	if (pages == 0 || pages > PAYLOAD_ROOM_PAGES_MAX)
		return -EINVAL;
	*room = (struct payload_room){.pages = pages};
	room->map = calloc((pages + 63) / 64, sizeof(*room->map));
	if (room->map == NULL)
		return -ENOMEM;
	payload_room_give(room, 0, pages);
	return 0;
}

void payload_room_fini(struct payload_room *room)
{
	free(room->map);
	room->map = NULL;
}

/*
 * The first page from <at> on that is free, or, with <free> false, taken; <pages> if there is none.
 */
static uint32_t payload_room_next(const struct payload_room *room, uint32_t at, bool free)
{
	while (at < room->pages) {
		uint64_t word = (free ? room->map[at / 64] : ~room->map[at / 64]) >> (at % 64);

		if (word != 0) {
			at += (uint32_t)__builtin_ctzll(word);
			break;
		}
		at = (at | 63) + 1;
	}
	return at < room->pages ? at : room->pages;
}

/* Flips <pages> bits from <at> on. */
static void payload_room_flip(struct payload_room *room, uint32_t at, uint32_t pages)
{
	while (pages > 0) {
		uint32_t bit = at % 64, n = 64 - bit < pages ? 64 - bit : pages;

		room->map[at / 64] ^= ~UINT64_C(0) >> (64 - n) << bit;
		at += n;
		pages -= n;
	}
}

uint32_t payload_room_take(struct payload_room *room, uint32_t pages)
{
	uint32_t at, end;

	if (pages > room->free)
		return PAYLOAD_ROOM_NONE;
	room->first = payload_room_next(room, room->first, true);
	for (at = room->first; at < room->pages; at = payload_room_next(room, end, true)) {
		end = payload_room_next(room, at, false);
		if (end - at < pages)
			continue;
		payload_room_flip(room, at, pages);
		room->free -= pages;
		return at;
	}
	return PAYLOAD_ROOM_NONE;
}

void payload_room_give(struct payload_room *room, uint32_t first, uint32_t pages)
{
	payload_room_flip(room, first, pages);
	room->free += pages;
	if (first < room->first)
		room->first = first;
}
