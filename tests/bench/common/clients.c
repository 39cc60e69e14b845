/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "common/clients.h"

#define FIRST_ADDRESS    0x64400001 /* of 100.64.0.0/10 */
#define FIRST_PORT       1024
#define PORTS_PER_CLIENT 60000

const struct rte_ether_addr clients_mac = {{0x02, 0, 0, 0, 0, 0xc1}};

void clients_init(struct clients *c, const struct rig *rig)
{
	memset(c, 0, sizeof(*c));
	c->rig = rig;
	c->random = 0x9e3779b97f4a7c15; /* every run draws the same flows */
	memcpy(c->lb_mac, rig->lb->port[0].mac, sizeof(c->lb_mac));
}

/* xorshift64*; the high half is the better one. */
uint32_t clients_random(struct clients *c, uint32_t n)
{
	c->random ^= c->random >> 12;
	c->random ^= c->random << 25;
	c->random ^= c->random >> 27;
	return (uint64_t)(uint32_t)(c->random * 0x2545f4914f6cdd1d >> 32) * n >> 32;
}

uint32_t clients_address(uint32_t flow)
{
	return htonl(FIRST_ADDRESS + flow / PORTS_PER_CLIENT);
}

uint16_t clients_port(uint32_t flow)
{
	return htons(FIRST_PORT + flow % PORTS_PER_CLIENT);
}

uint32_t clients_flow(uint32_t address, uint16_t port)
{
	return (ntohl(address) - FIRST_ADDRESS) * PORTS_PER_CLIENT + ntohs(port) - FIRST_PORT;
}

static void write_request(struct clients *c, const struct load *load, unsigned int index,
			  uint8_t *frame)
{
	uint32_t flow = c->flow[index], length = c->length[index];
	uint64_t number = c->first + index;

	struct rte_ether_hdr *ether = (struct rte_ether_hdr *)frame;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ether + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	uint8_t *payload = (uint8_t *)(udp + 1);

	memcpy(&ether->dst_addr, c->lb_mac, 6);
	ether->src_addr = clients_mac;
	ether->ether_type = htons(RTE_ETHER_TYPE_IPV4);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = 0x45,
		.total_length = htons(sizeof(*ip) + sizeof(*udp) + length),
		.time_to_live = 60,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = clients_address(flow),
		.dst_addr = inet_addr(RIG_VIP),
	};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	*udp = (struct rte_udp_hdr){
		.src_port = clients_port(flow),
		.dst_port = htons(RIG_SERVICE_UDP + load->service),
		.dgram_len = htons(sizeof(*udp) + length),
	};
	memcpy(payload, &number, sizeof(number));
	if (load->trace != NULL)
		return;
	for (uint32_t i = sizeof(number); i < length; i++)
		payload[i] = clients_pattern(i);
	udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, udp);
}

static void choose(struct clients *c, struct load *load, unsigned int index)
{
	c->length[index] = load->payload;
	if (load->trace != NULL) {
		struct trace_packet packet = trace_next(load->trace);

		c->flow[index] = packet.flow;
		c->length[index] = packet.frame - CLIENT_HEADERS;
	} else if (load->in_turn) {
		c->flow[index] = load->next;
		load->next = load->next + 1 == load->flows ? 0 : load->next + 1;
	} else {
		c->flow[index] = clients_random(c, load->flows);
	}
}

void clients_prepare(struct clients *c, struct load *load)
{
	rig_alloc(c->rig, c->packet, RIG_BATCH);
	c->first = c->number;
	c->number += RIG_BATCH;
	for (unsigned int i = 0; i < RIG_BATCH; i++) {
		struct rte_mbuf *m = c->packet[i];

		choose(c, load, i);
		m->data_len = m->pkt_len = CLIENT_HEADERS + c->length[i];
		write_request(c, load, i, rte_pktmbuf_mtod(m, uint8_t *));
		c->payload[i] = rte_pktmbuf_mtod_offset(m, uint8_t *, CLIENT_HEADERS);
	}
}

bool clients_is_reply(const struct clients *c, const struct load *load, const struct rte_mbuf *m,
		      uint32_t index)
{
	const struct rte_ether_hdr *ether = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(ether + 1);
	const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(ip + 1);
	const uint8_t *payload = (const uint8_t *)(udp + 1);
	uint64_t number = c->first + index;

	if (m->nb_segs != 1 || m->data_len != CLIENT_HEADERS + load->payload ||
	    !rte_is_same_ether_addr(&ether->dst_addr, &clients_mac) ||
	    memcmp(&ether->src_addr, c->lb_mac, 6) != 0 ||
	    ip->dst_addr != clients_address(c->flow[index]) || ip->src_addr != inet_addr(RIG_VIP) ||
	    udp->dst_port != clients_port(c->flow[index]) ||
	    udp->src_port != htons(RIG_SERVICE_UDP + load->service) || udp->dgram_cksum == 0 ||
	    rte_raw_cksum(ip, sizeof(*ip)) != 0xffff ||
	    rte_ipv4_udptcp_cksum_verify(ip, udp) != 0 ||
	    memcmp(payload, &number, sizeof(number)) != 0)
		return false;
	for (uint32_t i = sizeof(number); i < load->payload; i++)
		if (payload[i] != clients_pattern(i))
			return false;
	return true;
}
