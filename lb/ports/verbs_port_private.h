/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric port of engine verbs: its device and what each lcore has of it (private to ports/verbs_port.c
 * and walk/fabric_verbs.c).
 */
#ifndef LB_VERBS_PORT_PRIVATE_H
#define LB_VERBS_PORT_PRIVATE_H

#include "lcore/lcore.h"
#include "rdma/verbs_send.h"

/* What one lcore has of it. */
struct verbs_port_lane {
	struct verbs_lane lane;
	/* Taken before completions are: a reply that found no packet would be lost. */
	unsigned int n_spare;
	struct rte_mbuf *spare[LB_BURST];
} __rte_cache_aligned;

struct verbs_port {
	struct verbs_device device;
	struct verbs_memory *memory;
	uint32_t serial; /* of links: tells a completion of a former one */
	struct verbs_port_lane lane[];
};

/* As many serial numbers as there is room for: one comes again after four million links. */
#define TAG(serial, worker) ((uint32_t)(serial) << 10 | (worker))
#define TAG_WORKER(tag)     ((tag)&0x3ff)
_Static_assert(WORKERS_MAX <= 1024, "tags");

#endif
