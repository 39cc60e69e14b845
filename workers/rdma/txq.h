/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One lcore's transmit queue on one port: packets gather here during a turn and leave in bursts.
 * What the port does not take stays and goes first next time, so a full NIC ring loses nothing;
 * whoever fills the queue asks txq_room() first. Owner: the lcore of the queue.
 */
#ifndef RDMA_TXQ_H
#define RDMA_TXQ_H

#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define TXQ_SIZE 1024

struct txq {
	uint16_t port;
	uint16_t queue;
	uint16_t n;
	uint64_t packets, bytes; /* handed to the port */
	struct rte_mbuf *packet[TXQ_SIZE];
};

static inline unsigned int txq_room(const struct txq *q)
{
	return TXQ_SIZE - q->n;
}

/* Takes the packet over. The caller has checked txq_room(). */
static inline void txq_push(struct txq *q, struct rte_mbuf *m)
{
	q->packet[q->n++] = m;
	q->bytes += m->pkt_len;
}

/* Hand as much as possible to the port; returns how many packets it took. */
static inline unsigned int txq_flush(struct txq *q)
{
	uint16_t sent = 0, n;

	while (sent < q->n) {
		n = rte_eth_tx_burst(q->port, q->queue, q->packet + sent, q->n - sent);
		if (n == 0)
			break;
		sent += n;
	}
	if (sent == 0)
		return 0;
	q->packets += sent;
	q->n -= sent;
	for (unsigned int i = 0; i < q->n; i++)
		q->packet[i] = q->packet[i + sent];
	return sent;
}

#endif
