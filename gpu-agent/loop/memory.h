/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of one link: what the load balancer writes (descriptors, slots, cancel words: one
 * region) and what the RNIC reads (replies: one region). Host memory here; GPU
 * memory will be another file with the same calls.
 */
#ifndef AGENT_MEMORY_H
#define AGENT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "rnic/rnic.h"

struct link_memory {
	uint8_t *base; /* the whole allocation */
	size_t size;
	/* writable by the peer */
	uint64_t descriptors, slots, cancels;
	uint32_t stride;
	struct rnic_span writable;
	/* sendable by us */
	uint64_t replies;
	uint32_t reply_stride;
	struct rnic_span sendable;
};

/* Zeroed, page-aligned. 0 or -errno. */
int link_memory_create(struct link_memory *memory, uint32_t slots, uint32_t max_request,
		       uint32_t max_reply);
void link_memory_destroy(struct link_memory *memory);

#endif
