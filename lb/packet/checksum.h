/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Internet checksum (RFC 1071), eight 32-bit words at a time: a few dozen cycles per 1 KiB of
 * payload. Sums are in memory order: store a result as it is.
 */
#ifndef LB_CHECKSUM_H
#define LB_CHECKSUM_H

#include <stdint.h>
#include <string.h>

#include "conntrack.h"
#include "packet/fetch.h"

/* Vector types; the compiler lowers them to the CPU's instructions. */
typedef uint32_t checksum_lanes __attribute__((vector_size(32)));
typedef uint32_t checksum_half __attribute__((vector_size(16)));
typedef uint64_t checksum_pair __attribute__((vector_size(16)));

/* Sum a header, or the bytes behind the last whole vector; carries are added at once. */
static inline uint64_t checksum_add_few(const uint8_t *at, uint32_t length)
{
	uint64_t sum = 0, eight;
	uint32_t four = 0;
	uint16_t two = 0, one = 0;

	for (; length >= 8; length -= 8, at += 8) {
		memcpy(&eight, at, 8);
		sum += eight;
		sum += sum < eight;
	}
	if (length & 4) {
		memcpy(&four, at, 4);
		at += 4;
	}
	if (length & 2) {
		memcpy(&two, at, 2);
		at += 2;
	}
	if (length & 1)
		memcpy(&one, at, 1);
	return (sum & 0xffffffff) + (sum >> 32) + four + two + one;
}

/* Add up the 32-bit lanes, none above 2^29. */
static inline uint64_t checksum_lanes_add(checksum_lanes lanes)
{
	checksum_half low, high;
	checksum_pair pair;

	memcpy(&low, &lanes, sizeof(low));
	memcpy(&high, (const char *)&lanes + sizeof(low), sizeof(high));
	low += high;
	memcpy(&pair, &low, sizeof(pair));
	pair = (pair & 0xffffffff) + (pair >> 32);
	return pair[0] + pair[1];
}

/* As checksum_add(); also prefetches one line of <fetch> per line that it sums. */
static inline __attribute__((always_inline)) uint64_t
checksum_add_fetching(const void *bytes, uint32_t length, struct fetch *fetch)
{
	struct fetch f = *fetch;
	const uint8_t *at = bytes, *end = at + (length & ~63u);
	checksum_lanes words0 = {0}, words1 = {0}, highs0 = {0}, highs1 = {0}, a, b;

	/*
	 * The sums of the upper halves fit in 32 bits, those of the whole words wrap. But a word's
	 * sum less its upper halves' is the sum of the lower halves, which fits, too.
	 */
	for (; at != end; at += 64) {
		memcpy(&a, at, 32);
		memcpy(&b, at + 32, 32);
		words0 += a;
		words1 += b;
		highs0 += a >> 16;
		highs1 += b >> 16;
		fetch_line(&f);
	}
	*fetch = f;
	words0 += words1;
	highs0 += highs1;
	return checksum_lanes_add(words0 - (highs0 << 16) + highs0) +
	       checksum_add_few(at, length & 63);
}

/* The sum of <bytes>, not folded; add several with +. Any alignment, up to 64 KiB per call. */
static inline uint64_t checksum_add(const void *bytes, uint32_t length)
{
	return checksum_add_fetching(bytes, length, &(struct fetch){0});
}

/* Fold to 16 bits: a number plus itself with swapped halves has the sum of both halves, carry
 * included, in its upper half. */
static inline uint16_t checksum_fold(uint64_t sum)
{
	uint32_t half;

	sum += sum << 32 | sum >> 32;
	half = sum >> 32;
	half += half << 16 | half >> 16;
	return half >> 16;
}

/* The sum of UDP's pseudo-header: <addresses> points at source and destination in the IP header. */
static inline uint64_t checksum_pseudo(const void *addresses, enum flow_family family,
				       uint8_t protocol, uint16_t length)
{
	uint64_t sum = family == FLOW_IPV4 ? checksum_add_few(addresses, 8)
					   : checksum_add_few(addresses, 32);

	return sum + (uint64_t)__builtin_bswap16(protocol) + __builtin_bswap16(length);
}

#endif
