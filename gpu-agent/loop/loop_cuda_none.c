/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the agent is built without CUDA: no GPU is ever found.
 */
#include <stdio.h>

#include "loop/loop.h"

static struct agent_loop *start(const struct agent_loop_params *params, char *error, size_t size)
{
	agent_gpus(error, size);
	return NULL;
}

static void stop(struct agent_loop *loop)
{
}

static void read_stats(const struct agent_loop *loop, struct agent_loop_stats *out)
{
}

static bool failed(const struct agent_loop *loop, char *why, size_t size)
{
	return false;
}

const struct agent_loop_ops agent_loop_cuda = {
	.name = "cuda",
	.batch_max = 1,
	.start = start,
	.stop = stop,
	.stats = read_stats,
	.failed = failed,
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
