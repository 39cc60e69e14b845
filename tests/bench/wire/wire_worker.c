/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker: one queue pair per lcore of the load balancer. It checks PSN, rkey, address and
 * descriptor of every WRITE, acknowledges once per burst, and answers each request at once.
 */
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "runtime/neigh.h"
#include "ring.h"
#include "wire/wire_tcp.h"

#define BTH_OFFSET (ROCE_ETHER_LENGTH + 20 + 8)

static const uint8_t host_mac[6] = {0x02, 0, 0, 0, 0, 0xf1};

static struct rte_mbuf *new_packet(struct gen_worker *w)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->packets);

	if (m == NULL || gen_out_room(&w->out) == 0)
		wire_die("queue %u: the worker has no room for what it sends", w->queue);
	w->out.packet[w->out.n++] = m;
	return m;
}

/* The loop's heartbeat: the first one makes the worker active. */
static void heartbeat(struct gen_worker *w)
{
	struct rte_mbuf *m = new_packet(w);

	writer_begin(&w->writer, m, 0, 0, ring_imm_heartbeat(0));
	writer_end(&w->writer, m);
}

void gen_worker_init(struct gen_worker *w, const struct wire_options *o, const struct gen_load *gen,
		     uint16_t port, uint16_t queue, const struct wire_address *lb,
		     struct rte_mempool *packets)
{
	struct roce_path_spec path = writer_path(WIRE_HOST, host_mac, WIRE_LB_FABRIC,
						 lb->fabric_mac, lb->link[queue].qpn, lb->path_mtu);

	w->o = o;
	w->gen = gen;
	w->queue = queue;
	w->link = lb->link[queue];
	w->packets = packets;
	w->out.port = port;
	w->out.queue = queue;
	path.udp_source += queue;
	roce_path_init(&w->writer.path, &path);
	w->writer.psn = WIRE_FIRST_PSN;
	w->writer.rkey = w->link.reply_rkey;
	w->acked = w->replied = roce_psn_add(WIRE_FIRST_PSN, ROCE_PSN_MASK);
	w->epsn = w->link.psn;
	w->beat_every = rte_get_tsc_hz() / 1000 * WIRE_BEAT_MS;
}

static void answer_arp(struct gen_worker *w, const uint8_t *frame)
{
	uint8_t answer[NEIGH_FRAME_MAX];
	int length = writer_answer_arp(frame, host_mac, answer);
	struct rte_mbuf *m;

	if (length < 0)
		wire_die("a malformed ARP packet is on the fabric");
	if (length == 0)
		return;
	m = new_packet(w);
	m->data_len = m->pkt_len = length;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), answer, length);
}

/* Replies as a model that is done at once. */
static void reply(struct gen_worker *w, const struct ring_descriptor *d, uint64_t number)
{
	struct ring_reply header = {
		.sequence = d->sequence,
		.seen_ns = 1000,
		.start_ns = 2000,
		.done_ns = 3000,
		.length = w->o->reply,
	};
	struct rte_mbuf *m = new_packet(w);
	uint8_t *at = writer_begin(&w->writer, m,
				   w->link.reply_address + (uint64_t)d->reply * RING_ALIGNMENT,
				   sizeof(header) + w->o->reply, ring_imm(d->slot, RING_OK, 0));

	memcpy(at, &header, sizeof(header));
	payload_write(at + sizeof(header), w->o->reply, number);
	w->replied = roce_psn_add(w->writer.psn, ROCE_PSN_MASK);
	writer_end(&w->writer, m);
}

/* Memory for the room, which a load that verifies reads. */
static void make_room(struct gen_worker *w)
{
	if (w->room != NULL)
		return;
	w->room = malloc(WIRE_ROOM);
	w->whole = malloc(WIRE_TCP_BYTES);
	if (w->room == NULL || w->whole == NULL)
		wire_die("no memory for what the clients send");
	gen_tcp_fill(w->whole);
}

/* A part of a request by TCP: bytes count where they begin, as none reach into another request. */
static void take_part(struct gen_worker *w, const struct roce_packet *p, uint64_t offset,
		      const uint8_t *payload)
{
	uint32_t page = offset / RING_PAGE;

	if (offset >= WIRE_ROOM || p->length > WIRE_ROOM - offset)
		wire_die("queue %u: %u bytes were written behind the room", w->queue, p->length);
	if (offset % RING_PAGE == 0 && p->length >= sizeof(w->mark[0]))
		memcpy(&w->mark[page], payload, sizeof(w->mark[0]));
	w->written[page] += p->length;
	w->counters.tcp_bytes += p->length;
	if (unlikely(w->gen->load.verify)) {
		make_room(w);
		memcpy(w->room + offset, payload, p->length);
	}
}

