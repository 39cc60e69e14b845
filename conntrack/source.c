/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "source.h"

void source_limit_init(struct source_limit *limit, uint32_t per_second, const uint64_t secret[2])
{
	memset(limit, 0, sizeof(*limit));
	limit->per_second = per_second < SOURCE_PER_SECOND_MAX ? per_second : SOURCE_PER_SECOND_MAX;
	memcpy(limit->secret, secret, sizeof(limit->secret));
}

/* One customer's prefix: an IPv4 address, or the /64 of an IPv6 address (RFC 6177). */
static uint64_t source_prefix_of(const struct in6_addr *source)
{
	uint64_t half[2];

	memcpy(half, source, sizeof(half));
	return IN6_IS_ADDR_V4MAPPED(source) ? half[1] : half[0];
}

/* The zone changes the factor, not the prefix, so that no address of one zone equals another
 * address of another zone. */
static struct source_bucket *source_bucket_of(struct source_limit *limit, unsigned int row,
					      uint64_t prefix, uint16_t zone)
{
	uint64_t factor = limit->secret[row ^ 1] ^ zone * UINT64_C(0x9e3779b97f4a7c15);
	unsigned __int128 product = (unsigned __int128)(prefix ^ limit->secret[row]) * (factor | 1);
	uint64_t sum = (uint64_t)product ^ (uint64_t)(product >> 64);

	return &limit->bucket[row][sum % SOURCE_BUCKETS];
}

/* Refill the bucket for the time that passed, then take one token if there is one. */
static bool source_bucket_take(struct source_bucket *bucket, uint32_t per_second, uint32_t now_ms)
{
	uint64_t back = (uint64_t)(now_ms - bucket->updated_ms) * per_second;

	bucket->used = back >= bucket->used ? 0 : bucket->used - (uint32_t)back;
	bucket->updated_ms = now_ms;
	if (bucket->used + 1000 > per_second * 1000)
		return false;
	bucket->used += 1000;
	return true;
}

bool source_limit_take(struct source_limit *limit, const struct in6_addr *source, uint16_t zone,
		       uint32_t now_ms)
{
	uint64_t prefix = source_prefix_of(source);
	bool ok = false;

	for (unsigned int row = 0; row < SOURCE_ROWS; row++)
		ok |= source_bucket_take(source_bucket_of(limit, row, prefix, zone),
					 limit->per_second, now_ms);
	return ok;
}
