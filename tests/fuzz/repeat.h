/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a stream fuzzer keeps between inputs must not change what comes of one: now and then
 * an input is run again, many others later, and must come to the same.
 */
#ifndef FUZZ_REPEAT_H
#define FUZZ_REPEAT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framing/kserve_room.h"

#define REPEAT_EVERY     1000
#define REPEAT_INPUT_MAX 16384

/* A reader's, or model's, memory of earlier inputs: requests and replies that pass at once. */
static inline void repeat_forget(struct kserve_room *room)
{
	for (unsigned int i = 0; i < KSERVE_SEEN_SETS; i++) {
		room->seen[i].next = 0;
		for (unsigned int k = 0; k < KSERVE_SEEN_WAYS; k++)
			room->seen[i].way[k].length = 0;
	}
	for (unsigned int i = 0; i < KSERVE_FRONT; i++) {
		room->front[i].layout_number = 0;
		room->front_calls[i].layout_number = 0;
	}
}

static inline uint64_t repeat_sum(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ at[i]) * 0x100000001b3;
	return sum;
}

/* Runs the input, and sometimes an earlier one; <run> returns a sum of all that came of it. */
static inline void repeat_some(uint64_t (*run)(const uint8_t *data, size_t size),
			       const uint8_t *data, size_t size)
{
	static uint8_t kept[REPEAT_INPUT_MAX];
	static size_t kept_size;
	static uint64_t kept_sum, runs;
	uint64_t sum = run(data, size);

	if (runs++ % REPEAT_EVERY != 0)
		return;
	if (kept_size > 0 && run(kept, kept_size) != kept_sum) {
		fprintf(stderr, "an input comes to something else than %d inputs ago\n",
			REPEAT_EVERY);
		abort();
	}
	memcpy(kept, data, size);
	kept_size = size;
	kept_sum = sum;
}

#endif
