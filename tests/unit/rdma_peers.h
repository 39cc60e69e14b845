/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A requester and a responder with a bad link between them, in simulated time: it advances by a
 * microsecond per iteration, and jumps when nothing is under way. Every message must arrive exactly
 * once, in order, byte for byte.
 */
#ifndef RDMA_PEERS_H
#define RDMA_PEERS_H

#include "faults.h"
#include "rdma_fixture.h"
#include "rdma/responder.h"

#define PEERS_LENGTH_MAX 5000
#define PEERS_TURN_NS    1000

struct peers_params {
	const char *name;
	struct faults_params there, home;
	uint8_t family; /* 0: 4 */
	uint32_t mtu;   /* 0: 1024 */
	uint32_t psn;
	uint32_t messages;
	bool copies; /* the port sends no chains */
};

struct peers {
	struct fixture *f;
	struct responder responder;
	struct roce_path back; /* the responder's */
	struct faults *there, *home;
	uint64_t ns, start, clock; /* TSC cycles: the start, and now */
	uint64_t random;
	uint32_t messages, written, received;
	uint32_t message_length; /* of the one being received */
	uint64_t packets, answers;
	uint8_t memory[PEERS_LENGTH_MAX];
};

static inline uint32_t peers_dice(struct peers *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (uint32_t)(p->random >> 32);
}

/* Message <n>: its length and bytes follow from its number. */
static inline uint32_t peers_length(uint32_t n)
{
	return 1 + (n * 2654435761u >> 8) % PEERS_LENGTH_MAX;
}

static inline uint8_t peers_byte(uint32_t n, uint32_t i)
{
	return n * 31 + i * 7 + (i >> 8);
}

static inline void peers_time(struct peers *p, uint64_t ns)
{
	p->ns = ns;
	p->clock = p->start + (uint64_t)((double)ns * (double)rte_get_tsc_hz() / 1e9);
}

static inline struct peers *peers_create(const struct peers_params *params)
{
	struct rdma_region region = {
		.va = FIXTURE_VA, .length = PEERS_LENGTH_MAX, .rkey = FIXTURE_RKEY};
	uint32_t mtu = params->mtu == 0 ? 1024 : params->mtu;
	uint8_t family = params->family == 0 ? 4 : params->family;
	struct peers *p = calloc(1, sizeof(*p));

	p->f = fixture_create(family, mtu, params->psn, !params->copies);
	p->f->rq.retry_limit = 255; /* retries never run out on this bad link */
	p->f->rq.clock = &p->clock;
	p->start = rte_rdtsc();
	peers_time(p, 0);
	p->messages = params->messages;
	p->random = params->there.seed + 1;
	p->there = faults_create(&params->there);
	p->home = faults_create(&params->home);
	vector_path(&p->back, family, true, mtu);
	responder_init(&p->responder, &region, mtu, params->psn);
	return p;
}

static inline void peers_destroy(struct peers *p)
{
	faults_destroy(p->there);
	faults_destroy(p->home);
	fixture_destroy(p->f);
	free(p);
}

static inline bool peers_write(struct peers *p)
{
	struct fixture *f = p->f;
	uint32_t length = peers_length(p->written);
	struct rte_mbuf *m;
	uint8_t *at;

	if (p->written == p->messages ||
	    !requester_room(&f->rq, requester_packets(&f->rq, length)) ||
	    rte_mempool_avail_count(f->packets) < 64)
		return false;
	m = fixture_message(f, length);
	at = rte_pktmbuf_mtod(m, uint8_t *);
	for (uint32_t i = 0; i < length; i++)
		at[i] = peers_byte(p->written, i);
	cr_assert_eq(requester_write(&f->rq, m, FIXTURE_VA, FIXTURE_RKEY, p->written,
				     REQUESTER_IMM | REQUESTER_ACK_REQUEST),
		     0);
	p->written++;
	return true;
}

/* Plays the port: the frames leave. */
static inline void peers_transmit(struct peers *p)
{
	uint8_t frame[FIXTURE_FRAME_MAX];

	for (unsigned int i = 0; i < p->f->tx.n; i++)
		faults_put(p->there, frame, fixture_flatten(p->f->tx.packet[i], frame), p->ns);
	fixture_sent(p->f);
}

static inline void peers_message_done(struct peers *p, uint32_t imm)
{
	uint32_t length = peers_length(p->received);

	cr_assert_eq(imm, p->received, "message %u came as number %u", imm, p->received);
	cr_assert_eq(p->message_length, length);
	for (uint32_t i = 0; i < length; i++)
		cr_assert_eq(p->memory[i], peers_byte(imm, i), "message %u, byte %u", imm, i);
	memset(p->memory, 0, length);
	p->message_length = 0;
	p->received++;
}

