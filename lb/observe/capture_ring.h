/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of packets on their way from one lcore to the thread that writes them. Bounded: what does
 * not fit is not taken, and neither side ever waits for the other. Pure: no DPDK.
 */
#ifndef CAPTURE_RING_H
#define CAPTURE_RING_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Packets start at multiples of this, so that a header always fits before the end. */
#define CAPTURE_ALIGN 32

enum capture_direction { CAPTURE_IN = 1, CAPTURE_OUT = 2 };

struct capture_packet {
	uint64_t tsc;      /* when, for the order among lcores */
	uint64_t ns;       /* when, since 1970 */
	uint32_t length;   /* bytes that were taken, behind this header */
	uint32_t original; /* and there were */
	uint16_t queue;
	uint8_t direction;
	uint8_t filler[5];
};
static_assert(sizeof(struct capture_packet) == CAPTURE_ALIGN, "a header between any two packets");

struct capture_ring {
	uint8_t *data;
	size_t size;
	uint64_t next;                              /* lcore: bytes ever taken */
	uint64_t head;                              /* atomic: of those, bytes that may be read */
	uint64_t tail __attribute__((aligned(64))); /* atomic, writer's: bytes ever read */
};

/* <size>: a power of two. Its pages are there from the start. 0 or -ENOMEM. */
int capture_ring_init(struct capture_ring *ring, size_t size);
void capture_ring_fini(struct capture_ring *ring);

/* Lcore: room for a packet of <length> bytes, or NULL; fill header (but its length) and data. */
struct capture_packet *capture_ring_take(struct capture_ring *ring, uint32_t length);
/* Lcore: let the writer see what was taken so far. */
void capture_ring_publish(struct capture_ring *ring);

/* Writer: the oldest packet, or NULL; its bytes follow it. Valid until it is dropped. */
const struct capture_packet *capture_ring_peek(struct capture_ring *ring);
void capture_ring_drop(struct capture_ring *ring);

static inline uint8_t *capture_packet_data(const struct capture_packet *packet)
{
	return (uint8_t *)(packet + 1);
}

#endif
