/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A software RNIC: one thread that does for a worker what a ConnectX does. It reads mlx5-format
 * WQEs when a doorbell rings, sends them as RoCEv2 RC, places incoming RDMA WRITEs in memory, and
 * reports with mlx5-format CQEs. Whoever posts to it (the CPU loop, a GPU) runs the code that a
 * real NIC would see.
 *
 * Threads: create, destroy and the queue pair calls belong to the main thread; they hand over to
 * the RNIC's thread and return when it is done.
 */
#ifndef AGENT_SOFT_RNIC_H
#define AGENT_SOFT_RNIC_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mlx5_post.h"
#include "responder.h"
#include "sleeper.h"

#define SOFT_RNIC_QPS_MAX 1024

struct soft_rnic;
struct soft_qp;

struct soft_rnic_address {
	uint8_t family;       /* 4 or 6 */
	struct in6_addr addr; /* IPv4 as ::ffff:a.b.c.d */
};

struct soft_rnic_params {
	const char *device;               /* DPDK devargs */
	uint16_t mtu;                     /* IP MTU */
	struct soft_rnic_address address; /* ours; must not be the kernel's */
	uint8_t prefix;
	struct soft_rnic_address gateway; /* family 0: none */
	bool idle_sleep;                  /* false when the poster cannot wake us (a GPU) */
};

/* The EAL is up and has a worker lcore to spare. NULL with a sentence in <error>. */
struct soft_rnic *soft_rnic_create(const struct soft_rnic_params *params, char *error, size_t size);
/* Stops the thread. All queue pairs have been destroyed. */
void soft_rnic_destroy(struct soft_rnic *rnic);

/* Largest path MTU of the port. */
uint32_t soft_rnic_path_mtu(const struct soft_rnic *rnic);

/* Whoever rings a doorbell calls this afterwards, in case the RNIC sleeps. */
void soft_rnic_kick(struct soft_rnic *rnic);

/* The memory that a queue pair may read to send: one range, one key. */
struct soft_qp_local {
	uint64_t va;
	uint64_t length;
	uint32_t lkey;
};

struct soft_qp_params {
	struct rdma_region writable; /* what the peer may WRITE; addresses are this process's */
	struct soft_qp_local sendable;
	uint32_t wqe_count;   /* power of two */
	uint32_t psn;         /* the first we send */
	struct sleeper *wake; /* woken when something was written, or NULL */
	uint32_t *wqes_dead;  /* set to 1 (atomic) when the queue pair fails, or NULL */
};

/* A queue pair that cannot send or receive yet. NULL with errno. */
struct soft_qp *soft_qp_create(struct soft_rnic *rnic, const struct soft_qp_params *params);
uint32_t soft_qp_number(const struct soft_qp *qp);
/* The poster's view of the queue; copy it, the copy is the poster's own. */
struct mlx5_queue soft_qp_queue(const struct soft_qp *qp);

struct soft_qp_peer {
	struct soft_rnic_address address;
	uint32_t qpn;
	uint32_t psn; /* the first it sends */
	uint32_t path_mtu;
	uint8_t ack_timeout, retry_limit;
};

/* From here on it receives, and sends once the peer's MAC address is known. 0 or -errno. */
int soft_qp_connect(struct soft_qp *qp, const struct soft_qp_peer *peer);
void soft_qp_destroy(struct soft_qp *qp);

struct soft_rnic_stats {
	uint64_t packets_in, packets_out;
	uint64_t wqes, cqes, writes_placed;
	uint64_t dropped; /* not RoCE, not ours, malformed, bad ICRC, wrong source */
	uint64_t resent, naks_sent, naks_received;
};
void soft_rnic_stats_read(const struct soft_rnic *rnic, struct soft_rnic_stats *out);

#endif
