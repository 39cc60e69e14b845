/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "rdma/frame.h"
#include "runtime/neigh.h"
#include "worker.h"
#include "lb.h"

#define FIRST_PSN          0xfffff0u /* wraps early */
#define QPN(number, lcore) (0x1000u + (number)*LB_LCORES_MAX + (lcore))
#define RKEY(number)       (0x5000u + (number))
#define BASE(number)       (((uint64_t)(number) + 1) << 32)
#define START_MS           100

/* --- registration -------------------------------------------------------------------------------
 */

static uint32_t or (uint32_t value, uint32_t otherwise)
{
	return value != 0 ? value : otherwise;
}

static void address_of(struct walk *w, const char *text, struct lb_address *out)
{
	uint8_t *last = &out->addr.s6_addr[15];

	if (text != NULL) {
		walk_need(lb_address_parse(text, out) == 0, "%s", text);
		return;
	}
	*out = w->config.port[w->fabric].address;
	*last += 10 + w->n_workers;
}

static void fill_links(struct walk *w, uint32_t psn, uint64_t room, struct lb_registration *r)
{
	uint64_t descriptors = BASE(w->n_workers);
	uint64_t cancels = descriptors + r->worker.slots * sizeof(struct ring_descriptor);

	r->n_links = w->lb->n_lcores;
	for (unsigned int i = 0; i < r->n_links; i++)
		r->link[i] = (struct lb_link_spec){
			.lcore = i,
			.qpn = QPN(w->n_workers, i),
			.psn = psn != 0 ? psn & ROCE_PSN_MASK : FIRST_PSN + i,
			.rkey = RKEY(w->n_workers),
			.descriptors = descriptors,
			.cancels = cancels,
			.payloads = RTE_ALIGN_CEIL(cancels + r->worker.slots * sizeof(uint64_t),
						   RING_ALIGNMENT),
			.stride = RTE_ALIGN_CEIL(RTE_MIN(r->worker.max_request, RING_STRIDE_MAX),
						 RING_ALIGNMENT),
			.room = room,
			.entry = RING_ENTRY,
		};
}

void walk_worker_registration(struct walk *w, const struct walk_worker_params *params,
			      struct lb_registration *r)
{
	static const struct walk_worker_params none;
	const struct walk_worker_params *p = params != NULL ? params : &none;
	struct lb_hello hello = {.max_request = 1472, .max_reply = 1472};
	char ignored[256];

	memset(r, 0, sizeof(*r));
	address_of(w, p->address, &r->address);
	if (p->name != NULL)
		snprintf(r->worker.name, sizeof(r->worker.name), "%s", p->name);
	else
		snprintf(r->worker.name, sizeof(r->worker.name), "gpu%u", w->n_workers);
	snprintf(r->worker.model, sizeof(r->worker.model), "%s",
		 p->model != NULL ? p->model : "echo");
	lb_hello(w->lb, r->worker.model, &r->address, &hello, ignored, sizeof(ignored));
	r->worker.instance = w->n_workers + 1;
	r->worker.slots = or (p->slots, 16);
	r->worker.max_request = or (p->max_request, or (hello.max_request, 1472));
	r->worker.max_reply = or (p->max_reply, or (hello.max_reply, 1472));
	r->worker.max_batch = or (p->max_batch, 8);
	r->worker.weight = or (p->weight, 1);
	r->worker.heartbeat_ms = or (p->heartbeat_ms, 10);
	r->worker.max_run_ms = p->max_run_ms;
	r->max_chunks = p->max_chunks;
	r->path_mtu = or (p->path_mtu, 1024);
	fill_links(w, p->psn, p->room, r);
}

/* Makes the memory and the queue pair of one link, as the load balancer was told of them. */
static void open_link(struct walk_worker *v, const struct lb_link_info *info)
{
	const struct walk *w = v->walk;
	const struct lb_link_spec *spec = &v->registration.link[info->lcore];
	uint32_t slots = v->registration.worker.slots;
	struct walk_link *l = &v->link[info->lcore];
	struct rdma_region region = {
		.va = spec->descriptors,
		.length = spec->payloads - spec->descriptors + ring_room_at(slots, spec->stride) +
			  spec->room,
		.rkey = spec->rkey,
	};
	struct roce_path_spec path = {
		.family = v->address.family,
		.source = v->address.addr,
		.destination = w->config.port[w->fabric].address.addr,
		.udp_source = 0xd000,
		.qpn = info->qpn,
		.migrated = true,
		.mtu = v->path_mtu,
	};

	memcpy(path.source_mac, v->mac, 6);
	memcpy(path.destination_mac, w->lb->port[w->fabric].mac, 6);
	roce_path_init(&l->path, &path);
	path.source.s6_addr[15] ^= 0x40;
	roce_path_init(&l->forged, &path);
	responder_init(&l->responder, &region, v->path_mtu, info->psn);
	l->info = *info;
	l->psn = spec->psn;
	l->memory = calloc(1, region.length);
	l->written = calloc(slots, sizeof(*l->written));
	l->taken = calloc(slots, sizeof(*l->taken));
	walk_need(l->memory != NULL && l->written != NULL && l->taken != NULL, "no memory");
}

