/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring contract v2: what a load balancer writes into a worker's memory and what the worker writes
 * back. Compiled by the load balancer, the agent and nvcc; only <stdint.h> is used.
 *
 * One ring per link, that is per (load balancer lcore, worker). The worker owns the memory and
 * registers it without relaxed ordering, so that WRITEs of one QP become visible in order:
 *
 *   descriptors   slots x 64 B     written by the load balancer, read by the worker's loop
 *   payloads      slots x stride   the tiles: one for each slot
 *                 room             from the next multiple of 4096 on, in pages of 4096 B
 *   cancel words  slots x 8 B      the sequence of a request that the client has cancelled
 *
 * stride is max_request, rounded up to 64 B, but at most 16 KiB; room is a multiple of 4096 B, or
 * 0. A payload lies in the tile of its slot if it has at most stride bytes, or in pages of the
 * room. The load balancer is the room's only writer and alone keeps account of its pages. They are
 * free again once the request was answered.
 *
 * Request: payload WRITE(s) into a free slot's tile or into free pages, then a WRITE of one or more
 * consecutive descriptors on the same QP. Descriptor position p (counted from 0 for ever) lies at
 * index p mod slots and is valid when its sequence reads p + 1. The load balancer is the only
 * producer, and a slot is free only after its answer. So a descriptor is never overwritten before
 * it was read: with `slots` requests outstanding nothing can be sent, and an answer proves that all
 * descriptors up to its own were read.
 *
 * Reply: one or more chunks, each one RDMA message WRITE WITH IMMEDIATE: struct ring_reply, then
 * the chunk's bytes, at most `chunk` bytes together. Chunk k goes to
 *
 *   start of the link's reply region + reply x 64 + k x chunk
 *
 * so each has its own place, and none overwrites another that was not taken yet. The load balancer
 * gives every slot a place of reply_stride bytes: a reply has at most reply_stride / chunk chunks.
 * The last chunk frees the slot. `chunk` holds the header and max_reply bytes: a reply whose bytes
 * are there at once is one chunk.
 *
 * A descriptor is an entry of 64 bytes. An entry may one day be larger, with a small payload inside
 * it in front of the descriptor (RING_INLINE), so that a request is one WRITE. The registration of
 * a link says how large (`entry`); until then it must be 64.
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

#define RING_VERSION 2

/* Slots per ring: a power of two. The immediate has 20 bits for the slot number. */
#define RING_SLOTS_MIN 2
#define RING_SLOTS_MAX 65536
/* Payloads and replies start at multiples of this, which is a cache line. Descriptors name them in
 * this unit. */
#define RING_ALIGNMENT 64
/* Bytes of a ring entry. */
#define RING_ENTRY 64
/* Bytes of the largest tile. */
#define RING_STRIDE_MAX 16384u
/* Bytes; the room begins at a multiple of this and is allocated in this unit. */
#define RING_PAGE 4096u
/* Bytes of the largest payload region, and of the largest reply region: offsets have 32 bits. */
#define RING_REGION_MAX ((uint64_t)RING_ALIGNMENT << 32)

/* ring_descriptor.flags */
#define RING_HAS_CRC 0x1u /* crc32 covers the payload (paranoid mode) */
#define RING_INLINE  0x2u /* reserved: the payload lies in the entry */

/* A GPU reads an entry in quarters of 16 bytes: all that its loop needs before it runs the model is
 * in the first two. */
