/* SPDX-License-Identifier: BSD-3-Clause */
#include "sizes.h"

static uint32_t divisor_of(uint32_t a, uint32_t b)
{
	while (b != 0) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void sizes_init(struct sizes *sizes, uint32_t min, uint32_t max)
{
	sizes->min = min;
	sizes->span = max - min + 1;
	/* A step near the golden section visits the range evenly; coprime to it, completely. */
	sizes->stride = (uint32_t)(sizes->span * 0.618) | 1;
	while (divisor_of(sizes->span, sizes->stride) != 1)
		sizes->stride++;
}

uint32_t sizes_at(const struct sizes *sizes, uint32_t index)
{
	if (index == 1)
		return sizes->min + sizes->span - 1;
	return sizes->min + (uint32_t)((uint64_t)index * sizes->stride % sizes->span);
}
