/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks what a model's capture() has made of its batch on a GPU. Needs no GPU. */
#ifndef AGENT_GPU_MODEL_H
#define AGENT_GPU_MODEL_H

#include <stddef.h>

#include "models/model.h"

/*
 * <given> is what capture() got, <left> what it has left of it, <nodes> the number of nodes that it
 * recorded. 0, or -EINVAL with a sentence in <why>.
 */
int gpu_model_check(const struct agent_model *model, const struct agent_model_gpu *given,
		    const struct agent_model_gpu *left, size_t nodes, char *why, size_t size);

/*
 * <first> is what capture() has left for one size of batch, <left> for another. Requests are copied
 * to their rows before it is known which one runs, so only <output> and its stride may differ. 0,
 * or -EINVAL with a sentence in <why>.
 */
int gpu_model_same(const struct agent_model_gpu *first, const struct agent_model_gpu *left,
		   char *why, size_t size);

#endif
