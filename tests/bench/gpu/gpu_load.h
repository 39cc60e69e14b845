/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Load for a worker's loop in this process: requests go into its rings as a NIC would write them,
 * with a deadline, as all that a load balancer sends; replies are read as a NIC would read them.
 * The time is from the descriptor's mark to the doorbell of the reply. One thread.
 */
#ifndef BENCH_GPU_LOAD_H
#define BENCH_GPU_LOAD_H

#include "../../gpu/rig.h"

/* The requests of a load. */
struct gpu_load {
	const uint8_t *request; /* bytes of every request */
	uint32_t length;
	bool echo;     /* every reply must be the request */
	uint32_t warm; /* requests before those that count */
	uint32_t n;
	uint32_t gap_us; /* between a reply and the next request */
	/* gpu_load_throughput(): each slot is filled once and sent again as it is. Filling it takes
	 * the client longer than the loop takes for a large request. */
	bool filled_once;
};

struct gpu_latency {
	double p10_us, p50_us, p99_us, p999_us;
	double gpu_p50_us, gpu_p99_us; /* by the loop's own clock: seen to model done */
	/* Medians of its parts: seen to begun, begun to done, and the time before and after. */
	double taken_us, run_us, outside_us;
	/* The least and the most of the means of 64 classes, which requests belong to in turn. As a
	 * graph of the loop has 64 turns, one class pays for launching it again. */
	double class_low_us, class_high_us;
	uint64_t lost, wrong;
};

/* Sends one request at a time. 0, or -1 when no memory is left. */
int gpu_load_latency(struct rig *rig, const struct gpu_load *load, struct gpu_latency *out);

/* <window> requests at a time, on all links in turn, for <seconds>. Requests per second; <lost>
 * counts those never answered. */
double gpu_load_throughput(struct rig *rig, const struct gpu_load *load, uint32_t window,
			   double seconds, uint64_t *lost);

#endif
