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

/*
 * Pin the pages of <at>; <*seen> gets the address at which GPUs see it, which need not be the
 * same. <io>: a device's register; where the driver does not take it as one, it is tried as memory,
 * for devices whose registers are in memory.
 */
cudaError_t gpu_pin(const volatile void *at, size_t size, bool io, void **seen);
/* Undo one gpu_pin() of <at>. */
void gpu_unpin(const volatile void *at);

#endif
