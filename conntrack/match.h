/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares a bucket's 32 lanes with a value: one bit per lane. Private to this folder. */
#ifndef CONNTRACK_MATCH_H
#define CONNTRACK_MATCH_H

#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define MATCH_LANES 32

/* The version for any CPU; tests compare the AVX2 version with it. */
static inline uint32_t match_plain(const uint16_t lanes[MATCH_LANES], uint16_t value)
{
	uint32_t mask = 0;

	for (unsigned int i = 0; i < MATCH_LANES; i++)
		mask |= (uint32_t)(lanes[i] == value) << i;
	return mask;
}

/* <lanes> is aligned to 64 bytes. */
static inline uint32_t match_lanes(const uint16_t lanes[MATCH_LANES], uint16_t value)
{
#if defined(__AVX2__)
	const __m256i *half = (const __m256i *)lanes;
	__m256i wanted = _mm256_set1_epi16((short)value);
	__m256i low = _mm256_cmpeq_epi16(_mm256_load_si256(&half[0]), wanted);
	__m256i high = _mm256_cmpeq_epi16(_mm256_load_si256(&half[1]), wanted);
	/* Packing works on quarters: 0 and 2 come from <low>, 1 and 3 from <high>. */
	__m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);

	return (uint32_t)_mm256_movemask_epi8(packed);
#else
	return match_plain(lanes, value);
#endif
}

#endif
