/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines that a peer can cause must not fill the disk: so many at once are written, then one a
 * second, and the rest is counted. Pure: a clock in, a yes or no out. Starts as zeroes.
 */
#ifndef CONTROL_LOG_LIMIT_H
#define CONTROL_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_BURST 5

struct log_limit {
	uint64_t next_ms; /* when the next line may be written, less the burst */
	unsigned long unlogged;
};

/* May a line be written now? <unlogged> is how many were not since the last that was. */
bool log_limit_passes(struct log_limit *limit, uint64_t now_ms, unsigned long *unlogged);

#endif
