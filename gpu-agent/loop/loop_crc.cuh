/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A header, though it holds device code: nvcc compiles it into the kernels of loop_kernels.cu,
 * inlined.
 *
 * zlib's CRC-32 (polynomial 0x04c11db7, reflected) by all threads of a block: each computes its
 * share, and shares are joined by multiplying with x^(8 * bytes behind it) modulo the polynomial.
 * Bits are reflected: bit 31 is x^0. For requests whose sender asked for the check; not meant to be
 * fast.
 */
#ifndef AGENT_LOOP_CRC_CUH
#define AGENT_LOOP_CRC_CUH

#include <stdint.h>

#define CRC_POLYNOMIAL 0xedb88320u

static __device__ uint32_t crc_multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

#pragma unroll 1
	for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
		product ^= a & bit ? b : 0;
		b = b & 1 ? b >> 1 ^ CRC_POLYNOMIAL : b >> 1;
	}
	return product;
}

/* x^(8 * bytes) */
static __device__ uint32_t crc_shift(uint32_t bytes)
{
	uint32_t power = 1u << 23 /* x^8 */, result = 1u << 31 /* 1 */;

#pragma unroll 1
	for (; bytes != 0; bytes >>= 1) {
		if (bytes & 1)
			result = crc_multiply(result, power);
		power = crc_multiply(power, power);
	}
	return result;
}

/* All threads of the block call it, and get the same sum. */
static __device__ uint32_t crc32_of(const uint8_t *data, uint32_t length)
{
	__shared__ uint32_t joined;
	uint32_t share = (length + blockDim.x - 1) / blockDim.x;
	uint32_t from = min(threadIdx.x * share, length), to = min(from + share, length);
	uint32_t crc = 0, sum;

	if (threadIdx.x == 0)
		joined = ~crc_multiply(~0u, crc_shift(length));
	__syncthreads();
#pragma unroll 1
	for (uint32_t i = from; i < to; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ CRC_POLYNOMIAL : crc >> 1;
	}
	if (crc != 0)
		atomicXor(&joined, crc_multiply(crc, crc_shift(length - to)));
	__syncthreads();
	sum = joined;
	__syncthreads();
	return sum;
}

#endif
