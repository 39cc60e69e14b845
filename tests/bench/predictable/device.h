/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device that several processes share, and that runs one batch at a time: a file that they all
 * map, with the time at which the device will have run what it was given. A batch begins when it is
 * given, or when the one before it ends, as work on a GPU does. No CPU is busy meanwhile, but for
 * the last microseconds. Used by both sides of the bench `predictable`.
 */
#ifndef PREDICTABLE_DEVICE_H
#define PREDICTABLE_DEVICE_H

#include <stdint.h>

/* The file. */
struct device_words {
	uint64_t free_ns;                    /* CLOCK_MONOTONIC */
	uint64_t busy_ns, batches, requests; /* so far */
	uint64_t base_ns;           /* of <busy_ns>: what batches take whatever their size */
	uint64_t last_us, switches; /* the last batch's <each_us>; changes of it */
};

struct device {
	struct device_words *shared;
};

/* Map the file, which is made when it is not there. 0, or -errno. */
int device_open(struct device *device, const char *path);
void device_close(struct device *device);

/* Give the device a batch of <n> requests of the model that takes <base_us>, and <each_us> for
 * each. Any thread; returns the time of its end. */
uint64_t device_run(struct device *device, uint32_t base_us, uint32_t each_us, uint32_t n);

/* Sleep until then: at most some microseconds late where a CPU is free. */
void device_wait(uint64_t until_ns);

/* ns that a batch takes: <base_us>, and <each_us> for each of its requests. */
static inline uint64_t device_batch_ns(uint32_t base_us, uint32_t each_us, uint32_t n)
{
	return (base_us + (uint64_t)each_us * n) * 1000;
}

#endif