/* Checks that every byte of a request came once; the whole of it where the load says so. Returns
 * its number. */
static uint64_t take_whole(struct gen_worker *w, const struct ring_descriptor *d)
{
	uint64_t at = (uint64_t)d->payload * RING_ALIGNMENT - ring_room_at(WIRE_SLOTS, WIRE_STRIDE);
	uint32_t page = at / RING_PAGE, written = 0;
	uint64_t number = w->mark[page] >> 16;

	if (at % RING_PAGE != 0 || at > WIRE_ROOM - WIRE_TCP_BYTES || d->length != WIRE_TCP_BYTES)
		wire_die("queue %u: descriptor %lu announces %u bytes that lie nowhere", w->queue,
			 d->sequence, d->length);
	for (uint32_t i = 0; i < WIRE_TCP_BYTES / RING_PAGE; i++) {
		written += w->written[page + i];
		w->written[page + i] = 0;
	}
	if (written != WIRE_TCP_BYTES || (w->mark[page] & UINT16_MAX) != 0)
		wire_die("queue %u: descriptor %lu announces a request of which %u bytes came",
			 w->queue, d->sequence, written);
	if (unlikely(w->gen->load.verify)) {
		gen_tcp_mark(w->whole, number);
		if (memcmp(w->room + at, w->whole, WIRE_TCP_BYTES) != 0)
			wire_die("queue %u: request %lx has wrong bytes", w->queue, number);
	}
	return number;
}

static void take_payload(struct gen_worker *w, const struct rte_mbuf *m,
			 const struct roce_packet *p, const uint8_t *payload)
{
	uint64_t offset = p->va - WIRE_REQUESTS(w->queue), number;
	uint64_t room_at = ring_room_at(WIRE_SLOTS, WIRE_STRIDE);
	uint32_t slot = offset / WIRE_STRIDE;

	if (offset >= room_at)
		return take_part(w, p, offset - room_at, payload);
	memcpy(&number, payload, sizeof(number));
	if (offset % WIRE_STRIDE != 0 || slot >= WIRE_SLOTS || p->length < sizeof(number) ||
	    w->slot[slot] != 0)
		wire_die("queue %u: request %lu was written where it may not", w->queue, number);
	if (w->o->verify && !payload_is(payload, p->length, number))
		wire_die("queue %u: request %lu has wrong bytes", w->queue, number);
	w->slot[slot] = number + 1;
	w->length[slot] = p->length;
	w->counters.writes++;
}

/* A request by TCP: those of other connections may come before it. */
static void take_large(struct gen_worker *w, const struct ring_descriptor *d)
{
	if (d->sequence != w->sequence + 1 || d->slot >= WIRE_SLOTS || d->service != 1 ||
	    d->flags != 0 || d->flow == 0)
		wire_die("queue %u: descriptor %lu has wrong fields", w->queue, d->sequence);
	reply(w, d, take_whole(w, d));
	w->sequence++;
}

/* Checks that each request comes once and in the order in which its clients sent it: no gap, no
 * double. */
static void take_descriptor(struct gen_worker *w, const struct ring_descriptor *d)
{
	if ((uint64_t)d->payload * RING_ALIGNMENT >= ring_room_at(WIRE_SLOTS, WIRE_STRIDE))
		return take_large(w, d);
	if (d->sequence != w->sequence + 1 || d->slot >= WIRE_SLOTS ||
	    w->slot[d->slot] != w->number + 1 || d->length != w->length[d->slot])
		wire_die("queue %u: descriptor %lu (slot %u, %u bytes) does not announce request "
			 "%lu, the next of %u bytes",
			 w->queue, d->sequence, d->slot, d->length, w->number,
			 w->length[d->slot % WIRE_SLOTS]);
	if (w->o->verify && (d->service != 0 || d->flags != 0 || d->flow == 0))
		wire_die("queue %u: descriptor %lu has wrong fields", w->queue, d->sequence);
	reply(w, d, w->number);
	w->slot[d->slot] = 0;
	w->sequence++;
	w->number++;
	w->counters.announced++;
}

