/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring contract v1: what a load balancer writes into a worker's memory and what the worker writes
 * back. Compiled by the load balancer, the agent and nvcc; only <stdint.h> is used.
 *
 * One ring per link, that is per (load balancer lcore, worker). The worker owns the memory and
 * registers it without relaxed ordering, so that WRITEs of one QP become visible in order:
 *
 *   descriptors   slots x 64 B     written by the load balancer, read by the worker's loop
 *   slots         slots x stride   request payloads
 *   cancel words  slots x 8 B      the sequence of a request that the client has cancelled
 *
 * Request: payload WRITE(s) into a free slot, then a WRITE of one or more consecutive descriptors
 * on the same QP. Descriptor position p (counted from 0 for ever) lies at index p mod slots and is
 * valid when its sequence reads p + 1. The load balancer is the only producer, and a slot is free
 * only after its answer. So a descriptor is never overwritten before it was read: with `slots`
 * requests outstanding nothing can be sent, and an answer proves that all descriptors up to its own
 * were read.
 *
 * Reply: one RDMA message WRITE WITH IMMEDIATE per chunk, to the slot's place in the load balancer's
 * reply region: struct ring_reply, then the chunk's bytes. The last chunk frees the slot.
 *
 * All fields are little-endian, as on every CPU and GPU this runs on. ring.md follows one request
 * byte by byte.
 */
#ifndef WORKERS_RING_H
#define WORKERS_RING_H

#include <stdint.h>

#if defined(__cplusplus)
#define RING_ASSERT(condition, text) static_assert(condition, text)
#else
#define RING_ASSERT(condition, text) _Static_assert(condition, text)
#endif
#ifdef __CUDACC__
#define RING_FN static __host__ __device__ inline
#else
#define RING_FN static inline
#endif
#define RING_OFFSET(type, field) __builtin_offsetof(struct type, field)

#define RING_VERSION 1

/* Slots per ring: a power of two. The immediate has 20 bits for the slot number. */
#define RING_SLOTS_MIN 2
#define RING_SLOTS_MAX 65536
/* Slot strides are multiples of this, so that requests start on a cache line. */
#define RING_ALIGNMENT 64

/* ring_descriptor.flags */
#define RING_HAS_CRC 0x1u /* crc32 covers the payload (paranoid mode) */

struct ring_descriptor {
	uint32_t slot;
	uint32_t length;      /* payload bytes in the slot */
	uint32_t service;     /* number of the service, for counters; models do not need it */
	uint32_t flags;	      /* RING_* */
	uint64_t flow;	      /* the load balancer's flow handle; opaque */
	uint32_t deadline_us; /* answer within this many us of arrival or not at all; 0 = no limit */
	uint32_t crc32;	      /* zlib CRC-32 of the payload if RING_HAS_CRC */
	uint32_t reserved[6]; /* zero */
	uint64_t sequence;    /* position + 1; written last, read first (acquire) */
};
RING_ASSERT(sizeof(struct ring_descriptor) == 64, "one descriptor is one cache line");
RING_ASSERT(RING_OFFSET(ring_descriptor, slot) == 0, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_descriptor, length) == 4, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_descriptor, service) == 8, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_descriptor, flags) == 12, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_descriptor, flow) == 16, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_descriptor, deadline_us) == 24, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_descriptor, crc32) == 28, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_descriptor, sequence) == 56, "the mark is the last word");

/* Precedes the bytes of every reply chunk. Times are ns of the worker's own clock. */
struct ring_reply {
	uint64_t sequence; /* of the descriptor that it answers */
	uint64_t seen_ns;  /* the loop saw the descriptor */
	uint64_t start_ns; /* the model began */
	uint64_t done_ns;  /* the model ended */
	uint32_t length;   /* bytes that follow in this chunk */
	uint32_t chunk;	   /* 0, 1, 2 ... */
};
RING_ASSERT(sizeof(struct ring_reply) == 40, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_reply, sequence) == 0, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_reply, seen_ns) == 8, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_reply, start_ns) == 16, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_reply, done_ns) == 24, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_reply, length) == 32, "ring contract v1");
RING_ASSERT(RING_OFFSET(ring_reply, chunk) == 36, "ring contract v1");

/* The result of a request, sent in the immediate. */
enum ring_status {
	RING_OK = 0,
	RING_ERROR = 1,	    /* the model refused or failed */
	RING_EXPIRED = 2,   /* the deadline passed before the model ran */
	RING_CANCELLED = 3, /* the cancel word was set before the model ran */
	RING_BAD = 4,	    /* the descriptor's length, slot or CRC was wrong */
};

/*
 * The immediate: slot [19:0], status [27:20], more chunks follow [28], heartbeat [31].
 * A heartbeat is a zero-length WRITE WITH IMMEDIATE posted by the loop itself; its low 20 bits count.
 */
#define RING_IMM_MORE	   (1u << 28)
#define RING_IMM_HEARTBEAT (1u << 31)

RING_FN uint32_t ring_imm(uint32_t slot, uint32_t status, uint32_t more)
{
	return (slot & 0xfffff) | (status & 0xff) << 20 | (more ? RING_IMM_MORE : 0);
}

RING_FN uint32_t ring_imm_slot(uint32_t imm)
{
	return imm & 0xfffff;
}

RING_FN uint32_t ring_imm_status(uint32_t imm)
{
	return imm >> 20 & 0xff;
}

#endif
