/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requester against responder over a wire that loses, repeats and reorders packets both ways. Every
 * message must arrive exactly once, in order, byte for byte. The wire is seeded: a failure repeats.
 */
#include "rdma_fixture.h"
#include "responder.h"

#define MESSAGES   5000
#define LENGTH_MAX 5000
#define MTU        1024
#define FIRST_PSN  0xfff000 /* wraps during the test */
#define WIRE       256

struct frame {
	uint32_t length;
	uint8_t bytes[ROCE_HEADERS_MAX + MTU + ROCE_TRAILER_MAX];
};

/* One direction. Frames are copied in, as a cable does, and come out in nearly their order. */
struct wire {
	uint32_t n;
	struct frame frame[WIRE];
};

/* Chances in 1000. */
struct weather {
	const char *name;
	uint32_t lost, repeated, swapped;
	uint64_t seed;
};

struct peers {
	struct fixture *f;
	struct responder responder;
	struct roce_path back; /* the responder's */
	struct wire there, home;
	uint64_t random, now;
	const struct weather *weather;
	uint32_t written, received; /* messages */
	uint32_t message_length;    /* of the one being received */
	uint64_t message_at;        /* where it starts */
	uint8_t memory[LENGTH_MAX];
};

static uint32_t dice(struct peers *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (uint32_t)(p->random >> 32);
}

static bool chance(struct peers *p, uint32_t in_1000)
{
	return dice(p) % 1000 < in_1000;
}

/* Message <n>: its length and bytes follow from its number. */
static uint32_t length_of(uint32_t n)
{
	return 1 + (n * 2654435761u >> 8) % LENGTH_MAX;
}

static uint8_t byte_of(uint32_t n, uint32_t i)
{
	return n * 31 + i * 7 + (i >> 8);
}

static void wire_put(struct peers *p, struct wire *w, const uint8_t *bytes, uint32_t length)
{
	uint32_t copies = chance(p, p->weather->repeated) ? 2 : 1;

	if (chance(p, p->weather->lost))
		return;
	while (copies-- > 0 && w->n < WIRE) {
		struct frame *f = &w->frame[w->n++];

		f->length = length;
		memcpy(f->bytes, bytes, length);
		if (w->n > 1 && chance(p, p->weather->swapped)) {
			uint32_t other = dice(p) % w->n;
			struct frame swap = *f;

			*f = w->frame[other];
			w->frame[other] = swap;
		}
	}
}

static void write_messages(struct peers *p)
{
	struct fixture *f = p->f;

	for (unsigned int burst = dice(p) % 16; burst > 0 && p->written < MESSAGES; burst--) {
		uint32_t length = length_of(p->written);
		struct rte_mbuf *m;
		uint8_t *at;

		if (!requester_room(&f->rq, requester_packets(&f->rq, length)) ||
		    rte_mempool_avail_count(f->packets) < 64)
			return;
		m = fixture_message(f, length);
		at = rte_pktmbuf_mtod(m, uint8_t *);
		for (uint32_t i = 0; i < length; i++)
			at[i] = byte_of(p->written, i);
		cr_assert_eq(requester_write(&f->rq, m, FIXTURE_VA, FIXTURE_RKEY, p->written,
					     REQUESTER_IMM | REQUESTER_ACK_REQUEST),
			     0);
		p->written++;
	}
}

/* The port: frames leave. */
static void transmit(struct peers *p)
{
	uint8_t frame[FIXTURE_FRAME_MAX];

	for (unsigned int i = 0; i < p->f->tx.n; i++)
		wire_put(p, &p->there, frame, fixture_flatten(p->f->tx.packet[i], frame));
	fixture_sent(p->f);
}

static void message_done(struct peers *p, uint32_t imm)
{
	uint32_t length = length_of(p->received);

	cr_assert_eq(imm, p->received, "message %u came as number %u", imm, p->received);
	cr_assert_eq(p->message_length, length);
	for (uint32_t i = 0; i < length; i++)
		cr_assert_eq(p->memory[i], byte_of(imm, i), "message %u, byte %u", imm, i);
	memset(p->memory, 0, length);
	p->message_length = 0;
	p->received++;
}

static void place(struct peers *p, const struct frame *in)
{
	const uint8_t *frame = in->bytes;
	struct responder_placement at;
	struct roce_packet packet;
	struct roce_frame f;
	uint32_t offset;

	cr_assert_eq(frame_locate(frame, in->length, &f), FRAME_ROCE);
	cr_assert(roce_icrc_ok(frame + f.ip_offset, f.ip_length, f.l3_length - ROCE_ICRC_LENGTH));
	cr_assert_eq(roce_parse(frame + f.bth_offset, f.bth_length, &packet), ROCE_PARSED);
	if (responder_receive(&p->responder, &packet, &at) != RESPONDER_ACCEPT)
		return;
	offset = at.va - FIXTURE_VA;
	cr_assert_leq(offset + packet.payload_length, LENGTH_MAX);
	memcpy(p->memory + offset, frame + f.bth_offset + packet.payload_offset,
	       packet.payload_length);
	p->message_length += packet.payload_length;
	if (at.last)
		message_done(p, at.imm);
}

