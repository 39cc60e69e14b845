/* SPDX-License-Identifier: BSD-3-Clause */
/* The keyed hash of a flow's key. Pure. */
#include <string.h>

#include "internal.h"

/*
 * 128-bit product, folded. Not linear in either factor, unlike CRC32, whose collisions stay
 * collisions under every seed. Three cycles.
 */
static inline uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t fold_pair(const uint8_t *bytes, const uint64_t secret[2])
{
	uint64_t word[2];

	memcpy(word, bytes, sizeof(word));
	return fold(word[0] ^ secret[0], word[1] ^ secret[1]);
}

/* <length> is one of the two key lengths. */
static inline uint32_t hash_bytes(const uint64_t secret[SECRET_WORDS], const void *key,
				  size_t length)
{
	const uint8_t *bytes = key;
	uint64_t sum = fold_pair(bytes, secret);

	if (length == KEY6_LEN)
		sum ^= fold_pair(bytes + 16, secret + 2) ^ fold_pair(bytes + 32, secret + 4);
	/* Once more: rte_hash takes the bucket from the low bits, the signature from the high. */
	return (uint32_t)fold(sum ^ secret[6], secret[7]);
}

/* SplitMix64's finaliser; each pair that a fold uses comes from both words of the seed. */
void key_secret_expand(uint64_t secret[SECRET_WORDS], const uint64_t seed[2])
{
	for (unsigned int i = 0; i < SECRET_WORDS; i++) {
		uint64_t x = seed[i % 2] + (i + 1) * 0x9e3779b97f4a7c15;

		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
		x = (x ^ x >> 27) * 0x94d049bb133111eb;
		secret[i] = x ^ x >> 31;
	}
	secret[7] |= 1; /* zero would map everything to zero */
}

uint32_t key_hash_unseeded(const void *key, uint32_t length, uint32_t init)
{
	const uint64_t seed[2] = {init, ~(uint64_t)init};
	uint64_t secret[SECRET_WORDS];

	key_secret_expand(secret, seed);
	return hash_bytes(secret, key, length);
}

uint32_t conntrack_hash(const struct conntrack *ct, const struct flow_key *key)
{
	return hash_bytes(ct->secret, key, key_length(key));
}
