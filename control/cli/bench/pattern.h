/* SPDX-License-Identifier: BSD-3-Clause */
/* Contents of echo requests: sizes that sweep a range, bytes computed from the id. */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern_sizes {
	uint32_t min;
	uint32_t span; /* sizes min .. min + span - 1 */
	uint32_t stride;
};

void pattern_sizes_init(struct pattern_sizes *sizes, uint32_t min, uint32_t max);
/* The size of request <index>: 0 has the smallest, 1 the largest, and any <span> requests in a row
 * have (nearly) every size once, spread evenly. */
uint32_t pattern_size(const struct pattern_sizes *sizes, uint32_t index);

/* Fills <bytes>, of any alignment, with bytes computed from <id>. */
void pattern_fill(uint64_t id, uint8_t *bytes, size_t length);

#endif
