/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of one GPU: how busy, full and hot it is, and errors that its driver reports (ECC, Xid).
 * By NVIDIA's management library; without it there is nothing to tell. Owner: one thread, not an
 * lcore, as a call may take milliseconds.
 */
#ifndef GPU_HEALTH_H
#define GPU_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKER_NOTICE_MAX 128

#define WORKER_DEGREES_MAX 1000

/* A GPU as its driver describes it. Numbers that it does not tell, or that cannot be, are -1. */
struct worker_gpu {
	int64_t utilization;  /* percent of the time in which a kernel ran */
	int64_t memory_used;  /* bytes */
	int64_t memory_total; /* bytes */
	int64_t temperature;  /* degrees C, up to WORKER_DEGREES_MAX */
	int64_t power_mw;
	/* memory errors since the driver was loaded; those corrected, and those that were not */
	int64_t ecc_corrected, ecc_uncorrected;
	int64_t xids;                   /* errors that the driver reported since the agent began */
	char notice[WORKER_NOTICE_MAX]; /* what an operator must look at now, or "" */
};

struct gpu_health;

/* Watch the GPU on PCI bus <bus_id>. NULL with a sentence in <error>: the library <library> (of
 * nvml.h) is not there or does not know the GPU. */
struct gpu_health *gpu_health_open(const char *library, const char *bus_id, char *error,
				   size_t size);
void gpu_health_close(struct gpu_health *h);

/*
 * Read all figures, and the errors since the last call, of which <out>->notice has the one that
 * matters most. False when the GPU cannot be relied on any more, as it is lost or its memory has
 * failed: the notice says why. A new process may find it well again.
 */
bool gpu_health_read(struct gpu_health *h, struct worker_gpu *out);

#endif
