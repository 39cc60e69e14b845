/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fabric port of engine verbs: its device, and each lcore's part of it (private to
 * ports/verbs_port.c and walk/fabric_verbs.c).
 */
#ifndef LB_VERBS_PORT_PRIVATE_H
#define LB_VERBS_PORT_PRIVATE_H

#include "lcore/lcore.h"
#include "rdma/verbs_send.h"

/* One lcore's part of the port: completion queue and spare packets. */
struct verbs_port_lcore {
	struct verbs_cq completions;
	/* Allocated before completions are polled: a reply without a packet would be lost. */
	unsigned int n_spare;
	struct rte_mbuf *spare[LB_BURST];
} __rte_cache_aligned;

struct verbs_port {
	struct verbs_device device;
	struct verbs_memory *memory;
	uint32_t serial; /* counts links, to recognise completions of links that are gone */
	struct verbs_port_lcore lcore[]; /* by index */
};

/* A tag holds a serial number of 22 bits, which repeats after four million links, and the worker.
 */
#define TAG(serial, worker) ((uint32_t)(serial) << 10 | (worker))
#define TAG_WORKER(tag)     ((tag)&0x3ff)
_Static_assert(WORKERS_MAX <= 1024, "tags");

#endif
