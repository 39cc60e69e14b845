/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/pattern.h"

#include <string.h>

static uint32_t divisor_of(uint32_t a, uint32_t b)
{
	while (b != 0) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void pattern_sizes_init(struct pattern_sizes *sizes, uint32_t min, uint32_t max)
{
	sizes->min = min;
	sizes->span = max - min + 1;
	/* A step near the golden section visits the range evenly; coprime to it, completely. */
	sizes->stride = (uint32_t)(sizes->span * 0.618) | 1;
	while (divisor_of(sizes->span, sizes->stride) != 1)
		sizes->stride++;
}

uint32_t pattern_size(const struct pattern_sizes *sizes, uint32_t index)
{
	if (index == 1)
		return sizes->min + sizes->span - 1;
	return sizes->min + (uint32_t)((uint64_t)index * sizes->stride % sizes->span);
}

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
