/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for what needs CUDA where the agent is built without it: there is never a GPU. */
#include <errno.h>
#include <stdio.h>

#include "loop/cuda/gpu_list.h"
#include "loop/cuda/gpu_memory.h"
#include "loop/graph_model.h"
#include "loop/loop.h"

/* --- loop_cuda.c --- */

static struct agent_loop *loop_none_start(const struct agent_loop_params *params, char *error,
					  size_t size)
{
	agent_gpus(error, size);
	return NULL;
}

static void loop_none_stop(struct agent_loop *loop)
{
}

static void loop_none_stats(const struct agent_loop *loop, struct agent_loop_stats *out)
{
}

static bool loop_none_failed(const struct agent_loop *loop, char *why, size_t size)
{
	return false;
}

const struct agent_loop_ops agent_loop_cuda = {
	.name = "cuda",
	.batch_max = 1,
	.start = loop_none_start,
	.stop = loop_none_stop,
	.stats = loop_none_stats,
	.failed = loop_none_failed,
};

/* --- gpu_list.c --- */

int agent_gpus(char *why, size_t size)
{
	snprintf(why, size, "built without CUDA");
	return 0;
}

void agent_gpu_name(int gpu, char *name, size_t size)
{
	name[0] = '\0';
}

bool agent_gpu_bus(int gpu, char *bus, size_t size)
{
	bus[0] = '\0';
	return false;
}

bool agent_gpu_memory(int gpu, uint64_t *free_mb, uint64_t *total_mb)
{
	return false;
}

/* --- graph_model.c --- */

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

/* --- gpu_memory.c --- */

int gpu_memory_create(struct gpu_memory *m, int gpu, size_t size, char *why, size_t why_size)
{
	*m = (struct gpu_memory){.dmabuf_fd = -1};
	snprintf(why, why_size, "built without CUDA");
	return -ENOTSUP;
}

void gpu_memory_destroy(struct gpu_memory *m)
{
}

bool gpu_memory_is_ordered(int gpu, char *why, size_t size)
{
	snprintf(why, size, "built without CUDA");
	return false;
}
