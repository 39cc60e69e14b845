/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "common/peer.h"
#include "ring.h"
#include "lb.h"
#include "walk/loop.h"

#define QPN(w)         (0x100u + (w))
#define RKEY(w)        (0x1000u + (w))
#define BASE(w)        ((uint64_t)((w) + 1) << 40)
#define DESCRIPTORS(w) BASE(w)
#define SLOTS(w)       (BASE(w) + (1ull << 32))
#define CANCELS(w)     (BASE(w) + (1ull << 36))
#define STRIDE         1536
#define ROOM(w)        (SLOTS(w) + ring_room_at(PEER_SLOTS, RING_STRIDE_MAX))
#define FIRST_PSN      0xfffff0u /* the numbers wrap early in every run */

static const uint8_t host_mac[6] = {0x02, 0, 0, 0, 0, 0xf1};

/* Of the first worker: bytes in, bytes out. */
static const struct model_description described = {
	.version = "1",
	.n_inputs = 1,
	.n_outputs = 1,
	.input =
		{{.name = "x", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {DESCRIPTION_FREE}}},
	.output =
		{{.name = "y", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {DESCRIPTION_FREE}}},
};

/* --- joining ------------------------------------------------------------------------------------
 */

static void add_worker(struct peer *peer, unsigned int w)
{
	struct peer_worker *p = &peer->worker[w];
	bool large = w == 0 && peer->rig->lc->edge != NULL;
	struct lb_registration r = {
		.worker = {.slots = PEER_SLOTS,
			   .max_request = large ? RIG_STREAM_MAX : RIG_BYTES_MAX,
			   .max_reply = RIG_BYTES_MAX,
			   /* A batch holds as many as there are slots: on a slow machine, too, its
			      requests never wait in the load balancer (lb/walk/choose.c), which
			      would count them as missing here. */
			   .max_batch = PEER_SLOTS,
			   .weight = 1,
			   .description = w == 0 ? &described : NULL,
			   .heartbeat_ms = 1000,
			   .instance = w + 1},
		.path_mtu = RIG_PATH_MTU,
		.n_links = 1,
		.link = {{.qpn = QPN(w),
			  .psn = FIRST_PSN,
			  .rkey = RKEY(w),
			  .descriptors = DESCRIPTORS(w),
			  .payloads = SLOTS(w),
			  .cancels = CANCELS(w),
			  .stride = large ? RING_STRIDE_MAX : STRIDE,
			  .room = large ? PEER_ROOM : 0,
			  .entry = RING_ENTRY}},
	};
	struct roce_path_spec path;
	char error[256];

	snprintf(r.worker.name, sizeof(r.worker.name), "gpu%u", w);
	snprintf(r.worker.model, sizeof(r.worker.model), w == 0 ? "one" : "many");
	lb_address_parse(RIG_HOST, &r.address);
	p->worker =
		lb_worker_register(peer->rig->lb, &r, &p->info, &p->path_mtu, error, sizeof(error));
	if (p->worker == NULL)
		rig_die("a worker is refused: %s", error);
	path = writer_path(RIG_HOST, host_mac, RIG_LB_FABRIC, peer->rig->lb->port[1].mac,
			   p->info.qpn, RIG_PATH_MTU);
	roce_path_init(&p->writer.path, &path);
	p->writer.psn = FIRST_PSN;
	p->writer.rkey = p->info.reply_rkey;
	p->acked = roce_psn_add(FIRST_PSN, ROCE_PSN_MASK);
	p->epsn = p->info.psn;
	p->stride = r.link[0].stride;
}

static void heartbeat(struct peer *peer, struct peer_worker *p)
{
	struct rte_mbuf *m;

	rig_alloc(peer->rig, &m, 1);
	writer_begin(&p->writer, m, 0, 0, RING_IMM_HEARTBEAT | 1);
	writer_end(&p->writer, m);
	nic_deliver(&peer->rig->fabric, &m, 1);
}

static void turn_and_tick(struct peer *peer)
{
	lb_poll(peer->rig->lc);
	peer_receive(peer);
	lb_poll(peer->rig->lc); /* takes our answers */
	lb_tick(peer->rig->lb);
}

void peer_join(struct peer *peer, const struct rig *rig, const struct clients *clients)
{
	memset(peer, 0, sizeof(*peer));
	peer->rig = rig;
	peer->clients = clients;
	for (unsigned int w = 0; w < RIG_WORKERS; w++)
		add_worker(peer, w);
	lb_tick(rig->lb); /* requests our MAC address */
	turn_and_tick(peer);
	for (unsigned int w = 0; w < RIG_WORKERS; w++) {
		lb_worker_ready(rig->lb, peer->worker[w].worker);
		heartbeat(peer, &peer->worker[w]);
	}
	turn_and_tick(peer);
	for (unsigned int w = 0; w < RIG_WORKERS; w++)
		if (peer->worker[w].worker->state != WORKER_ACTIVE)
			rig_die("worker gpu%u did not become active: %s", w,
				peer->worker[w].worker->reason);
}

