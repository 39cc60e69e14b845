/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limit lines in the log that a peer can cause, so that they cannot fill the disk: a burst of lines
 * is written, then one a second, and the rest is counted. Pure: a clock in, a yes or no out. Starts
 * as zeroes.
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

/*
 * True when a line may be written now; <unlogged> gets how many were dropped since the last one
 * that was written.
 */
bool log_limit_passes(struct log_limit *limit, uint64_t now_ms, unsigned long *unlogged);

#endif
