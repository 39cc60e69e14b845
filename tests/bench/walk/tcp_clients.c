/* SPDX-License-Identifier: BSD-3-Clause */
#include "walk/tcp_clients.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_tcp.h>

#include "lb.h"
#include "tcp/header.h"
#include "tcp/sequence.h"

#define CLIENT_WINDOW 500 /* in units of 1 << CLIENT_SCALE */
#define CLIENT_SCALE  7
#define CLIENT_MSS    1460

void tcp_clients_init(struct tcp_clients *c, struct tcp_speech *speech, const struct rig *rig,
		      struct clients *frames, uint32_t n)
{
	*c = (struct tcp_clients){.frames = frames, .speech = speech, .rig = rig, .n = n};
	c->client = calloc(n, sizeof(*c->client));
	if (c->client == NULL)
		rig_die("no memory for %u clients", n);
}

void tcp_clients_fini(struct tcp_clients *c)
{
	free(c->client);
}

void tcp_clients_draw(struct tcp_clients *c, uint32_t among, uint32_t flow[RIG_BATCH])
{
	c->batch++;
	for (unsigned int i = 0; i < RIG_BATCH; i++) {
		do
			flow[i] = clients_random(c->frames, among);
		while (c->client[flow[i]].drawn == c->batch);
		c->client[flow[i]].drawn = c->batch;
	}
}

/* ms of the load balancer's clock, which all clients share. */
static uint32_t clients_now(const struct tcp_clients *c)
{
	return lb_tsc_to_ms(c->rig->lb, *c->rig->lb->clock);
}

/* --- what goes ----------------------------------------------------------------------------------
 */

static struct tcp_header clients_header(const struct tcp_clients *c, enum tcp_segment kind,
					struct tcp_client *v)
{
	struct tcp_header h = {
		.seq = v->next,
		.ack = v->expected,
		.flags = TCP_BIT_ACK,
		.window = CLIENT_WINDOW,
		.scale = TCP_SCALE_NONE,
		.has_timestamp = true,
		.ts_value = clients_now(c),
		.ts_echo = v->echo,
	};

	if (kind == TCP_SEGMENT_SYN) {
		h.flags = TCP_BIT_SYN;
		h.ack = h.ts_echo = 0;
		h.scale = CLIENT_SCALE;
		h.mss = CLIENT_MSS;
		h.sack_permitted = true;
	}
	if (kind == TCP_SEGMENT_REQUEST)
		h.flags |= TCP_BIT_PSH;
	if (kind == TCP_SEGMENT_FIN)
		h.flags |= TCP_BIT_FIN;
	return h;
}

/* Bytes behind the TCP header. */
static uint32_t clients_write_payload(const struct tcp_clients *c, unsigned int index,
				      uint32_t payload, uint32_t calls, uint8_t *at)
{
	uint64_t number = c->frames->first + index;

	tcp_speech_put(c->speech, calls, at);
	at += c->speech->head;
	c->frames->payload[index] = at;
	c->frames->length[index] = payload;
	memcpy(at, &number, sizeof(number));
	for (uint32_t i = sizeof(number); i < payload; i++)
		at[i] = clients_pattern(i);
	return c->speech->head + payload;
}

void tcp_clients_write(struct tcp_clients *c, enum tcp_segment kind, uint32_t flow, uint32_t bytes,
		       struct rte_mbuf *m)
{
	struct tcp_client *v = &c->client[flow];
	struct tcp_header h = clients_header(c, kind, v);
	struct rte_ether_hdr *ether = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(ether + 1);
	uint8_t *tcp = (uint8_t *)(ip + 1);
	uint32_t size;

	size = tcp_header_write(&h, clients_port(flow), htons(RIG_SERVICE_UDP + c->speech->service),
				tcp);
	memcpy(&ether->dst_addr, c->frames->lb_mac, 6);
	ether->src_addr = clients_mac;
	ether->ether_type = htons(RTE_ETHER_TYPE_IPV4);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = 0x45,
		.total_length = htons(sizeof(*ip) + size + bytes),
		.time_to_live = 60,
		.next_proto_id = IPPROTO_TCP,
		.src_addr = clients_address(flow),
		.dst_addr = inet_addr(RIG_VIP),
	};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	if (c->sums)
		((struct rte_tcp_hdr *)tcp)->cksum = rte_ipv4_udptcp_cksum(ip, tcp);
	m->data_len = m->pkt_len = (tcp - (uint8_t *)ether) + size + bytes;
	v->next += bytes + (kind == TCP_SEGMENT_SYN || kind == TCP_SEGMENT_FIN);
}

void tcp_clients_prepare(struct tcp_clients *c, enum tcp_segment kind,
			 const uint32_t flow[RIG_BATCH], unsigned int n, uint32_t payload)
{
	struct clients *f = c->frames;
	uint32_t bytes, calls = 0;

	rig_alloc(c->rig, f->packet, n);
	if (kind == TCP_SEGMENT_REQUEST) {
		f->first = f->number;
		f->number += RIG_BATCH;
	}
	for (unsigned int i = 0; i < n; i++) {
		f->flow[i] = flow[i];
		if (kind == TCP_SEGMENT_REQUEST)
			calls = tcp_clients_call(c, flow[i]);
		bytes = kind != TCP_SEGMENT_REQUEST
				? 0
				: clients_write_payload(
					  c, i, payload, calls,
					  rte_pktmbuf_mtod_offset(f->packet[i], uint8_t *,
								  TCP_CLIENT_HEADERS));
		tcp_clients_write(c, kind, flow[i], bytes, f->packet[i]);
	}
}

/* --- what comes ---------------------------------------------------------------------------------
 */