static void answer(struct peers *p)
{
	uint8_t frame[ROCE_ACK_FRAME_MAX];
	uint32_t psn, msn;
	uint8_t syndrome;

	if (responder_ack_due(&p->responder, &psn, &syndrome, &msn))
		wire_put(p, &p->home, frame, roce_ack_build(frame, &p->back, psn, syndrome, msn));
}

/* Some of what is on the wire arrives; one acknowledgement per burst. */
static void deliver_there(struct peers *p)
{
	uint32_t n = p->there.n > 0 ? 1 + dice(p) % p->there.n : 0;

	for (uint32_t i = 0; i < n; i++) {
		place(p, &p->there.frame[i]);
		if (chance(p, 300))
			answer(p);
	}
	answer(p);
	p->there.n -= n;
	memmove(p->there.frame, p->there.frame + n, p->there.n * sizeof(struct frame));
}

static void deliver_home(struct peers *p)
{
	for (uint32_t i = 0; i < p->home.n; i++) {
		struct roce_packet packet;
		struct roce_frame f;

		cr_assert_eq(frame_locate(p->home.frame[i].bytes, p->home.frame[i].length, &f),
			     FRAME_ROCE);
		cr_assert_eq(
			roce_parse(p->home.frame[i].bytes + f.bth_offset, f.bth_length, &packet),
			ROCE_PARSED);
		cr_assert_neq(requester_ack(&p->f->rq, packet.psn, packet.syndrome, p->now),
			      REQUESTER_BEYOND);
	}
	p->home.n = 0;
}

static void run(const struct weather *weather, bool multi_segment)
{
	struct rdma_region region = {.va = FIXTURE_VA, .length = LENGTH_MAX, .rkey = FIXTURE_RKEY};
	struct peers *p = calloc(1, sizeof(*p));
	struct requester *rq;
	uint32_t turns = 0;

	p->f = fixture_create(4, MTU, FIRST_PSN, multi_segment);
	p->weather = weather;
	p->random = weather->seed;
	rq = &p->f->rq;
	rq->retry_limit = 255; /* the wire is worse than any that should be given up on */
	vector_path(&p->back, 4, true, MTU);
	responder_init(&p->responder, &region, MTU, FIRST_PSN);
	while (p->received < MESSAGES || requester_unacked(rq) > 0) {
		cr_assert_lt(turns++, 1000000u, "%u of %u messages", p->received, MESSAGES);
		p->now = rte_rdtsc();
		write_messages(p);
		transmit(p);
		deliver_there(p);
		deliver_home(p);
		/* Time passes only when nothing else happens. */
		if (p->there.n == 0 && p->f->tx.n == 0)
			requester_poll(rq, rq->timer + rq->timeout);
		cr_assert_eq(rq->error, REQUESTER_OK);
	}
	cr_expect_eq(p->responder.stats.messages, MESSAGES);
	cr_expect_eq(p->responder.epsn, rq->next_psn);
	cr_expect_eq(rq->stats.copies > 0, !multi_segment);
	if (weather->lost > 0)
		cr_expect_gt(rq->stats.resent, 0);
	fixture_destroy(p->f);
	free(p);
}

static const struct weather sunny = {"sunny", 0, 0, 0, 1};
static const struct weather lossy = {"lossy", 30, 0, 0, 2};
static const struct weather echo = {"repeating", 0, 100, 0, 3};
static const struct weather shuffled = {"reordering", 0, 0, 50, 4};
static const struct weather storm = {"everything", 50, 50, 50, 5};

Test(rdma_loss, delivers_over_a_good_wire)
{
	run(&sunny, true);
}

Test(rdma_loss, delivers_over_a_wire_that_loses)
{
	run(&lossy, true);
}

Test(rdma_loss, delivers_over_a_wire_that_repeats)
{
	run(&echo, true);
}

Test(rdma_loss, delivers_over_a_wire_that_reorders)
{
	run(&shuffled, true);
}

Test(rdma_loss, delivers_over_a_wire_that_does_it_all)
{
	run(&storm, true);
}

Test(rdma_loss, delivers_copies_over_a_wire_that_does_it_all)
{
	run(&storm, false);
}
