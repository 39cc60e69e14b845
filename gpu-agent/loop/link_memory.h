/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of one link, of the host or of a GPU: one region that the load balancer writes
 * (descriptors, payloads, cancel words), one that the RNIC reads (replies). Main thread.
 */
#ifndef AGENT_LINK_MEMORY_H
#define AGENT_LINK_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "loop/cuda/gpu_memory.h"
#include "rnic/rnic.h"

struct link_memory {
	uint8_t *base; /* the whole allocation */
	size_t size;
	struct gpu_memory gpu; /* what it is a part of, when it is a GPU's */
	/* writable by the peer */
	uint64_t descriptors, payloads, cancels;
	uint32_t stride;
	uint64_t room_at, room; /* the room's offset from <payloads>; bytes */
	struct rnic_span writable;
	/* sendable by us */
	uint64_t replies;
	uint32_t reply_stride;
	struct rnic_span sendable;
};

/* The room of a link if nothing else was asked for: so many bytes, and no less than so many
 * requests. */
#define LINK_MEMORY_ROOM          ((uint64_t)32 << 20)
#define LINK_MEMORY_ROOM_REQUESTS 4

/*
 * Bytes of a link's room for requests that are longer than a tile: <payload_mb> MiB, at most what
 * the slots can use and what a load balancer serves; with 0, LINK_MEMORY_ROOM or more.
 * 0: every request fits a tile. <payload_mb> is 0 or at least link_memory_least_mb().
 */
uint64_t link_memory_room(uint32_t slots, uint32_t max_request, uint32_t payload_mb);

/* MiB that a link's room needs for one request of <max_request> bytes. 0: a tile holds it. */
uint32_t link_memory_least_mb(uint32_t max_request);

/* Allocate host memory for <slots> slots, zeroed and page-aligned, with <room> bytes for requests
 * longer than a tile. 0 or -errno. */
int link_memory_create(struct link_memory *memory, uint32_t slots, uint32_t max_request,
		       uint32_t max_reply, uint64_t room);
/* The same in the memory of <gpu>; <why> as in gpu_memory_create(). */
int link_memory_create_on_gpu(struct link_memory *memory, int gpu, uint32_t slots,
			      uint32_t max_request, uint32_t max_reply, uint64_t room, char *why,
			      size_t why_size);
void link_memory_destroy(struct link_memory *memory);

#endif
