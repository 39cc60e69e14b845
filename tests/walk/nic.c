/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eth_ring.h>

#include "nic.h"

static struct rte_ring *create_ring(const char *port, uint16_t queue, const char *direction)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%s_%u_%s", port, queue, direction);
	return rte_ring_create(name, NIC_SIZE, SOCKET_ID_ANY,
			       RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

int nic_create(struct nic *nic, const char *name, uint16_t n_queues)
{
	int port;

	memset(nic, 0, sizeof(*nic));
	snprintf(nic->name, sizeof(nic->name), "%s", name);
	nic->n_queues = n_queues;
	for (uint16_t q = 0; q < n_queues; q++) {
		nic->rx[q] = create_ring(name, q, "rx");
		nic->tx[q] = create_ring(name, q, "tx");
		if (nic->rx[q] == NULL || nic->tx[q] == NULL)
			return -ENOMEM;
	}
	port = rte_eth_from_rings(name, nic->rx, n_queues, nic->tx, n_queues, 0);
	if (port < 0)
		return -ENODEV;
	nic->port = port;
	return 0;
}

void nic_destroy(struct nic *nic)
{
	char device[32];

	snprintf(device, sizeof(device), "net_ring_%s", nic->name);
	rte_eal_hotplug_remove("vdev", device);
	for (uint16_t q = 0; q < nic->n_queues; q++) {
		rte_ring_free(nic->rx[q]);
		rte_ring_free(nic->tx[q]);
	}
}

bool nic_receive(const struct nic *nic, uint16_t queue, struct rte_mbuf *const packet[],
		 unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		packet[i]->port = nic->port;
		packet[i]->ol_flags = nic->ol_flags;
		packet[i]->nb_segs = 1;
	}
	return rte_ring_sp_enqueue_bulk(nic->rx[queue], (void *const *)packet, n, NULL) == n;
}

unsigned int nic_collect(const struct nic *nic, uint16_t queue, struct rte_mbuf *packet[],
			 unsigned int max)
{
	return rte_ring_sc_dequeue_burst(nic->tx[queue], (void **)packet, max, NULL);
}
