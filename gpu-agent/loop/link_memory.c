/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>

#include "loop/link_memory.h"
#include "ring.h"

#define PAGE 4096

/* Bytes of the largest room that load balancers keep account of: 2^20 pages. */
#define ROOM_MAX ((uint64_t)RING_PAGE << 20)

/* Bytes before a reply's header, so that the bytes after the header are aligned. */
#define LEAD (RING_ALIGNMENT - sizeof(struct ring_reply))

static size_t link_memory_round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

uint64_t link_memory_room(uint32_t slots, uint32_t max_request, uint32_t payload_mb)
{
	uint64_t each = link_memory_round_up(max_request, RING_PAGE), most = slots * each;
	uint64_t room = (uint64_t)payload_mb << 20;

	if (max_request <= RING_STRIDE_MAX)
		return 0;
	if (payload_mb == 0)
		room = LINK_MEMORY_ROOM_REQUESTS * each > LINK_MEMORY_ROOM
			       ? LINK_MEMORY_ROOM_REQUESTS * each
			       : LINK_MEMORY_ROOM;
	room = room < most ? room : most;
	return room < ROOM_MAX ? room : ROOM_MAX;
}

uint32_t link_memory_least_mb(uint32_t max_request)
{
	if (max_request <= RING_STRIDE_MAX)
		return 0;
	return (uint32_t)((link_memory_round_up(max_request, RING_PAGE) + (1 << 20) - 1) >> 20);
}

int link_memory_create(struct link_memory *memory, uint32_t slots, uint32_t max_request,
		       uint32_t max_reply, uint64_t room)
{
	uint32_t tile = max_request < RING_STRIDE_MAX ? max_request : RING_STRIDE_MAX;
	uint32_t stride = link_memory_round_up(tile, RING_ALIGNMENT);
	uint32_t reply_stride =
		link_memory_round_up(sizeof(struct ring_reply) + max_reply, RING_ALIGNMENT);
	size_t descriptors = link_memory_round_up(slots * sizeof(struct ring_descriptor), PAGE);
	uint64_t room_at = ring_room_at(slots, stride);
	size_t payload = link_memory_round_up(room_at + room, PAGE);
	size_t cancels = link_memory_round_up(slots * sizeof(uint64_t), PAGE);
	size_t writable = descriptors + payload + cancels;
	size_t replies = link_memory_round_up(LEAD + (size_t)slots * reply_stride, PAGE);
	void *base;

	base = mmap(NULL, writable + replies, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	*memory = (struct link_memory){
		.base = base,
		.size = writable + replies,
		.descriptors = (uintptr_t)base,
		.payloads = (uintptr_t)base + descriptors,
		.cancels = (uintptr_t)base + descriptors + payload,
		.stride = stride,
		.room_at = room_at,
		.room = room,
		.writable = {.va = (uintptr_t)base, .length = writable, .dmabuf_fd = -1},
		.replies = (uintptr_t)base + writable + LEAD,
		.reply_stride = reply_stride,
		.sendable = {.va = (uintptr_t)base + writable, .length = replies, .dmabuf_fd = -1},
	};
	return 0;
}

void link_memory_destroy(struct link_memory *memory)
{
	if (memory->base != NULL)
		munmap(memory->base, memory->size);
	memory->base = NULL;
}
