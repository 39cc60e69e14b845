/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sizes of batches that a model runs: the smallest one that has room for the requests in hand
 * runs. Pure; for the loop on a CPU, that on a GPU, and what reports of them.
 */
#ifndef AGENT_BUCKETS_H
#define AGENT_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#include "models/model.h"
#include "rdma/mlx5_post.h"

#define AGENT_BUCKETS_MAX (AGENT_MODEL_BUCKETS_MAX + 1)

struct agent_buckets {
	uint32_t n;                       /* 0: nothing was said, so there is one size */
	uint32_t rows[AGENT_BUCKETS_MAX]; /* each larger than the one before it */
};

/* Number of the smallest size that has room for <rows>, or of the largest. */
MLX5_FN uint32_t agent_bucket(const struct agent_buckets *b, uint32_t rows)
{
	uint32_t i = 0;

	while (i + 1 < b->n && b->rows[i] < rows)
		i++;
	return i;
}

#ifdef __cplusplus
extern "C" {
#endif

/* The sizes that an open model offers, max_batch the last. 0, or -EINVAL with a sentence in <why>
 * when they are not ascending sizes below max_batch. */
int agent_buckets_read(struct agent_buckets *b, const struct agent_model_shape *shape, char *why,
		       size_t size);

/* Leave out sizes of <max_batch> and more, and make that the last one. */
void agent_buckets_cut(struct agent_buckets *b, uint32_t max_batch);

#ifdef __cplusplus
}
#endif

#endif
