/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of sequence numbers, modulo 2^32 (RFC 9293, 3.4). */
#ifndef LB_TCP_SEQUENCE_H
#define LB_TCP_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers from <from> up to, not including, <to>. */
struct tcp_range {
	uint32_t from, to;
};

static inline bool sequence_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline bool sequence_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static inline uint32_t sequence_min(uint32_t a, uint32_t b)
{
	return sequence_before(a, b) ? a : b;
}

static inline uint32_t sequence_max(uint32_t a, uint32_t b)
{
	return sequence_after(a, b) ? a : b;
}

#endif