/* The reply's last byte lies where the fabric's NIC put it. */
static bool clients_reply_stayed(const uint8_t *const *reply_at, uint32_t payload,
				 const struct rte_mbuf *m)
{
	const uint8_t *end;

	if (reply_at == NULL)
		return false;

	while (m->next != NULL)
		m = m->next;
	end = rte_pktmbuf_mtod_offset(m, const uint8_t *, m->data_len);
	for (unsigned int i = 0; i < LB_BURST; i++)
		if (reply_at[i] + payload == end)
			return true;
	return false;
}

static void clients_check_reply(const struct tcp_clients *c, const uint8_t *tcp, uint32_t size,
				uint32_t flow, uint32_t payload)
{
	const uint8_t *at = tcp + size + c->speech->reply_head;
	uint64_t number;

	memcpy(&number, at, sizeof(number));
	number -= c->frames->first;
	if (!tcp_speech_is_reply(c->speech, tcp + size, c->speech->reply_head, payload) ||
	    number >= RIG_BATCH || c->frames->flow[number] != flow)
		rig_die("flow %u: the reply of another, or with another head", flow);
	for (uint32_t i = sizeof(number); i < payload; i++)
		if (at[i] != clients_pattern(i))
			rig_die("flow %u: wrong bytes", flow);
}

static void clients_verify(const struct tcp_clients *c, struct rte_mbuf *m, uint32_t flow,
			   uint32_t payload, uint32_t bytes)
{
	static uint8_t whole[2048];
	const uint8_t *frame = rte_pktmbuf_read(m, 0, m->pkt_len, whole);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(frame + 14);
	const uint8_t *tcp = (const uint8_t *)(ip + 1);

	if (memcmp(frame, &clients_mac, 6) != 0 || memcmp(frame + 6, c->frames->lb_mac, 6) != 0 ||
	    rte_raw_cksum(ip, sizeof(*ip)) != 0xffff ||
	    rte_ipv4_udptcp_cksum_verify(ip, tcp) != 0 || ip->src_addr != inet_addr(RIG_VIP))
		rig_die("flow %u: wrong headers or checksums", flow);
	if (bytes > 0 && c->http2 == NULL)
		clients_check_reply(c, tcp, (tcp[12] >> 4) * 4u, flow, payload);
}

/* Bytes of <m>'s payload, which is a reply or a part of several. */
static void clients_take_reply(struct tcp_clients *c, const uint8_t *const *reply_at,
			       uint32_t payload, uint32_t flow, const uint8_t *bytes,
			       uint32_t length, const struct rte_mbuf *m, struct tcp_taken *taken)
{
	if (c->http2 != NULL) {
		static uint8_t whole[2048];
		uint32_t before = (uint32_t)(bytes - rte_pktmbuf_mtod(m, const uint8_t *));

		taken->replies += tcp_frames_read(&c->http2[flow - c->http2_first],
						  rte_pktmbuf_read(m, before, length, whole),
						  length, payload);
		return;
	}
	taken->replies++;
	if (c->speech->reply_head == 0)
		c->speech->reply_head = length - payload;
	if (length != c->speech->reply_head + payload)
		rig_die("flow %u: a segment has %u bytes", flow, length);
	if (!clients_reply_stayed(reply_at, payload, m))
		rig_die("flow %u: the payload was moved", flow);
}

static void clients_take_one(struct tcp_clients *c, const uint8_t *const *reply_at,
			     uint32_t payload, struct rte_mbuf *m, struct tcp_taken *taken)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(frame + 14);
	const uint8_t *tcp = (const uint8_t *)(ip + 1);
	const struct rte_tcp_hdr *ports = (const struct rte_tcp_hdr *)tcp;
	uint32_t flow = clients_flow(ip->dst_addr, ports->dst_port);
	struct tcp_client *v = &c->client[flow];
	struct tcp_header h;

	/* A connection of another service may be told meanwhile that its window opens. */
	if (ip->next_proto_id == IPPROTO_TCP &&
	    ports->src_port != htons(RIG_SERVICE_UDP + c->speech->service))
		return;
	if (ip->next_proto_id != IPPROTO_TCP || flow >= c->n ||
	    tcp_header_read(tcp, m->pkt_len - 34, &h) != 0)
		rig_die("no segment of a connection came out of the clients' port");
	if (h.flags & TCP_BIT_SYN)
		v->expected = h.seq;
	if (h.seq != v->expected || h.flags & TCP_BIT_RST ||
	    (h.ack != v->next && !(c->ahead && sequence_before(h.ack, v->next))))
		rig_die("flow %u: segment out of order (number %u, expected %u), or a reset", flow,
			h.seq, v->expected);
	v->expected += tcp_header_span(&h);
	v->echo = h.ts_value;
	taken->packets += tcp_header_span(&h) > 0 || h.window <= v->window;
	v->window = h.window;
	taken->syns += !!(h.flags & TCP_BIT_SYN);
	taken->fins += !!(h.flags & TCP_BIT_FIN);
	if (tcp_header_span(&h) == 0)
		taken->acknowledgements++;
	if (h.length > 0)
		clients_take_reply(c, reply_at, payload, flow, tcp + (m->pkt_len - 34 - h.length),
				   h.length, m, taken);
	if (c->verify)
		clients_verify(c, m, flow, payload, h.length);
}

void tcp_clients_take(struct tcp_clients *c, const uint8_t *const *reply_at, uint32_t payload,
		      struct tcp_taken *taken)
{
	struct rte_mbuf *packet[NIC_SIZE];
	unsigned int n = nic_collect(&c->rig->clients, 0, packet, NIC_SIZE);

	for (unsigned int i = 0; i < n; i++) {
		clients_take_one(c, reply_at, payload, packet[i], taken);
		rte_pktmbuf_free(packet[i]);
	}
}