struct ring_descriptor {
	uint32_t slot;
	uint32_t length;      /* payload bytes */
	uint32_t service;     /* number of the service, for counters; models do not need it */
	uint32_t flags;	      /* RING_* */
	uint32_t payload;     /* its offset in the payload region, in units of RING_ALIGNMENT */
	uint32_t reply;	      /* offset of the reply's place in the reply region, in the same units */
	uint32_t deadline_us; /* us left of the deadline at sent_us; 0 = no limit */
	uint32_t crc32;	      /* zlib CRC-32 of the payload if RING_HAS_CRC */
	uint64_t flow;	      /* the load balancer's flow handle; opaque */
	uint32_t sent_us; /* the load balancer's clock (us, CLOCK_MONOTONIC); 0: it does not tell */
	uint32_t reserved[3]; /* zero */
	uint64_t sequence;    /* position + 1; written last, read first (acquire) */
};
RING_ASSERT(sizeof(struct ring_descriptor) == RING_ENTRY, "one descriptor is one cache line");
RING_ASSERT(RING_OFFSET(ring_descriptor, slot) == 0, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, length) == 4, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, service) == 8, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, flags) == 12, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, payload) == 16, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, reply) == 20, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, deadline_us) == 24, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, crc32) == 28, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, flow) == 32, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, sent_us) == 40, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_descriptor, sequence) == 56, "the mark is the last word");

/* The largest backlog that a reply tells; it stands for larger ones, too. */
#define RING_BACKLOG_MAX UINT16_MAX

/*
 * How long a request has waited when the loop sees it, without clocks that agree. The smallest
 * difference between the worker's clock and the stamps so far is that of a request which did not
 * wait; what exceeds it was waiting: in the load balancer's queue pair, on the wire, in the ring. Of
 * one link; owner: its loop.
 */
struct ring_clock {
	uint64_t at_us; /* worker's clock, when <least> was seen; 0: never */
	uint32_t least; /* us, modulo 2^32: worker's clock minus stamp */
	uint32_t reserved;
};

/* Clocks drift apart by less than 1/RING_DRIFT: 977 ppm. So much is added to <least> with time, or
 * requests of a load balancer with the slower clock would seem to be older and older. */
#define RING_DRIFT 1024

/* us by which <least> may have grown until <now_us>; after a month without a request not so much
 * that the sign of a difference is lost. */
RING_FN uint32_t ring_clock_drift(const struct ring_clock *c, uint64_t now_us)
{
	uint64_t us = (now_us - c->at_us) / RING_DRIFT;

	return us < 0x40000000u ? (uint32_t)us : 0x40000000u;
}

/* A load balancer's clock stands while its machine is suspended or moved. Then requests seem to
 * have waited for longer than they can have, by more than this many us. */
#define RING_CLOCK_STOOD 100000

/*
 * A request with stamp <sent_us> is seen at <now_us>, both in us of their own clocks, and came no
 * longer than <most_us> ago. Of several, call it for the one that came first first. Returns what
 * ring_clock_waited() says of it from now on.
 */
RING_FN uint32_t ring_clock_note(struct ring_clock *c, uint32_t sent_us, uint64_t now_us,
				 uint64_t most_us)
{
	uint32_t difference = (uint32_t)now_us - sent_us, waited = 0;
	int32_t later = (int32_t)(difference - c->least - ring_clock_drift(c, now_us));

	if (sent_us == 0)
		return 0;
	if (c->at_us != 0 && later > 0) {
		waited = (uint64_t)later < most_us ? (uint32_t)later : (uint32_t)most_us;
		if ((uint64_t)later < most_us || (uint64_t)later - most_us < RING_CLOCK_STOOD)
			return waited;
		difference -= (uint32_t)most_us;
	}
	c->least = difference;
	c->at_us = now_us;
	return waited;
}

/* us that a request with stamp <sent_us>, seen at <now_us>, has waited; never more than <most_us>,
 * the time since the loop found the ring empty. 0 where nothing is known. */
RING_FN uint32_t ring_clock_waited(const struct ring_clock *c, uint32_t sent_us, uint64_t now_us,
				   uint64_t most_us)
{
	uint32_t at_least = c->least + ring_clock_drift(c, now_us);
	int32_t us = (int32_t)((uint32_t)now_us - sent_us - at_least);

	if (sent_us == 0 || c->at_us == 0 || us <= 0)
		return 0;
	return (uint32_t)us < most_us ? (uint32_t)us : (uint32_t)most_us;
}

