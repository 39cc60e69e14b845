/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>

#include "models/buckets.h"

int agent_buckets_read(struct agent_buckets *b, const struct agent_model_shape *shape, char *why,
		       size_t size)
{
	uint32_t before = 0;

	*b = (struct agent_buckets){0};
	if (shape->n_buckets > AGENT_MODEL_BUCKETS_MAX) {
		snprintf(why, size, "n_buckets: %u is too many; offer %u or fewer",
			 shape->n_buckets, AGENT_MODEL_BUCKETS_MAX);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < shape->n_buckets; i++) {
		if (shape->bucket[i] <= before || shape->bucket[i] >= shape->max_batch) {
			snprintf(why, size,
				 "bucket[%u]: %u rows; each must be more than the one before it, "
				 "and less than max_batch, %u",
				 i, shape->bucket[i], shape->max_batch);
			return -EINVAL;
		}
		before = b->rows[b->n++] = shape->bucket[i];
	}
	b->rows[b->n++] = shape->max_batch;
	return 0;
}

void agent_buckets_cut(struct agent_buckets *b, uint32_t max_batch)
{
	while (b->n > 0 && b->rows[b->n - 1] >= max_batch)
		b->n--;
	b->rows[b->n++] = max_batch;
}
