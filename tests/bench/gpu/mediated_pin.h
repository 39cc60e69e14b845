/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinning for plug-ins of the CPU's loop that use a GPU: the loop shows a model only pointers, into
 * memory that the agent has mapped.
 *
 * Owner: the thread that calls run().
 */
#ifndef BENCH_MEDIATED_PIN_H
#define BENCH_MEDIATED_PIN_H

#include <stdint.h>

#define MEDIATED_RANGES_MAX 64

struct mediated_range {
	uintptr_t from, to;
};

/* Memory that is pinned, or could not be. All zeroes: none. */
struct mediated_pins {
	struct mediated_range range[MEDIATED_RANGES_MAX];
	uint32_t n;
};

/* Pin the mapping that <address> is in, once. Says on stderr what came of it. */
void mediated_pin(struct mediated_pins *pins, const void *address);

#endif
