/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of packet copies from one lcore to the thread that writes them. Bounded: a packet that
 * does not fit is not taken, and neither side waits for the other. Pure; no DPDK.
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
	uint64_t tsc;      /* time, for the order among lcores */
	uint64_t ns;       /* time since 1970 */
	uint32_t length;   /* bytes copied, behind this header */
	uint32_t original; /* bytes of the whole packet */
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

/* Create a ring of <size> bytes, a power of two, with all pages populated. 0 or -ENOMEM. */
int capture_ring_init(struct capture_ring *ring, size_t size);
void capture_ring_fini(struct capture_ring *ring);

/* Lcore: room for a packet of <length> bytes, or NULL. The caller fills header (except its length)
 * and data. */
struct capture_packet *capture_ring_take(struct capture_ring *ring, uint32_t length);
/* Lcore: let the writer see all packets taken so far. */
void capture_ring_publish(struct capture_ring *ring);

/* Writer: the oldest packet, or NULL; its bytes follow it. Valid until capture_ring_drop(). */
const struct capture_packet *capture_ring_peek(struct capture_ring *ring);
void capture_ring_drop(struct capture_ring *ring);

static inline uint8_t *capture_packet_data(const struct capture_packet *packet)
{
	return (uint8_t *)(packet + 1);
}

#endif
