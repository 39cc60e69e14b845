/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One lcore's transmit queue on one port: packets gather here during an iteration and leave in
 * bursts. Packets that the port does not take stay and go first next time, so a full NIC ring loses
 * nothing; callers check txq_room() before they push. A packet that the driver refuses is freed and
 * counted, because it would block all packets behind it. Owner: the lcore of the queue.
 */
#ifndef RUNTIME_TXQ_H
#define RUNTIME_TXQ_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define TXQ_SIZE 1024

struct txq {
	uint16_t port;
	uint16_t queue;
	uint16_t n;
	bool prepares; /* the port computes checksums: its driver sees packets before they leave */
	bool cuts;     /* the port cuts TCP segments: its tso_mbufs is not 0 */
	uint64_t checksums[2];   /* as the port's tx_checksums */
	uint64_t packets, bytes; /* handed to the port */
	uint64_t refused;        /* packets that the driver refused */
	struct rte_mbuf *packet[TXQ_SIZE];
};

static inline unsigned int txq_room(const struct txq *q)
{
	return TXQ_SIZE - q->n;
}

/* Queue a packet, which the queue then owns. The caller has checked txq_room(). */
static inline void txq_push(struct txq *q, struct rte_mbuf *m)
{
	q->packet[q->n++] = m;
	q->bytes += m->pkt_len;
}

/* Let the driver prepare packets whose checksums its NIC computes. */
static __rte_noinline void txq_prepare(struct txq *q)
{
	uint16_t good = 0;

	for (;;) {
		good += rte_eth_tx_prepare(q->port, q->queue, q->packet + good, q->n - good);
		if (good >= q->n)
			return;
		rte_pktmbuf_free(q->packet[good]);
		q->refused++;
		q->n--;
		memmove(q->packet + good, q->packet + good + 1,
			(q->n - good) * sizeof(q->packet[0]));
	}
}

/* Hand as many packets as possible to the port; returns their number. */
static inline unsigned int txq_flush(struct txq *q)
{
	uint16_t sent = 0, n;

	if (unlikely(q->prepares))
		txq_prepare(q);

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
