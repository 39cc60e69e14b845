/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answer ARP requests, neighbour solicitations and pings for VIPs and fabric addresses, in the
 * packet that asked. Replies to the load balancer's own requests go to the control thread.
 */
#include "walk/answer.h"

#include <arpa/inet.h>

#include <rte_ether.h>
#include <rte_ip.h>

#include "lcore/lcore.h"
#include "packet/checksum.h"
#include "packet/parse.h"
#include "runtime/neigh.h"
#include "observe/drop_packet.h"

#define TTL 64

/* VIPs belong to all client ports, a fabric address to its own port. */
static bool answer_for_us(const struct lcore *lc, uint16_t port, const struct in6_addr *address)
{
	const struct lb_port_config *config = &lc->lb->config.port[port];

	if (config->clients && service_has_address(&lc->services->table, address))
		return true;
	return config->fabric && memcmp(&config->address.addr, address, sizeof(*address)) == 0;
}

static void answer_transmit(struct lcore *lc, struct rte_mbuf *m, uint16_t port)
{
	if (txq_room(&lc->tx[port]) == 0)
		return lcore_drop(lc, m, LB_DROP_NO_TX);
	txq_push(&lc->tx[port], m);
}

/* Put the VLAN tag of the request into the reply. The frame has an untagged Ethernet header, and
 * headroom. */
static void answer_put_vlan(struct rte_mbuf *m, uint16_t vlan)
{
	struct rte_ether_hdr *ether;
	struct rte_vlan_hdr *tag;
	uint8_t *at;

	if (vlan == 0)
		return;
	at = (uint8_t *)rte_pktmbuf_prepend(m, sizeof(*tag));
	if (at == NULL)
		return; /* cannot happen: a received frame has all of its headroom */
	memmove(at, at + sizeof(*tag), sizeof(*ether) - sizeof(ether->ether_type));
	ether = (struct rte_ether_hdr *)at;
	tag = (struct rte_vlan_hdr *)(ether + 1); /* its ether_type is the frame's */
	ether->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
	tag->vlan_tci = htons(vlan);
}

void answer_neighbour(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p)
{
	static const uint8_t no_mac[6];
	uint16_t index = lc->lb->port_index[m->port];
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	enum lb_drop other = p->kind == PARSE_ARP ? LB_DROP_ARP_OTHER : LB_DROP_ND_OTHER;
	uint32_t length = p->kind == PARSE_ARP ? m->data_len - p->ip_offset
					       : p->l4_offset + p->l4_length - p->ip_offset;
	struct neigh_message message;

	if (!neigh_parse(p->kind == PARSE_ARP ? RTE_ETHER_TYPE_ARP : RTE_ETHER_TYPE_IPV6,
			 frame + p->ip_offset, length, &message))
		return lcore_drop(lc, m, other);
	/* The fabric has no VLANs. */
	if (lc->lb->config.port[index].fabric && (p->vlan & 0xfff) == 0 &&
	    neigh_gives_mac(&message) && !answer_for_us(lc, index, &message.sender)) {
		if (rte_ring_mp_enqueue(lc->lb->punt, m) != 0) {
			__atomic_fetch_add(&lc->lb->punt_lost, 1, __ATOMIC_RELAXED);
			lcore_drop(lc, m, other);
		}
		return;
	}
	if (message.kind != NEIGH_REQUEST || !answer_for_us(lc, index, &message.target) ||
	    message.sender_mac[0] & 1)
		return lcore_drop(lc, m, other);
	/* A solicitation may omit the sender's MAC address: then it is the frame's source. */
	if (memcmp(message.sender_mac, no_mac, 6) == 0)
		memcpy(message.sender_mac, frame + 6, 6);
	rte_pktmbuf_reset(m);
	m->port = lc->lb->port[index].id;
	frame = (uint8_t *)rte_pktmbuf_append(m, NEIGH_FRAME_MAX);
	m->data_len = m->pkt_len = neigh_reply_build(frame, &message, lc->lb->port[index].mac);
	answer_put_vlan(m, p->vlan);
	answer_transmit(lc, m, index);
}

static void answer_swap(void *a, void *b, unsigned int length)
{
	uint8_t old[16];

	memcpy(old, a, length);
	memcpy(a, b, length);
	memcpy(b, old, length);
}

/* Answer from the address that was asked, and compute the header's checksum. <length>: bytes of
 * the header with its options. */
static void answer_turn_ip4(struct rte_ipv4_hdr *ip, uint32_t length)
{
	answer_swap(&ip->src_addr, &ip->dst_addr, sizeof(ip->src_addr));
	ip->time_to_live = TTL;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = ~checksum_fold(checksum_add(ip, length));
}

static void answer_turn_ip6(struct rte_ipv6_hdr *ip)
{
	answer_swap(&ip->src_addr, &ip->dst_addr, sizeof(ip->src_addr));
	ip->hop_limits = TTL;
}

void answer_echo(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p)
{
	uint16_t index = lc->lb->port_index[m->port];
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct rte_ether_hdr *ether = (struct rte_ether_hdr *)frame;
	struct rte_ipv4_hdr *ip4 = (struct rte_ipv4_hdr *)(frame + p->ip_offset);
	struct rte_ipv6_hdr *ip6 = (struct rte_ipv6_hdr *)(frame + p->ip_offset);
	uint8_t *icmp = frame + p->l4_offset;
	bool v4 = p->family == FLOW_IPV4;
	struct in6_addr target = {0};
	uint16_t sum;

	if (v4) {
		target.s6_addr[10] = target.s6_addr[11] = 0xff;
		target.s6_addr32[3] = ip4->dst_addr;
	} else {
		memcpy(&target, &ip6->dst_addr, sizeof(target));
	}
	if (!answer_for_us(lc, index, &target))
		return lcore_drop(lc, m, LB_DROP_NOT_OUR_ADDRESS);
	memcpy(&ether->dst_addr, &ether->src_addr, sizeof(ether->dst_addr));
	memcpy(&ether->src_addr, lc->lb->port[index].mac, sizeof(ether->src_addr));
	if (v4)
		answer_turn_ip4(ip4, p->l4_offset - p->ip_offset);
	else
		answer_turn_ip6(ip6);
	icmp[0] = v4 ? 0 : 129; /* echo reply */
	/* Only the type changed: adjust the checksum. Swapped addresses do not change it (RFC
	 * 1624). */
	memcpy(&sum, icmp + 2, 2);
	sum = checksum_fold((uint64_t)sum + (v4 ? htons(8 << 8) : 0xffff - htons(1 << 8)));
	memcpy(icmp + 2, &sum, 2);
	/* Put back the VLAN tag that the port stripped. */
	if (p->ip_offset == sizeof(struct rte_ether_hdr))
		answer_put_vlan(m, p->vlan);
	answer_transmit(lc, m, index);
}
