/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the loop makes of a descriptor: pure, shared by the loops, and what the fuzzer feeds. The
 * bytes come over the network, so nothing in them is trusted.
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
	uint32_t deadline_us;
	uint8_t status; /* enum ring_status: RING_OK runs, everything else is only answered */
};

/* The payload area of one ring, and what the model takes. */
struct intake_ring {
	const uint8_t *slots;
	uint32_t slot_count, stride;
	uint32_t min_request, max_request; /* bytes */
};

/*
 * Is the descriptor at <position> there? Then fill <out> and return true. <at> is the ring entry. A
 * descriptor that cannot be answered (no such slot) is skipped by setting <out>->slot to
 * UINT32_MAX.
 */
bool intake_take(const struct ring_descriptor *at, uint64_t position,
		 const struct intake_ring *ring, uint64_t now_ns, struct intake *out);

/* Just before the model runs: has the client gone, or the deadline passed? */
uint8_t intake_recheck(const struct intake *request, const uint64_t *cancels, uint64_t now_ns);

#endif
