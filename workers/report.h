/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An agent's report of its worker: the batches that it has run, by their size, and its GPU. Control
 * thread; a copy per worker.
 */
#ifndef WORKERS_REPORT_H
#define WORKERS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define WORKER_SIZES_MAX  8
#define WORKER_NOTICE_MAX 128

/* Batches of one size, since the registration. */
struct worker_size {
	uint32_t rows;
	uint64_t batches;
	uint64_t run_us; /* of the model, all of them together */
};

/* A GPU as its driver describes it. Numbers that it does not tell are -1. */
struct worker_gpu {
	int64_t utilization;  /* percent of the time in which a kernel ran */
	int64_t memory_used;  /* bytes */
	int64_t memory_total; /* bytes */
	int64_t temperature;  /* degrees C */
	int64_t power_mw;
	/* memory errors since the driver was loaded; those corrected, and those that were not */
	int64_t ecc_corrected, ecc_uncorrected;
	int64_t xids;                   /* errors that the driver reported since the agent began */
	char notice[WORKER_NOTICE_MAX]; /* what an operator must look at now, or "" */
};

struct worker_report {
	uint32_t n_sizes;
	struct worker_size size[WORKER_SIZES_MAX];
	bool has_gpu;
	struct worker_gpu gpu;
};

#endif
