/* SPDX-License-Identifier: BSD-3-Clause */
/* Lengths of echo requests, which sweep a range. */
#ifndef CLIENT_SIZES_H
#define CLIENT_SIZES_H

#include <stdint.h>

struct sizes {
	uint32_t min;
	uint32_t span; /* sizes min .. min + span - 1 */
	uint32_t stride;
};

void sizes_init(struct sizes *sizes, uint32_t min, uint32_t max);
/* Returns the size of request <index>: 0 has the smallest, 1 the largest, and any <span> requests
 * in a row have (nearly) every size once, spread evenly. */
uint32_t sizes_at(const struct sizes *sizes, uint32_t index);

#endif
