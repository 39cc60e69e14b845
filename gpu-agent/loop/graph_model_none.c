/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for graph_model.c where the agent is built without CUDA: a graph cannot be served. */
#include <errno.h>
#include <stdio.h>

#include "loop/graph_model.h"

static int graph_model_none_open(const char *arguments, uint32_t max_batch,
				 struct agent_model_shape *shape, void **state, char *error,
				 size_t size)
{
	snprintf(error, size, "this agent was built without CUDA");
	return -ENOTSUP;
}

void graph_model_init(struct graph_model *m, const char *name, const struct doorbell_graph *graph)
{
	*m = (struct graph_model){
		.model = {.abi = AGENT_MODEL_ABI, .name = name, .open = graph_model_none_open}};
}
