/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of several segments, which the port cuts (TSO): one pass through the endpoint's headers
 * and the driver for up to 64 KiB.
 */
#include "edge/edge_private.h"
#include "packet/client_headers.h"

/* Payload of a packet: the IP length of its headers and bytes has 16 bits, some drivers count the
 * frame. */
#define TSO_BYTES_MAX                                                                              \
	(UINT16_MAX - (uint32_t)(sizeof(struct rte_ether_hdr) + sizeof(struct rte_vlan_hdr) +      \
				 sizeof(struct rte_ipv6_hdr) + TCP_HEADER_MAX))
/* Drivers refuse to cut shorter segments: i40e's limit is the highest known. */
#define TSO_MSS_MIN 256

/*
 * The most bytes of the send queue from number <seq> on that may be one packet: whole segments as
 * far as the port's limits of mbufs go, for the packet and for each segment. The headers are one.
 */
static uint32_t tso_most(struct edge_busy *b, uint32_t seq, uint32_t mss, const struct port *port)
{
	unsigned int mbufs = 1, in_segment = 1;
	uint32_t whole = 0, bytes, from;
	const struct rte_mbuf *m = edge_find_out(b, seq, &from);

	bytes = from - seq;
	for (; m != NULL; m = m->next) {
		bytes += m->data_len;
		if (++mbufs > port->tso_mbufs || ++in_segment > port->segments_max)
			return whole;
		if (bytes - whole < mss)
			continue;
		whole = bytes - bytes % mss;
		in_segment = 1 + (whole != bytes);
		if (whole >= TSO_BYTES_MAX)
			break;
	}
	return TSO_BYTES_MAX;
}

void edge_extend(struct edge *e, struct edge_connection *c, struct tcp_header *h)
{
	const struct port *port = &e->lc->lb->port[c->path.port];
	uint32_t mss = c->tcp.mss;

	if (!tcp_may_extend(&c->tcp, h) || mss < TSO_MSS_MIN)
		return;
	tcp_extend(&e->stack, &c->tcp, tso_most(c->busy, h->seq, mss, port), h);
	e->stack.counters.tso_out += h->length > mss;
}

void edge_let_cut(struct edge *e, const struct flow *flow, struct rte_mbuf *m, uint8_t *tcp,
		  const struct tcp_header *h, uint16_t mss)
{
	const void *ip = tcp - m->l3_len;
	uint16_t sum;

	m->ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
	m->l4_len = tcp_header_size(h);
	m->tso_segsz = mss;
	/* The length of each segment is the port's to add. */
	sum = m->ol_flags & RTE_MBUF_F_TX_IPV4 ? rte_ipv4_phdr_cksum(ip, m->ol_flags)
					       : rte_ipv6_phdr_cksum(ip, m->ol_flags);
	memcpy(tcp + 16, &sum, sizeof(sum));
	for (uint32_t sent = mss; sent < h->length; sent += mss)
		conntrack_count_out(e->lc->ct, flow, 0);
}
