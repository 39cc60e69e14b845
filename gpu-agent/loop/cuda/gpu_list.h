/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs that agent_loop_cuda can run on, as CUDA describes them. Main thread. */
#ifndef AGENT_GPU_LIST_H
#define AGENT_GPU_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many there are; when 0, <why> says why. */
int agent_gpus(char *why, size_t size);
/* The GPU's product name, or "". */
void agent_gpu_name(int gpu, char *name, size_t size);
/* Its PCI address, "0000:17:00.0". False when CUDA does not say. */
bool agent_gpu_bus(int gpu, char *bus, size_t size);
/* MiB of its memory that are free, and that it has. False when CUDA does not say. */
bool agent_gpu_memory(int gpu, uint64_t *free_mb, uint64_t *total_mb);

#endif
