/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answer ARP requests, neighbour solicitations and pings for VIPs and fabric addresses, in the
 * packet that asked. Replies to the load balancer's own requests go to the control thread.
 */
#include "walk/answer.h"

#include "lcore/lcore.h"
#include "packet/checksum.h"
#include "packet/parse.h"
#include "runtime/neigh.h"
#include "walk/drop_packet.h"

#define ETHER_LENGTH 14
#define VLAN_LENGTH  4
#define TTL          64

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
	uint8_t *at;

	if (vlan == 0)
		return;
	at = (uint8_t *)rte_pktmbuf_prepend(m, VLAN_LENGTH);
	if (at == NULL)
		return; /* cannot happen: a received frame has all of its headroom */
	memmove(at, at + VLAN_LENGTH, 12);
	at[12] = 0x81;
	at[13] = 0x00;
	at[14] = vlan >> 8;
	at[15] = vlan & 0xff;
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

	if (!neigh_parse(p->kind == PARSE_ARP ? 0x0806 : 0x86dd, frame + p->ip_offset, length,
			 &message))
		return lcore_drop(lc, m, other);
	/* The fabric has no VLANs. */
	if (lc->lb->config.port[index].fabric && (p->vlan & 0xfff) == 0 && neigh_gives_mac(&message) &&
	    !answer_for_us(lc, index, &message.sender)) {
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

static void answer_swap(uint8_t *a, uint8_t *b, unsigned int length)
{
	for (unsigned int i = 0; i < length; i++) {
		uint8_t byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

void answer_echo(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p)
{
	uint16_t index = lc->lb->port_index[m->port];
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint8_t *ip = frame + p->ip_offset, *icmp = frame + p->l4_offset;
	bool v4 = p->family == FLOW_IPV4;
	struct in6_addr target = {0};
	uint16_t sum;

	if (v4) {
		target.s6_addr[10] = target.s6_addr[11] = 0xff;
		memcpy(target.s6_addr + 12, ip + 16, 4);
	} else {
		memcpy(&target, ip + 24, 16);
	}
	if (!answer_for_us(lc, index, &target))
		return lcore_drop(lc, m, LB_DROP_NOT_OUR_ADDRESS);
	memcpy(frame, frame + 6, 6);
	memcpy(frame + 6, lc->lb->port[index].mac, 6);
	answer_swap(ip + (v4 ? 12 : 8), ip + (v4 ? 16 : 24), v4 ? 4 : 16);
	if (v4) {
		ip[8] = TTL;
		ip[10] = ip[11] = 0;
		sum = ~checksum_fold(checksum_add(ip, p->l4_offset - p->ip_offset));
		memcpy(ip + 10, &sum, 2);
	} else {
		ip[7] = TTL;
	}
	icmp[0] = v4 ? 0 : 129; /* echo reply */
	/* Only the type changed: adjust the checksum; swapped addresses do not change it (RFC
	 * 1624).
	 */
	memcpy(&sum, icmp + 2, 2);
	sum = checksum_fold((uint64_t)sum + (v4 ? htons(8 << 8) : 0xffff - htons(1 << 8)));
	memcpy(icmp + 2, &sum, 2);
	/* Put back the VLAN tag that the port stripped. */
	if (p->ip_offset == ETHER_LENGTH)
		answer_put_vlan(m, p->vlan);
	answer_transmit(lc, m, index);
}
