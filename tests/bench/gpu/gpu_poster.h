/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_POSTER_H
#define BENCH_GPU_POSTER_H

#include <stdint.h>

#include "rdma/mlx5_post.h"

#ifdef __cplusplus
extern "C" {
#endif

#define POSTERS_MAX 8

/* A warp that posts messages of <bytes>, and where they lie. In pinned memory. */
struct gpu_poster {
	struct mlx5_queue queue; /* as the GPU sees it */
	uint8_t *payload;        /* wqe_count messages; NULL: none is written */
	uint64_t local_address;  /* of the first message, as WQEs say */
	/* results */
	uint64_t posted;
	uint64_t begin_ns, end_ns, waited_ns; /* for completions */
	uint32_t stuck;                       /* completions did not come */
};

/* Post for <ns> on the current GPU, <batch> WQEs to a doorbell, with <n> posters. 0, or -1 when
 * CUDA fails. Returns when all have ended. */
int gpu_poster_run(struct gpu_poster *posters, uint32_t n, uint32_t bytes, uint32_t batch,
		   uint64_t ns);

/* Doorbells from a GPU to a thread of the host, by st.mmio or by an ordinary store. */
struct gpu_bells {
	uint64_t bell, echo; /* the host copies the one to the other */
};
/* Ring <n> times, and wait for the echo each time; <took> gets ns. 0 or -1. */
int gpu_poster_bells(struct gpu_bells *bells, int mmio, uint32_t n, uint32_t *took);

#ifdef __cplusplus
}
#endif

#endif
