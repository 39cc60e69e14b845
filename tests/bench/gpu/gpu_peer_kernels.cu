/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/gpu_peer_kernels.h"

#define BLOCK  256
#define STEP   (BLOCK * 16u) /* bytes that a block has in flight */
#define BLOCKS 64u           /* of a row at most */

static uint32_t blocks_of(const struct peer_rows *rows)
{
	uint32_t blocks = (rows->bytes_max + STEP - 1) / STEP;

	return blocks < 1 ? 1 : blocks > BLOCKS ? BLOCKS : blocks;
}

/* The block's row; false when the batch has none there. */
static __device__ bool row_of(const struct peer_rows &rows, struct peer_row *row)
{
	if (rows.table == nullptr) {
		*row = rows.one;
		return true;
	}
	*row = rows.table->row[blockIdx.y];
	return blockIdx.y < rows.table->n;
}

/* Copy <n> bytes, 16 at most. Rows that a model chose may lie anywhere, and what is behind a reply
 * belongs to the next one. */
static __device__ void copy_unit(uint8_t *to, const uint8_t *from, uint32_t n)
{
	if (n >= 16 && ((uint64_t)to | (uint64_t)from) % 16 == 0) {
		*(uint4 *)to = *(const uint4 *)from;
		return;
	}
	for (uint32_t i = 0; i < n && i < 16; i++)
		to[i] = from[i];
}

/* All blocks of the row. */
static __device__ void copy(uint8_t *to, const uint8_t *from, uint32_t length)
{
	for (uint32_t at = (blockIdx.x * BLOCK + threadIdx.x) * 16; at < length;
	     at += gridDim.x * STEP)
		copy_unit(to + at, from + at, length - at);
}

/* The last block to come here sets the flag: by then the host sees all that the grid wrote. */
static __device__ void set_flag(uint32_t *arrived, volatile uint32_t *flag)
{
	__syncthreads();
	if (threadIdx.x != 0)
		return;
	__threadfence_system();
	if (gridDim.x * gridDim.y > 1) {
		if (atomicAdd(arrived, 1) != gridDim.x * gridDim.y - 1)
			return;
		*arrived = 0;
		__threadfence_system();
	}
	*flag = 1;
}

static __global__ void __launch_bounds__(BLOCK)
	gather(const __grid_constant__ struct peer_rows rows,
	       const __grid_constant__ struct agent_model_gpu gpu, uint32_t *sizes)
{
	struct peer_row row;
	bool mine = row_of(rows, &row);

	if (blockIdx.x == 0 && threadIdx.x == 0) {
		if (blockIdx.y == 0)
			sizes[0] = rows.table == nullptr ? 1 : rows.table->n;
		sizes[1 + blockIdx.y] = mine ? row.length : 0;
	}
	if (mine)
		copy((uint8_t *)gpu.input + blockIdx.y * gpu.input_stride, row.from, row.length);
}

static __global__ void __launch_bounds__(BLOCK)
	scatter(const __grid_constant__ struct peer_rows rows,
		const __grid_constant__ struct agent_model_gpu gpu, uint32_t *arrived,
		volatile uint32_t *flag)
{
	struct peer_row row;

	if (row_of(rows, &row))
		copy(row.to, (const uint8_t *)gpu.output + blockIdx.y * gpu.output_stride,
		     row.reply);
	set_flag(arrived, flag);
}

static __global__ void __launch_bounds__(BLOCK) echo(const __grid_constant__ struct peer_rows rows,
						     uint32_t *arrived, volatile uint32_t *flag)
{
	struct peer_row row;

	if (row_of(rows, &row))
		copy(row.to, row.from, row.length);
	set_flag(arrived, flag);
}

extern "C" cudaError_t peer_gather(const struct peer_rows *rows, const struct agent_model_gpu *gpu,
				   uint32_t *sizes, cudaStream_t stream)
{
	gather<<<dim3(blocks_of(rows), rows->rows_max), BLOCK, 0, stream>>>(*rows, *gpu, sizes);
	return cudaGetLastError();
}

extern "C" cudaError_t peer_scatter(const struct peer_rows *rows, const struct agent_model_gpu *gpu,
				    uint32_t *arrived, volatile uint32_t *flag, cudaStream_t stream)
{
	scatter<<<dim3(blocks_of(rows), rows->rows_max), BLOCK, 0, stream>>>(*rows, *gpu, arrived,
									     flag);
	return cudaGetLastError();
}

extern "C" cudaError_t peer_echo(const struct peer_rows *rows, uint32_t *arrived,
				 volatile uint32_t *flag, cudaStream_t stream)
{
	echo<<<dim3(blocks_of(rows), rows->rows_max), BLOCK, 0, stream>>>(*rows, arrived, flag);
	return cudaGetLastError();
}
