/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forwarding without a load balancer: swap MACs, addresses and ports of each packet of a burst
 * without looking at them. What every middlebox does at least.
 */
#ifndef BENCH_SWAP_H
#define BENCH_SWAP_H

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_udp.h>

static inline void swap_frame(uint8_t *frame)
{
	struct rte_ether_hdr *ether = (struct rte_ether_hdr *)frame;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ether + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	struct rte_ether_addr mac = ether->dst_addr;
	uint32_t address = ip->dst_addr;
	uint16_t port = udp->dst_port;

	ether->dst_addr = ether->src_addr;
	ether->src_addr = mac;
	ip->dst_addr = ip->src_addr;
	ip->src_addr = address;
	udp->dst_port = udp->src_port;
	udp->src_port = port;
}

static inline void swap_burst(struct rte_mbuf *packet[], unsigned int n)
{
	for (unsigned int i = 0; i < n && i < 4; i++)
		rte_prefetch0(rte_pktmbuf_mtod(packet[i], void *));
	for (unsigned int i = 0; i < n; i++) {
		if (i + 4 < n)
			rte_prefetch0(rte_pktmbuf_mtod(packet[i + 4], void *));
		swap_frame(rte_pktmbuf_mtod(packet[i], uint8_t *));
	}
}

#endif
