/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/socket.h>

#include "server/handshake_limit.h"

#define TOKEN 1000u

/*
 * The source of an address: one IPv4 host, or an IPv6 /64, as one host may have many addresses in
 * it.
 */
static struct in6_addr handshake_source_of(const struct sockaddr *address)
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

static void handshake_source_refill(struct handshake_source *s, uint64_t now_ms)
{
	uint64_t back = (now_ms - s->seen_ms) * HANDSHAKE_SOURCE_REFILL * TOKEN / 1000;

	s->spent -= back < s->spent ? (uint32_t)back : s->spent;
	s->seen_ms = now_ms;
}

/* The source's place, or the place that was quiet for longest. */
static struct handshake_source *handshake_limit_find(struct handshake_limit *limit,
						     const struct in6_addr *address)
{
	struct handshake_source *quiet = NULL;

	for (unsigned int i = 0; i < HANDSHAKE_SOURCES; i++) {
		struct handshake_source *s = &limit->source[i];

		if (s->seen_ms != 0 && memcmp(&s->address, address, sizeof(*address)) == 0)
			return s;
		if (s->pending == 0 && (quiet == NULL || s->seen_ms < quiet->seen_ms))
			quiet = s;
	}
	if (quiet != NULL)
		*quiet = (struct handshake_source){.address = *address};
	return quiet;
}

/* The source with the most handshakes. Only strangers fill the table, so a walk per connection is
 * affordable. */
static struct handshake_source *handshake_limit_greediest(struct handshake_limit *limit)
{
	struct handshake_source *most = limit->source;

	for (unsigned int i = 1; i < HANDSHAKE_SOURCES; i++)
		if (limit->source[i].pending > most->pending)
			most = &limit->source[i];
	return most;
}

struct handshake_source *handshake_limit_enter(struct handshake_limit *limit,
					       const struct sockaddr *address, uint64_t now_ms,
					       struct handshake_source **loser)
{
	struct in6_addr source = handshake_source_of(address);
	struct handshake_source *s = handshake_limit_find(limit, &source), *most;

	*loser = NULL;
	if (s == NULL)
		return NULL;
	handshake_source_refill(s, now_ms | 1); /* 0 is for places that were never taken */
	if (s->spent + TOKEN > HANDSHAKE_SOURCE_FAILURES * TOKEN)
		return NULL;
	if (limit->pending >= HANDSHAKE_PENDING_MAX) {
		most = handshake_limit_greediest(limit);
		if (most->pending <= s->pending)
			return NULL;
		*loser = most;
	}
	s->pending++;
	limit->pending++;
	return s;
}

void handshake_limit_leave(struct handshake_limit *limit, struct handshake_source *s,
			   enum handshake_end end, uint64_t now_ms)
{
	handshake_source_refill(s, now_ms | 1);
	if (end == HANDSHAKE_PROVEN)
		s->spent = 0;
	if (end == HANDSHAKE_FAILED && s->spent < 2 * HANDSHAKE_SOURCE_FAILURES * TOKEN)
		s->spent += TOKEN;
	s->pending--;
	limit->pending--;
}
