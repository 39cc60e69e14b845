/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The perceptron on a GPU: all layers in one kernel, one block per request.
 */
#ifndef MODELS_MLP_CUDA_H
#define MODELS_MLP_CUDA_H

#include "models/mlp_weights.h"
#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct mlp_cuda;

/* Copy <weights> to the current GPU. NULL with a sentence in <error>. */
struct mlp_cuda *mlp_cuda_create(const struct mlp_weights *weights, char *error, size_t size);
/* Record the model's kernel. 0, or -errno and <error>. */
int mlp_cuda_capture(struct mlp_cuda *mlp, struct agent_model_gpu *gpu, char *error, size_t size);
/* Free it. NULL is fine. */
void mlp_cuda_destroy(struct mlp_cuda *mlp);

#ifdef __cplusplus
}
#endif

#endif
