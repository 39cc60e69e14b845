/* SPDX-License-Identifier: BSD-3-Clause */
/* The keyed hash of a flow's key. Pure. */
#include <string.h>

#include "internal.h"

/*
 * Fold a 128-bit product. It is not linear in either factor, unlike CRC32, whose collisions are the
 * same under every seed. Three cycles.
 */
static inline uint64_t key_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* SplitMix64's finaliser. Each pair of words that a fold uses depends on both words of the seed. */
void key_secret_expand(uint64_t secret[SECRET_WORDS], const uint64_t seed[2])
{
	for (unsigned int i = 0; i < SECRET_WORDS; i++) {
		uint64_t x = seed[i % 2] + (i + 1) * 0x9e3779b97f4a7c15;

		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
		x = (x ^ x >> 27) * 0x94d049bb133111eb;
		secret[i] = x ^ x >> 31;
	}
	secret[7] |= 1; /* a factor of zero would map every key to zero */
}

/*
 * The client's address and port go into folds whose other factor the client does not know; the
 * destination only has to spread. The last fold mixes all bits, because the table takes the bucket
 * from the high bits and the tag from the low ones.
 */
static inline uint32_t key_hash(const uint64_t secret[SECRET_WORDS], const struct flow_key *key)
{
	uint64_t word[5], sum;

	memcpy(word, key, sizeof(word));
	sum = key_fold(word[0] ^ secret[0], word[1] ^ secret[1]) ^
	      key_fold(word[2] ^ word[4] ^ secret[2], word[3] ^ secret[3]) ^
	      key_fold(word[4] ^ secret[4], secret[5]);
	return (uint32_t)key_fold(sum ^ secret[6], secret[7]);
}

void conntrack_secret_init(struct conntrack_secret *secret, const uint64_t seed[2])
{
	_Static_assert(sizeof(secret->word) / sizeof(secret->word[0]) == SECRET_WORDS, "all");

	key_secret_expand(secret->word, seed);
}

uint32_t conntrack_flow_hash(const struct conntrack *ct, const struct flow *flow,
			     const struct conntrack_secret *secret)
{
	struct flow_key key;

	key_of_flow(&key, flow, conntrack_local(ct, flow));
	key.zone = 0;
	return key_hash(secret->word, &key);
}

uint32_t conntrack_hash(const struct conntrack *ct, const struct flow_key *key)
{
	return key_hash(ct->secret, key);
}

void conntrack_hash_burst(const struct conntrack *ct, const struct flow_key keys[], unsigned int n,
			  uint32_t hashes[])
{
	for (unsigned int i = 0; i < n; i++)
		hashes[i] = key_hash(ct->secret, &keys[i]);
}
