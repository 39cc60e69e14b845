/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clients: many UDP flows, drawn at random. A request is written once into each mbuf of a small
 * pool; to send it again means another flow, another number and the checksums.
 */
#include <arpa/inet.h>
#include <stdlib.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "packet/checksum.h"
#include "wire/wire_tcp.h"

#define PORTS_PER_CLIENT 60000

static const struct rte_ether_addr client_mac = {{0x02, 0, 0, 0, 0, 0xc1}};

struct headers {
	struct rte_ether_hdr ether;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
	uint8_t number[WIRE_NUMBER_LENGTH];
} __attribute__((packed, aligned(2)));
_Static_assert(sizeof(struct headers) == WIRE_CLIENT_HEADERS + WIRE_NUMBER_LENGTH, "no padding");

void gen_clients_init(struct gen_clients *c, const struct wire_options *o,
		      const struct gen_load *gen, uint16_t port, uint16_t queue,
		      const uint8_t *lb_mac, struct rte_mempool *requests)
{
	c->o = o;
	c->gen = gen;
	c->lb_mac = lb_mac;
	c->queue = queue;
	c->random = 0x9e3779b97f4a7c15 + queue; /* every run draws the same flows */
	c->flows = o->flows / o->lcores + (queue < o->flows % o->lcores);
	c->requests = requests;
	c->out.port = port;
	c->out.queue = queue;
	c->mask = rte_align32pow2(o->outstanding) - 1;
	c->flow = calloc(c->mask + 1, sizeof(*c->flow));
	if (c->flow == NULL)
		wire_die("no memory");
}

void gen_clients_add_tcp(struct gen_clients *c, struct rte_mempool *segments,
			 struct rte_mempool *control)
{
	c->tcp = calloc(1, sizeof(*c->tcp));
	if (c->tcp == NULL)
		wire_die("no memory");
	gen_tcp_init(c->tcp, c, segments, control);
}

void gen_clients_count_tcp(const struct gen_clients *c, struct wire_queue_counters *to)
{
	if (c->tcp == NULL)
		return;
	to->forwarded_bytes = __atomic_load_n(&c->tcp->forwarded_bytes, __ATOMIC_RELAXED);
	to->resent = __atomic_load_n(&c->tcp->resent, __ATOMIC_RELAXED);
	to->unsent = __atomic_load_n(&c->tcp->unsent, __ATOMIC_RELAXED);
}

/* xorshift64*; the high half is the better one. */
static uint32_t draw(struct gen_clients *c, uint32_t n)
{
	c->random ^= c->random >> 12;
	c->random ^= c->random << 25;
	c->random ^= c->random >> 27;
	return (uint64_t)(uint32_t)(c->random * 0x2545f4914f6cdd1d >> 32) * n >> 32;
}

static uint32_t choose_flow(struct gen_clients *c)
{
	uint32_t index = c->next;

	if (c->load.fresh) {
		if (unlikely(++c->next == UINT32_MAX / c->o->lcores))
			wire_die("queue %u: no flows are left that never were", c->queue);
	} else if (c->load.in_turn)
		c->next = index + 1 == c->flows ? 0 : index + 1;
	else
		index = draw(c, c->flows);
	return index * c->o->lcores + c->queue;
}

static uint32_t address_of(uint32_t flow)
{
	return htonl(0x64400000 + 1 + flow / PORTS_PER_CLIENT); /* 100.64.0.0/10 */
}

static uint16_t port_of(uint32_t flow)
{
	return htons(1024 + flow % PORTS_PER_CLIENT);
}

/* Write the part that all requests of a load have in common. */
static void write_common(const struct gen_clients *c, uint8_t *frame)
{
	struct headers *h = (struct headers *)frame;
	uint32_t payload = c->load.frame - WIRE_CLIENT_HEADERS;

	memset(h, 0, sizeof(*h));
	memcpy(&h->ether.dst_addr, c->lb_mac, 6);
	h->ether.src_addr = client_mac;
	h->ether.ether_type = htons(RTE_ETHER_TYPE_IPV4);
	h->ip.version_ihl = 0x45;
	h->ip.total_length = htons(sizeof(h->ip) + sizeof(h->udp) + payload);
	h->ip.time_to_live = 60;
	h->ip.next_proto_id = IPPROTO_UDP;
	h->ip.dst_addr = inet_addr(WIRE_VIP);
	h->udp.dst_port = htons(WIRE_SERVICE_UDP);
	h->udp.dgram_len = htons(sizeof(h->udp) + payload);
	payload_write(h->number, payload, 0);
}

static void write_template(struct rte_mempool *pool, void *clients, void *mbuf, unsigned int index)
{
	struct gen_clients *c = clients;
	struct rte_mbuf *m = mbuf;
	uint8_t *frame;

	rte_pktmbuf_reset(m);
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	m->data_len = m->pkt_len = c->load.frame;
	write_common(c, frame);
}

static void begin_load(struct gen_clients *c)
{
	uint8_t frame[WIRE_FRAME_MAX];
	const struct headers *h = (const struct headers *)frame;
	uint16_t length;

	if (!c->load.tcp)
		*(c->load.forward ? &c->forwarded : &c->walked) += c->sent - c->first;
	c->load = c->gen->load;
	c->first = c->sent;
	if (c->tcp != NULL)
		gen_tcp_begin(c->tcp);
	if (c->load.tcp)
		return;
	c->number = c->load.forward ? c->forwarded : c->walked;
	write_common(c, frame);
	length = c->load.frame - sizeof(h->ether) - sizeof(h->ip);
	c->ip_sum = checksum_add_few((const uint8_t *)&h->ip, sizeof(h->ip));
	c->udp_sum =
		checksum_add((const uint8_t *)&h->udp, length) +
		checksum_pseudo((const uint8_t *)&h->ip.src_addr, FLOW_IPV4, IPPROTO_UDP, length);
	rte_mempool_obj_iter(c->requests, write_template, c);
}

