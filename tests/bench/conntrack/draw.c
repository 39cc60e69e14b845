/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "conntrack/draw.h"

/* Odd, and prime to every number of flows that is not its multiple: a permutation of 0..n-1. */
#define SCATTER 2654435761u

void draw_init(struct draw *d, uint32_t n, double zipf)
{
	*d = (struct draw){.random = 0x9e3779b97f4a7c15, .n = n, .zipf = zipf};
	d->spread = zipf > 0 ? pow(n, 1 - zipf) - 1 : 0;
}

static uint64_t random_next(struct draw *d)
{
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	d->random ^= d->random << 17;
	return d->random;
}

uint32_t draw_next(struct draw *d)
{
	uint64_t random = random_next(d) >> 11;
	uint64_t rank;

	if (d->zipf == 0)
		return (uint32_t)((random & UINT32_MAX) * d->n >> 32);
	rank = (uint64_t)pow(1 + d->spread * ((double)random * 0x1p-53), 1 / (1 - d->zipf)) - 1;
	if (rank >= d->n)
		rank = d->n - 1;
	return (uint32_t)(rank * SCATTER % d->n);
}

struct flow_key draw_key(uint32_t n, enum flow_family family)
{
	struct flow_key key;

	memset(&key, 0, sizeof(key));
	if (family == FLOW_IPV4) {
		key.src.s6_addr32[2] = key.dst.s6_addr32[2] = htonl(0xffff);
		key.src.s6_addr32[3] = htonl(0x0a000000 + n / 64);
		key.dst.s6_addr32[3] = htonl(0x0b000001);
	} else {
		key.src.s6_addr32[0] = key.dst.s6_addr32[0] = htonl(0x20010db8);
		key.src.s6_addr32[3] = htonl(n / 64);
		key.dst.s6_addr32[2] = htonl(1);
	}
	key.src_port = htons((uint16_t)(1024 + n % 64));
	key.dst_port = htons(8000);
	key.protocol = IPPROTO_UDP;
	key.family = (uint8_t)family;
	return key;
}
