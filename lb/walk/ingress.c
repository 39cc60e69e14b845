/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive a burst and sort it: client requests and RoCE packets go on to their stages, requests for
 * an address are answered here, everything else is dropped and counted under its reason.
 */
#include "walk/ingress.h"

#include <rte_ethdev.h>

#include "lcore/lcore.h"
#include "packet/parse.h"
#include "ports/verbs_port.h"
#include "walk/answer.h"
#include "observe/drop_packet.h"
#include "walk/fabric_verbs.h"
#include "walk/handover.h"
#include "walk/icmp.h"
#include "walk/reassemble.h"
#include "walk/refuse.h"

/*
 * NONE includes the bit of GOOD: it means that the bytes are intact although the checksum is wrong,
 * because a sender on the same machine left the checksum to hardware that the packet never passed.
 */
static uint32_t ingress_checked_by_nic(const struct port *port, const struct rte_mbuf *m)
{
	uint64_t good = m->ol_flags & port->rx_checksums;

	static_assert((RTE_MBUF_F_RX_IP_CKSUM_NONE & RTE_MBUF_F_RX_IP_CKSUM_GOOD) != 0 &&
			      (RTE_MBUF_F_RX_L4_CKSUM_NONE & RTE_MBUF_F_RX_L4_CKSUM_GOOD) != 0,
		      "NONE has the bit of GOOD");
	return (good & RTE_MBUF_F_RX_IP_CKSUM_GOOD ? PARSE_IP_CHECKED : 0) |
	       (good & RTE_MBUF_F_RX_L4_CKSUM_GOOD ? PARSE_L4_CHECKED : 0);
}

/* A RoCE packet belongs to the lcore that owns its queue pair, not to the queue it came by. */
static void ingress_sort_roce(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p,
			      const struct lb_port_config *port)
{
	struct fabric_burst *f = &lc->fabric;
	const uint8_t *qpn;
	unsigned int owner;

	if (!port->fabric)
		return lcore_drop(lc, m, LB_DROP_ROCE_CLIENT_PORT);
	if (p->payload_length < ROCE_BTH_LENGTH + ROCE_ICRC_LENGTH)
		return lcore_drop(lc, m, LB_DROP_ROCE_MALFORMED);
	qpn = rte_pktmbuf_mtod_offset(m, uint8_t *, p->payload_offset + 5);
	owner = LINK_QPN_LCORE((uint32_t)qpn[0] << 16 | qpn[1] << 8 | qpn[2]);
	if (owner >= lc->lb->n_lcores)
		return lcore_drop(lc, m, LB_DROP_ROCE_QPN);
	if (owner == lc->index) {
		f->packet[f->n] = m;
		f->parsed[f->n++] = *p;
	} else {
		handover_add(lc, owner, m);
	}
}

static __rte_noinline void ingress_sort_tcp(struct lcore *lc, struct rte_mbuf *m,
					    const struct parsed *p, uint16_t index, bool handed)
{
	struct segment_burst *s = &lc->segments;
	struct flow_key *key = &s->key[s->n];
	unsigned int owner;

	if (lc->edge == NULL)
		return lcore_drop(lc, m, LB_DROP_L4_PROTOCOL);
	if (!lc->lb->config.port[index].clients)
		return lcore_drop(lc, m, LB_DROP_NOT_OUR_ADDRESS);
	*key = lc->burst.key[lc->burst.n];
	key->zone = lcore_zone(lc->lb, index, p->vlan);
	if (lc->lb->tcp_by_hash[index] && !handed) {
		owner = handover_owner(lc, index, key);
		if (owner != lc->index)
			return handover_add(lc, owner, m);
	}
	s->parsed[s->n] = *p;
	s->parsed[s->n].port = index;
	s->packet[s->n++] = m;
}

/* The segments from <from> on, of which there is one at most, had their checksum left to hardware.
 */
static __rte_noinline void ingress_check_left(struct lcore *lc, unsigned int from)
{
	struct segment_burst *s = &lc->segments;
	struct flow *flow;
	uint32_t hash;

	if (s->n == from)
		return;
	hash = conntrack_hash(lc->ct, &s->key[from]);
	conntrack_lookup_burst(lc->ct, &s->key[from], &hash, 1, &flow);
	if (flow != NULL && !flow->sums_left)
		lcore_drop(lc, s->packet[--s->n], LB_DROP_TCP_CHECKSUM);
}

static void ingress_sort_left(struct lcore *lc, struct rte_mbuf *m)
{
	unsigned int from = lc->segments.n;

	m->ol_flags |= LCORE_SUM_LEFT;
	ingress_sort(lc, m);
	ingress_check_left(lc, from);
}

static __rte_noinline void ingress_sort_dropped(struct lcore *lc, struct rte_mbuf *m,
						struct parsed *p, uint16_t index)
{
	bool sum = p->reason == LB_DROP_UDP_CHECKSUM || p->reason == LB_DROP_TCP_CHECKSUM;
	bool cut = p->reason == LB_DROP_TRUNCATED || p->reason == LB_DROP_UDP_LENGTH;

	if (sum && lc->lb->port[index].local_senders &&
	    parse_finish_checksum(rte_pktmbuf_mtod(m, uint8_t *), p))
		return ingress_sort_left(lc, m);
	/* Shorter than its headers say: it was too large for a buffer or the path. */
	if (cut && lc->lb->config.port[index].clients)
		refuse_cut(lc, m, p, index);
	lcore_drop(lc, m, p->reason);
}

