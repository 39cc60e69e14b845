/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>

#include <cuda_runtime_api.h>

#include "loop/cuda/gpu_graph.h"
#include "loop/graph_model.h"

/* 0, or -EINVAL when <at> is not memory of the graph's GPU. */
static int graph_model_check_buffer(const struct doorbell_graph *g, const void *at,
				    const char *what, char *error, size_t size)
{
	struct cudaPointerAttributes seen;
	cudaError_t ret = cudaPointerGetAttributes(&seen, at);

	if (ret == cudaSuccess && seen.type == cudaMemoryTypeDevice && seen.device == g->gpu)
		return 0;
	cudaGetLastError();
	snprintf(error, size, "its %s is not in memory of GPU %d", what, g->gpu);
	return -EINVAL;
}

static int graph_model_check(const struct doorbell_graph *g, char *error, size_t size)
{
	cudaError_t cuda;
	int ret;

	if (g->graph == NULL || g->request_bytes == 0 || g->reply_bytes == 0 || g->batch == 0) {
		snprintf(error, size, "there is no graph, or its requests or replies are empty");
		return -EINVAL;
	}
	cuda = cudaSetDevice(g->gpu);
	if (cuda != cudaSuccess) {
		cudaGetLastError();
		snprintf(error, size, "GPU %d: %s", g->gpu, cudaGetErrorString(cuda));
		return -ENODEV;
	}
	ret = graph_model_check_buffer(g, g->input, "input", error, size);
	if (ret == 0)
		ret = graph_model_check_buffer(g, g->output, "output", error, size);
	if (ret == 0)
		ret = gpu_graph_check(g->graph, error, size);
	for (uint32_t i = 0; ret == 0 && i < g->n_smaller; i++) {
		ret = graph_model_check_buffer(g, g->smaller[i].output, "output", error, size);
		if (ret == 0)
			ret = gpu_graph_check(g->smaller[i].graph, error, size);
	}
	return ret;
}

/* The smallest graph for batches of <rows>. */
static struct doorbell_smaller graph_model_of(const struct doorbell_graph *g, uint32_t rows)
{
	for (uint32_t i = 0; i < g->n_smaller; i++)
		if (g->smaller[i].batch >= rows)
			return g->smaller[i];
	return (struct doorbell_smaller){g->graph, g->output, g->batch};
}

/* Sizes of batches; those that the operator's max_batch does not need are left out. */
static void graph_model_offer(const struct doorbell_graph *g, struct agent_model_shape *shape)
{
	for (uint32_t i = 0; i < g->n_smaller && i < AGENT_MODEL_BUCKETS_MAX; i++)
		if (g->smaller[i].batch < shape->max_batch)
			shape->bucket[shape->n_buckets++] = g->smaller[i].batch;
}

static int graph_model_open(const char *arguments, uint32_t max_batch,
			    struct agent_model_shape *shape, void **state, char *error, size_t size)
{
	struct graph_model *m;
	void *at;
	int ret;

	if (sscanf(arguments, "%p", &at) != 1)
		return -EINVAL;
	m = at;
	ret = graph_model_check(&m->graph, error, size);
	if (ret < 0)
		return ret;
	*shape = (struct agent_model_shape){
		.min_request = m->graph.request_bytes,
		.max_request = m->graph.request_bytes,
		.max_reply = m->graph.reply_bytes,
		.max_batch = m->graph.batch < max_batch ? m->graph.batch : max_batch,
	};
	graph_model_offer(&m->graph, shape);
	*state = m;
	return 0;
}

/* The agent never runs such a model on a CPU; requests would get error replies. */
static void graph_model_run(void *state, struct agent_model_item *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		items[i].status = -ENODEV;
}

static int graph_model_capture(void *state, struct agent_model_gpu *gpu, char *error, size_t size)
{
	const struct doorbell_graph *g = &((struct graph_model *)state)->graph;
	struct doorbell_smaller graph = graph_model_of(g, gpu->max_batch);

	gpu->input = (void *)(uintptr_t)g->input;
	gpu->output = (void *)(uintptr_t)graph.output;
	gpu->input_stride = g->request_bytes;
	gpu->output_stride = g->reply_bytes;
	gpu->statuses = NULL;
	gpu->reply_lengths = NULL;
	gpu->reply_length = g->reply_bytes;
	return gpu_graph_embed(gpu->stream, graph.graph, error, size);
}

static void graph_model_describe(const void *state, struct agent_model_description *description)
{
	*description = *((const struct graph_model *)state)->graph.description;
}

static void graph_model_sample(const void *state, struct agent_model_sample *sample)
{
	const struct doorbell_graph *g = &((const struct graph_model *)state)->graph;

	sample->request = g->sample;
	sample->request_length = g->request_bytes;
}

static void graph_model_close(void *state)
{
}

void graph_model_init(struct graph_model *m, const char *name, const struct doorbell_graph *graph)
{
	*m = (struct graph_model){
		.model = {.abi = AGENT_MODEL_ABI,
			  .name = name,
			  .open = graph_model_open,
			  .run = graph_model_run,
			  .close = graph_model_close,
			  .capture = graph_model_capture,
			  .sample = graph_model_sample,
			  .describe = graph->description != NULL ? graph_model_describe : NULL},
		.graph = *graph,
	};
	snprintf(m->arguments, sizeof(m->arguments), "%p", (void *)m);
}
