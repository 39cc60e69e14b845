/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for the CUDA sides of plug-ins where they are built without CUDA. The agent then never
 * calls them.
 */
#include <errno.h>
#include <stdio.h>

#include "models/echo_cuda.h"
#include "models/mlp_cuda.h"
#include "models/words_cuda.h"

int echo_cuda_delay(const struct agent_model_gpu *gpu, uint32_t batch_us, uint32_t delay_us,
		    char *error, size_t size)
{
	snprintf(error, size, "built without CUDA");
	return -ENOTSUP;
}

int echo_cuda_copy(const struct agent_model_gpu *gpu, char *error, size_t size)
{
	snprintf(error, size, "built without CUDA");
	return -ENOTSUP;
}

struct mlp_cuda *mlp_cuda_create(const struct mlp_weights *weights, char *error, size_t size)
{
	snprintf(error, size, "built without CUDA");
	return NULL;
}

int mlp_cuda_capture(struct mlp_cuda *mlp, struct agent_model_gpu *gpu, char *error, size_t size)
{
	return -ENOTSUP;
}

void mlp_cuda_destroy(struct mlp_cuda *mlp)
{
}

struct words_cuda *words_cuda_create(const struct words_options *options, uint32_t max_batch,
				     char *error, size_t size)
{
	snprintf(error, size, "built without CUDA");
	return NULL;
}

int words_cuda_capture(struct words_cuda *words, const struct agent_model_gpu *gpu, char *error,
		       size_t size)
{
	return -ENOTSUP;
}

void words_cuda_destroy(struct words_cuda *words)
{
}