struct walk_worker *walk_worker_register_as(struct walk *w, const struct lb_registration *r)
{
	struct walk_worker *v = calloc(1, sizeof(*v));
	struct lb_link_info info[LB_LCORES_MAX];

	walk_need(v != NULL && w->n_workers < WALK_WORKERS_MAX, "too many workers");
	w->error[0] = '\0';
	if (lb_worker_register(w->lb, r, info, &v->path_mtu, w->error, sizeof(w->error)) == NULL) {
		free(v);
		return NULL;
	}
	v->walk = w;
	v->registration = *r;
	v->address = r->address;
	snprintf(v->name, sizeof(v->name), "%s", r->worker.name);
	memcpy(v->mac, (uint8_t[]){2, 0, 0, 0, 0xf1, w->n_workers}, 6);
	v->request = calloc(r->n_links * r->worker.slots, sizeof(*v->request));
	walk_need(v->request != NULL, "no memory");
	for (unsigned int i = 0; i < r->n_links; i++)
		open_link(v, &info[i]);
	v->resolves = v->acknowledges = v->answers = v->beats = true;
	v->beat_at = UINT64_MAX; /* until it is ready */
	w->worker[w->n_workers++] = v;
	return v;
}

struct walk_worker *walk_worker_register(struct walk *w, const struct walk_worker_params *params)
{
	struct lb_registration r;

	walk_worker_registration(w, params, &r);
	return walk_worker_register_as(w, &r);
}

struct worker *walk_worker_of(const struct walk_worker *v)
{
	struct worker *worker = workers_find(v->walk->lb->pool, v->name);

	return worker != NULL && worker->spec.instance == v->registration.worker.instance ? worker
											  : NULL;
}

struct lb_link_stats walk_worker_stats(const struct walk_worker *v)
{
	struct worker *worker = walk_worker_of(v);
	struct lb_link_stats stats = {0};

	if (worker != NULL)
		lb_worker_stats_read(v->walk->lb, worker, &stats);
	return stats;
}

bool walk_worker_start(struct walk_worker *v)
{
	struct worker *worker = walk_worker_of(v);

	walk_need(worker != NULL, "%s is not registered", v->name);
	lb_worker_ready(v->walk->lb, worker);
	v->beat_at = v->walk->clock;
	for (unsigned int i = 0; i < START_MS; i++) {
		walk_tick(v->walk);
		worker = walk_worker_of(v);
		if (worker == NULL || worker->state == WORKER_ACTIVE)
			break;
		walk_turn(v->walk);
		walk_jump(v->walk, 1);
	}
	walk_settle(v->walk);
	return worker != NULL && worker->state == WORKER_ACTIVE;
}

struct walk_worker *walk_worker(struct walk *w, const struct walk_worker_params *params)
{
	struct walk_worker *v = walk_worker_register(w, params);

	walk_need(v != NULL, "refused: %s", w->error);
	walk_need(walk_worker_start(v), "%s: %s", v->name, walk_worker_of(v)->reason);
	return v;
}

void walk_worker_free(struct walk_worker *v)
{
	for (unsigned int i = 0; i < v->registration.n_links; i++) {
		free(v->link[i].memory);
		free(v->link[i].written);
		free(v->link[i].taken);
	}
	free(v->request);
	free(v);
}

/* --- what goes ----------------------------------------------------------------------------------
 */

static void send_frame(struct walk_worker *v, unsigned int lcore, const uint8_t *frame,
		       uint32_t length)
{
	struct walk *w = v->walk;
	uint16_t queue = w->lb->lcore[lcore]->queue[w->fabric];

	if (queue == LCORE_NO_QUEUE)
		queue = 0;
	queue = (queue + v->queue) % w->nic[w->fabric].n_queues;
	walk_send_frame(w, w->fabric, queue, frame, length);
}

