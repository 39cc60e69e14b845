/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time that a model's graph takes by itself within a graph that a GPU launches, as the loop's
 * is. (Launched by the host, batch after batch, it also pays for each launch.)
 */
#ifndef BENCH_GPU_ALONE_H
#define BENCH_GPU_ALONE_H

#include "models/model.h"

/*
 * Serves <model>, opened with <arguments>, in a loop on GPU <gpu>, between two kernels that note
 * the time, with batches of <batch> requests. Returns the median, us, less what the two take with
 * nothing between them; or -1 with a sentence in <error>. The caller's thread plays the load
 * balancer.
 */
double gpu_alone_us(const struct agent_model *model, const char *arguments, uint32_t batch, int gpu,
		    char *error, size_t size);

#endif
