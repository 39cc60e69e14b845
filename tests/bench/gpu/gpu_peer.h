/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The best CPU-mediated peer of the GPU's loop: a thread takes requests from the same rings, copies
 * them from pinned memory where they arrived, launches the model's CUDA graph, copies replies to
 * where they are sent from, waits by polling, and posts with the same routine. It spins and never
 * sleeps.
 */
#ifndef BENCH_GPU_PEER_H
#define BENCH_GPU_PEER_H

#include "loop/loop.h"

extern const struct agent_loop_ops gpu_peer;

/* Microseconds that the model's graph alone takes on GPU <gpu>, batch after batch: the median of
 * many, or -1 with a sentence in <error>. */
double gpu_model_alone_us(const struct agent_model *model, void *state,
			  const struct agent_model_shape *shape, uint32_t batch, int gpu,
			  char *error, size_t size);

#endif
