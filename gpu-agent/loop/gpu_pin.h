/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host memory that GPUs see. Loops may share pages (a NIC puts the records of several queues into
 * one): each page is registered with CUDA once in the process, and given back by the last.
 *
 * Main thread.
 */
#ifndef AGENT_GPU_PIN_H
#define AGENT_GPU_PIN_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

/* The pages of <at>, which the GPU will see under the same address. <io>: a device's register. */
cudaError_t gpu_pin(const volatile void *at, size_t size, bool io);
/* What gpu_pin() was given. */
void gpu_unpin(const volatile void *at);

#endif