/* Sort one packet of port <index>. <handed>: another lcore received it and passed it on. */
static __rte_always_inline void ingress_sort_one(struct lcore *lc, struct rte_mbuf *m,
						 uint16_t index, bool handed, struct fetch fetch)
{
	const struct port *port = &lc->lb->port[index];
	const struct lb_port_config *config = &lc->lb->config.port[index];
	struct burst *b = &lc->burst;
	struct parsed *p = &b->parsed[b->n];

	parse_frame_fetching(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, port->mac,
			     ingress_checked_by_nic(port, m), fetch, p, &b->key[b->n]);
	p->vlan = lcore_vlan(m, p->vlan);
	switch (p->kind) {
	case PARSE_UDP:
		if (unlikely(!config->clients))
			return lcore_drop(lc, m, LB_DROP_NOT_OUR_ADDRESS);
		p->port = index;
		b->key[b->n].zone = lcore_zone(lc->lb, index, p->vlan);
		b->packet[b->n++] = m;
		return;
	case PARSE_ROCE:
		return ingress_sort_roce(lc, m, p, config);
	case PARSE_ARP:
	case PARSE_ND:
		return answer_neighbour(lc, m, p);
	case PARSE_ICMP_ECHO:
		return answer_echo(lc, m, p);
	case PARSE_FRAGMENT:
		b->key[b->n].zone = lcore_zone(lc->lb, index, p->vlan);
		return reassemble_add(lc, m, p, &b->key[b->n], handed);
	case PARSE_ICMP_ERROR:
		b->key[b->n].zone = lcore_zone(lc->lb, index, p->vlan);
		return icmp_error(lc, m, p, &b->key[b->n], handed);
	case PARSE_TCP:
		return ingress_sort_tcp(lc, m, p, index, handed);
	default:
		return ingress_sort_dropped(lc, m, p, index);
	}
}

/* Another lcore has completed the packet's checksum, and this one knows the flow. */
static __rte_noinline void ingress_sort_handed_left(struct lcore *lc, struct rte_mbuf *m,
						    struct fetch fetch)
{
	unsigned int from = lc->segments.n;
	uint16_t port = lc->lb->port_index[m->port];

	ingress_sort_one(lc, m, port, true, fetch);
	if (lc->lb->port[port].local_senders)
		ingress_check_left(lc, from);
}

void ingress_sort(struct lcore *lc, struct rte_mbuf *m)
{
	ingress_sort_one(lc, m, lc->lb->port_index[m->port], false, (struct fetch){0});
}

/*
 * Prefetch a packet from end to end. All its bytes are read soon, for a client's checksum or the
 * fabric's ICRC, and the hardware's prefetcher would start too late for each.
 */
static inline struct fetch ingress_fetch(const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	return (struct fetch){frame, frame + m->data_len};
}

/* Sort a burst of <port>. <handed>: the packets came from other lcores and name their own ports. */
static __rte_always_inline void ingress_sort_burst(struct lcore *lc, struct rte_mbuf **packet,
						   unsigned int n, uint16_t port, bool handed)
{
	const unsigned int ahead = 3;
	struct fetch fetch;

	lcore_begin_burst(lc);
	for (unsigned int i = 0; i < n && i < ahead; i++) {
		fetch = ingress_fetch(packet[i]);
		fetch_rest(&fetch);
	}
	for (unsigned int i = 0; i < n; i++) {
		fetch = i + ahead < n ? ingress_fetch(packet[i + ahead]) : (struct fetch){0};
		if (handed && unlikely(lcore_sum_was_left(packet[i])))
			ingress_sort_handed_left(lc, packet[i], fetch);
		else
			ingress_sort_one(lc, packet[i],
					 handed ? lc->lb->port_index[packet[i]->port] : port,
					 handed, fetch);
	}
	if (lc->n_outbound > 0)
		handover_flush(lc);
}

/*
 * Cut chains to their first buffer. No valid packet is longer than a buffer, but some drivers
 * deliver chains unasked. The parser finds out from the first buffer that the packet is too long.
 */
static __rte_noinline void ingress_cut_chains(struct rte_mbuf **packet, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		rte_pktmbuf_free(packet[i]->next);
		packet[i]->next = NULL;
		packet[i]->nb_segs = 1;
		packet[i]->pkt_len = packet[i]->data_len;
	}
}

unsigned int ingress_receive(struct lcore *lc, uint16_t port)
{
	struct rte_mbuf *packet[LB_BURST];
	uint16_t segments = 0;
	unsigned int n, kept;

	if (unlikely(lc->queue[port] == LCORE_NO_QUEUE))
		return lc->lb->verbs[port] == NULL ? 0 : fabric_verbs_poll(lc, port);
	n = kept = rte_eth_rx_burst(lc->tx[port].port, lc->tx[port].queue, packet, LB_BURST);
	for (unsigned int i = 0; i < n; i++) {
		lc->stats.bytes_in += packet[i]->pkt_len;
		segments |= packet[i]->nb_segs;
	}
	if (unlikely(segments > 1))
		ingress_cut_chains(packet, n);
	lc->stats.packets_in += n;
	if (unlikely(lc->lb->owner_rule[port] == OWNER_HASH) && lc->lb->config.port[port].clients)
		kept = handover_spread(lc, port, packet, n);
	ingress_sort_burst(lc, packet, kept, port, false);
	return n;
}

unsigned int ingress_handover(struct lcore *lc)
{
	struct rte_mbuf *packet[LB_BURST];
	unsigned int n;

	n = rte_ring_sc_dequeue_burst(lc->handover, (void **)packet, LB_BURST, NULL);
	ingress_sort_burst(lc, packet, n, 0, true);
	return n;
}
