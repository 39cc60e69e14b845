/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of the peers: gpu_peer_kernels.cu. */
#ifndef BENCH_GPU_PEER_KERNELS_H
#define BENCH_GPU_PEER_KERNELS_H

#include <stdint.h>

#include <cuda_runtime_api.h>

#include "models/model.h"

#define PEER_BATCH_MAX 256 /* requests */

struct peer_row {
	const uint8_t *from;    /* pinned: the request */
	uint8_t *to;            /* pinned: its reply's bytes */
	uint32_t length, reply; /* bytes */
};

struct peer_table {
	uint32_t n;
	struct peer_row row[PEER_BATCH_MAX];
};

/* The rows of a kernel: <one>, or those of <table>, which is read across the bus. */
struct peer_rows {
	struct peer_row one;
	const struct peer_table *table; /* NULL: one */
	uint32_t rows_max;              /* rows of the grid */
	uint32_t bytes_max;             /* of a row; the grid is made for it */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Record: copy requests to the model's input, and write <sizes>: rows, then lengths. */
cudaError_t peer_gather(const struct peer_rows *rows, const struct agent_model_gpu *gpu,
			uint32_t *sizes, cudaStream_t stream);
/* Record: copy replies from the model's output, then set <flag>. <arrived> is 0 between kernels. */
cudaError_t peer_scatter(const struct peer_rows *rows, const struct agent_model_gpu *gpu,
			 uint32_t *arrived, volatile uint32_t *flag, cudaStream_t stream);
/* Record: copy each request to its reply's place, then set <flag>. */
cudaError_t peer_echo(const struct peer_rows *rows, uint32_t *arrived, volatile uint32_t *flag,
		      cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
