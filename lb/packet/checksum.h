/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Internet check sum (RFC 1071), eight 32-bit words at a time: a 1 KiB payload is summed in a
 * few dozen cycles. Sums are in memory order: store a result as it is.
 */
#ifndef LB_CHECKSUM_H
#define LB_CHECKSUM_H

#include <stdint.h>
#include <string.h>

#include "conntrack.h"
#include "packet/fetch.h"

/* Lowered by the compiler to what the CPU has. */
typedef uint32_t checksum_lanes __attribute__((vector_size(32)));
typedef uint32_t checksum_half __attribute__((vector_size(16)));
typedef uint64_t checksum_pair __attribute__((vector_size(16)));

/* For a header or what is left over; carries go around at once. */
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

/* Lanes of 32 bits, none above 2^29, to one number. */
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

/* As checksum_add(); asks for a line of <fetch> with each that it sums up. */
static inline __attribute__((always_inline)) uint64_t
checksum_add_fetching(const void *bytes, uint32_t length, struct fetch *fetch)
{
	struct fetch f = *fetch;
	const uint8_t *at = bytes, *end = at + (length & ~63u);
	checksum_lanes words0 = {0}, words1 = {0}, highs0 = {0}, highs1 = {0}, a, b;

	/*
	 * The sums of the upper halves fit, those of the whole words wrap around; but what is left
	 * of them without the upper halves is the sum of the lower ones, which fits, too.
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

/* Not folded; add several with +. <bytes> needs no alignment. Up to 64 KiB per call. */
static inline uint64_t checksum_add(const void *bytes, uint32_t length)
{
	return checksum_add_fetching(bytes, length, &(struct fetch){0});
}

/* A number and its halves swapped: the upper half of what they add up to is the sum of both halves,
 * with its carry. */
static inline uint16_t checksum_fold(uint64_t sum)
{
	uint32_t half;

	sum += sum << 32 | sum >> 32;
	half = sum >> 32;
	half += half << 16 | half >> 16;
	return half >> 16;
}

/* Pseudo header of UDP: <addresses> points at source and destination in the IP header. */
static inline uint64_t checksum_pseudo(const void *addresses, enum flow_family family,
				       uint8_t protocol, uint16_t length)
{
	uint64_t sum = family == FLOW_IPV4 ? checksum_add_few(addresses, 8)
					   : checksum_add_few(addresses, 32);

	return sum + (uint64_t)__builtin_bswap16(protocol) + __builtin_bswap16(length);
}

#endif
