/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for loop_cuda.c where the agent is built without CUDA: there is never a GPU.
 */
#include <stdio.h>

#include "loop/loop.h"

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

int agent_gpus(char *why, size_t size)
{
	snprintf(why, size, "built without CUDA");
	return 0;
}

void agent_gpu_name(int gpu, char *name, size_t size)
{
	name[0] = '\0';
}
