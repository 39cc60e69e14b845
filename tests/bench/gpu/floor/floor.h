/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hardware leaves a floor: the least that a request can take by each way of answering it,
 * without rings, batches, checks or models. A host thread writes a mark behind a request of <bytes>
 * in pinned memory, the GPU answers with <reply_bytes> and a bell, also in pinned memory. Nothing
 * is verified but that each answer came.
 */
#ifndef BENCH_GPU_FLOOR_H
#define BENCH_GPU_FLOOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum floor_way {
	FLOOR_BELL,        /* a resident block polls the mark and rings; no payload */
	FLOOR_SPECULATIVE, /* it reads mark and payload in one trip: in no order that a NIC keeps */
	FLOOR_RESIDENT,    /* it reads the payload when it has seen the mark */
	FLOOR_STAGGERED,   /* the same; two warps poll, half a trip apart; up to 3 KiB */
	FLOOR_L2,       /* FLOOR_RESIDENT, and a resident block of another SM copies: flags in L2 */
	FLOOR_KERNELS,  /* polling kernel, copying kernel, answering kernel, in one graph */
	FLOOR_TAIL,     /* the same; the answering kernel is launched programmatically */
	FLOOR_BOTH,     /* the copying one, too: both wait for the kernel before, resident */
	FLOOR_IN_PLACE, /* polling kernel, kernel that copies in place and rings */
	FLOOR_WAYS,
};

/* Median microseconds from the mark to the bell, 20 us between requests; < 0: <error>. Only the
 * three kernels of a graph know replies of other than <bytes>. */
double floor_us(enum floor_way way, uint32_t bytes, uint32_t reply_bytes, uint32_t n, char *error,
		uint64_t size);

enum floor_copy {
	FLOOR_IN,       /* host to GPU, by threads, four loads of 16 bytes in flight each */
	FLOOR_IN_BULK,  /* TMA: cp.async.bulk through shared memory */
	FLOOR_OUT,      /* GPU to host, by threads */
	FLOOR_OUT_BULK, /* by TMA */
	FLOOR_COPIES,
};

/* Median microseconds that <bytes> take across the bus, from a barrier of the grid to the next; <
 * 0: <error>. */
double floor_copy_us(enum floor_copy copy, uint32_t bytes, uint32_t blocks, char *error,
		     uint64_t size);

#ifdef __cplusplus
}
#endif

#endif
