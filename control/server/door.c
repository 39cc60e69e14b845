/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/socket.h>

#include "server/door.h"

#define TOKEN 1000u

/* Where an address belongs: one host, or one network of a host's many addresses. */
static struct in6_addr source_of(const struct sockaddr *address)
{
	struct in6_addr source = {0};

	if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)address;

		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
			return in6->sin6_addr;
		memcpy(&source, &in6->sin6_addr, 8);
	} else if (address->sa_family == AF_INET) {
		const struct sockaddr_in *in4 = (const void *)address;

		source.s6_addr[10] = source.s6_addr[11] = 0xff;
		memcpy(source.s6_addr + 12, &in4->sin_addr, 4);
	}
	return source;
}

static void refill(struct door_source *s, uint64_t now_ms)
{
	uint64_t back = (now_ms - s->seen_ms) * DOOR_SOURCE_REFILL * TOKEN / 1000;

	s->spent -= back < s->spent ? (uint32_t)back : s->spent;
	s->seen_ms = now_ms;
}

/* Its place, or the one that was quiet for longest. */
static struct door_source *find(struct door *door, const struct in6_addr *address)
{
	struct door_source *quiet = NULL;

	for (unsigned int i = 0; i < DOOR_SOURCES; i++) {
		struct door_source *s = &door->source[i];

		if (s->seen_ms != 0 && memcmp(&s->address, address, sizeof(*address)) == 0)
			return s;
		if (s->pending == 0 && (!quiet || s->seen_ms < quiet->seen_ms))
			quiet = s;
	}
	if (quiet)
		*quiet = (struct door_source){.address = *address};
	return quiet;
}

/* Only strangers make it full, so that a walk per connection is well spent. */
static struct door_source *greediest(struct door *door)
{
	struct door_source *most = door->source;

	for (unsigned int i = 1; i < DOOR_SOURCES; i++)
		if (door->source[i].pending > most->pending)
			most = &door->source[i];
	return most;
}

struct door_source *door_enter(struct door *door, const struct sockaddr *address, uint64_t now_ms,
			       struct door_source **loser)
{
	struct in6_addr source = source_of(address);
	struct door_source *s = find(door, &source), *most;

	*loser = NULL;
	if (!s)
		return NULL;
	refill(s, now_ms | 1); /* 0 is for places that were never taken */
	if (s->spent + TOKEN > DOOR_SOURCE_FAILURES * TOKEN)
		return NULL;
	if (door->pending >= DOOR_PENDING_MAX) {
		most = greediest(door);
		if (most->pending <= s->pending)
			return NULL;
		*loser = most;
	}
	s->pending++;
	door->pending++;
	return s;
}

void door_leave(struct door *door, struct door_source *s, enum door_end end, uint64_t now_ms)
{
	refill(s, now_ms | 1);
	if (end == DOOR_PROVEN)
		s->spent = 0;
	if (end == DOOR_FAILED && s->spent < 2 * DOOR_SOURCE_FAILURES * TOKEN)
		s->spent += TOKEN;
	s->pending--;
	door->pending--;
}
