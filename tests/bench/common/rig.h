/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rig: a whole load balancer with one lcore, between two ports that are rings. The bench is the
 * NIC on the other side of them, and turns the lcore's loop itself, on its own thread.
 */
#ifndef BENCH_RIG_H
#define BENCH_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "lcore/lcore.h"
#include "nic.h"

/* Packets of one batch: all are in memory before the first is worked on. */
#define RIG_BATCH 4096

#define RIG_WORKERS_MANY 8
#define RIG_WORKERS      (1 + RIG_WORKERS_MANY)

/*
 * Two services with workers of their own; the flows of the second follow those of the first. The
 * others are of protocol tcp, with the framings `length` and `kserve`, and have the first one's
 * worker; see rig_options.connections.
 */
enum rig_service { RIG_ONE_WORKER, RIG_MANY_WORKERS, RIG_STREAM, RIG_KSERVE, RIG_SERVICES };
#define RIG_FLOWS      1000000u
#define RIG_FLOWS_FEW  1000u
#define RIG_FLOWS_MANY RIG_FLOWS_FEW /* of RIG_MANY_WORKERS */

#define RIG_VIP         "10.0.0.100"
#define RIG_SERVICE_UDP 8500 /* of the first service; the next has the next port */
#define RIG_LB_FABRIC   "10.9.0.1"
#define RIG_HOST        "10.9.0.2" /* the workers'; several GPUs, one address */
#define RIG_PATH_MTU    4096
#define RIG_BYTES_MAX   1472 /* of a request and of a reply */
/* Bytes of a request by TCP: larger ones than a packet lie in the room of the first worker. */
#define RIG_STREAM_MAX (1u << 20)

struct rig {
	struct lb *lb;
	struct lcore *lc;
	struct nic clients, fabric;
	struct rte_mempool *received; /* what the NICs receive into */
};

/* Ends the bench with a message: the numbers would mean nothing. */
void rig_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

struct rig_options {
	bool hugepages;
	uint32_t flows, mb;   /* 0 = the daemon's default, 1792 */
	uint32_t timeout_ms;  /* of flows of the first service; 0 = an hour */
	uint32_t received;    /* packets of the NICs' pool; 0 = a batch */
	uint32_t connections; /* TCP connections at a time; 0: there are no services of TCP */
};

/* 0, or -errno after saying why. */
int rig_create(struct rig *rig, const struct rig_options *options);
void rig_destroy(struct rig *rig);

/* Receive <n> packets as a driver does: it has just written each mbuf's first cache line. */
void nic_deliver(const struct nic *nic, struct rte_mbuf *const packet[], unsigned int n);

/*
 * Mbufs for received frames. They come from a pool of their own, which is little larger than a
 * batch, so that the memory that packets lie in does not depend on how the load balancer sizes its
 * pools.
 */
void rig_alloc(const struct rig *rig, struct rte_mbuf *packet[], unsigned int n);

#endif
