/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/port_transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "runtime/neigh.h"
#include "runtime/data_room.h"
#include "runtime/port.h"
#include "cli/bench/port_frame.h"

#define MBUFS       8192
#define DESCRIPTORS 1024
#define CACHE       256
#define MTU         1500
/* ms between two ARP requests for an address, and the number of requests. */
#define ASK_EVERY_MS 200
#define ASK_TURNS    50

struct transport {
	struct port port;
	struct rte_mempool *pool;
	uint32_t flows, address, netmask,
		gateway; /* addresses in network order; gateway may be 0 */
	unsigned int n_peers;
	struct frame_peer peer[MIX_TARGETS];
	uint32_t next_hop[MIX_TARGETS];
	bool known[MIX_TARGETS];
	struct rte_mbuf *held[TRANSPORT_BURST]; /* mbufs that the last receive lent to the caller */
	unsigned int n_held;
};

/* --- addresses -------------------------------------------------------------------------------- */

static struct in6_addr mapped(uint32_t four)
{
	struct in6_addr a = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	memcpy(a.s6_addr + 12, &four, sizeof(four));
	return a;
}

static bool is_mapped(const struct in6_addr *a, uint32_t four)
{
	struct in6_addr b = mapped(four);

	return memcmp(a, &b, sizeof(b)) == 0;
}

/* Parse "192.0.2.7/24". */
static int parse_address(struct transport *t, const char *text)
{
	const char *slash = strchr(text, '/');
	char four[INET_ADDRSTRLEN], *end;
	unsigned long prefix;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(four))
		return -EINVAL;
	memcpy(four, text, (size_t)(slash - text));
	four[slash - text] = '\0';
	prefix = strtoul(slash + 1, &end, 10);
	if (inet_pton(AF_INET, four, &t->address) != 1 || end == slash + 1 || *end != '\0' ||
	    prefix < 1 || prefix > 32)
		return -EINVAL;
	t->netmask = htonl(UINT32_MAX << (32 - prefix));
	return 0;
}

static int parse_addresses(struct transport *t, const struct transport_params *params, char *error,
			   size_t size)
{
	if (parse_address(t, params->address) != 0) {
		snprintf(error, size, "--address %s: must be like 192.0.2.7/24", params->address);
		return -EINVAL;
	}
	if (params->gateway != NULL && inet_pton(AF_INET, params->gateway, &t->gateway) != 1) {
		snprintf(error, size, "--gateway %s: must be like 192.0.2.1", params->gateway);
		return -EINVAL;
	}
	return 0;
}

/* Find the address to which frames for target <i> go. */
static int choose_hop(struct transport *t, unsigned int i, const struct mix_target *target,
		      char *error, size_t size)
{
	const struct sockaddr_in *to = (const struct sockaddr_in *)&target->to.socket;

	if (to->sin_family != AF_INET) {
		snprintf(error, size, "--to %s: --dpdk has only IPv4; leave it away", target->name);
		return -EAFNOSUPPORT;
	}
	t->peer[i] = (struct frame_peer){.address = to->sin_addr.s_addr, .port = to->sin_port};
	t->next_hop[i] = to->sin_addr.s_addr;
	if (((t->next_hop[i] ^ t->address) & t->netmask) == 0)
		return 0;
	t->next_hop[i] = t->gateway;
	if (t->gateway != 0)
		return 0;
	snprintf(error, size, "--to %s: not in the network of --address; give --gateway",
		 target->name);
	return -EHOSTUNREACH;
}

/* --- ARP -------------------------------------------------------------------------------------- */

static void send_frame(struct transport *t, const uint8_t *frame, uint32_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(t->pool);

	if (m == NULL)
		return;
	memcpy(rte_pktmbuf_append(m, (uint16_t)length), frame, length);
	if (rte_eth_tx_burst(t->port.id, 0, &m, 1) == 0)
		rte_pktmbuf_free(m);
}