/* Takes a frame as an endpoint does: what is damaged or not from the peer goes unanswered. */
static inline bool peers_admit(const struct roce_path *path, const uint8_t *frame, uint32_t length,
			       struct roce_frame *at, struct roce_packet *packet)
{
	if (frame_locate(frame, length, at) != FRAME_ROCE ||
	    roce_parse(frame + at->bth_offset, at->bth_length, packet) != ROCE_PARSED)
		return false;
	return roce_path_admit(path, frame + at->ip_offset, at->ip_length,
			       at->bth_offset + at->bth_length - at->ip_offset) == ROCE_ADMITTED;
}

static inline void peers_answer(struct peers *p)
{
	uint8_t frame[ROCE_ACK_FRAME_MAX];
	uint32_t psn, msn;
	uint8_t syndrome;

	if (!responder_ack_due(&p->responder, &psn, &syndrome, &msn))
		return;
	p->answers++;
	faults_put(p->home, frame, roce_ack_build(frame, &p->back, psn, syndrome, msn), p->ns);
}

static inline void peers_place(struct peers *p, const uint8_t *frame, uint32_t length)
{
	struct responder_placement at;
	struct roce_packet packet;
	struct roce_frame f;
	uint32_t offset;

	p->packets++;
	if (!peers_admit(&p->back, frame, length, &f, &packet) ||
	    responder_receive(&p->responder, &packet, &at) != RESPONDER_ACCEPT)
		return;
	offset = at.va - FIXTURE_VA;
	cr_assert_leq(offset + packet.payload_length, PEERS_LENGTH_MAX);
	memcpy(p->memory + offset, frame + f.bth_offset + packet.payload_offset,
	       packet.payload_length);
	p->message_length += packet.payload_length;
	if (at.last)
		peers_message_done(p, at.imm);
}

/* Delivers the frames that are due; acknowledges sometimes each packet, else the whole burst. */
static inline void peers_deliver_there(struct peers *p)
{
	uint8_t frame[FIXTURE_FRAME_MAX];
	uint32_t length;

	while ((length = faults_take(p->there, p->ns, frame, sizeof(frame))) > 0) {
		peers_place(p, frame, length);
		if (peers_dice(p) % 10 < 3)
			peers_answer(p);
	}
	peers_answer(p);
}

static inline void peers_deliver_home(struct peers *p)
{
	uint8_t frame[FIXTURE_FRAME_MAX];
	struct roce_packet packet;
	struct roce_frame f;
	uint32_t length;

	while ((length = faults_take(p->home, p->ns, frame, sizeof(frame))) > 0)
		if (peers_admit(&p->f->path, frame, length, &f, &packet))
			cr_assert_neq(
				requester_ack(&p->f->rq, packet.psn, packet.syndrome, p->clock),
				REQUESTER_BEYOND);
}

/* Returns when the next event is if no message is written. */
static inline uint64_t peers_next(const struct peers *p)
{
	uint64_t deadline = requester_deadline(&p->f->rq), ns = UINT64_MAX;

	if (deadline != UINT64_MAX)
		ns = deadline <= p->clock ? p->ns
					  : p->ns +
						    (uint64_t)((double)(deadline - p->clock) * 1e9 /
							       (double)rte_get_tsc_hz()) +
						    1;
	ns = RTE_MIN(ns, faults_deadline(p->there));
	return RTE_MIN(ns, faults_deadline(p->home));
}

static inline void peers_turn(struct peers *p)
{
	uint64_t next = p->ns + PEERS_TURN_NS;
	bool full = false;

	for (unsigned int burst = 1 + peers_dice(p) % 16; burst > 0 && !full; burst--)
		full = !peers_write(p);
	peers_transmit(p);
	peers_deliver_there(p);
	peers_deliver_home(p);
	requester_poll(&p->f->rq, p->clock);
	peers_transmit(p);
	if (full && peers_next(p) != UINT64_MAX)
		next = RTE_MAX(next, peers_next(p));
	peers_time(p, next);
}

/* Runs until everything has arrived and is acknowledged. */
static inline void peers_run(struct peers *p)
{
	struct requester *rq = &p->f->rq;
	uint32_t turns = 0;

	while (p->received < p->messages || requester_unacked(rq) > 0) {
		cr_assert_lt(turns++, 2000000u, "%u of %u messages", p->received, p->messages);
		peers_turn(p);
		cr_assert_eq(rq->error, REQUESTER_OK);
	}
	cr_expect_eq(p->responder.stats.messages, p->messages);
	cr_expect_eq(p->responder.epsn, rq->next_psn);
	cr_expect_leq(p->answers, p->packets, "more answers than packets");
}

#endif
