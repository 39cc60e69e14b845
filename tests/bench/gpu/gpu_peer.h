/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CPU-mediated peers of the GPU's loop: a thread takes requests from the same rings, has the GPU
 * answer them from pinned memory where they arrived, sees that they are answered by polling, and
 * posts with the same routine. It spins, never sleeps, and may use one core fully. The kinds differ
 * in how bytes move and how many batches are in flight (gpu_peer_kind.h).
 */
#ifndef BENCH_GPU_PEER_H
#define BENCH_GPU_PEER_H

#include "loop/loop.h"

/* One graph per batch: a kernel gathers, the model, a kernel scatters and sets a flag. */
extern const struct agent_loop_ops gpu_peer_gathered;
/* One kernel that reads requests and writes replies where they lie, and sets a flag. It echoes, and
 * takes the place of a model that does the same. */
extern const struct agent_loop_ops gpu_peer_in_place;
/* Copy engines bring requests and replies, in one call per batch; the model's graph between. */
extern const struct agent_loop_ops gpu_peer_copied;
/* The same with three batches in flight: one comes in, one runs, one goes out, a stream each. */
extern const struct agent_loop_ops gpu_peer_pipelined;

#endif
