/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/pattern.h"

#include <string.h>

/* The splitmix64 generator: a counter through a mixing function. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void pattern_fill(uint64_t id, uint8_t *bytes, size_t length)
{
	uint64_t state = mix(id + 1);

	for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
		uint64_t word = mix(state += 0x9e3779b97f4a7c15ull);
		size_t rest = length - done;

		memcpy(bytes + done, &word, rest < sizeof(word) ? rest : sizeof(word));
	}
}
