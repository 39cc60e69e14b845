/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between lcores, in bursts: a received packet goes to the lcore that owns its flow or its
 * queue pair, and a packet for a port where an lcore has no queue goes to an lcore that has one. A
 * packet is handed over at most once: its receiver keeps it.
 */
#include "walk/handover.h"

#include <netinet/in.h>

#include <rte_ethdev.h>
#include <rte_prefetch.h>

#include "lcore/lcore.h"
#include "observe/drop_packet.h"

#define AHEAD 8

unsigned int handover_owner(const struct lcore *lc, uint16_t port, const struct flow_key *key)
{
	const struct lb *lb = lc->lb;
	uint16_t queue;

	if (lb->owner_rule[port] != OWNER_RSS ||
	    (key->protocol == IPPROTO_TCP && lb->tcp_by_hash[port]))
		return owner_by_hash(conntrack_hash(lc->ct, key), lb->n_lcores);
	queue = owner_queue_by_rss(&lb->port[port].spread, key);
	return (lb->first_lcore[port] + queue) % lb->n_lcores;
}

void handover_add(struct lcore *lc, unsigned int owner, struct rte_mbuf *m)
{
	struct outbound *out = &lc->outbound[owner];

	out->packet[out->n++] = m;
	lc->n_outbound++;
}

static void handover_flush_to(struct lcore *lc, struct lcore *owner, struct outbound *out)
{
	unsigned int sent;

	sent = rte_ring_mp_enqueue_burst(owner->handover, (void **)out->packet, out->n, NULL);
	if (sent > 0)
		sleeper_wake(&owner->sleeper);
	lc->stats.handed_over += sent;
	for (unsigned int i = sent; i < out->n; i++)
		lcore_drop(lc, out->packet[i], LB_DROP_HANDOVER_FULL);
	lc->n_outbound -= out->n;
	out->n = 0;
}

void handover_flush(struct lcore *lc)
{
	for (unsigned int i = 0; lc->n_outbound > 0; i++)
		if (lc->outbound[i].n > 0)
			handover_flush_to(lc, lc->lb->lcore[i], &lc->outbound[i]);
}

unsigned int handover_spread(struct lcore *lc, uint16_t port, struct rte_mbuf **packet,
			     unsigned int n)
{
	unsigned int kept = 0, owner;
	struct flow_key key;
	uint16_t vlan;

	for (unsigned int i = 0; i < n && i < AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packet[i], void *));
	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *m = packet[i];

		if (i + AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(packet[i + AHEAD], void *));
		owner = lc->index;
		if (parse_flow(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, &key, &vlan)) {
			key.zone = lcore_zone(lc->lb, port, lcore_vlan(m, vlan));
			owner = owner_by_hash(conntrack_hash(lc->ct, &key), lc->lb->n_lcores);
		}
		if (owner == lc->index)
			packet[kept++] = m;
		else
			handover_add(lc, owner, m);
	}
	return kept;
}

unsigned int handover_transmit(struct lcore *lc, unsigned int port)
{
	struct lcore *carrier = lc->lb->lcore[lc->carrier[port]];
	struct txq *tx = &lc->tx[port];
	unsigned int sent;

	sent = rte_ring_mp_enqueue_burst(carrier->outgoing[port], (void **)tx->packet, tx->n, NULL);
	if (sent == 0)
		return 0;
	sleeper_wake(&carrier->sleeper);
	tx->n -= sent;
	memmove(tx->packet, tx->packet + sent, tx->n * sizeof(tx->packet[0]));
	return sent;
}

void handover_carry(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++) {
		struct txq *tx = &lc->tx[i];
		unsigned int n;

		if (lc->outgoing[i] == NULL)
			continue;
		n = rte_ring_sc_dequeue_burst(lc->outgoing[i], (void **)(tx->packet + tx->n),
					      txq_room(tx), NULL);
		for (; n > 0; n--)
			tx->bytes += tx->packet[tx->n++]->pkt_len;
	}
}

bool handover_waits(const struct lcore *lc)
{
	if (!rte_ring_empty(lc->handover))
		return true;
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++)
		if (lc->outgoing[i] != NULL && !rte_ring_empty(lc->outgoing[i]))
			return true;
	return false;
}
