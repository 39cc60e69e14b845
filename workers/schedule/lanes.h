/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the smallest of 32 keys and the lanes that have it. Private to workers/schedule. A key is
 * the bits of a float that is not negative; such bits compare like the floats themselves.
 */
#ifndef WORKERS_LANES_H
#define WORKERS_LANES_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define LANES 32

struct lanes_least {
	uint32_t key;   /* UINT32_MAX: no lane */
	uint32_t lanes; /* one bit per lane that has the key */
};

/* The compared value is base + outstanding x slope. */
struct lanes_keys {
	const float *base, *slope;
};

static inline uint32_t lanes_key(uint16_t outstanding, float base, float slope)
{
	float f = base + (float)outstanding * slope;
	uint32_t key;

	memcpy(&key, &f, sizeof(f));
	return key;
}

/* The version for any CPU; tests compare the AVX2 version with it. */
static inline struct lanes_least lanes_least_plain(const uint32_t key[LANES], uint32_t among)
{
	struct lanes_least least = {UINT32_MAX, 0};

	for (unsigned int i = 0; i < LANES; i++) {
		uint32_t k = among >> i & 1 ? key[i] : UINT32_MAX;

		least.lanes =
			k < least.key ? 1u << i : least.lanes | (uint32_t)(k == least.key) << i;
		least.key = k < least.key ? k : least.key;
	}
	return least;
}

static inline struct lanes_least lanes_least_loaded_plain(const uint16_t *outstanding,
							  struct lanes_keys keys, uint32_t at,
							  uint32_t among)
{
	uint32_t key[LANES];

	for (unsigned int i = 0; i < LANES; i++)
		key[i] = lanes_key(outstanding[at + i], keys.base[at + i], keys.slope[at + i]);
	return lanes_least_plain(key, among);
}

#if defined(__AVX2__)
/* All ones in lanes whose bit of <among> is clear, so that their key is never the smallest. */
static inline __m256i lanes_absent(__m256i among, int first)
{
	const __m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
	__m256i bit = _mm256_slli_epi32(low, first); /* a constant once it is inlined */

	return _mm256_cmpeq_epi32(_mm256_and_si256(among, bit), _mm256_setzero_si256());
}

static inline struct lanes_least lanes_reduce(__m256i a, __m256i b, __m256i c, __m256i d)
{
	__m256i m = _mm256_min_epu32(_mm256_min_epu32(a, b), _mm256_min_epu32(c, d));
	__m128i x = _mm_min_epu32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
	__m256i least, ab, cd, order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);

	x = _mm_min_epu32(x, _mm_shuffle_epi32(x, 0x4e));
	x = _mm_min_epu32(x, _mm_shuffle_epi32(x, 0xb1));
	least = _mm256_broadcastd_epi32(x);
	/* Packing works on halves, so eight groups of four lanes are out of order. */
	ab = _mm256_packs_epi32(_mm256_cmpeq_epi32(a, least), _mm256_cmpeq_epi32(b, least));
	cd = _mm256_packs_epi32(_mm256_cmpeq_epi32(c, least), _mm256_cmpeq_epi32(d, least));
	ab = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
	return (struct lanes_least){(uint32_t)_mm_cvtsi128_si32(x),
				    (uint32_t)_mm256_movemask_epi8(ab)};
}

static inline __m256i lanes_loaded(const uint16_t *outstanding, const struct lanes_keys *keys,
				   uint32_t at)
{
	__m256i n = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(outstanding + at)));
	__m256 more = _mm256_mul_ps(_mm256_cvtepi32_ps(n), _mm256_loadu_ps(keys->slope + at));
	__m256 all = _mm256_add_ps(_mm256_loadu_ps(keys->base + at), more);

	return _mm256_castps_si256(all);
}
#endif

static inline struct lanes_least lanes_least(const uint32_t key[LANES], uint32_t among)
{
#if defined(__AVX2__)
	const __m256i *at = (const __m256i *)key;
	const __m256i present = _mm256_set1_epi32((int)among);
	__m256i k[4];

	for (int i = 0; i < 4; i++)
		k[i] = _mm256_or_si256(_mm256_loadu_si256(&at[i]), lanes_absent(present, 8 * i));
	return lanes_reduce(k[0], k[1], k[2], k[3]);
#else
	return lanes_least_plain(key, among);
#endif
}

/* The smallest among the 32 workers from number <at> on. */
static inline struct lanes_least
lanes_least_loaded(const uint16_t *outstanding, struct lanes_keys keys, uint32_t at, uint32_t among)
{
#if defined(__AVX2__)
	const __m256i present = _mm256_set1_epi32((int)among);
	__m256i k[4];

	for (int i = 0; i < 4; i++)
		k[i] = _mm256_or_si256(lanes_loaded(outstanding, &keys, at + 8 * (uint32_t)i),
				       lanes_absent(present, 8 * i));
	return lanes_reduce(k[0], k[1], k[2], k[3]);
#else
	return lanes_least_loaded_plain(outstanding, keys, at, among);
#endif
}

#endif
