/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library libbench-gpu.so, with which gpu_models.py measures captured models. Plain C types.
 * One thread.
 */
#ifndef BENCH_GPU_MODELS_H
#define BENCH_GPU_MODELS_H

#include <stddef.h>
#include <stdint.h>

#include "doorbell_agent.h"
#include "models/model.h"

/* The server of the graph. */
enum gpu_models_server {
	GPU_MODELS_LOOP, /* the loop on the GPU */
	/* CPU threads that launch the graph: gpu_peer.h */
	GPU_MODELS_GATHERED,
	GPU_MODELS_COPIED,
	GPU_MODELS_PIPELINED,
	GPU_MODELS_PLAIN, /* a CPU thread that calls <plain>, which looks like agent_model.run() */
};

struct gpu_models;

typedef void gpu_models_run(void *state, struct agent_model_item *items, uint32_t n);

/* Starts one link of <slots>. NULL with a sentence in <error>. Graph and <plain> must stay. */
struct gpu_models *gpu_models_start(const struct doorbell_graph *graph, int server,
				    gpu_models_run *plain, uint32_t slots, char *error,
				    size_t size);
void gpu_models_stop(struct gpu_models *m);

/* Puts <n> requests into the ring at once, and copies the replies. Returns how many came and were
 * good. */
uint32_t gpu_models_ask(struct gpu_models *m, const uint8_t *requests, uint32_t n,
			uint8_t *replies);
/* Sends the same request <n> times, one at a time, <gap_us> between them. Returns how many were
 * lost or refused. */
uint64_t gpu_models_latency(struct gpu_models *m, const uint8_t *request, uint32_t n,
			    uint32_t gap_us, struct gpu_latency *out);
/* Requests per second when the ring is never empty, or -1 when some were lost. */
double gpu_models_throughput(struct gpu_models *m, const uint8_t *request, double seconds);

/* Microseconds of the graph alone (gpu_alone.h), or -1 and <error>. */
double gpu_models_alone_us(const struct doorbell_graph *graph, char *error, size_t size);

#endif