static void take_arp(struct transport *t, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint8_t reply[NEIGH_FRAME_MAX];
	struct neigh_message message;

	if (m->data_len < RTE_ETHER_HDR_LEN || frame[12] != 0x08 || frame[13] != 0x06 ||
	    !neigh_parse(RTE_ETHER_TYPE_ARP, frame + RTE_ETHER_HDR_LEN,
			 m->data_len - RTE_ETHER_HDR_LEN, &message))
		return;
	if (message.kind == NEIGH_REQUEST && is_mapped(&message.target, t->address))
		send_frame(t, reply, neigh_reply_build(reply, &message, t->port.mac));
	for (unsigned int i = 0; i < t->n_peers && message.kind == NEIGH_REPLY; i++) {
		if (!is_mapped(&message.sender, t->next_hop[i]))
			continue;
		memcpy(t->peer[i].mac, message.sender_mac, 6);
		t->known[i] = true;
	}
}

static void port_send_arp(struct transport *t, unsigned int i)
{
	struct in6_addr target = mapped(t->next_hop[i]), ours = mapped(t->address);
	uint8_t frame[NEIGH_FRAME_MAX];

	send_frame(t, frame, neigh_request_build(frame, 4, &target, &ours, t->port.mac));
}

static void listen_ms(struct transport *t, unsigned int ms)
{
	struct rte_mbuf *packet[TRANSPORT_BURST];

	for (; ms > 0; ms--) {
		unsigned int n = rte_eth_rx_burst(t->port.id, 0, packet, TRANSPORT_BURST);

		for (unsigned int i = 0; i < n; i++)
			take_arp(t, packet[i]);
		rte_pktmbuf_free_bulk(packet, n);
		rte_delay_us_sleep(1000);
	}
}

static int resolve(struct transport *t, const struct mix *mix, char *error, size_t size)
{
	char hop[INET_ADDRSTRLEN];

	for (unsigned int i = 0; i < t->n_peers; i++) {
		for (int turn = 0; turn < ASK_TURNS && !t->known[i]; turn++) {
			port_send_arp(t, i);
			for (int n = 0; n < ASK_EVERY_MS / 5 && !t->known[i]; n++)
				listen_ms(t, 5);
		}
		if (t->known[i])
			continue;
		inet_ntop(AF_INET, &t->next_hop[i], hop, sizeof(hop));
		snprintf(error, size,
			 "--to %s: no answer to ARP for %s; is the device's cable in that "
			 "network?",
			 mix->target[i].name, hop);
		return -EHOSTUNREACH;
	}
	return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

static int transport_open_port(struct transport *t, const struct transport_params *params,
			       char *error, size_t size)
{
	uint32_t mtu = RTE_MAX(params->largest + FRAME_HEADERS - RTE_ETHER_HDR_LEN, (uint32_t)MTU);
	struct port_params p = {.device = params->device,
				.queues = 1,
				.rx_descriptors = DESCRIPTORS,
				.tx_descriptors = DESCRIPTORS,
				.mtu = (uint16_t)RTE_MIN(mtu, (uint32_t)UINT16_MAX),
				.pool = &t->pool};

	t->pool = rte_pktmbuf_pool_create("bench", MBUFS, CACHE, 0, port_data_room(p.mtu),
					  SOCKET_ID_ANY);
	if (t->pool == NULL) {
		snprintf(error, size, "no memory for packets of %u bytes", mtu);
		return -ENOMEM;
	}
	return port_open(&t->port, &p, error, size);
}

static void transport_close(struct transport *t)
{
	rte_pktmbuf_free_bulk(t->held, t->n_held);
	port_close(&t->port);
	free(t);
}

static struct transport *transport_open(const struct transport_params *params, char *error,
					size_t size)
{
	struct transport *t = calloc(1, sizeof(*t));
	int ret = 0;

	if (t == NULL) {
		snprintf(error, size, "out of memory");
		return NULL;
	}
	/* The EAL does not know this thread; registered, it has a cache of packet buffers. */
	rte_thread_register();
	t->flows = params->flows;
	t->n_peers = params->mix->n_targets;
	if (t->flows > FRAME_FLOWS_MAX) {
		snprintf(error, size, "--dpdk has source ports for %d flows; give fewer --flows",
			 FRAME_FLOWS_MAX);
		ret = -EINVAL;
	}
	if (ret == 0)
		ret = parse_addresses(t, params, error, size);
	for (unsigned int i = 0; i < t->n_peers && ret == 0; i++)
		ret = choose_hop(t, i, &params->mix->target[i], error, size);
	if (ret == 0)
		ret = transport_open_port(t, params, error, size);
	if (ret != 0) {
		free(t);
		return NULL;
	}
	if (resolve(t, params->mix, error, size) == 0)
		return t;
	transport_close(t);
	return NULL;
}

/* --- datagrams -------------------------------------------------------------------------------- */

static struct rte_mbuf *packet_of(struct transport *t, const struct transport_datagram *datagram)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(t->pool);
	uint8_t *frame;

	if (m == NULL)
		return NULL;
	frame = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(FRAME_HEADERS + datagram->length));
	if (frame == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	memcpy(frame + FRAME_HEADERS, datagram->bytes, datagram->length);
	frame_finish(frame, datagram->length, datagram->flow, t->address, t->port.mac,
		     &t->peer[datagram->flow % t->n_peers]);
	return m;
}

