/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An RDMA device opened through rdma-core, and RC queue pairs on it: what the verbs engines of both
 * programs share. Nothing is assumed about the device: port, GID, P_Key and MTU are looked up, and
 * verbs_describe() says what was found.
 *
 * Threads: the main thread opens and connects; who posts and polls is the engine's business.
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
	uint8_t traffic_class;   /* of what we send: DSCP and ECN bits */
};

struct verbs_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct in6_addr address; /* ours */
	uint8_t port;
	uint8_t gid_index; /* where the address stood when the device was opened */
	uint8_t traffic_class;
	uint16_t pkey_index; /* where 0xffff stands */
	uint32_t path_mtu;   /* bytes */
	uint32_t wr_max;     /* work requests per queue */
	uint32_t cqe_max;
};

/* 0, or -errno with a sentence in <error>. To ask for its events never blocks. */
int verbs_open(struct verbs_device *device, const struct verbs_params *params, char *error,
	       size_t size);
/* All that was made on it is destroyed by now. One that was never opened is fine. */
void verbs_close(struct verbs_device *device);
/* "rdma_device=rxe0 port=1 gid_index=1 gid=... pkey_index=0 path_mtu=1024 traffic_class=0" */
const char *verbs_describe(const struct verbs_device *device, char *text, size_t size);

/*
 * Make room for <more> completions in <cq>, of which <reserved> counts what is spoken for. One that
 * overflows is lost for good, and with it all queue pairs that share it: no peer may bring that
 * about. 0, or -ENOSPC when the device has no larger ones. Others may poll meanwhile.
 */
int verbs_cq_reserve(const struct verbs_device *device, struct ibv_cq *cq, uint32_t *reserved,
		     uint32_t more);

/* Wakes who sleeps on its fd, and never blocks. NULL with errno. */
struct ibv_comp_channel *verbs_channel_create(const struct verbs_device *device);
/* Take what made the fd readable. False: there was nothing. */
bool verbs_channel_drain(struct ibv_comp_channel *channel);

struct verbs_peer {
	struct in6_addr address;
	uint32_t qpn;
	uint32_t psn; /* the first it sends */
	uint32_t path_mtu;
	uint16_t udp_source;              /* that we are to send from, 0xc000 and up; 0: any */
	uint8_t ack_timeout, retry_limit; /* as in IBTA 9.9.2.1.1 and 9.7.6.1.2 */
	uint8_t rnr_retry;                /* or ROCE_RNR_FOREVER */
};

/*
 * Bring a fresh queue pair to where it sends and receives; <psn> is the first it sends, the peer
 * may WRITE. Resolves the peer's MAC address: -ETIMEDOUT when nobody answers within some
 * milliseconds (a second where the peer is behind a router). -EADDRNOTAVAIL: the device has lost
 * our address. 0 or -errno.
 */
int verbs_connect(const struct verbs_device *device, struct ibv_qp *qp, uint32_t psn,
		  const struct verbs_peer *peer);

#endif
