/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <string.h>

#include "packet/owner.h"

uint32_t owner_toeplitz(const uint8_t *key, const uint8_t *input, unsigned int length)
{
	uint64_t window = 0;
	uint32_t hash = 0;

	/* The window's upper half is XORed in if the next bit is set. */
	for (unsigned int i = 0; i < 4; i++)
		window = window << 8 | key[i];
	window <<= 32;
	for (unsigned int i = 0; i < length; i++) {
		window |= (uint64_t)key[i + 4] << 24;
		for (uint8_t bit = 0x80; bit != 0; bit >>= 1) {
			if (input[i] & bit)
				hash ^= window >> 32;
			window <<= 1;
		}
	}
	return hash;
}

uint16_t owner_queue_by_rss(const struct port_rss *rss, const struct flow_key *key)
{
	bool v4 = key->family == FLOW_IPV4, tcp = key->protocol == IPPROTO_TCP;
	bool ports = v4 ? (tcp ? rss->tcp4 : rss->ports4) : (tcp ? rss->tcp6 : rss->ports6);
	unsigned int n = v4 ? 4 : 16;
	uint8_t input[36];

	if (!ports && !(v4 ? rss->ip4 : rss->ip6))
		return rss->queue[0];
	memcpy(input, key->src.s6_addr + 16 - n, n);
	memcpy(input + n, key->dst.s6_addr + 16 - n, n);
	memcpy(input + 2 * n, &key->src_port, 2);
	memcpy(input + 2 * n + 2, &key->dst_port, 2);
	return rss->queue[owner_toeplitz(rss->key, input, 2 * n + (ports ? 4 : 0)) &
			  (rss->entries - 1)];
}

uint16_t owner_source_port(const struct port_rss *rss, const struct flow_key *to, uint16_t queue,
			   uint32_t random)
{
	const uint32_t first = 0xc000, n = 0x4000; /* the dynamic range (RFC 6335) */
	struct flow_key key = *to;

	if (!rss->known || !(to->family == FLOW_IPV4 ? rss->ports4 : rss->ports6))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint16_t source = first + (random + i) % n;

		key.src_port = htons(source);
		if (owner_queue_by_rss(rss, &key) == queue)
			return source;
	}
	return 0;
}
