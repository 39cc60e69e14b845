/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fabric ports of engine verbs (private to lb/): an RDMA device in place of a DPDK port. The
 * device does what lb/walk/fabric.c, requester and responder do for a port of engine roce. Replies
 * lie in memory of the link, and are copied into packets from there: README.md says why.
 */
#ifndef LB_VERBS_PORT_H
#define LB_VERBS_PORT_H

#include "lcore/lcore.h"

/* --- control thread -----------------------------------------------------------------------------
 */

/* Open the port, after all packet pools were made. 0, or -errno after logging why. */
int verbs_port_open(struct lb *lb, unsigned int port);
/* Close the port, after its links were destroyed. A port that is not open is fine. */
void verbs_port_close(struct lb *lb, unsigned int port);
uint32_t verbs_port_path_mtu(const struct lb *lb, unsigned int port);
/* Log the devices' events since the last call. */
void verbs_ports_tick(struct lb *lb);

/* Most bytes that a link has for replies. */
#define VERBS_REPLIES_MAX (UINT64_C(1) << 30)

/* A link's requirements for its queue pair. */
struct verbs_link_params {
	unsigned int port, lcore;
	uint32_t replies; /* bytes of the reply region, at most VERBS_REPLIES_MAX */
	uint32_t slots;
	uint16_t worker;
};

/* A queue pair that no link owns yet, and the values that its peer gets. */
struct verbs_link {
	struct verbs_qp *qp;
	uint32_t qpn, reply_rkey;
	uint64_t reply_address;
};

/* Create a queue pair for a link. 0 or -errno. */
int verbs_link_create(struct lb *lb, const struct verbs_link_params *params,
		      struct verbs_link *out);
/* Connect the queue pair and give it to the link, which owns it from here on. 0 or -errno. */
int verbs_link_connect(struct lb *lb, struct link *link, const struct verbs_link *made,
		       const struct lb_registration *peer, const struct lb_link_spec *remote,
		       uint32_t psn, uint32_t path_mtu);
/* Destroy the link's queue pair, so that the device uses no packets or memory any more. May be
 * called again, and for links without one. */
void verbs_link_stop(struct link *link);
/* Destroy a queue pair that was never given to a link. */
void verbs_link_discard(struct verbs_link *made);

/* --- lcores ----------------------------------------------------------------------------------- */

/* Before a sleep: ask the device for a wake-up. True: poll once more first, as it was not armed. */
bool verbs_port_arm(const struct lcore *lc, unsigned int port);
/* After the sleep: read the wake-ups. */
void verbs_ports_awake(struct lcore *lc);

#endif
