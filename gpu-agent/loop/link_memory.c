/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>

#include "loop/link_memory.h"
#include "ring.h"
#include "runtime/host_page.h"

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

/* Fill <memory> with addresses from 0 on. */
static void link_memory_lay_out(struct link_memory *memory, uint32_t slots, uint32_t max_request,
				uint32_t max_reply, uint64_t room)
{
	uint32_t tile = max_request < RING_STRIDE_MAX ? max_request : RING_STRIDE_MAX;
	uint32_t stride = link_memory_round_up(tile, RING_ALIGNMENT);
	uint32_t reply_stride =
		link_memory_round_up(sizeof(struct ring_reply) + max_reply, RING_ALIGNMENT);
	/* Parts begin at pages, as a GPU maps host memory by pages. */
	size_t descriptors = host_pages_up(slots * sizeof(struct ring_descriptor));
	uint64_t room_at = ring_room_at(slots, stride);
	size_t payload = host_pages_up(room_at + room);
	size_t writable = descriptors + payload + host_pages_up(slots * sizeof(uint64_t));
	size_t replies = host_pages_up(LEAD + (size_t)slots * reply_stride);

	*memory = (struct link_memory){
		.size = writable + replies,
		.gpu = {.dmabuf_fd = -1},
		.payloads = descriptors,
		.cancels = descriptors + payload,
		.stride = stride,
		.room_at = room_at,
		.room = room,
		.writable = {.length = writable, .dmabuf_fd = -1},
		.replies = writable + LEAD,
		.reply_stride = reply_stride,
		.sendable = {.va = writable, .length = replies, .dmabuf_fd = -1},
	};
}

/* The layout begins at <at>. */
static void link_memory_move(struct link_memory *memory, uint64_t at)
{
	memory->base = (uint8_t *)(uintptr_t)at;
	memory->descriptors += at;
	memory->payloads += at;
	memory->cancels += at;
	memory->writable.va += at;
	memory->replies += at;
	memory->sendable.va += at;
}

int link_memory_create(struct link_memory *memory, uint32_t slots, uint32_t max_request,
		       uint32_t max_reply, uint64_t room)
{
	void *base;

	link_memory_lay_out(memory, slots, max_request, max_reply, room);
	base = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	link_memory_move(memory, (uintptr_t)base);
	return 0;
}

int link_memory_create_on_gpu(struct link_memory *memory, int gpu, uint32_t slots,
			      uint32_t max_request, uint32_t max_reply, uint64_t room, char *why,
			      size_t why_size)
{
	int ret;

	link_memory_lay_out(memory, slots, max_request, max_reply, room);
	ret = gpu_memory_create(&memory->gpu, gpu, memory->size, why, why_size);
	if (ret < 0)
		return ret;
	memory->writable.dmabuf_fd = memory->sendable.dmabuf_fd = memory->gpu.dmabuf_fd;
	memory->sendable.dmabuf_offset = memory->writable.length;
	memory->writable.on_gpu = memory->sendable.on_gpu = true;
	link_memory_move(memory, memory->gpu.at);
	return 0;
}

void link_memory_destroy(struct link_memory *memory)
{
	if (memory->gpu.allocation != NULL)
		gpu_memory_destroy(&memory->gpu);
	else if (memory->base != NULL)
		munmap(memory->base, memory->size);
	memory->base = NULL;
}
