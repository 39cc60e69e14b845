/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Internet check sum (RFC 1071), written so that the compiler vectorises it: a 1 KiB payload is
 * summed in a few dozen cycles. Sums are in memory order: store a result as it is.
 */
#ifndef LB_CHECKSUM_H
#define LB_CHECKSUM_H

#include <stdint.h>
#include <string.h>

#include "conntrack.h"

/* Not folded; add several with +. <bytes> needs no alignment. Up to 64 KiB per call. */
static inline uint64_t checksum_add(const void *bytes, uint32_t length)
{
	const uint8_t *at = bytes;
	uint32_t low = 0, high = 0, words = length / 4, word, tail = 0;

	/* 16-bit halves in separate 32-bit lanes: no carries to chase, 65536 words fit. */
	for (uint32_t i = 0; i < words; i++) {
		memcpy(&word, at + 4 * i, 4);
		low += word & 0xffff;
		high += word >> 16;
	}
	memcpy(&tail, at + 4 * words, length & 3);
	return (uint64_t)low + high + (tail & 0xffff) + (tail >> 16);
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
	return checksum_add(addresses, family == FLOW_IPV4 ? 8 : 32) +
	       (uint64_t)__builtin_bswap16(protocol) + __builtin_bswap16(length);
}

#endif
