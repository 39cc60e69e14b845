/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MODELS_WORDS_CUDA_H
#define MODELS_WORDS_CUDA_H

#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WORDS_LENGTH 4u /* bytes in front of an element of BYTES */

struct words_options {
	uint32_t delay_us, fail_after; /* UINT32_MAX: never */
	uint32_t most;                 /* bytes of text in a piece */
};

struct words_cuda;

/* Memory for <max_batch> rows on the current GPU. NULL and <error>: there is none. */
struct words_cuda *words_cuda_create(const struct words_options *options, uint32_t max_batch,
				     char *error, size_t size);
/* Record the kernel that says the next word of every row. 0, or -errno and <error>. */
int words_cuda_capture(struct words_cuda *words, const struct agent_model_gpu *gpu, char *error,
		       size_t size);
/* NULL is fine. */
void words_cuda_destroy(struct words_cuda *words);

#ifdef __cplusplus
}
#endif

#endif
