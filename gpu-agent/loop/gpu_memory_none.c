/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for gpu_memory.c where the agent is built without CUDA: there is never a GPU. */
#include <errno.h>
#include <stdio.h>

#include "loop/gpu_memory.h"

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
