/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's share of its GPU's memory (--gpu-memory-mb). CUDA has no limit for a process outside
 * MPS, so this one is looked at, not enforced: it must be free before the model is loaded, and no
 * more may be gone when the loop is up. Other programs that take memory of that GPU in between
 * count, too. Main thread.
 */
#ifndef AGENT_GPU_BUDGET_H
#define AGENT_GPU_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_budget {
	uint32_t mb; /* 0: none */
	int gpu;
	uint64_t free_mb; /* before the model was loaded */
};

/* Begin a budget of <mb> (0: none) on <gpu>. False with a sentence in <why>: so much is not free,
 * or CUDA does not say how much is. */
bool gpu_budget_begin(struct gpu_budget *b, uint32_t mb, int gpu, char *why, size_t size);
/* True while no more than the budget was taken since; else <why> says how much was. */
bool gpu_budget_keeps(const struct gpu_budget *b, char *why, size_t size);

#endif
