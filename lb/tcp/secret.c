/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/secret.h"

#include <string.h>

struct siphash_state {
	uint64_t v[4];
};

static uint64_t siphash_rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static void siphash_round(struct siphash_state *s)
{
	uint64_t *v = s->v;

	v[0] += v[1];
	v[2] += v[3];
	v[1] = siphash_rotate(v[1], 13) ^ v[0];
	v[3] = siphash_rotate(v[3], 16) ^ v[2];
	v[0] = siphash_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = siphash_rotate(v[1], 17) ^ v[2];
	v[3] = siphash_rotate(v[3], 21) ^ v[0];
	v[2] = siphash_rotate(v[2], 32);
}

static void siphash_word(struct siphash_state *s, uint64_t word)
{
	s->v[3] ^= word;
	siphash_round(s);
	siphash_round(s);
	s->v[0] ^= word;
}

/* Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2.1 and 2.2. */
uint64_t tcp_siphash(const uint64_t key[2], const uint64_t *word, unsigned int n, uint64_t last)
{
	struct siphash_state s = {{
		key[0] ^ 0x736f6d6570736575,
		key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261,
		key[1] ^ 0x7465646279746573,
	}};

	for (unsigned int i = 0; i < n; i++)
		siphash_word(&s, word[i]);
	siphash_word(&s, last);
	s.v[2] ^= 0xff;
	for (unsigned int i = 0; i < 4; i++)
		siphash_round(&s);
	return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

uint64_t tcp_secret_hash(const struct tcp_secret *secret, const struct tcp_ends *ends,
			 uint64_t purpose)
{
	uint64_t word[6];

	_Static_assert(sizeof(*ends) == 5 * sizeof(word[0]), "no padding");
	memcpy(word, ends, sizeof(*ends));
	word[5] = purpose;
	return tcp_siphash(secret->key, word, 6, UINT64_C(48) << 56); /* the length is last */
}

uint32_t tcp_secret_sequence(const struct tcp_secret *secret, const struct tcp_ends *ends,
			     uint32_t now_us)
{
	return (uint32_t)tcp_secret_hash(secret, ends, TCP_PURPOSE_SEQUENCE) + now_us / 4;
}

uint32_t tcp_secret_timestamp(const struct tcp_secret *secret, const struct tcp_ends *ends)
{
	return (uint32_t)tcp_secret_hash(secret, ends, TCP_PURPOSE_TIMESTAMP);
}
