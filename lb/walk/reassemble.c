/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments from clients: all fragments of a datagram go to one lcore. The reassembled frame goes
 * to the lcore that owns its flow, which parses it like any other frame.
 */
#include "walk/reassemble.h"

#include "lcore/lcore.h"
#include "packet/fragment.h"
#include "packet/parse.h"
#include "observe/drop_packet.h"
#include "walk/handover.h"
#include "walk/ingress.h"
#include "walk/refuse.h"

/* Build the frame as if it had not been fragmented. NULL, and counted: no memory. */
static struct rte_mbuf *reassemble_make_frame(struct lcore *lc)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(lc->reassembled_pool);

	if (m == NULL) {
		lc->stats.drop[LB_DROP_NO_MBUF] += fragment_take(lc->fragments, NULL);
		return NULL;
	}
	/* It fits: the table takes no more than the clients' MTU, and the buffers hold that. */
	m->data_len = m->pkt_len = fragment_frame_length(lc->fragments);
	/* The first fragment's port: a last fragment by another port cannot redirect the reply. */
	fragment_origin(lc->fragments, &m->port, &m->vlan_tci);
	m->ol_flags = m->vlan_tci == 0 ? 0 : RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	fragment_take(lc->fragments, rte_pktmbuf_mtod(m, uint8_t *));
	lc->stats.reassembled++;
	lc->stats.payload_copies++;
	return m;
}

/* Sort a reassembled frame. RoCE and neighbour discovery (RFC 6980) may not be fragmented. */
static void reassemble_sort(struct lcore *lc, struct rte_mbuf *m)
{
	uint16_t port = lc->lb->port_index[m->port];
	struct flow_key key;
	unsigned int owner;
	struct parsed p;

	parse_frame(rte_pktmbuf_mtod(m, uint8_t *), m->data_len, lc->lb->port[port].mac, 0, &p,
		    &key);
	if (p.kind == PARSE_ROCE || p.kind == PARSE_ND)
		return lcore_drop(lc, m, LB_DROP_FRAGMENT);
	/* The echo reply is as long as the request: it may not fit the port's MTU. */
	if (p.kind == PARSE_ICMP_ECHO && m->data_len - p.ip_offset > lc->lb->config.port[port].mtu)
		return lcore_drop(lc, m, LB_DROP_FRAGMENT);
	owner = lc->index;
	key.zone = lcore_zone(lc->lb, port, lcore_vlan(m, p.vlan));
	if (p.kind == PARSE_UDP)
		owner = handover_owner(lc, port, &key);
	if (owner != lc->index)
		handover_add(lc, owner, m);
	else
		ingress_sort(lc, m);
}

/* The datagram is too large: notify its client, if the first fragment has the UDP header. */
static void reassemble_refuse(struct lcore *lc, const struct fragment_first *first)
{
	const uint8_t *ip = first->head + first->ip_offset, *udp = first->data;
	struct client_path path = {.hops = ip[first->family == FLOW_IPV4 ? 8 : 7],
				   .port = lc->lb->port_index[first->port],
				   .vlan = first->vlan};
	struct flow_key key = {.src = first->src,
			       .dst = first->dst,
			       .protocol = first->protocol,
			       .family = first->family,
			       .zone = first->zone};

	if (first->protocol != IPPROTO_UDP || first->length < 8)
		return;
	memcpy(path.mac, first->head + 6, sizeof(path.mac));
	memcpy(&key.src_port, udp, 2);
	memcpy(&key.dst_port, udp + 2, 2);
	refuse_stranger(lc, &key, &path, udp + 8, first->length - 8);
}

void reassemble_add(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p,
		    const struct flow_key *key, bool handed)
{
	struct rte_mbuf *whole = NULL;
	struct fragment_first first;
	struct fragment f;
	unsigned int owner;

	if (!lc->lb->config.port[lc->lb->port_index[m->port]].clients)
		return lcore_drop(lc, m, LB_DROP_FRAGMENT);
	fragment_read(rte_pktmbuf_mtod(m, uint8_t *), p, key, &f);
	f.port = m->port;
	owner = owner_by_hash(fragment_hash(lc->fragments, &f), lc->lb->n_lcores);
	if (owner != lc->index && !handed)
		return handover_add(lc, owner, m);
	if (fragment_add(lc->fragments, &f, lc->now_ms, lc->stats.drop))
		whole = reassemble_make_frame(lc);
	if (unlikely(fragment_too_large(lc->fragments, &first)))
		reassemble_refuse(lc, &first);
	rte_pktmbuf_free(m);
	if (whole != NULL)
		reassemble_sort(lc, whole);
}
