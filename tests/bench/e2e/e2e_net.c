/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "e2e/e2e.h"
#include "runtime/cpus.h"
#include "runtime/eal_end.h"
#include "runtime/neigh.h"
#include "common/wire_child.h"
#include "runtime/data_room.h"

/* Flows are ports of a few addresses of 10.200.1.0/24. */
#define FIRST_CLIENT     0x0ac80101u
#define FIRST_PORT       1024
#define PORTS_PER_CLIENT 60000
#define MEMORY_MB        96
#define MEMORY_MB_THREAD 32 /* for each beyond the first */
#define RECEIVE_MBUFS    2048
#define REQUEST_MBUFS    2048
#define POOL_CACHE       64
#define RESOLVE_MS       10000
#define RESOLVE_EVERY_MS 100

struct headers {
	struct rte_ether_hdr ether;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
} __attribute__((packed, aligned(2)));

static uint32_t address_of(uint32_t flow)
{
	return htonl(FIRST_CLIENT + flow / PORTS_PER_CLIENT);
}

static uint16_t port_of(uint32_t flow)
{
	return htons(FIRST_PORT + flow % PORTS_PER_CLIENT);
}

static uint32_t vip_of(const struct e2e_net *net)
{
	uint32_t four;

	memcpy(&four, net->vip.s6_addr + 12, sizeof(four));
	return four;
}

/* --- setting up --------------------------------------------------------------------------------
 */

/* Starts the EAL with an lcore per thread; they float over the CPUs that we may use. */
static void start_eal(const struct e2e_options *o)
{
	char cpus[CPUS_TEXT_MAX], lcores[CPUS_TEXT_MAX + 32], memory[16];
	unsigned int last = (unsigned int)o->threads - 1;
	char *argv[16] = {"bench-e2e",
			  lcores,
			  "-m",
			  memory,
			  "--no-pci",
			  "--no-telemetry",
			  "--log-level=lib.*:warning",
			  "--log-level=pmd.*:error"};
	int argc = 8;

	snprintf(lcores, sizeof(lcores), "--lcores=(0-%u)@(%s)", last, cpus_allowed(cpus));
	snprintf(memory, sizeof(memory), "%u", MEMORY_MB + last * MEMORY_MB_THREAD);
	if (o->no_huge) {
		argv[argc++] = "--no-huge";
		argv[argc++] = "--no-shconf";
	} else {
		argv[argc++] = "--in-memory";
	}
	if (rte_eal_init(argc, argv) < 0)
		wire_die("the EAL did not start (reason above)");
}

static struct rte_mempool *create_pool(const char *name, unsigned int n, uint16_t mtu)
{
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create(name, n, POOL_CACHE, 0, port_data_room(mtu), SOCKET_ID_ANY);

	if (pool == NULL)
		wire_die("no memory for packets");
	return pool;
}

static void send_frame(struct e2e_net *net, const uint8_t *frame, uint32_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(net->requests);

	if (m == NULL)
		return;
	memcpy(rte_pktmbuf_append(m, length), frame, length);
	if (rte_eth_tx_burst(net->port.id, net->queue, &m, 1) == 0)
		rte_pktmbuf_free(m);
}

static struct in6_addr mapped(uint32_t four)
{
	struct in6_addr a = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	memcpy(a.s6_addr + 12, &four, sizeof(four));
	return a;
}

static void ask(struct e2e_net *net)
{
	struct in6_addr ours = mapped(address_of(0));
	uint8_t frame[NEIGH_FRAME_MAX];

	send_frame(net, frame, neigh_request_build(frame, 4, &net->vip, &ours, net->port.mac));
}

/* Resolves the service's address as any host does. */
static void resolve(struct e2e_net *net)
{
	struct rte_mbuf *packet[E2E_BURST];
	struct e2e_datagram datagram;

	for (unsigned int ms = 0; ms < RESOLVE_MS && !net->resolved; ms++) {
		unsigned int n;

		if (ms % RESOLVE_EVERY_MS == 0)
			ask(net);
		rte_delay_us_sleep(1000);
		n = rte_eth_rx_burst(net->port.id, net->queue, packet, E2E_BURST);
		for (unsigned int i = 0; i < n; i++)
			e2e_net_take(net, packet[i], 0, &datagram);
		rte_pktmbuf_free_bulk(packet, n);
	}
	if (!net->resolved)
		wire_die("nobody answers for the service's address (ARP)");
}

void e2e_net_open(struct e2e_net *net, const struct e2e_options *o)
{
	const struct sockaddr_in *to = (const struct sockaddr_in *)&o->load.to.socket;
	uint16_t mtu = RTE_MAX(o->size + sizeof(struct headers), (uint64_t)RTE_ETHER_MTU);
	struct rte_mempool *pools[E2E_THREADS_MAX];
	struct port_params p = {
		.device = o->device,
		.queues = o->threads,
		.rx_descriptors = 1024,
		.tx_descriptors = 1024,
		.mtu = mtu,
		.pool = pools,
	};
	char error[512];

	net->vip = mapped(to->sin_addr.s_addr);
	net->service = to->sin_port;
	start_eal(o);
	net->received = create_pool("received", RECEIVE_MBUFS * o->threads, mtu);
	net->requests = create_pool("requests", REQUEST_MBUFS * o->threads, mtu);
	for (uint64_t i = 0; i < o->threads; i++)
		pools[i] = net->received;
	if (port_open(&net->port, &p, error, sizeof(error)) < 0)
		wire_die("%s", error);
	wire_wait_for_link(net->port.id);
	resolve(net);
}