/* Precedes the bytes of every reply chunk. Times are ns of the worker's own clock. */
struct ring_reply {
	uint64_t sequence; /* of the descriptor that it answers */
	uint64_t seen_ns;  /* the loop saw the descriptor */
	uint64_t start_ns; /* the model began; of a reply in several chunks, with this one */
	uint64_t done_ns;  /* the model ended; likewise */
	uint32_t length;   /* bytes that follow in this chunk */
	uint16_t chunk;	   /* 0, 1, 2 ... */
	/* requests of all links that the loop has taken, or that wait unread in its rings, without
	 * those that it answers together with this one; at most RING_BACKLOG_MAX */
	uint16_t backlog;
};
RING_ASSERT(sizeof(struct ring_reply) == 40, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_reply, sequence) == 0, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_reply, seen_ns) == 8, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_reply, start_ns) == 16, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_reply, done_ns) == 24, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_reply, length) == 32, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_reply, chunk) == 36, "ring contract v2");
RING_ASSERT(RING_OFFSET(ring_reply, backlog) == 38, "ring contract v2");

/* The result of a request, sent in the immediate. */
enum ring_status {
	RING_OK = 0,
	RING_ERROR = 1,	    /* the model refused or failed */
	RING_EXPIRED = 2,   /* the deadline passed before the model ran */
	RING_CANCELLED = 3, /* the cancel word was set before the model ran */
	RING_BAD = 4,	    /* the descriptor's length, slot, payload or CRC was wrong */
};

/*
 * The immediate: slot [19:0], status [27:20], more chunks follow [28], heartbeat [31].
 * A heartbeat is a zero-length WRITE WITH IMMEDIATE posted by the loop itself; its low 20 bits are
 * the backlog as in struct ring_reply, but at most RING_IMM_BACKLOG_MAX. (In version 1 they counted
 * the heartbeats, which nobody read.) With bit 20 the loop runs requests by their deadlines and
 * gives up what would be late; its backlog is what waits for a run, and it beats when a long run
 * begins, too.
 */
#define RING_IMM_BACKLOG_MAX 0xfffffu
#define RING_IMM_MORE	   (1u << 28)
#define RING_IMM_BY_DEADLINE (1u << 20)
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

RING_FN uint32_t ring_imm_heartbeat(uint32_t backlog)
{
	return RING_IMM_HEARTBEAT |
	       (backlog < RING_IMM_BACKLOG_MAX ? backlog : RING_IMM_BACKLOG_MAX);
}

RING_FN int ring_imm_by_deadline(uint32_t imm)
{
	return (imm & RING_IMM_BY_DEADLINE) != 0;
}

RING_FN uint32_t ring_imm_backlog(uint32_t imm)
{
	return imm & RING_IMM_BACKLOG_MAX;
}

RING_FN uint16_t ring_reply_backlog(uint32_t backlog)
{
	return backlog < RING_BACKLOG_MAX ? backlog : RING_BACKLOG_MAX;
}

/* Offset of the room in the payload region. */
RING_FN uint64_t ring_room_at(uint32_t slots, uint32_t stride)
{
	return ((uint64_t)slots * stride + RING_PAGE - 1) & ~(uint64_t)(RING_PAGE - 1);
}

/* Does a payload of <length> bytes, as a descriptor for <slot> names it, lie in the slot's tile or
 * in the room? */
RING_FN int ring_payload_fits(uint32_t slot, uint32_t payload, uint32_t length, uint32_t stride,
			      uint64_t room_at, uint64_t room)
{
	uint64_t at = (uint64_t)payload * RING_ALIGNMENT;

	/* Without branches, for a GPU. */
	int own = (at == (uint64_t)slot * stride) & (length <= stride);
	int inside = (at - room_at < room) & (length <= room - (at - room_at));

	return ((at < room_at) | (room == 0)) ? own : inside;
}

#endif