static int transport_send(struct transport *t, const struct transport_datagram *datagram,
			  unsigned int n, uint64_t *unreachable)
{
	struct rte_mbuf *packet[TRANSPORT_BURST];
	unsigned int built, sent;

	for (built = 0; built < n; built++) {
		packet[built] = packet_of(t, &datagram[built]);
		if (packet[built] == NULL)
			break;
	}
	sent = rte_eth_tx_burst(t->port.id, 0, packet, (uint16_t)built);
	rte_pktmbuf_free_bulk(packet + sent, built - sent);
	return (int)sent;
}

static int receive_now(struct transport *t, struct transport_datagram *datagram, unsigned int n)
{
	int got = 0;

	rte_pktmbuf_free_bulk(t->held, t->n_held);
	t->n_held = rte_eth_rx_burst(t->port.id, 0, t->held, (uint16_t)n);
	for (unsigned int i = 0; i < t->n_held; i++) {
		struct rte_mbuf *m = t->held[i];

		if (m->nb_segs == 1 &&
		    frame_take(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, t->flows,
			       t->address, t->peer, t->n_peers, &datagram[got]))
			got++;
		else
			take_arp(t, m);
	}
	return got;
}

static uint64_t now_ns(void)
{
	return (uint64_t)((double)rte_get_timer_cycles() * 1e9 / (double)rte_get_timer_hz());
}

/* Sleep for <ns> or until traffic comes; poll a port that has no interrupt to wait for. */
static void nap(const struct transport *t, uint64_t ns)
{
	struct timespec wait = {.tv_sec = (time_t)(ns / 1000000000),
				.tv_nsec = (long)(ns % 1000000000)};
	struct pollfd poll[PORT_FDS_MAX];

	for (unsigned int i = 0; i < t->port.n_fds; i++)
		poll[i] = (struct pollfd){.fd = t->port.fds[i], .events = POLLIN};
	if (t->port.n_fds != 0)
		ppoll(poll, t->port.n_fds, &wait, NULL);
}

static int transport_receive(struct transport *t, struct transport_datagram *datagram,
			     unsigned int n, uint64_t wait_ns, uint64_t *unreachable)
{
	uint64_t end = wait_ns != 0 ? now_ns() + wait_ns : 0;
	int got = receive_now(t, datagram, n);

	while (got == 0 && wait_ns != 0) {
		uint64_t now = now_ns();

		if (now >= end)
			break;
		nap(t, end - now);
		got = receive_now(t, datagram, n);
	}
	return got;
}

const struct transport_ops transport_port = {
	.open = transport_open,
	.close = transport_close,
	.send = transport_send,
	.receive = transport_receive,
};
