/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port made of two rings per queue (net_ring), seen from the wire: what the load balancer will
 * receive and what it has sent. For tests and benches that turn an lcore's loop themselves.
 */
#ifndef WALK_NIC_H
#define WALK_NIC_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

/* Packets that fit each ring. */
#define NIC_SIZE       1024
#define NIC_QUEUES_MAX 8

struct nic {
	char name[16];
	uint16_t port;
	uint16_t n_queues;
	uint64_t ol_flags; /* of every packet that is received; 0: the NIC verified nothing */
	struct rte_ring *rx[NIC_QUEUES_MAX], *tx[NIC_QUEUES_MAX];
};

/*
 * Create the rings and a port on them, which lb_create() finds by the device net_ring_<name>. 0 or
 * -errno.
 */
int nic_create(struct nic *nic, const char *name, uint16_t n_queues);
/* Call it after the port was closed. The rings are empty. */
void nic_destroy(struct nic *nic);

/* Receives <n> packets as a driver does. False: the queue has no room, and the packets remain the
 * caller's. */
bool nic_receive(const struct nic *nic, uint16_t queue, struct rte_mbuf *const packet[],
		 unsigned int n);
/* Takes the packets that the port has sent on a queue since the last call, at most <max>. */
unsigned int nic_collect(const struct nic *nic, uint16_t queue, struct rte_mbuf *packet[],
			 unsigned int max);

#endif
