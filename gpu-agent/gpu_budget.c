/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu_budget.h"

#include <inttypes.h>
#include <stdio.h>

#include "loop/cuda/gpu_list.h"

bool gpu_budget_begin(struct gpu_budget *b, uint32_t mb, int gpu, char *why, size_t size)
{
	uint64_t total_mb = 0;

	*b = (struct gpu_budget){.mb = mb, .gpu = gpu};
	if (mb == 0)
		return true;
	if (!agent_gpu_memory(gpu, &b->free_mb, &total_mb)) {
		snprintf(why, size, "CUDA does not say how much memory of GPU %d is free", gpu);
		return false;
	}
	if (b->free_mb >= mb)
		return true;
	snprintf(why, size,
		 "GPU %d has %" PRIu64 " MB of its %" PRIu64
		 " free; stop other programs on it (nvidia-smi lists them), or give less",
		 gpu, b->free_mb, total_mb);
	return false;
}

bool gpu_budget_keeps(const struct gpu_budget *b, char *why, size_t size)
{
	uint64_t free_mb, total_mb, taken;

	if (b->mb == 0)
		return true;
	if (!agent_gpu_memory(b->gpu, &free_mb, &total_mb)) {
		snprintf(why, size, "CUDA does not say how much memory of GPU %d is free", b->gpu);
		return false;
	}
	taken = b->free_mb > free_mb ? b->free_mb - free_mb : 0;
	if (taken <= b->mb)
		return true;
	snprintf(why, size,
		 "the model and its loop have taken %" PRIu64
		 " MB of GPU %d; give more, a smaller --max-batch, or another model",
		 taken, b->gpu);
	return false;
}
