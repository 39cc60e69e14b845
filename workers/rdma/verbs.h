/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens an RDMA device through rdma-core and connects RC queue pairs on it, for the verbs engines
 * of both programs. Port, GID, P_Key and MTU are looked up, and verbs_describe() prints them.
 *
 * Threads: the main thread opens and connects; the engine chooses the thread that posts and polls.
 */
#ifndef RDMA_VERBS_H
#define RDMA_VERBS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct verbs_params {
	const char *device;      /* as `rdma link` names it: mlx5_0, rxe0 */
	struct in6_addr address; /* ours: one of its RoCE v2 GIDs; IPv4 as ::ffff:a.b.c.d */
	uint8_t traffic_class;   /* DSCP and ECN bits of sent packets */
};

struct verbs_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct in6_addr address; /* ours */
	uint8_t port;
	uint8_t gid_index; /* index of our address when the device was opened */
	uint8_t traffic_class;
	uint16_t pkey_index; /* index of P_Key 0xffff */
	uint32_t path_mtu;   /* bytes */
	uint32_t wr_max;     /* work requests per queue */
	uint32_t cqe_max;
};

/* Open a device. 0, or -errno with a sentence in <error>. Reading its events never blocks. */
int verbs_open(struct verbs_device *device, const struct verbs_params *params, char *error,
	       size_t size);
/*
 * Close a device, after everything on it was destroyed. A device that was never opened is ignored.
 */
void verbs_close(struct verbs_device *device);
/* "rdma_device=rxe0 port=1 gid_index=1 gid=... pkey_index=0 path_mtu=1024 traffic_class=0" */
const char *verbs_describe(const struct verbs_device *device, char *text, size_t size);

/*
 * Reserve <more> completions in <cq>, growing it if needed; *<reserved> counts the reservations. A
 * CQ that overflows is lost with all its queue pairs, and no peer may be able to cause that. 0, or
 * -ENOSPC when the device cannot grow it. Other threads may poll it meanwhile.
 */
int verbs_cq_reserve(const struct verbs_device *device, struct ibv_cq *cq, uint32_t *reserved,
		     uint32_t more);

/*
 * Create a completion channel; its fd wakes a sleeper, and reading never blocks. NULL with errno.
 */
struct ibv_comp_channel *verbs_channel_create(const struct verbs_device *device);
/* Read all events of a channel, so that its fd is no longer readable. False: there were none. */
bool verbs_channel_drain(struct ibv_comp_channel *channel);

struct verbs_peer {
	struct in6_addr address;
	uint32_t qpn;
	uint32_t psn; /* first PSN that the peer sends */
	uint32_t path_mtu;
	uint16_t udp_source;              /* our UDP source port, 0xc000 and up; 0: any */
	uint8_t ack_timeout, retry_limit; /* as in IBTA volume 1, 9.9.2.1.1 and 9.7.6.1.2 */
	uint8_t rnr_retry;                /* RNR retries, or ROCE_RNR_FOREVER */
};

/*
 * Bring a new queue pair to state RTS; <psn> is the first PSN that it sends, and the peer may
 * WRITE. 0 or -errno. -ETIMEDOUT: the peer's MAC address is unknown, and it does not answer within
 * some milliseconds (one second behind a router). -EADDRNOTAVAIL: the device has lost our address.
 */
int verbs_connect(const struct verbs_device *device, struct ibv_qp *qp, uint32_t psn,
		  const struct verbs_peer *peer);

#endif
