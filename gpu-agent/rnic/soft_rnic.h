/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A software RNIC: one thread that does for a worker what a ConnectX does. It reads mlx5-format
 * WQEs when a doorbell rings, sends them as RoCEv2 RC, places incoming RDMA WRITEs in memory, and
 * reports with mlx5-format CQEs. Its posters (the CPU loop, a GPU) run the code that a real NIC
 * would serve.
 *
 * Threads: as in rnic.h; calls that change the RNIC's state are passed to its thread.
 */
#ifndef AGENT_SOFT_RNIC_H
#define AGENT_SOFT_RNIC_H

#include "rnic/rnic.h"

#define SOFT_RNIC_QPS_MAX    1024
#define SOFT_RNIC_QUEUES_MAX 16

struct soft_rnic_params {
	const char *device;          /* DPDK devargs */
	uint16_t mtu;                /* IP MTU */
	struct rnic_address address; /* our own; the kernel must not have it */
	uint8_t prefix;
	struct rnic_address gateway; /* family 0: none */
	bool idle_sleep;             /* false when the poster cannot wake the RNIC (a GPU) */
	bool claimed;   /* the supervisor has claimed the interface for all its workers */
	bool gpu_reads; /* a GPU reads what is placed: demote its cache lines */
	bool dcqcn;     /* react to congestion */
	/* of the device, at most SOFT_RNIC_QUEUES_MAX; 0: one. Queue pairs spread over them by
	 * their params' <spread>; the device may have fewer. */
	uint16_t queues;
};

/* Start the RNIC. The EAL is up and has a worker lcore to spare. NULL with a sentence in <error>.
 */
struct rnic *soft_rnic_create(const struct soft_rnic_params *params, char *error, size_t size);

/*
 * DPDK's name of the device's driver. <without_xdp> gets the reason why a device "kernelN" is not
 * opened through AF_XDP, or an empty text. Both are the RNIC's.
 */
const char *soft_rnic_driver(const struct rnic *rnic, const char **without_xdp);

struct soft_rnic_stats {
	uint64_t packets_in, packets_out;
	uint64_t wqes, cqes, writes_placed;
	uint64_t dropped; /* not RoCE, not ours, malformed, bad ICRC, wrong source */
	uint64_t resent, naks_sent, naks_received;
	uint64_t busy; /* TSC cycles of polls with work */
};
void soft_rnic_stats_read(const struct rnic *rnic, struct soft_rnic_stats *out);

#endif
