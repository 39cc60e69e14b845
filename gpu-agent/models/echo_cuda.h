/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MODELS_ECHO_CUDA_H
#define MODELS_ECHO_CUDA_H

#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Record a kernel that keeps the GPU busy for <batch_us> per batch and <delay_us> per request. 0,
 * or -errno and <error>. */
int echo_cuda_delay(const struct agent_model_gpu *gpu, uint32_t batch_us, uint32_t delay_us,
		    char *error, size_t size);

/* Record a kernel that copies requests to replies: from input to output, or, if gpu->in_place, from
 * where they lie to where they go. 0, or -errno and <error>. */
int echo_cuda_copy(const struct agent_model_gpu *gpu, char *error, size_t size);

#ifdef __cplusplus
}
#endif

#endif
