/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses and checks descriptors: pure, used by the CPU loop, its tests and the fuzzer. The bytes
 * come over the network, so nothing in them is trusted.
 */
#ifndef AGENT_INTAKE_H
#define AGENT_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "ring.h"

/* A request taken from a ring. */
struct intake {
	uint64_t sequence;
	uint64_t seen_ns;
	uint32_t slot;
	uint32_t length;
	uint32_t payload, reply; /* offsets, in units of RING_ALIGNMENT */
	uint32_t deadline_us;
	uint32_t sent_us, waited_us; /* before the loop saw it */
	uint8_t status; /* enum ring_status; the model runs RING_OK only */
};

/* The payload region of one ring, and what the model takes. */
struct intake_ring {
	const uint8_t *payloads;
	uint32_t slot_count, stride;
	uint64_t room_at, room;            /* the room's offset in the region; bytes */
	uint32_t min_request, max_request; /* bytes */
};

/*
 * Take the descriptor at <position> from the ring entry <at>, if it is there: fill <out> and return
 * true. A request without a valid slot cannot be answered: <out>->slot is UINT32_MAX.
 */
bool intake_take(const struct ring_descriptor *at, uint64_t position,
		 const struct intake_ring *ring, uint64_t now_ns, struct intake *out);

/* Check once more, just before the model runs, whether the client has gone or the deadline has
 * passed. Returns enum ring_status. */
uint8_t intake_recheck(const struct intake *request, const uint64_t *cancels, uint64_t now_ns);

#endif
