/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours that hog memory and caches: a thread on every core but the caller's, each copying
 * between buffers that no cache holds. The caller stays on its core meanwhile.
 */
#ifndef BENCH_GPU_HOGS_H
#define BENCH_GPU_HOGS_H

struct gpu_hogs;

/* NULL: no memory. */
struct gpu_hogs *gpu_hogs_start(void);
void gpu_hogs_stop(struct gpu_hogs *hogs);

#endif
