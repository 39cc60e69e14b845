/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of one link, in host memory: one region that the load balancer writes (descriptors,
 * slots, cancel words), one that the RNIC reads (replies). Main thread.
 */
#ifndef AGENT_LINK_MEMORY_H
#define AGENT_LINK_MEMORY_H

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

/* Allocate the memory of <slots> slots, zeroed and page-aligned. 0 or -errno. */
int link_memory_create(struct link_memory *memory, uint32_t slots, uint32_t max_request,
		       uint32_t max_reply);
void link_memory_destroy(struct link_memory *memory);

#endif