/* One WRITE packet of a message. */
struct piece {
	uint8_t opcode;
	uint32_t psn, qpn, rkey, imm, total, length;
	uint64_t va;
	const uint8_t *bytes;
	bool bad_icrc, forged_source;
};

static void finish_frame(const struct roce_path *path, const struct piece *p, uint8_t *frame,
			 uint32_t end)
{
	uint32_t crc;

	frame[path->length - ROCE_BTH_LENGTH + 7] ^= p->qpn;
	crc = htole32(
		roce_icrc(ROCE_ICRC_SEED, frame + ROCE_ETHER_LENGTH, end - ROCE_ETHER_LENGTH));
	crc ^= p->bad_icrc;
	memcpy(frame + end, &crc, sizeof(crc));
	roce_header_unmask(frame, path);
}

static void send_piece(struct walk_worker *v, unsigned int lcore, const struct piece *p)
{
	const struct roce_path *path =
		p->forged_source ? &v->link[lcore].forged : &v->link[lcore].path;
	uint8_t has = roce_opcode_traits(p->opcode), frame[WALK_FRAME_MAX];
	uint8_t *at = frame + path->length;
	struct roce_header h = {
		.opcode = p->opcode, .pad = -p->length & 3, .ack_request = true, .psn = p->psn};

	if (has & ROCE_HAS_RETH) {
		struct roce_reth reth = {.va = htobe64(p->va),
					 .rkey = htobe32(p->rkey),
					 .length = htobe32(p->total)};

		memcpy(at, &reth, sizeof(reth));
		at += sizeof(reth);
	}
	if (has & ROCE_HAS_IMM) {
		uint32_t imm = htobe32(p->imm);

		memcpy(at, &imm, sizeof(imm));
		at += sizeof(imm);
	}
	memcpy(at, p->bytes, p->length);
	memset(at + p->length, 0, h.pad);
	at += p->length + h.pad;
	h.body = at - frame - path->length;
	roce_header_write(frame, path, &h);
	finish_frame(path, p, frame, at - frame);
	send_frame(v, lcore, frame, at - frame + ROCE_ICRC_LENGTH);
}

static uint8_t opcode_of(bool first, bool last, bool imm)
{
	static const uint8_t opcode[2][2][2] = {
		{{ROCE_WRITE_MIDDLE, ROCE_WRITE_MIDDLE}, {ROCE_WRITE_LAST, ROCE_WRITE_LAST_IMM}},
		{{ROCE_WRITE_FIRST, ROCE_WRITE_FIRST}, {ROCE_WRITE_ONLY, ROCE_WRITE_ONLY_IMM}},
	};

	return opcode[first][last][imm];
}

/* Sends a message in as many packets as it takes; <all> is what they have in common. */
static void send_message(struct walk_worker *v, unsigned int lcore, struct piece all, bool imm,
			 uint8_t opcode, int32_t psn)
{
	struct walk_link *l = &v->link[lcore];
	uint32_t offset = 0, total = all.length;

	all.total = total;
	do {
		bool first = offset == 0;
		const uint8_t *bytes = all.bytes;

		all.length = RTE_MIN(total - offset, v->path_mtu);
		all.opcode =
			opcode != 0 ? opcode : opcode_of(first, offset + all.length == total, imm);
		all.psn = roce_psn_add(l->psn, psn);
		send_piece(v, lcore, &all);
		l->psn = roce_psn_add(l->psn, 1);
		offset += all.length;
		all.bytes = bytes + all.length;
	} while (offset < total);
}

void walk_beat(struct walk_worker *v)
{
	uint32_t imm = ring_imm_heartbeat(v->backlog);

	if (v->by_deadline)
		imm |= RING_IMM_BY_DEADLINE;
	for (unsigned int i = 0; i < v->registration.n_links; i++)
		send_message(v, i, (struct piece){.imm = imm, .bytes = v->mac}, true, 0, 0);
}

static void forget_request(struct walk_worker *v, unsigned int i)
{
	v->link[v->request[i].lcore].taken[v->request[i].slot] = false;
	v->n_requests--;
	memmove(&v->request[i], &v->request[i + 1], (v->n_requests - i) * sizeof(v->request[0]));
	v->answered++;
}

