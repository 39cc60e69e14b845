/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes of GPUs, read from the CUDA driver. The library is loaded at run time, so the CLI
 * builds and starts without CUDA.
 */
#ifndef DOCTOR_CUDA_H
#define DOCTOR_CUDA_H

#include <stddef.h>

#define CUDA_GPUS_MAX 16
#define CUDA_NO_VALUE (-1) /* the driver does not know this attribute */

struct cuda_gpu {
	char name[96];
	int major, minor;    /* compute capability */
	int direct_rdma;     /* 1: a NIC may write to its memory */
	int dma_buf;         /* 1: its memory can be exported as a dma-buf */
	int writes_ordering; /* 0 none, 100 for the GPU itself, 200 for all GPUs */
	int flush_options;   /* bits: 1 by the host, 2 in a stream */
};

/*
 * Fill <gpu>; returns the number of GPUs. -ENOENT: no such library. -EIO: the library does not
 * work, with a sentence in <error>.
 */
int cuda_gpus(const char *library, struct cuda_gpu gpu[CUDA_GPUS_MAX], char *error, size_t size);

#endif
