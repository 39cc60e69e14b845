/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu_alone.h"
#include "gpu/gpu_load.h"
#include "gpu/gpu_models.h"
#include "gpu/gpu_peer.h"
#include "loop/graph_model.h"

#define WARM        150 /* more than any ring has slots */
#define PATIENCE_NS 5000000000ull

struct gpu_models {
	struct graph_model model;
	struct rig rig;
};

struct gpu_models *gpu_models_start(const struct doorbell_graph *graph, int server,
				    gpu_models_run *plain, uint32_t slots, char *error, size_t size)
{
	static const struct agent_loop_ops *const ops[] = {
		[GPU_MODELS_LOOP] = &agent_loop_cuda,
		[GPU_MODELS_GATHERED] = &gpu_peer_gathered,
		[GPU_MODELS_COPIED] = &gpu_peer_copied,
		[GPU_MODELS_PIPELINED] = &gpu_peer_pipelined,
		[GPU_MODELS_PLAIN] = &agent_loop_cpu,
	};
	struct gpu_models *m = calloc(1, sizeof(*m));
	struct rig_params p = {
		.max_batch = graph->batch,
		/* Requests that come together are computed together, so that they are rounded
		   alike. */
		.batch_timeout_us = graph->batch > 1 ? 1000 : 0,
		.heartbeat_ms = 100,
		.links = 1,
		.slots = slots,
		.gpu = graph->gpu,
		.ops = ops[server],
	};

	if (m == NULL) {
		snprintf(error, size, "no memory");
		return NULL;
	}
	graph_model_init(&m->model, "graph", graph);
	if (plain != NULL)
		m->model.model.run = plain;
	p.own = &m->model.model;
	p.arguments = m->model.arguments;
	if (rig_start(&m->rig, &p, error, size) == 0)
		return m;
	/* The bench ends, so there is no clean-up. */
	return NULL;
}

void gpu_models_stop(struct gpu_models *m)
{
	rig_stop(&m->rig);
	free(m);
}

uint32_t gpu_models_ask(struct gpu_models *m, const uint8_t *requests, uint32_t n, uint8_t *replies)
{
	const struct doorbell_graph *g = &m->model.graph;
	uint64_t end = clock_now_ns() + PATIENCE_NS;
	uint32_t came = 0, good = 0;
	struct rig_reply r;

	for (uint32_t i = 0; i < n; i++)
		memcpy(rig_slot(&m->rig, 0, i), requests + (size_t)i * g->request_bytes,
		       g->request_bytes);
	for (uint32_t i = 0; i < n; i++)
		rig_submit(&m->rig, 0, i, g->request_bytes, NULL);
	while (came < n && clock_now_ns() < end) {
		if (!rig_reply(&m->rig, 0, &r))
			continue;
		came++;
		if (r.status != RING_OK || r.header->length != g->reply_bytes)
			continue;
		memcpy(replies + (size_t)r.slot * g->reply_bytes, r.bytes, g->reply_bytes);
		good++;
	}
	return good;
}

uint64_t gpu_models_latency(struct gpu_models *m, const uint8_t *request, uint32_t n,
			    uint32_t gap_us, struct gpu_latency *out)
{
	struct gpu_load load = {.request = request,
				.length = m->model.graph.request_bytes,
				.warm = WARM,
				.n = n,
				.gap_us = gap_us};

	return gpu_load_latency(&m->rig, &load, out) < 0 ? n : out->lost + out->wrong;
}

double gpu_models_throughput(struct gpu_models *m, const uint8_t *request, double seconds)
{
	struct gpu_load load = {
		.request = request, .length = m->model.graph.request_bytes, .filled_once = true};
	uint64_t lost;
	double rate = gpu_load_throughput(&m->rig, &load, m->rig.slots, seconds, &lost);

	return lost > 0 ? -1 : rate;
}

double gpu_models_alone_us(const struct doorbell_graph *graph, char *error, size_t size)
{
	struct graph_model m;

	graph_model_init(&m, "graph", graph);
	return gpu_alone_us(&m.model, m.arguments, graph->batch, graph->gpu, error, size);
}
