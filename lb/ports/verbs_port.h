/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fabric ports of engine verbs (private to lb/): an RDMA device where others have a DPDK port. The
 * device does what lb/walk/fabric.c, requester and responder do for a port of engine roce. Replies lie
 * in memory of the link, and are copied into packets from there: README.md says why.
 */
#ifndef LB_VERBS_PORT_H
#define LB_VERBS_PORT_H

#include "lcore/lcore.h"

/* --- control thread -----------------------------------------------------------------------------
 */

/* After all packet pools were made. 0, or -errno after logging why. */
int verbs_port_open(struct lb *lb, unsigned int port);
/* Its links are destroyed. One that is not open is fine. */
void verbs_port_close(struct lb *lb, unsigned int port);
uint32_t verbs_port_path_mtu(const struct lb *lb, unsigned int port);
/* Log what the devices have to tell since the last call. */
void verbs_ports_tick(struct lb *lb);

/* What a link to this worker needs of the device. */
struct verbs_link_params {
	unsigned int port, lcore;
	uint32_t slots, reply_stride;
	uint16_t worker;
};

/* What the peer is told; and the queue pair, which is nobody's yet. */
struct verbs_link {
	struct verbs_qp *qp;
	uint32_t qpn, reply_rkey;
	uint64_t reply_address;
};

/* 0 or -errno. */
int verbs_link_create(struct lb *lb, const struct verbs_link_params *params,
		      struct verbs_link *out);
/* Connect it, and let the link send through it: the link owns it from here on. 0 or -errno. */
int verbs_link_connect(struct lb *lb, struct link *link, const struct verbs_link *made,
		       const struct lb_registration *peer, const struct lb_link_spec *remote,
		       uint32_t psn, uint32_t path_mtu);
/* The device lets go of packets and memory. Neither twice nor none is wrong. */
void verbs_link_stop(struct link *link);
/* One that was never given to a link. */
void verbs_link_discard(struct verbs_link *made);

/* --- lcores
 * --------------------------------------------------------------------------------------- */

/* Before a sleep: true if it must not happen yet. After it. */
bool verbs_port_arm(const struct lcore *lc, unsigned int port);
void verbs_ports_awake(struct lcore *lc);

#endif
