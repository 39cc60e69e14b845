/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/capture_ring.h"

#include <errno.h>
#include <sys/mman.h>

/* A length that no packet has: the rest of the ring up to its end is unused. */
#define REST UINT32_MAX

int capture_ring_init(struct capture_ring *ring, size_t size)
{
	/* MAP_POPULATE: an lcore must not wait for a page fault. */
	void *data = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (data == MAP_FAILED)
		return -ENOMEM;
	*ring = (struct capture_ring){.data = data, .size = size};
	return 0;
}

void capture_ring_fini(struct capture_ring *ring)
{
	if (ring->data != NULL)
		munmap(ring->data, ring->size);
	ring->data = NULL;
}

static struct capture_packet *ring_at(const struct capture_ring *ring, uint64_t place)
{
	return (struct capture_packet *)(void *)(ring->data + (place & (ring->size - 1)));
}

static uint64_t room_of(uint32_t length)
{
	uint64_t bytes = sizeof(struct capture_packet) + (uint64_t)length;

	return (bytes + CAPTURE_ALIGN - 1) & ~(uint64_t)(CAPTURE_ALIGN - 1);
}

struct capture_packet *capture_ring_take(struct capture_ring *ring, uint32_t length)
{
	uint64_t room = room_of(length), to_end = ring->size - (ring->next & (ring->size - 1));
	uint64_t skipped = room > to_end ? to_end : 0;
	uint64_t used = ring->next - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
	struct capture_packet *packet;

	if (skipped + room > ring->size - used)
		return NULL;
	if (skipped > 0)
		ring_at(ring, ring->next)->length = REST;
	packet = ring_at(ring, ring->next + skipped);
	packet->length = length;
	ring->next += skipped + room;
	return packet;
}

void capture_ring_publish(struct capture_ring *ring)
{
	/* Release: a reader that sees the new head sees the packets. */
	__atomic_store_n(&ring->head, ring->next, __ATOMIC_RELEASE);
}

static void ring_release(struct capture_ring *ring, uint64_t bytes)
{
	/* Release: the lcore may write the bytes again. */
	__atomic_store_n(&ring->tail, ring->tail + bytes, __ATOMIC_RELEASE);
}

const struct capture_packet *capture_ring_peek(struct capture_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	if (ring->tail == head)
		return NULL;
	/* An unused rest is published together with the packet behind it. */
	if (ring_at(ring, ring->tail)->length == REST)
		ring_release(ring, ring->size - (ring->tail & (ring->size - 1)));
	return ring_at(ring, ring->tail);
}

void capture_ring_drop(struct capture_ring *ring)
{
	ring_release(ring, room_of(ring_at(ring, ring->tail)->length));
}