void walk_answer(struct walk_worker *v, unsigned int i, const struct walk_reply *reply)
{
	static const struct walk_reply none;
	const struct walk_reply *r = reply != NULL ? reply : &none;
	struct walk_request *q = &v->request[i];
	const struct lb_link_info *info = &v->link[q->lcore].info;
	uint32_t length = r->bytes != NULL ? r->n_bytes : q->length;
	bool timed = r->seen_ns != 0 || r->start_ns != 0 || r->done_ns != 0;
	struct ring_reply header = {
		.sequence = q->sequence ^ r->sequence,
		.seen_ns = timed ? r->seen_ns : 1000,
		.start_ns = timed ? r->start_ns : 2000,
		.done_ns = timed ? r->done_ns : 2000 + v->run_ns,
		.length = length ^ r->header_length,
		.chunk = q->chunks,
		.backlog = ring_reply_backlog(v->backlog),
	};
	static uint8_t bytes[1 << 20];
	struct piece p = {
		.qpn = r->qpn,
		.rkey = info->reply_rkey ^ r->rkey,
		.imm = ring_imm(q->slot, r->status, r->more) ^ r->imm,
		.va = info->reply_address + (uint64_t)q->reply * RING_ALIGNMENT +
		      (uint64_t)q->chunks * info->chunk + r->va,
		.bytes = bytes,
		.bad_icrc = r->bad_icrc,
		.forged_source = r->forged_source,
	};

	walk_need(i < v->n_requests && length <= sizeof(bytes) - sizeof(header),
		  "%s has %u requests", v->name, v->n_requests);
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), r->bytes != NULL ? r->bytes : q->bytes, length);
	p.length = sizeof(header) + length - RTE_MIN(r->cut, sizeof(header) + length);
	q->chunks++;
	send_message(v, q->lcore, p, !r->no_imm, r->opcode, r->psn);
	/* The immediate decides, also one that lies: it may end a reply of several chunks. */
	if ((p.imm & RING_IMM_MORE) == 0)
		forget_request(v, i);
}

void walk_answer_all(struct walk_worker *v)
{
	while (v->n_requests > 0)
		walk_answer(v, 0, &(struct walk_reply){.status = v->status});
}

static void send_ack(struct walk_worker *v, unsigned int lcore, uint32_t psn, uint8_t syndrome,
		     uint32_t msn)
{
	uint8_t frame[ROCE_ACK_FRAME_MAX];

	send_frame(v, lcore, frame,
		   roce_ack_build(frame, &v->link[lcore].path, psn & ROCE_PSN_MASK, syndrome, msn));
}

void walk_acknowledge(struct walk_worker *v, unsigned int lcore, int32_t psn, uint8_t syndrome)
{
	const struct responder *r = &v->link[lcore].responder;

	send_ack(v, lcore, roce_psn_add(r->epsn, psn), syndrome, r->msn);
}

void walk_notify(struct walk_worker *v, unsigned int lcore)
{
	uint8_t frame[ROCE_CNP_FRAME_MAX];

	send_frame(v, lcore, frame, roce_cnp_build(frame, &v->link[lcore].path));
}

/* --- what comes ---------------------------------------------------------------------------------
 */

static uint32_t crc_of(const uint8_t *bytes, uint32_t length)
{
	return crc32_gzip_refl(0, bytes, length);
}

