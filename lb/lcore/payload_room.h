/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Room for large payloads in a link's memory: extents of whole pages, named by their first page.
 * Only the load balancer writes there, so it alone keeps account of them. Pure.
 *
 * The search is first fit from the bottom, in a map of one bit per page: free pages stay together
 * at the top. With requests of all sizes that end in any order 78 to 86 % of the room is in use
 * when it is full; a buddy system came to 61 to 69 % (lb_payload_room_test.c). A large request
 * takes microseconds to arrive, the search through a thousand words takes less than one. Not
 * thread-safe.
 */
#ifndef LB_PAYLOAD_ROOM_H
#define LB_PAYLOAD_ROOM_H

#include <stdint.h>

#define PAYLOAD_ROOM_PAGE      4096 /* bytes */
#define PAYLOAD_ROOM_PAGES_MAX (1u << 20)
#define PAYLOAD_ROOM_NONE      UINT32_MAX

struct payload_room {
	uint32_t pages, free;
	uint32_t first; /* no page before this one is free */
	uint64_t *map;  /* a bit per page, set: free */
};

/* Makes room of <pages>, at most PAYLOAD_ROOM_PAGES_MAX. 0, -EINVAL or -ENOMEM. */
int payload_room_init(struct payload_room *room, uint32_t pages);
void payload_room_fini(struct payload_room *room);

/* Takes <pages> in a row, at least 1. Returns the first, or PAYLOAD_ROOM_NONE if too few are free
 * in a row. */
uint32_t payload_room_take(struct payload_room *room, uint32_t pages);

/* Gives back <pages> from <first> on. */
void payload_room_give(struct payload_room *room, uint32_t first, uint32_t pages);

#endif
