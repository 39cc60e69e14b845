/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_POST_H
#define BENCH_GPU_POST_H

#ifdef __cplusplus
extern "C" {
#endif

/* Microseconds per verb that the GPU posts into pinned host memory, <batch> to a doorbell: the
 * median of many; -1 when CUDA fails. */
double gpu_post_us(unsigned int batch);
/* GB/s of one large copy by the copy engine, from or to pinned memory. */
double gpu_copy_gbytes(int to_device);

#ifdef __cplusplus
}
#endif

#endif