void e2e_net_close(struct e2e_net *net)
{
	port_close(&net->port);
	eal_end();
}

/* --- frames -------------------------------------------------------------------------------------
 */

uint8_t *e2e_net_payload(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, uint8_t *, sizeof(struct headers));
}

void e2e_net_finish(const struct e2e_net *net, struct rte_mbuf *m, uint32_t flow, uint32_t length)
{
	struct headers *h = rte_pktmbuf_mtod(m, struct headers *);

	memcpy(&h->ether.dst_addr, net->lb_mac, 6);
	memcpy(&h->ether.src_addr, net->port.mac, 6);
	h->ether.ether_type = htons(RTE_ETHER_TYPE_IPV4);
	h->ip = (struct rte_ipv4_hdr){
		.version_ihl = 0x45,
		.total_length = htons(sizeof(h->ip) + sizeof(h->udp) + length),
		.fragment_offset = htons(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = address_of(net->first_flow + flow),
		.dst_addr = vip_of(net),
	};
	h->udp = (struct rte_udp_hdr){
		.src_port = port_of(net->first_flow + flow),
		.dst_port = net->service,
		.dgram_len = htons(sizeof(h->udp) + length),
	};
	h->ip.hdr_checksum = rte_ipv4_cksum(&h->ip);
	h->udp.dgram_cksum = rte_ipv4_udptcp_cksum(&h->ip, &h->udp);
	m->data_len = m->pkt_len = sizeof(*h) + length;
}

static int take_arp(struct e2e_net *net, const uint8_t *frame, uint32_t length)
{
	uint8_t reply[NEIGH_FRAME_MAX];
	struct neigh_message message;

	if (!neigh_parse(RTE_ETHER_TYPE_ARP, frame + RTE_ETHER_HDR_LEN, length - RTE_ETHER_HDR_LEN,
			 &message))
		return -EBADMSG;
	/* All addresses but the service's are ours: no other host is on this wire. */
	if (message.kind == NEIGH_REQUEST &&
	    memcmp(&message.target, &net->vip, sizeof(net->vip)) != 0)
		send_frame(net, reply, neigh_reply_build(reply, &message, net->port.mac));
	if (message.kind == NEIGH_REPLY &&
	    memcmp(&message.sender, &net->vip, sizeof(net->vip)) == 0) {
		memcpy(net->lb_mac, message.sender_mac, 6);
		net->resolved = true;
	}
	return 0;
}

/* Returns which of the thread's flows the datagram is addressed to; <flows> when none. */
static uint32_t flow_of(const struct e2e_net *net, const struct headers *h, uint32_t flows)
{
	uint32_t host = ntohl(h->ip.dst_addr) - FIRST_CLIENT;
	uint32_t port = (uint32_t)ntohs(h->udp.dst_port) - FIRST_PORT, flow;

	if (host > (net->first_flow + flows) / PORTS_PER_CLIENT || port >= PORTS_PER_CLIENT)
		return flows;
	flow = host * PORTS_PER_CLIENT + port - net->first_flow;
	return RTE_MIN(flow, flows);
}

static bool is_sound(const struct e2e_net *net, const struct headers *h, uint32_t length)
{
	return memcmp(&h->ether.dst_addr, net->port.mac, 6) == 0 && h->ip.version_ihl == 0x45 &&
	       h->ip.next_proto_id == IPPROTO_UDP && h->ip.src_addr == vip_of(net) &&
	       ntohs(h->ip.total_length) == length - sizeof(h->ether) &&
	       (h->ip.fragment_offset & ~htons(RTE_IPV4_HDR_DF_FLAG)) == 0 &&
	       ntohs(h->udp.dgram_len) == length - sizeof(h->ether) - sizeof(h->ip) &&
	       h->udp.src_port == net->service && rte_raw_cksum(&h->ip, sizeof(h->ip)) == 0xffff &&
	       h->udp.dgram_cksum != 0 && rte_ipv4_udptcp_cksum_verify(&h->ip, &h->udp) == 0;
}

int e2e_net_take(struct e2e_net *net, const struct rte_mbuf *m, uint32_t flows,
		 struct e2e_datagram *datagram)
{
	const struct headers *h = rte_pktmbuf_mtod(m, const struct headers *);

	/* No frame is padded here, and a buffer holds any frame. */
	if (m->nb_segs != 1 || m->data_len < sizeof(*h))
		return -EBADMSG;
	if (h->ether.ether_type == htons(RTE_ETHER_TYPE_ARP))
		return take_arp(net, (const uint8_t *)h, m->data_len);
	if (h->ether.ether_type != htons(RTE_ETHER_TYPE_IPV4) || !is_sound(net, h, m->data_len))
		return -EBADMSG;
	datagram->flow = flow_of(net, h, flows);
	datagram->bytes = (const uint8_t *)(h + 1);
	datagram->length = m->data_len - sizeof(*h);
	return datagram->flow < flows ? 1 : -EBADMSG;
}
