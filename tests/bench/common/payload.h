/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads that name themselves: a number of 8 bytes, then bytes that are the same in all. */
#ifndef BENCH_PAYLOAD_H
#define BENCH_PAYLOAD_H

#include <stdbool.h>
#include <stdint.h>

#define PAYLOAD_MAX 4096

/* Call it once, before the others. */
void payload_init(void);

/* Writes number and bytes, <length> together: 8 to PAYLOAD_MAX. */
void payload_write(uint8_t *to, uint32_t length, uint64_t number);
bool payload_is(const uint8_t *at, uint32_t length, uint64_t number);

#endif