/* --- what comes --------------------------------------------------------------------------------
 */

static void answer_arp(struct peer *peer, const uint8_t *frame)
{
	struct rte_mbuf *m;
	int length;

	rig_alloc(peer->rig, &m, 1);
	length = writer_answer_arp(frame, host_mac, rte_pktmbuf_mtod(m, uint8_t *));
	if (length <= 0)
		rig_die("a frame on the fabric is neither RoCE nor an ARP request");
	m->data_len = m->pkt_len = length;
	nic_deliver(&peer->rig->fabric, &m, 1);
}

/* Returns which request of this turn lies here. The links' packets may leave in any order. */
static uint32_t request_at(const struct peer *peer, const uint8_t *payload)
{
	uint32_t first = peer->n_requests / LB_BURST * LB_BURST;

	for (uint32_t i = first; i < first + LB_BURST; i++)
		if (peer->clients->payload[i] == payload)
			return i;
	rig_die("a payload of requests %u to %u was moved", first, first + LB_BURST - 1);
}

/* Checks every byte of a request: the client's payload, and a valid ICRC. */
static bool is_request(const struct peer *peer, const struct rte_mbuf *m, const uint8_t *payload,
		       uint32_t index)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint64_t number = peer->clients->first + index;

	if (!roce_icrc_ok(frame + ROCE_ETHER_LENGTH, 20,
			  m->data_len - ROCE_ETHER_LENGTH - ROCE_ICRC_LENGTH) ||
	    memcmp(payload, &number, sizeof(number)) != 0)
		return false;
	for (uint32_t i = sizeof(number); i < peer->clients->length[index]; i++)
		if (payload[i] != clients_pattern(i))
			return false;
	return true;
}

static void take_payload(struct peer *peer, unsigned int w, const struct rte_mbuf *m,
			 const struct roce_packet *p, const uint8_t *payload)
{
	uint64_t offset = p->va - SLOTS(w);
	uint32_t index = request_at(peer, payload), stride = peer->worker[w].stride;

	if (peer->n_payloads == RIG_BATCH || p->length != peer->clients->length[index] ||
	    offset % stride != 0 || offset / stride >= PEER_SLOTS)
		rig_die("request %u: wrong length or address", index);
	if (m->nb_segs != 1)
		rig_die("request %u: in more than one piece", index);
	if (peer->verify && !is_request(peer, m, payload, index))
		rig_die("request %u: wrong bytes", index);
	peer->worker[w].request[offset / stride] = index;
	peer->n_payloads++;
}

/* The request of a descriptor; dies if it was not written, or has another length. */
static uint32_t announced(struct peer *peer, unsigned int w, const struct ring_descriptor *d)
{
	uint64_t at = SLOTS(w) + (uint64_t)d->payload * RING_ALIGNMENT;
	uint32_t index;

	if (peer->large.announce != NULL && w == 0 && at >= ROOM(w))
		return peer->large.announce(peer->large.context, at - ROOM(w), d->length);
	index = peer->worker[w].request[d->slot];
	if (peer->n_requests == peer->n_payloads || d->length != peer->clients->length[index])
		rig_die("descriptor %lu of worker gpu%u: wrong length, or no payload", d->sequence,
			w);
	return index;
}

static void take_descriptors(struct peer *peer, unsigned int w, const struct roce_packet *p,
			     const uint8_t *payload)
{
	struct peer_worker *worker = &peer->worker[w];
	uint64_t at = (p->va - DESCRIPTORS(w)) / sizeof(struct ring_descriptor);
	struct ring_descriptor d;
	uint32_t index;

	for (uint32_t i = 0; i < p->length / sizeof(d); i++) {
		memcpy(&d, payload + i * sizeof(d), sizeof(d));
		if (d.sequence != worker->sequence + 1 || at + i != (d.sequence - 1) % PEER_SLOTS ||
		    d.slot >= PEER_SLOTS || peer->n_requests == RIG_BATCH)
			rig_die("descriptor %lu of worker gpu%u is wrong", d.sequence, w);
		worker->sequence = d.sequence;
		index = announced(peer, w, &d);
		peer->request[peer->n_requests++] = (struct peer_request){
			.worker = w,
			.slot = d.slot,
			.index = index,
			.sequence = d.sequence,
		};
	}
}

static void note_ack(struct peer *peer, unsigned int w, uint32_t psn)
{
	if (peer->n_acks == PEER_ACKS)
		rig_die("too many acknowledgements are due");
	peer->ack[(peer->first_ack + peer->n_acks++) % PEER_ACKS] = (struct peer_ack){
		.turn = peer->turn + PEER_ACK_TURNS,
		.worker = w,
		.psn = psn,
		.msn = peer->worker[w].msn,
	};
}

