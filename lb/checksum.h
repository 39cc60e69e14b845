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

/* Lowered by the compiler to what the CPU has. */
typedef uint32_t checksum_lanes __attribute__((vector_size(32)));

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

/* Not folded; add several with +. <bytes> needs no alignment. Up to 64 KiB per call. */
static inline uint64_t checksum_add(const void *bytes, uint32_t length)
{
	const uint8_t *at = bytes;
	checksum_lanes low = {0}, high = {0}, a, b;
	uint32_t sum = 0;

	/* 16-bit halves in 32-bit lanes: no carries to chase, the sum of 32768 halves fits. */
	for (; length >= 64; length -= 64, at += 64) {
		memcpy(&a, at, 32);
		memcpy(&b, at + 32, 32);
		low += (a & 0xffff) + (b & 0xffff);
		high += (a >> 16) + (b >> 16);
	}
	low += high;
	for (unsigned int i = 0; i < 8; i++)
		sum += low[i];
	return (uint64_t)sum + checksum_add_few(at, length);
}

static inline uint16_t checksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
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
