/* SPDX-License-Identifier: BSD-3-Clause */
/* Contents of echo requests: bytes computed from the id. */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Fill <bytes>, of any alignment, with bytes computed from <id>. */
void pattern_fill(uint64_t id, uint8_t *bytes, size_t length);

#endif