static void take_descriptors(struct gen_worker *w, const struct roce_packet *p,
			     const uint8_t *payload)
{
	uint64_t at = (p->va - WIRE_DESCRIPTORS(w->queue)) / sizeof(struct ring_descriptor);

	if (at != w->sequence % WIRE_SLOTS || p->length % sizeof(struct ring_descriptor) != 0)
		wire_die("queue %u: descriptors were written where they may not", w->queue);
	for (uint32_t i = 0; i < p->length; i += sizeof(struct ring_descriptor)) {
		struct ring_descriptor d;

		memcpy(&d, payload + i, sizeof(d));
		take_descriptor(w, &d);
	}
}

static void take_write(struct gen_worker *w, const struct rte_mbuf *m, const struct roce_packet *p,
		       const uint8_t *payload)
{
	if (p->opcode != ROCE_WRITE_ONLY || p->psn != w->epsn || p->rkey != WIRE_RKEY(w->queue) ||
	    p->qpn != WIRE_QPN(w->queue))
		wire_die("queue %u: opcode %02x, PSN %u, rkey %u or queue pair %u is wrong",
			 w->queue, p->opcode, p->psn, p->rkey, p->qpn);
	w->epsn = roce_psn_add(w->epsn, 1);
	w->msn = roce_psn_add(w->msn, 1);
	w->ack_due |= p->ack_request;
	if (p->va >= WIRE_REQUESTS(w->queue))
		take_payload(w, m, p, payload);
	else
		take_descriptors(w, p, payload);
}

static void take(struct gen_worker *w, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct roce_packet p;

	if (unlikely(writer_is_arp(frame)))
		return answer_arp(w, frame);
	if (m->nb_segs != 1 || memcmp(frame, host_mac, 6) != 0 ||
	    roce_parse(frame + BTH_OFFSET, m->data_len - BTH_OFFSET, &p) != ROCE_PARSED)
		wire_die("queue %u: a malformed packet is on the fabric", w->queue);
	if (w->o->verify && !roce_icrc_ok(frame + ROCE_ETHER_LENGTH, 20,
					  m->data_len - ROCE_ETHER_LENGTH - ROCE_ICRC_LENGTH))
		wire_die("queue %u: the ICRC of PSN %u is wrong", w->queue, p.psn);
	if (p.opcode != ROCE_ACK)
		return take_write(w, m, &p, frame + BTH_OFFSET + p.payload_offset);
	if (ROCE_AETH_KIND(p.syndrome) != ROCE_AETH_ACK)
		wire_die("queue %u: the load balancer refuses PSN %u", w->queue, p.psn);
	w->acked = p.psn;
	w->counters.acks_received++;
}

/* Sends one acknowledgement for all of a burst, as NICs coalesce them. */
static void acknowledge(struct gen_worker *w)
{
	struct rte_mbuf *m = new_packet(w);

	m->data_len = m->pkt_len =
		roce_ack_build(rte_pktmbuf_mtod(m, uint8_t *), &w->writer.path,
			       roce_psn_add(w->epsn, ROCE_PSN_MASK), ROCE_CREDITS_UNUSED, w->msn);
	w->ack_due = false;
	w->counters.acks_sent++;
}

/* Heartbeats do not pile up behind a load balancer that takes no packets. */
static void beat_when_due(struct gen_worker *w, uint64_t now)
{
	if (likely(now < w->next_beat))
		return;
	w->next_beat = now + w->beat_every;
	if (gen_out_room(&w->out) > GEN_PENDING / 2)
		heartbeat(w);
}

bool gen_worker_turn(struct gen_worker *w, uint64_t now)
{
	struct rte_mbuf *packet[2 * GEN_BURST];
	unsigned int n = 0;

	/* A WRITE of descriptors may cause as many replies. */
	if (gen_out_room(&w->out) >= GEN_PENDING / 2)
		n = rte_eth_rx_burst(w->out.port, w->queue, packet, RTE_DIM(packet));
	for (unsigned int i = 0; i < n; i++)
		take(w, packet[i]);
	rte_pktmbuf_free_bulk(packet, n);
	if (w->ack_due)
		acknowledge(w);
	beat_when_due(w, now);
	if (w->out.n > 0)
		gen_out_flush(&w->out);
	return n > 0;
}
