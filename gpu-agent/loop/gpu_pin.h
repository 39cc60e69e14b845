/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pins host memory for GPUs. Loops may share pages (a NIC puts the records of several queues into
 * one): a page is registered with CUDA once per process, and unregistered by its last user. Main
 * thread.
 */
#ifndef AGENT_GPU_PIN_H
#define AGENT_GPU_PIN_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

/* Pin the pages of <at>; the GPU sees them at the same address. <io>: a device's register. */
cudaError_t gpu_pin(const volatile void *at, size_t size, bool io);
/* Undo one gpu_pin() of <at>. */
void gpu_unpin(const volatile void *at);

#endif
