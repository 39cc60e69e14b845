/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The best CPU-mediated peer of the GPU's loop behind a load balancer: a plug-in for the agent's
 * loop on a CPU thread. It copies requests from pinned memory where the RNIC has placed them,
 * launches the CUDA graph of the smallest batch that holds them, copies replies to where the RNIC
 * sends them from, and polls for the end. Argument: address and number of struct doorbell_graph,
 * ADDRESS:N, in ascending order of batches.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "doorbell_agent.h"
#include "mediated_pin.h"
#include "models/model.h"

#define MEDIATED_GRAPHS_MAX 16

struct mediated {
	const struct doorbell_graph *graph;
	uint32_t n;
	cudaGraphExec_t exec[MEDIATED_GRAPHS_MAX];
	cudaStream_t stream;
	struct mediated_pins pins;
};

static bool mediated_ok(cudaError_t ret, const char *what, char *error, size_t size)
{
	if (ret != cudaSuccess)
		snprintf(error, size, "%s: %s", what, cudaGetErrorString(ret));
	return ret == cudaSuccess;
}

static bool mediated_prepare(struct mediated *m, char *error, size_t size)
{
	if (!mediated_ok(cudaSetDevice(m->graph[0].gpu), "GPU", error, size) ||
	    !mediated_ok(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking), "stream",
			 error, size))
		return false;
	for (uint32_t i = 0; i < m->n; i++)
		if (!mediated_ok(cudaGraphInstantiate(&m->exec[i], m->graph[i].graph, 0), "graph",
				 error, size) ||
		    !mediated_ok(cudaGraphUpload(m->exec[i], m->stream), "graph", error, size))
			return false;
	return mediated_ok(cudaStreamSynchronize(m->stream), "graph", error, size);
}

static int mediated_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
			 void **state, char *error, size_t error_size)
{
	struct mediated *m = calloc(1, sizeof(*m));
	const struct doorbell_graph *last;
	uintptr_t at;

	if (m == NULL)
		return -ENOMEM;
	if (sscanf(arguments, "%" SCNxPTR ":%" SCNu32, &at, &m->n) != 2 || m->n == 0 ||
	    m->n > MEDIATED_GRAPHS_MAX) {
		snprintf(error, error_size, "'%s' is not ADDRESS:N", arguments);
		free(m);
		return -EINVAL;
	}
	m->graph = (const void *)at;
	if (!mediated_prepare(m, error, error_size)) {
		free(m);
		return -EIO;
	}
	last = &m->graph[m->n - 1];
	*shape = (struct agent_model_shape){
		.min_request = last->request_bytes,
		.max_request = last->request_bytes,
		.max_reply = last->reply_bytes,
		.max_batch = last->batch < max_batch ? last->batch : max_batch,
	};
	*state = m;
	return 0;
}

/* --- a batch ------------------------------------------------------------------------------------
 */

static cudaError_t mediated_launch(struct mediated *m, struct agent_model_item *items, uint32_t n)
{
	const struct doorbell_graph *g = m->graph;
	cudaError_t ret;

	while (g->batch < n)
		g++;
	for (uint32_t i = 0; i < n; i++)
		cudaMemcpyAsync((uint8_t *)(uintptr_t)g->input + (size_t)i * g->request_bytes,
				items[i].request, g->request_bytes, cudaMemcpyHostToDevice,
				m->stream);
	cudaGraphLaunch(m->exec[g - m->graph], m->stream);
	for (uint32_t i = 0; i < n; i++)
		cudaMemcpyAsync(items[i].reply,
				(const uint8_t *)g->output + (size_t)i * g->reply_bytes,
				g->reply_bytes, cudaMemcpyDeviceToHost, m->stream);
	while ((ret = cudaStreamQuery(m->stream)) == cudaErrorNotReady)
		;
	return ret;
}

static void mediated_run(void *state, struct agent_model_item *items, uint32_t n)
{
	struct mediated *m = state;
	cudaError_t ret;

	cudaSetDevice(m->graph[0].gpu); /* of this thread; cheap when it is so already */
	for (uint32_t i = 0; i < n; i++) {
		mediated_pin(&m->pins, items[i].request);
		mediated_pin(&m->pins, items[i].reply);
	}
	ret = mediated_launch(m, items, n);
	if (ret != cudaSuccess)
		fprintf(stderr, "cpu_mediated: %s\n", cudaGetErrorString(ret));
	for (uint32_t i = 0; i < n; i++) {
		items[i].reply_length = m->graph[0].reply_bytes;
		items[i].status = ret == cudaSuccess ? 0 : -EIO;
	}
}

static void mediated_describe(const void *state, struct agent_model_description *description)
{
	const struct mediated *m = state;
	int64_t up = m->graph[0].request_bytes / sizeof(float);
	int64_t down = m->graph[0].reply_bytes / sizeof(float);

	description->n_inputs = description->n_outputs = 1;
	description->input[0] = (struct agent_model_tensor){"input0", "FP32", 1, {up}};
	description->output[0] = (struct agent_model_tensor){"output0", "FP32", 1, {down}};
}

/* The process ends, and its context with it. */
static void mediated_close(void *state)
{
	free(state);
}

const struct agent_model agent_model = {
	.abi = AGENT_MODEL_ABI,
	.name = "mediated",
	.open = mediated_open,
	.run = mediated_run,
	.close = mediated_close,
	.describe = mediated_describe,
};
