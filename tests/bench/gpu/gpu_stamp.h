/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_STAMP_H
#define BENCH_GPU_STAMP_H

#include <stdint.h>

#include <cuda_runtime_api.h>

#define STAMPS_MAX 4096

/* Times of the GPU's clock, ns; in pinned memory. */
struct stamps {
	uint32_t n; /* of <end> */
	uint64_t begin[STAMPS_MAX], end[STAMPS_MAX];
};

#ifdef __cplusplus
extern "C" {
#endif

/* Record a kernel that notes the time: the next <begin>, or its <end>. */
cudaError_t gpu_stamp(struct stamps *stamps, int end, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