/* Takes a descriptor and checks it against ring.h. */
static void announce(struct walk_worker *v, unsigned int lcore, const struct ring_descriptor *d,
		     uint64_t index)
{
	static const uint32_t zero[4];
	const struct lb_link_spec *spec = &v->registration.link[lcore];
	struct walk_link *l = &v->link[lcore];
	uint32_t slots = v->registration.worker.slots;
	const uint8_t *bytes;
	bool in_tile;

	walk_expect(d->sequence == l->sequence + 1 && index == l->sequence % slots,
		    "%s: descriptor %lu at %lu", v->name, d->sequence, index);
	l->sequence = d->sequence;
	walk_need(d->slot < slots && v->n_requests < v->registration.n_links * slots, "slot %u",
		  d->slot);
	walk_need(ring_payload_fits(d->slot, d->payload, d->length, spec->stride,
				    ring_room_at(slots, spec->stride), spec->room),
		  "%s: %u bytes at %u x 64, slot %u", v->name, d->length, d->payload, d->slot);
	walk_expect((uint64_t)d->reply * RING_ALIGNMENT == d->slot * l->info.reply_stride,
		    "%s: a reply at %u x 64, slot %u", v->name, d->reply, d->slot);
	in_tile = (uint64_t)d->payload * RING_ALIGNMENT < (uint64_t)slots * spec->stride;
	bytes = l->memory + (spec->payloads - spec->descriptors) +
		(uint64_t)d->payload * RING_ALIGNMENT;
	walk_expect(!l->taken[d->slot], "%s: slot %u before it was answered", v->name, d->slot);
	walk_expect(!in_tile || l->written[d->slot] >= d->length, "%s: %u bytes in slot %u, not %u",
		    v->name, l->written[d->slot], d->slot, d->length);
	walk_expect(memcmp(d->reserved, zero, sizeof(d->reserved)) == 0, "reserved bytes");
	if (d->flags & RING_HAS_CRC)
		walk_expect(d->crc32 == crc_of(bytes, d->length), "%s: payload CRC", v->name);
	l->taken[d->slot] = true;
	l->written[d->slot] = 0;
	v->request[v->n_requests++] = (struct walk_request){
		.lcore = lcore,
		.slot = d->slot,
		.reply = d->reply,
		.length = d->length,
		.sequence = d->sequence,
		.service = d->service,
		.flow = d->flow,
		.deadline_us = d->deadline_us,
		.sent_us = d->sent_us,
		.flags = d->flags,
		.crc32 = d->crc32,
		.since = v->walk->clock,
		.bytes = bytes,
	};
}

static void cancel(struct walk_worker *v, unsigned int lcore, uint32_t slot, uint64_t sequence)
{
	for (unsigned int i = 0; i < v->n_requests; i++)
		if (v->request[i].lcore == lcore && v->request[i].slot == slot &&
		    v->request[i].sequence == sequence)
			v->request[i].cancelled = true;
}

/* Takes a payload, or a piece of one, at <offset> of the region. */
static void take_payload(struct walk_worker *v, const struct lb_link_spec *spec,
			 struct walk_link *l, uint64_t offset)
{
	uint32_t slots = v->registration.worker.slots, *written;

	if (offset >= (uint64_t)slots * spec->stride) {
		walk_expect(offset >= ring_room_at(slots, spec->stride),
			    "%s: %u bytes at %lu, before the room", v->name, l->n_message, offset);
		return;
	}
	written = &l->written[offset / spec->stride];
	*written += l->n_message; /* with those of a request that was given up */
	walk_expect(offset % spec->stride + l->n_message <= spec->stride, "%s: %u bytes at %lu",
		    v->name, l->n_message, offset);
}

/* Takes a whole message that lies in memory. */
static void take_message(struct walk_worker *v, unsigned int lcore)
{
	const struct lb_link_spec *spec = &v->registration.link[lcore];
	struct walk_link *l = &v->link[lcore];
	const uint8_t *bytes = l->memory + (l->message_va - spec->descriptors);

	if (l->message_va >= spec->payloads) {
		take_payload(v, spec, l, l->message_va - spec->payloads);
	} else if (l->message_va >= spec->cancels) {
		uint64_t sequence;

		walk_expect_eq(l->n_message, sizeof(sequence));
		memcpy(&sequence, bytes, sizeof(sequence));
		cancel(v, lcore, (l->message_va - spec->cancels) / sizeof(sequence), sequence);
	} else {
		uint64_t index = (l->message_va - spec->descriptors) / 64;

		walk_expect(l->message_va % 64 == 0 && l->n_message % 64 == 0, "descriptors");
		for (uint32_t i = 0; i < l->n_message / 64; i++)
			announce(v, lcore, (const struct ring_descriptor *)bytes + i, index + i);
	}
}

static void take_write(struct walk_worker *v, unsigned int lcore, const struct roce_packet *p,
		       const uint8_t *payload)
{
	struct walk_link *l = &v->link[lcore];
	struct responder_placement place;

	switch (responder_receive(&l->responder, p, &place)) {
	case RESPONDER_ACCEPT:
		break;
	case RESPONDER_INVALID:
	case RESPONDER_ACCESS:
		walk_expect(false, "%s: a WRITE that no NIC would take", v->name);
		return;
	default:
		return;
	}
	memcpy(l->memory + (place.va - l->responder.region.va), payload, p->payload_length);
	if (place.first) {
		l->message_va = place.va;
		l->n_message = 0;
	}
	l->n_message += p->payload_length;
	if (place.last)
		take_message(v, lcore);
}

