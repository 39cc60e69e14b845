/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of a packet for a client, from Ethernet to IP, and the checksums behind them.
 * Inlined: every reply passes here, and its protocol is known.
 */
#ifndef LB_CLIENT_HEADERS_H
#define LB_CLIENT_HEADERS_H

#include <arpa/inet.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "packet/checksum.h"
#include "packet/client_path.h"

struct client_ends {
	const struct in6_addr *client, *local; /* IPv4: mapped */
	enum flow_family family;
	uint8_t protocol; /* IPPROTO_* */
};

/* Bytes of all headers up to an L4 header of <l4> bytes, that included. */
static inline uint16_t client_headers_length(const struct client_path *path,
					     enum flow_family family, uint16_t l4)
{
	uint16_t length = sizeof(struct rte_ether_hdr) + l4;

	length += family == FLOW_IPV4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr);
	if (path->vlan != 0)
		length += sizeof(struct rte_vlan_hdr);
	return length;
}

/* The calls below write a header at <at>, which is even, and return the address behind it. */
static inline void *client_write_ether(void *at, const uint8_t mac[6],
				       const struct client_path *path, enum flow_family family)
{
	rte_be16_t type =
		family == FLOW_IPV4 ? RTE_BE16(RTE_ETHER_TYPE_IPV4) : RTE_BE16(RTE_ETHER_TYPE_IPV6);
	struct rte_ether_hdr *ether = at;
	struct rte_vlan_hdr *tag = (struct rte_vlan_hdr *)(ether + 1);

	memcpy(&ether->dst_addr, path->mac, sizeof(ether->dst_addr));
	memcpy(&ether->src_addr, mac, sizeof(ether->src_addr));
	if (likely(path->vlan == 0)) {
		ether->ether_type = type;
		return ether + 1;
	}
	ether->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
	tag->vlan_tci = htons(path->vlan);
	tag->eth_proto = type;
	return tag + 1;
}

/* <length>: bytes from the L4 header on; <ecn>: the two bits of RFC 3168. */
static inline void *client_write_ip4(void *at, const struct client_ends *ends, uint16_t length,
				     uint8_t hops, uint8_t ecn)
{
	struct rte_ipv4_hdr *ip = at;

	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.type_of_service = ecn,
		.total_length = htons(sizeof(*ip) + length),
		/* not fragmented, so no identification (RFC 6864) */
		.fragment_offset = RTE_BE16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = hops,
		.next_proto_id = ends->protocol,
		.src_addr = ends->local->s6_addr32[3],
		.dst_addr = ends->client->s6_addr32[3],
	};
	ip->hdr_checksum = ~checksum_fold(checksum_add_few(at, sizeof(*ip)));
	return ip + 1;
}

static inline void *client_write_ip6(void *at, const struct client_ends *ends, uint16_t length,
				     uint8_t hops, uint8_t ecn)
{
	struct rte_ipv6_hdr *ip = at;

	/* version and traffic class; no flow label */
	ip->vtc_flow = htonl(6u << 28 | (uint32_t)ecn << 20);
	ip->payload_len = htons(length);
	ip->proto = ends->protocol;
	ip->hop_limits = hops;
	memcpy(&ip->src_addr, ends->local, sizeof(ip->src_addr));
	memcpy(&ip->dst_addr, ends->client, sizeof(ip->dst_addr));
	return ip + 1;
}

static inline void *client_write_ip(void *at, const struct client_ends *ends, uint16_t length,
				    uint8_t hops, uint8_t ecn)
{
	return ends->family == FLOW_IPV4 ? client_write_ip4(at, ends, length, hops, ecn)
					 : client_write_ip6(at, ends, length, hops, ecn);
}

/* The sum of the pseudo header's fields, not folded. <ip> has no options. */
static inline uint64_t client_sum_pseudo(const void *ip, const struct client_ends *ends,
					 uint16_t length)
{
	const struct rte_ipv4_hdr *ip4 = ip;
	const struct rte_ipv6_hdr *ip6 = ip;

	return checksum_pseudo(ends->family == FLOW_IPV4 ? (const void *)&ip4->src_addr
							 : (const void *)&ip6->src_addr,
			       ends->family, ends->protocol, length);
}

/* The checksum over a chain's bytes, not folded. */
static inline uint64_t client_sum_chain(const struct rte_mbuf *m)
{
	uint64_t sum = 0;
	uint32_t offset = 0;

	for (; m != NULL; m = m->next) {
		uint16_t part =
			checksum_fold(checksum_add(rte_pktmbuf_mtod(m, void *), m->data_len));

		sum += offset & 1 ? __builtin_bswap16(part) : part;
		offset += m->data_len;
	}
	return sum;
}

/* Copies a chain that fits one mbuf of <pool> into one, and frees it. NULL: no memory. */
static inline struct rte_mbuf *client_join(struct rte_mempool *pool, struct rte_mbuf *m)
{
	struct rte_mbuf *whole = rte_pktmbuf_alloc(pool);
	uint8_t *at;

	if (whole != NULL) {
		at = rte_pktmbuf_mtod(whole, uint8_t *);
		whole->data_len = whole->pkt_len = m->pkt_len;
		for (const struct rte_mbuf *s = m; s != NULL; s = s->next) {
			memcpy(at, rte_pktmbuf_mtod(s, void *), s->data_len);
			at += s->data_len;
		}
	}
	rte_pktmbuf_free(m);
	return whole;
}

/* Let the port compute the checksums that <flags> name. It expects 0 in the IPv4 checksum. */
static inline void client_offload(struct rte_mbuf *m, void *ip, uint32_t l2, uint32_t l3,
				  uint64_t flags)
{
	struct rte_ipv4_hdr *ip4 = ip;

	m->ol_flags |= flags;
	m->tx_offload = rte_mbuf_tx_offload(l2, l3, 0, 0, 0, 0, 0);
	if (flags & RTE_MBUF_F_TX_IP_CKSUM)
		ip4->hdr_checksum = 0;
}

#endif
