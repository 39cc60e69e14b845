/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An agent's report of its worker: the batches that it has run, by their size, and its GPU. Control
 * thread; a copy per worker.
 */
#ifndef WORKERS_REPORT_H
#define WORKERS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/health.h"

#define WORKER_SIZES_MAX 8

/* Batches of one size, since the registration. */
struct worker_size {
	uint32_t rows;
	uint64_t batches;
	uint64_t run_us; /* of the model, all of them together */
};

struct worker_report {
	uint32_t n_sizes;
	struct worker_size size[WORKER_SIZES_MAX];
	bool has_gpu;
	struct worker_gpu gpu;
};

#endif
