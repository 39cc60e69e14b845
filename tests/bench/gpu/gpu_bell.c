/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "gpu/gpu_load.h"
#include "gpu/gpu_parts.h"
#include "gpu/gpu_poster.h"

#define BELLS  20000
#define RIGS   10
#define BYTES  16384
#define GAP_US 20

static const struct {
	const char *name;
	int mmio;
} stores[] = {{"mmio", 1}, {"relaxed", 0}};

static const struct {
	const char *name, *arguments;
} works[] = {{"nothing", "max_request=16384,kernel=0"}, {"echo", "max_request=16384,kernel=1"}};

struct echo {
	pthread_t thread;
	struct gpu_bells *bells;
	int stop; /* atomic */
};

static void *echo_run(void *argument)
{
	struct echo *e = argument;
	uint64_t last = 0, now;

	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED)) {
		now = __atomic_load_n(&e->bells->bell, __ATOMIC_ACQUIRE);
		if (now != last)
			__atomic_store_n(&e->bells->echo, now, __ATOMIC_RELEASE);
		last = now;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* A doorbell's trip to a thread of the host and its answer's trip back. */
static int measure_bells(struct report *report, struct gpu_bells *bells, uint32_t *took)
{
	for (size_t s = 0; s < sizeof(stores) / sizeof(stores[0]); s++) {
		struct echo e = {.bells = bells};
		int ret;

		memset(bells, 0, sizeof(*bells));
		if (pthread_create(&e.thread, NULL, echo_run, &e) != 0)
			return -1;
		ret = gpu_poster_bells(bells, stores[s].mmio, BELLS, took);
		__atomic_store_n(&e.stop, 1, __ATOMIC_RELAXED);
		pthread_join(e.thread, NULL);
		if (ret < 0 || bells->echo != BELLS) {
			fprintf(stderr, "bell: %lu of %u doorbells came\n",
				(unsigned long)bells->echo, BELLS);
			return -1;
		}
		qsort(took, BELLS, sizeof(*took), compare);
		report_add(report, took[BELLS / 2] / 1e3, "bell_%s_p50_us", stores[s].name);
		report_add(report, took[BELLS - BELLS / 100] / 1e3, "bell_%s_p99_us",
			   stores[s].name);
		report_add(report, took[BELLS - 1] / 1e3, "bell_%s_highest_us", stores[s].name);
	}
	return 0;
}

/* 16 KiB in loops that are started one after the other: the lowest and the highest median. */
static int measure_loops(struct report *report, const char *models, unsigned int work)
{
	static uint8_t request[BYTES] = {1};
	struct gpu_load load = {.request = request,
				.length = BYTES,
				.echo = true,
				.warm = 40,
				.n = 1000,
				.gap_us = GAP_US};
	double lowest = 0, highest = 0;

	for (unsigned int i = 0; i < RIGS; i++) {
		const struct rig_params p = {.models = models,
					     .model = "echo",
					     .arguments = works[work].arguments,
					     .max_batch = 1,
					     .heartbeat_ms = 100,
					     .links = 1,
					     .slots = 16};
		char error[512] = "";
		struct gpu_latency l;
		static struct rig rig;

		if (rig_start(&rig, &p, error, sizeof(error)) < 0) {
			fprintf(stderr, "bell: the loop does not start: %s\n", error);
			return -1;
		}
		gpu_load_latency(&rig, &load, &l);
		rig_stop(&rig);
		if (l.lost + l.wrong > 0) {
			fprintf(stderr, "bell: replies are lost or wrong\n");
			return -1;
		}
		report_add(report, l.p50_us, "again_%s_p50_us_16kib", works[work].name);
		lowest = i == 0 || l.p50_us < lowest ? l.p50_us : lowest;
		highest = l.p50_us > highest ? l.p50_us : highest;
	}
	report_add(report, lowest, "again_%s_lowest_p50_us_16kib", works[work].name);
	report_add(report, highest, "again_%s_highest_p50_us_16kib", works[work].name);
	return 0;
}

int gpu_bell_measure(struct report *report, const char *models)
{
	static struct gpu_bells *bells;
	static uint32_t *took;

	cudaSetDevice(0);
	if (bells == NULL &&
	    (cudaHostAlloc((void **)&bells, sizeof(*bells), cudaHostAllocMapped) != cudaSuccess ||
	     cudaHostAlloc((void **)&took, BELLS * sizeof(*took), cudaHostAllocMapped) !=
		     cudaSuccess)) {
		fprintf(stderr, "bell: no memory\n");
		return -1;
	}
	if (measure_bells(report, bells, took) < 0)
		return -1;
	for (unsigned int work = 0; work < sizeof(works) / sizeof(works[0]); work++)
		if (measure_loops(report, models, work) < 0)
			return -1;
	return 0;
}
