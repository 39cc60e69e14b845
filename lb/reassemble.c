/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments from clients: all of a datagram's meet on one lcore, and the frame that they make goes
 * on to the lcore that owns its flow, which parses it like any other.
 */
#include "lcore.h"

/* A frame as if it had never been in pieces; NULL when memory is out. <last> came last. */
static struct rte_mbuf *make_whole(struct lcore *lc, const struct rte_mbuf *last)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(lc->wholes);

	if (m == NULL) {
		lc->stats.drop[LB_DROP_NO_MBUF] += fragment_take(lc->fragments, NULL);
		return NULL;
	}
	/* It fits: the table takes no more than the clients' MTU, and the buffers hold that. */
	m->data_len = m->pkt_len = fragment_frame_length(lc->fragments);
	fragment_take(lc->fragments, rte_pktmbuf_mtod(m, uint8_t *));
	m->port = last->port;
	m->vlan_tci = last->vlan_tci;
	m->ol_flags = last->ol_flags & (RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
	lc->stats.reassembled++;
	lc->stats.payload_copies++;
	return m;
}

/* RoCE and neighbour discovery (RFC 6980) do not come in pieces; the rest goes its usual way. */
static void sort_whole(struct lcore *lc, struct rte_mbuf *m)
{
	uint16_t port = lc->lb->port_index[m->port];
	struct flow_key key;
	unsigned int owner;
	struct parsed p;

	parse_frame(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, lc->lb->port[port].mac, 0, &p,
		    &key);
	if (p.kind == PARSE_ROCE || p.kind == PARSE_ND)
		return lcore_drop(lc, m, LB_DROP_FRAGMENT);
	/* An answer as long as the question would not leave by a port of a smaller MTU. */
	if (p.kind == PARSE_ICMP_ECHO && m->data_len - p.ip_offset > lc->lb->config.port[port].mtu)
		return lcore_drop(lc, m, LB_DROP_FRAGMENT);
	owner = lc->index;
	if (p.kind == PARSE_UDP)
		owner = handover_owner(lc, port, &key);
	if (owner != lc->index)
		handover_add(lc, owner, m);
	else
		ingress_sort(lc, m);
}

void reassemble_add(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p,
		    const struct flow_key *key, bool handed)
{
	struct rte_mbuf *whole = NULL;
	struct fragment f;
	unsigned int owner;

	if (!lc->lb->config.port[lc->lb->port_index[m->port]].clients)
		return lcore_drop(lc, m, LB_DROP_FRAGMENT);
	fragment_read(rte_pktmbuf_mtod(m, uint8_t *), p, key, &f);
	owner = owner_by_hash(fragment_hash(lc->fragments, &f), lc->lb->n_lcores);
	if (owner != lc->index && !handed)
		return handover_add(lc, owner, m);
	if (fragment_add(lc->fragments, &f, lc->now_ms, lc->stats.drop))
		whole = make_whole(lc, m);
	rte_pktmbuf_free(m);
	if (whole != NULL)
		sort_whole(lc, whole);
}
