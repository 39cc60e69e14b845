/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters of a link (a queue pair and a ring between one lcore and one worker) that agent
 * and load balancer exchange.
 */
#ifndef LB_LINK_SPEC_H
#define LB_LINK_SPEC_H

#include <stdint.h>

#include "config/config.h"
#include "pool.h"

/* The agent's half of one link. */
struct lb_link_spec {
	uint16_t lcore;
	uint32_t qpn, psn; /* the agent's queue pair and the first PSN it sends */
	uint32_t rkey;     /* of the memory below */
	uint64_t descriptors, payloads, cancels; /* addresses */
	uint32_t stride;                         /* bytes from tile to tile of the payloads */
	uint64_t room;  /* bytes behind the tiles; a multiple of RING_PAGE */
	uint32_t entry; /* bytes of an entry; RING_ENTRY */
};

/* The load balancer's half of one link. */
struct lb_link_info {
	uint16_t lcore;
	uint32_t qpn, psn;
	uint32_t reply_rkey;
	uint64_t reply_address; /* start of the reply region */
	uint64_t reply_stride;  /* bytes of it that each slot has */
	uint32_t chunk;         /* bytes from chunk to chunk of a reply */
	/* UDP source port whose packets the NIC gives to the lcore's own queue; 0: not known. */
	uint16_t udp_source;
};

struct lb_registration {
	struct worker_spec worker; /* its description lies with the caller */
	struct lb_address address; /* of the agent's RoCEv2 endpoint */
	uint32_t path_mtu;         /* the largest that the agent can receive: 256..4096 */
	uint32_t max_chunks;       /* of a reply; 0 is 1 */
	unsigned int n_links;      /* one per lcore */
	struct lb_link_spec link[LB_LCORES_MAX];
};

#endif