static void take_ack(struct walk_link *l, const struct roce_packet *p)
{
	if (ROCE_AETH_KIND(p->syndrome) == ROCE_AETH_ACK) {
		l->acks++;
		l->acked = p->psn;
	} else {
		l->naks++;
		l->nak = p->syndrome;
	}
}

static void take_roce(struct walk_worker *v, const uint8_t *frame, const struct roce_frame *at)
{
	struct roce_packet p;
	unsigned int lcore;

	if (roce_parse(frame + at->bth_offset, at->bth_length, &p) != ROCE_PARSED) {
		walk_expect(false, "%s: a malformed packet", v->name);
		return;
	}
	for (lcore = 0; lcore < v->registration.n_links; lcore++)
		if (v->registration.link[lcore].qpn == p.qpn)
			break;
	if (lcore == v->registration.n_links || memcmp(frame, v->mac, 6) != 0) {
		v->strays++;
		return;
	}
	walk_expect(roce_path_admit(&v->link[lcore].path, frame + at->ip_offset, at->ip_length,
				    at->l3_length) == ROCE_ADMITTED,
		    "%s: source or ICRC", v->name);
	if (p.opcode == ROCE_CNP)
		v->link[lcore].cnps++;
	else if (p.opcode == ROCE_ACK)
		take_ack(&v->link[lcore], &p);
	else
		take_write(v, lcore, &p, frame + at->bth_offset + p.payload_offset);
}

static bool is_for(const struct walk_worker *v, const uint8_t *ip, const struct roce_frame *at)
{
	if (at->ip_length == 20)
		return v->address.family == 4 &&
		       memcmp(ip + 16, v->address.addr.s6_addr + 12, 4) == 0;
	return v->address.family == 6 && memcmp(ip + 24, &v->address.addr, 16) == 0;
}

/* Answers a request for an address if it is this worker's. */
static bool resolve(struct walk_worker *v, unsigned int port, const uint8_t *frame,
		    const struct roce_frame *at, bool arp)
{
	struct neigh_message question;
	uint8_t answer[NEIGH_FRAME_MAX];

	if (!neigh_parse(arp ? 0x0806 : 0x86dd, frame + at->ip_offset, at->l3_length, &question) ||
	    question.kind != NEIGH_REQUEST ||
	    memcmp(&question.target, &v->address.addr, sizeof(question.target)) != 0)
		return false;
	if (v->resolves && !v->gone)
		walk_send_frame(v->walk, port, 0, answer,
				neigh_reply_build(answer, &question, v->mac));
	return true;
}

bool walk_worker_take(struct walk_worker *v, unsigned int port, const uint8_t *frame,
		      uint32_t length)
{
	struct roce_frame at;

	switch (frame_locate(frame, length, &at)) {
	case FRAME_ARP:
		return resolve(v, port, frame, &at, true);
	case FRAME_ICMP6:
		return resolve(v, port, frame, &at, false);
	case FRAME_ROCE:
		break;
	default:
		return false;
	}
	if (!is_for(v, frame + at.ip_offset, &at))
		return false;
	if (v->gone)
		return false; /* another worker may have its address by now */
	if (v->lose > 0)
		v->lose--;
	else
		take_roce(v, frame, &at);
	return true;
}

/* --- what it does -------------------------------------------------------------------------------
 */

static void acknowledge(struct walk_worker *v)
{
	for (unsigned int i = 0; i < v->registration.n_links; i++) {
		uint32_t psn, msn;
		uint8_t syndrome;

		if (v->acknowledges &&
		    responder_ack_due(&v->link[i].responder, &psn, &syndrome, &msn))
			send_ack(v, i, psn, v->nak != 0 ? v->nak : syndrome, msn);
	}
}

static void answer_due(struct walk_worker *v)
{
	uint64_t delay = v->delay_ms * v->walk->lb->tsc_per_ms;

	while (v->answers && v->n_requests > 0 && v->walk->clock - v->request[0].since >= delay)
		walk_answer(v, 0,
			    &(struct walk_reply){.status = v->request[0].cancelled ? RING_CANCELLED
										   : v->status});
}

void walk_worker_act(struct walk_worker *v)
{
	struct walk *w = v->walk;

	if (v->gone)
		return;
	acknowledge(v);
	if (v->beats && w->clock >= v->beat_at) {
		v->beat_at = w->clock + v->registration.worker.heartbeat_ms * w->lb->tsc_per_ms;
		walk_beat(v);
	}
	answer_due(v);
}