static uint16_t finish_sum(uint64_t sum)
{
	return ~checksum_fold(sum);
}

static void write_request(struct gen_clients *c, struct headers *h, uint64_t number)
{
	uint32_t flow = choose_flow(c), source = address_of(flow);
	uint16_t port = port_of(flow), sum;

	c->flow[number & c->mask] = flow;
	h->ip.src_addr = source;
	h->ip.hdr_checksum = finish_sum(c->ip_sum + source);
	h->udp.src_port = port;
	memcpy(h->number, &number, sizeof(number));
	if (c->load.no_sum)
		return;
	sum = finish_sum(c->udp_sum + source + port + (uint32_t)number + (number >> 32));
	h->udp.dgram_cksum = sum == 0 ? 0xffff : sum; /* 0 would mean "none" (RFC 768) */
}

/* Returns the size of the next burst. Bursts are full unless the load ends: a client's NIC does not
 * send packet by packet either. */
static unsigned int how_many(const struct gen_clients *c)
{
	uint64_t sent = c->sent - c->first;

	if (c->load.tcp || (c->load.one_queue && c->queue > 0) ||
	    __atomic_load_n(&c->gen->stop, __ATOMIC_RELAXED) == c->epoch ||
	    c->sent - c->answered + GEN_BURST > c->o->outstanding || c->out.n > 0)
		return 0;
	return c->load.limit == 0 ? GEN_BURST : RTE_MIN(c->load.limit - sent, (uint64_t)GEN_BURST);
}

static bool send_requests(struct gen_clients *c)
{
	unsigned int n = how_many(c);

	if (n == 0)
		return false;
	/* Not rte_pktmbuf_alloc_bulk(): the mbufs are as they were when they were sent last. */
	if (rte_mempool_get_bulk(c->requests, (void **)c->out.packet, n) != 0)
		return false;
	for (unsigned int i = 0; i < n; i++)
		write_request(c, rte_pktmbuf_mtod(c->out.packet[i], struct headers *),
			      c->number + c->sent - c->first + i);
	c->out.n = n;
	c->sent += n;
	return true;
}

/* Checks every byte of a reply, or of a request that came back. */
static bool is_answer(const struct gen_clients *c, const struct rte_mbuf *m, uint64_t number)
{
	const struct headers *h = rte_pktmbuf_mtod(m, const struct headers *);
	uint32_t flow = c->flow[number & c->mask];
	uint32_t payload = c->load.forward ? c->load.frame - WIRE_CLIENT_HEADERS : c->o->reply;

	return m->nb_segs == 1 && rte_is_same_ether_addr(&h->ether.dst_addr, &client_mac) &&
	       memcmp(&h->ether.src_addr, c->lb_mac, 6) == 0 &&
	       h->ip.dst_addr == address_of(flow) && h->ip.src_addr == inet_addr(WIRE_VIP) &&
	       h->udp.dst_port == port_of(flow) && h->udp.src_port == htons(WIRE_SERVICE_UDP) &&
	       rte_raw_cksum(&h->ip, sizeof(h->ip)) == 0xffff &&
	       (c->load.no_sum || h->udp.dgram_cksum != 0) &&
	       (h->udp.dgram_cksum == 0 || rte_ipv4_udptcp_cksum_verify(&h->ip, &h->udp) == 0) &&
	       payload_is(h->number, payload, number);
}

static void take_answer(struct gen_clients *c, const struct rte_mbuf *m)
{
	const struct headers *h = rte_pktmbuf_mtod(m, const struct headers *);
	uint32_t length = c->load.forward ? c->load.frame : WIRE_CLIENT_HEADERS + c->o->reply;
	uint64_t due = c->number + c->answered - c->first, number;

	/* The load balancer announces its address when the port gets its link. */
	if (unlikely(h->ether.ether_type == htons(RTE_ETHER_TYPE_ARP)))
		return;
	if (h->ip.next_proto_id == IPPROTO_TCP && c->tcp != NULL)
		return gen_tcp_take(c->tcp, m);
	memcpy(&number, h->number, sizeof(number));
	if (m->data_len != length || number != due)
		wire_die("queue %u: a frame of %u bytes with number %lu came for the clients, "
			 "number %lu was due",
			 c->queue, m->data_len, number, due);
	if (c->o->verify && !is_answer(c, m, number))
		wire_die("queue %u: the reply to request %lu is wrong", c->queue, number);
	c->answered++;
}

static unsigned int take_answers(struct gen_clients *c)
{
	struct rte_mbuf *packet[2 * GEN_BURST];
	unsigned int n = rte_eth_rx_burst(c->out.port, c->queue, packet, RTE_DIM(packet));

	for (unsigned int i = 0; i < n; i++)
		take_answer(c, packet[i]);
	rte_pktmbuf_free_bulk(packet, n);
	return n;
}

bool gen_clients_turn(struct gen_clients *c)
{
	bool work;

	if (unlikely(c->epoch != __atomic_load_n(&c->gen->epoch, __ATOMIC_ACQUIRE))) {
		begin_load(c);
		__atomic_store_n(&c->epoch, c->epoch + 1, __ATOMIC_RELEASE);
	}
	work = take_answers(c) > 0;
	work |= send_requests(c);
	if (c->tcp != NULL)
		work |= gen_tcp_send(c->tcp);
	if (c->out.n > 0)
		gen_out_flush(&c->out);
	if (c->tcp != NULL)
		__atomic_store_n(&c->settled, c->out.n == 0 && gen_tcp_settled(c->tcp),
				 __ATOMIC_RELEASE);
	return work;
}
