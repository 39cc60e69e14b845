/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/port_frame.h"

#include <arpa/inet.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

struct headers {
	struct rte_ether_hdr ether;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
} __attribute__((packed, aligned(2)));
_Static_assert(sizeof(struct headers) == FRAME_HEADERS, "what is in front of the payload");

void frame_finish(uint8_t *frame, uint32_t length, uint32_t flow, uint32_t our_address,
		  const uint8_t our_mac[6], const struct frame_peer *peer)
{
	struct headers *h = (struct headers *)frame;

	memcpy(&h->ether.dst_addr, peer->mac, 6);
	memcpy(&h->ether.src_addr, our_mac, 6);
	h->ether.ether_type = htons(RTE_ETHER_TYPE_IPV4);
	h->ip = (struct rte_ipv4_hdr){
		.version_ihl = 0x45,
		.total_length = htons((uint16_t)(sizeof(h->ip) + sizeof(h->udp) + length)),
		.fragment_offset = htons(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = our_address,
		.dst_addr = peer->address,
	};
	h->udp = (struct rte_udp_hdr){
		.src_port = htons((uint16_t)(FRAME_FIRST_PORT + flow)),
		.dst_port = peer->port,
		.dgram_len = htons((uint16_t)(sizeof(h->udp) + length)),
	};
	h->ip.hdr_checksum = rte_ipv4_cksum(&h->ip);
	h->udp.dgram_cksum = rte_ipv4_udptcp_cksum(&h->ip, &h->udp);
}

/*
 * True when the lengths agree, there are no options and no fragment, and the checksums are right. A
 * frame may be padded.
 */
static bool is_sound(const struct headers *h, uint32_t length)
{
	uint32_t ip = ntohs(h->ip.total_length), udp = ntohs(h->udp.dgram_len);

	return h->ether.ether_type == htons(RTE_ETHER_TYPE_IPV4) && h->ip.version_ihl == 0x45 &&
	       h->ip.next_proto_id == IPPROTO_UDP && ip <= length - sizeof(h->ether) &&
	       udp >= sizeof(h->udp) && ip == udp + sizeof(h->ip) &&
	       (h->ip.fragment_offset & ~htons(RTE_IPV4_HDR_DF_FLAG)) == 0 &&
	       rte_raw_cksum(&h->ip, sizeof(h->ip)) == 0xffff &&
	       (h->udp.dgram_cksum == 0 || rte_ipv4_udptcp_cksum_verify(&h->ip, &h->udp) == 0);
}

bool frame_take(const uint8_t *frame, uint32_t length, uint32_t flows, uint32_t our_address,
		const struct frame_peer *peers, unsigned int n, struct transport_datagram *datagram)
{
	const struct headers *h = (const struct headers *)frame;
	const struct frame_peer *peer;
	uint32_t flow;

	if (length < sizeof(*h) || !is_sound(h, length) || h->ip.dst_addr != our_address)
		return false;
	flow = (uint32_t)ntohs(h->udp.dst_port) - FRAME_FIRST_PORT;
	if (flow >= flows)
		return false;
	peer = &peers[flow % n];
	if (h->ip.src_addr != peer->address || h->udp.src_port != peer->port)
		return false;
	*datagram = (struct transport_datagram){
		.flow = flow,
		.length = ntohs(h->udp.dgram_len) - (uint32_t)sizeof(h->udp),
		.bytes = (uint8_t *)(uintptr_t)(h + 1),
	};
	return true;
}