static void take_write(struct peer *peer, unsigned int w, const struct rte_mbuf *m,
		       const struct roce_packet *p, const uint8_t *payload)
{
	struct peer_worker *worker = &peer->worker[w];

	if (p->opcode != ROCE_WRITE_ONLY || p->psn != worker->epsn || p->rkey != RKEY(w))
		rig_die("worker gpu%u: wrong opcode, PSN or rkey", w);
	worker->epsn = roce_psn_add(worker->epsn, 1);
	worker->msn = roce_psn_add(worker->msn, 1);
	if (peer->large.take != NULL && w == 0 && p->va >= ROOM(w))
		peer->large.take(peer->large.context, p->va - ROOM(w), payload, p->length, m);
	else if (p->va >= SLOTS(w))
		take_payload(peer, w, m, p, payload);
	else
		take_descriptors(peer, w, p, payload);
	if (p->ack_request)
		note_ack(peer, w, p->psn);
}

/* Where the payload lies: behind the headers, or in a packet of its own that they point to. */
static const uint8_t *payload_of(const struct rte_mbuf *m, const uint8_t *behind)
{
	if (m->next != NULL && behind == rte_pktmbuf_mtod_offset(m, const uint8_t *, m->data_len))
		return rte_pktmbuf_mtod(m->next, const uint8_t *);
	return behind;
}

static void take(struct peer *peer, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *bth = frame + ROCE_ETHER_LENGTH + 20 + 8;
	struct roce_packet p;
	unsigned int w;

	if (writer_is_arp(frame))
		return answer_arp(peer, frame);
	if (memcmp(frame, host_mac, 6) != 0 ||
	    roce_parse(bth, m->pkt_len - (bth - frame), &p) != ROCE_PARSED)
		rig_die("a malformed packet came out of the fabric port");
	w = p.qpn - QPN(0);
	if (w >= RIG_WORKERS)
		rig_die("a packet for a queue pair that does not exist");
	if (p.opcode == ROCE_ACK && ROCE_AETH_KIND(p.syndrome) == ROCE_AETH_ACK)
		peer->worker[w].acked = p.psn;
	else
		take_write(peer, w, m, &p, payload_of(m, bth + p.payload_offset));
}

void peer_receive(struct peer *peer)
{
	struct rte_mbuf *packet[NIC_SIZE];
	unsigned int n = nic_collect(&peer->rig->fabric, 0, packet, NIC_SIZE);

	for (unsigned int i = 0; i < n; i++) {
		take(peer, packet[i]);
		rte_pktmbuf_free(packet[i]);
	}
}

bool peer_all_acked(const struct peer *peer)
{
	for (unsigned int w = 0; w < RIG_WORKERS; w++)
		if (roce_psn_add(peer->worker[w].acked, 1) != peer->worker[w].writer.psn)
			return false;
	return true;
}

/* --- what goes ---------------------------------------------------------------------------------
 */

void peer_expect(struct peer *peer)
{
	peer->n_payloads = peer->n_requests = 0;
}

void peer_acknowledge(struct peer *peer)
{
	while (peer->n_acks > 0 && peer->ack[peer->first_ack].turn <= peer->turn) {
		const struct peer_ack *ack = &peer->ack[peer->first_ack];
		struct rte_mbuf *m;

		rig_alloc(peer->rig, &m, 1);
		m->data_len = m->pkt_len = roce_ack_build(rte_pktmbuf_mtod(m, uint8_t *),
							  &peer->worker[ack->worker].writer.path,
							  ack->psn, ROCE_CREDITS_UNUSED, ack->msn);
		nic_deliver(&peer->rig->fabric, &m, 1);
		peer->first_ack = (peer->first_ack + 1) % PEER_ACKS;
		peer->n_acks--;
	}
	peer->turn++;
}

void peer_prepare_replies(struct peer *peer, const struct load *load)
{
	rig_alloc(peer->rig, peer->reply, peer->n_requests);
	for (unsigned int i = 0; i < peer->n_requests; i++) {
		const struct peer_request *r = &peer->request[i];
		struct peer_worker *p = &peer->worker[r->worker];
		uint64_t number = peer->clients->first + r->index;
		uint32_t length = load->reply != 0 ? load->reply : peer->clients->length[r->index];
		struct ring_reply header = {
			.sequence = r->sequence,
			.seen_ns = 1000,
			.start_ns = 2000,
			.done_ns = 3000,
			.length = length,
		};
		uint8_t *at = writer_begin(&p->writer, peer->reply[i],
					   p->info.reply_address +
						   (uint64_t)r->slot * p->info.reply_stride,
					   sizeof(header) + length, ring_imm(r->slot, 0, 0));

		memcpy(at, &header, sizeof(header));
		at += sizeof(header);
		memcpy(at, &number, sizeof(number));
		for (uint32_t k = sizeof(number); k < length; k++)
			at[k] = clients_pattern(k);
		peer->reply_at[i] = at;
		writer_end(&p->writer, peer->reply[i]);
	}
}
