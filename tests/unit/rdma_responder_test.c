/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder's rules as cases: the packets that come in, the verdict on each, and the
 * acknowledgement that is due after it (IBTA volume 1, 9.7.4 to 9.7.6).
 */
#include <criterion/criterion.h>

#include "rdma/responder.h"

#define VA     0x7f0000000000ull
#define LENGTH 0x10000ull
#define RKEY   0x1234u
#define MTU    256u
#define STEPS  6

#define ACK ROCE_CREDITS_UNUSED
#define SEQ ROCE_NAK_SEQUENCE
#define REQ ROCE_NAK_INVALID_REQUEST
#define RKE ROCE_NAK_REMOTE_ACCESS
/* no acknowledgement due; no syndrome has this value */
#define NONE 0xff

#define FIRST    ROCE_WRITE_FIRST
#define MIDDLE   ROCE_WRITE_MIDDLE
#define LAST     ROCE_WRITE_LAST
#define LAST_IMM ROCE_WRITE_LAST_IMM
#define ONLY     ROCE_WRITE_ONLY
#define ONLY_IMM ROCE_WRITE_ONLY_IMM

/* not served */
#define SEND_MIDDLE 0x01
#define READ        0x0c

#define ACCEPT    RESPONDER_ACCEPT
#define DUPLICATE RESPONDER_DUPLICATE
#define AHEAD     RESPONDER_AHEAD
#define INVALID   RESPONDER_INVALID
#define ACCESS    RESPONDER_ACCESS
#define DEAD      RESPONDER_DEAD

/* Offsets count from the region's start; a message's length is that of its RETH. */
struct step {
	uint8_t opcode;
	uint32_t psn, payload, length;
	uint64_t offset;
	enum responder_verdict verdict;
	uint8_t due;
	uint32_t due_psn, msn;
	bool no_ack, wrong_rkey, wrong_pad;
};

struct story {
	const char *name;
	uint32_t psn; /* first expected */
	struct step step[STEPS];
};

static const struct story stories[] = {
	{"one write", 0x100, {{ONLY, 0x100, 8, 8, 64, ACCEPT, ACK, 0x100, 1}}},
	{"no acknowledgement unless asked for",
	 5,
	 {{ONLY, 5, 8, 8, 0, ACCEPT, NONE, .no_ack = true}, {ONLY, 6, 8, 8, 0, ACCEPT, ACK, 6, 2}}},
	{"first, middle, last",
	 7,
	 {{FIRST, 7, 256, 600, 0, ACCEPT, NONE, .no_ack = true},
	  {MIDDLE, 8, 256, 0, 256, ACCEPT, NONE, .no_ack = true},
	  {LAST, 9, 88, 0, 512, ACCEPT, ACK, 9, 1}}},
	{"an acknowledgement in mid-message does not count the message",
	 7,
	 {{FIRST, 7, 256, 257, 0, ACCEPT, ACK, 7, 0}, {LAST, 8, 1, 0, 256, ACCEPT, ACK, 8, 1}}},
	{"first and last make a message of two full packets",
	 7,
	 {{FIRST, 7, 256, 512, 0, ACCEPT, NONE, .no_ack = true},
	  {LAST_IMM, 8, 256, 0, 256, ACCEPT, ACK, 8, 1}}},
	{"the sequence wraps",
	 0xfffffe,
	 {{ONLY, 0xfffffe, 4, 4, 0, ACCEPT, ACK, 0xfffffe, 1},
	  {ONLY, 0xffffff, 4, 4, 0, ACCEPT, ACK, 0xffffff, 2},
	  {ONLY, 0, 4, 4, 0, ACCEPT, ACK, 0, 3},
	  {ONLY, 0xffffff, 4, 4, 0, DUPLICATE, ACK, 0, 3},
	  {ONLY, 2, 4, 4, 0, AHEAD, SEQ, 1, 3}}},
	{"a duplicate is acknowledged again, with the last that was taken",
	 10,
	 {{ONLY, 10, 4, 4, 0, ACCEPT, ACK, 10, 1},
	  {ONLY, 11, 4, 4, 0, ACCEPT, ACK, 11, 2},
	  {ONLY, 10, 4, 4, 0, DUPLICATE, ACK, 11, 2},
	  {ONLY, 10, 4, 4, 0, DUPLICATE, ACK, 11, 2, .no_ack = true}}},
	{"a duplicate need not make sense",
	 10,
	 {{ONLY, 10, 4, 4, 0, ACCEPT, ACK, 10, 1},
	  {LAST, 10, 99, 0, 0, DUPLICATE, ACK, 10, 1, .wrong_rkey = true}}},
	{"half the circle behind is a duplicate, half ahead is a gap",
	 0x800000,
	 {{ONLY, 0, 4, 4, 0, DUPLICATE, ACK, 0x7fffff, 0},
	  {ONLY, 0xffffff, 4, 4, 0, AHEAD, SEQ, 0x800000, 0}}},
	{"a gap is refused once, until it is filled",
	 3,
	 {{ONLY, 4, 4, 4, 0, AHEAD, SEQ, 3, 0},
	  {ONLY, 5, 4, 4, 0, AHEAD, NONE},
	  {ONLY, 3, 4, 4, 0, ACCEPT, ACK, 3, 1},
	  {ONLY, 5, 4, 4, 0, AHEAD, SEQ, 4, 1},
	  {ONLY, 4, 4, 4, 0, ACCEPT, ACK, 4, 2},
	  {ONLY, 5, 4, 4, 0, ACCEPT, ACK, 5, 3}}},
	{"a duplicate does not end the silence after a gap",
	 3,
	 {{ONLY, 3, 4, 4, 0, ACCEPT, ACK, 3, 1},
	  {ONLY, 5, 4, 4, 0, AHEAD, SEQ, 4, 1},
	  {ONLY, 3, 4, 4, 0, DUPLICATE, ACK, 3, 1},
	  {ONLY, 6, 4, 4, 0, AHEAD, NONE}}},
	{"a gap inside a message leaves the message as it was",
	 3,
	 {{FIRST, 3, 256, 700, 0, ACCEPT, NONE, .no_ack = true},
	  {LAST, 5, 188, 0, 512, AHEAD, SEQ, 4, 0},
	  {MIDDLE, 4, 256, 0, 256, ACCEPT, NONE, .no_ack = true},
	  {LAST, 5, 188, 0, 512, ACCEPT, ACK, 5, 1}}},
	{"only within a message",
	 1,
	 {{FIRST, 1, 256, 300, 0, ACCEPT, NONE, .no_ack = true},
	  {ONLY, 2, 4, 4, 0, INVALID, REQ, 2, 0},
	  {LAST, 2, 44, 0, 256, DEAD, NONE}}},
	{"first within a message",
	 1,
	 {{FIRST, 1, 256, 300, 0, ACCEPT, NONE, .no_ack = true},
	  {FIRST, 2, 256, 300, 0, INVALID, REQ, 2, 0}}},
	{"a SEND within a message is no part of it",
	 1,
	 {{FIRST, 1, 256, 600, 0, ACCEPT, NONE, .no_ack = true},
	  {SEND_MIDDLE, 2, 256, 0, 256, INVALID, REQ, 2, 0},
	  {MIDDLE, 2, 256, 0, 256, DEAD, NONE}}},
	{"a READ ahead waits for its turn, and then ends it",
	 1,
	 {{READ, 2, 16, 0, 0, AHEAD, SEQ, 1, 0},
	  {ONLY, 1, 4, 4, 0, ACCEPT, ACK, 1, 1},
	  {READ, 2, 16, 0, 0, INVALID, REQ, 2, 1},
	  {READ, 2, 16, 0, 0, DEAD, NONE}}},
	{"last without first", 1, {{LAST, 1, 4, 0, 0, INVALID, REQ, 1, 0}}},
	{"last with immediate without first", 1, {{LAST_IMM, 1, 4, 0, 0, INVALID, REQ, 1, 0}}},
	{"middle without first", 1, {{MIDDLE, 1, 256, 0, 0, INVALID, REQ, 1, 0}}},
	{"middle after the end",
	 1,
	 {{ONLY, 1, 4, 4, 0, ACCEPT, ACK, 1, 1}, {MIDDLE, 2, 256, 0, 0, INVALID, REQ, 2, 1}}},
	{"only, shorter than its RETH says", 1, {{ONLY, 1, 7, 8, 0, INVALID, REQ, 1, 0}}},
	{"only, longer than its RETH says", 1, {{ONLY, 1, 9, 8, 0, INVALID, REQ, 1, 0}}},
	{"only, longer than the path MTU", 1, {{ONLY, 1, 257, 257, 0, INVALID, REQ, 1, 0}}},
	{"first, shorter than the path MTU", 1, {{FIRST, 1, 252, 600, 0, INVALID, REQ, 1, 0}}},
	{"first, longer than the path MTU", 1, {{FIRST, 1, 260, 600, 0, INVALID, REQ, 1, 0}}},
	{"first that is the whole message", 1, {{FIRST, 1, 256, 256, 0, INVALID, REQ, 1, 0}}},
	{"middle, shorter than the path MTU",
	 1,
	 {{FIRST, 1, 256, 600, 0, ACCEPT, NONE, .no_ack = true},
	  {MIDDLE, 2, 252, 0, 256, INVALID, REQ, 2, 0}}},
	{"middle that is the rest of the message",
	 1,
	 {{FIRST, 1, 256, 512, 0, ACCEPT, NONE, .no_ack = true},
	  {MIDDLE, 2, 256, 0, 256, INVALID, REQ, 2, 0}}},
	{"last, shorter than what is left",
	 1,
	 {{FIRST, 1, 256, 300, 0, ACCEPT, NONE, .no_ack = true},
	  {LAST, 2, 43, 0, 256, INVALID, REQ, 2, 0}}},
	{"last, longer than what is left",
	 1,
	 {{FIRST, 1, 256, 300, 0, ACCEPT, NONE, .no_ack = true},
	  {LAST, 2, 45, 0, 256, INVALID, REQ, 2, 0}}},
	{"last while more than a packet is left",
	 1,
	 {{FIRST, 1, 256, 600, 0, ACCEPT, NONE, .no_ack = true},
	  {LAST, 2, 344, 0, 256, INVALID, REQ, 2, 0}}},
	{"a pad that does not fit the length",
	 1,
	 {{ONLY, 1, 8, 8, 0, INVALID, REQ, 1, 0, .wrong_pad = true}}},
	{"a pad in the middle",
	 1,
	 {{FIRST, 1, 256, 600, 0, INVALID, REQ, 1, 0, .wrong_pad = true}}},
	{"wrong rkey", 1, {{ONLY, 1, 8, 8, 0, ACCESS, RKE, 1, 0, .wrong_rkey = true}}},
	{"wrong rkey of a first",
	 1,
	 {{FIRST, 1, 256, 600, 0, ACCESS, RKE, 1, 0, .wrong_rkey = true},
	  {ONLY, 1, 8, 8, 0, DEAD, NONE}}},
	{"the last byte of the region", 1, {{ONLY, 1, 1, 1, LENGTH - 1, ACCEPT, ACK, 1, 1}}},
	{"one byte past the region", 1, {{ONLY, 1, 2, 2, LENGTH - 1, ACCESS, RKE, 1, 0}}},
	{"behind the region", 1, {{ONLY, 1, 1, 1, LENGTH, ACCESS, RKE, 1, 0}}},
	{"far behind the region", 1, {{ONLY, 1, 1, 1, LENGTH + 1, ACCESS, RKE, 1, 0}}},
	{"before the region", 1, {{ONLY, 1, 8, 8, -1ull, ACCESS, RKE, 1, 0}}},
	{"a message that starts inside and ends outside is refused at its first packet",
	 1,
	 {{FIRST, 1, 256, 512, LENGTH - 511, ACCESS, RKE, 1, 0}}},
	{"the longest message there may be", 1, {{FIRST, 1, 256, 1u << 31, 0, ACCESS, RKE, 1, 0}}},
	{"a message longer than that", 1, {{FIRST, 1, 256, (1u << 31) + 1, 0, INVALID, REQ, 1, 0}}},
	{"the longest length there is", 1, {{FIRST, 1, 256, UINT32_MAX, 0, INVALID, REQ, 1, 0}}},
	{"an address whose end overflows 64 bits",
	 1,
	 {{ONLY, 1, 8, 8, -VA - 4, ACCESS, RKE, 1, 0}}},
	{"the last address there is", 1, {{ONLY, 1, 1, 1, -VA - 1, ACCESS, RKE, 1, 0}}},
	{"a write of nothing needs neither rkey nor address",
	 1,
	 {{ONLY, 1, 0, 0, -VA, ACCEPT, ACK, 1, 1, .wrong_rkey = true},
	  {ONLY_IMM, 2, 0, 0, -VA - 1, ACCEPT, ACK, 2, 2, .wrong_rkey = true}}},
	{"a refused queue pair takes nothing and says nothing more",
	 1,
	 {{ONLY, 1, 8, 8, 0, ACCESS, RKE, 1, 0, .wrong_rkey = true},
	  {ONLY, 1, 8, 8, 0, DEAD, NONE},
	  {ONLY, 0, 8, 8, 0, DEAD, NONE},
	  {ONLY, 3, 8, 8, 0, DEAD, NONE}}},
	{"a refusal acknowledges what came before it",
	 1,
	 {{ONLY, 1, 8, 8, 0, ACCEPT, NONE, .no_ack = true},
	  {ONLY, 2, 8, 8, 0, ACCESS, RKE, 2, 1, .wrong_rkey = true}}},
};

static struct roce_packet packet_of(const struct step *s)
{
	return (struct roce_packet){
		.opcode = s->opcode,
		.psn = s->psn,
		.pad = s->wrong_pad ? (-s->payload & 3) ^ 1 : -s->payload & 3,
		.ack_request = !s->no_ack,
		.rkey = s->wrong_rkey ? RKEY + 1 : RKEY,
		.va = VA + s->offset,
		.length = s->length,
		.imm = 0xabcd0000 + s->psn,
		.payload_length = s->payload,
	};
}

static struct responder new_responder(uint32_t psn)
{
	struct rdma_region region = {.va = VA, .length = LENGTH, .rkey = RKEY};
	struct responder r;

	responder_init(&r, &region, MTU, psn);
	return r;
}

static void check_step(struct responder *r, const struct story *story, unsigned int n)
{
	const struct step *s = &story->step[n];
	struct roce_packet p = packet_of(s);
	struct responder_placement at;
	uint32_t psn, msn;
	uint8_t syndrome;
	bool due;

	cr_assert_eq(responder_receive(r, &p, &at), s->verdict, "%s, step %u", story->name, n);
	if (s->verdict == ACCEPT) {
		uint8_t has = roce_opcode_traits(s->opcode);

		cr_expect_eq(at.va, VA + s->offset, "%s, step %u", story->name, n);
		cr_expect_eq(at.first, (has & ROCE_IS_FIRST) != 0, "%s, step %u", story->name, n);
		cr_expect_eq(at.last, (has & ROCE_IS_LAST) != 0, "%s, step %u", story->name, n);
		cr_expect_eq(at.has_imm, (has & ROCE_HAS_IMM) != 0, "%s, step %u", story->name, n);
		if (at.has_imm)
			cr_expect_eq(at.imm, 0xabcd0000 + s->psn, "%s", story->name);
	}
	due = responder_ack_due(r, &psn, &syndrome, &msn);
	cr_assert_eq(due, s->due != NONE, "%s, step %u", story->name, n);
	if (!due)
		return;
	cr_expect_eq(syndrome, s->due, "%s, step %u", story->name, n);
	cr_expect_eq(psn, s->due_psn, "%s, step %u: PSN %x", story->name, n, psn);
	cr_expect_eq(msn, s->msn, "%s, step %u: MSN %u", story->name, n, msn);
	cr_expect_not(responder_ack_due(r, &psn, &syndrome, &msn), "noted once, told once");
}

Test(rdma_responder, follows_every_story)
{
	for (unsigned int i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		struct responder r = new_responder(stories[i].psn);

		for (unsigned int n = 0; n < STEPS && stories[i].step[n].opcode != 0; n++)
			check_step(&r, &stories[i], n);
	}
}

static enum responder_verdict receive(struct responder *r, const struct step *s)
{
	struct roce_packet p = packet_of(s);
	struct responder_placement at;

	return responder_receive(r, &p, &at);
}

static void expect_due(struct responder *r, uint32_t want_psn, uint8_t want, uint32_t want_msn)
{
	uint32_t psn, msn;
	uint8_t syndrome;

	cr_assert(responder_ack_due(r, &psn, &syndrome, &msn));
	cr_expect_eq(psn, want_psn);
	cr_expect_eq(syndrome, want);
	cr_expect_eq(msn, want_msn);
}

Test(rdma_responder, acknowledges_a_burst_once_for_its_last_packet)
{
	struct responder r = new_responder(0);

	for (uint32_t psn = 0; psn < 32; psn++)
		receive(&r, &(struct step){ONLY, psn, 4, 4});
	expect_due(&r, 31, ACK, 32);
	cr_expect_eq(r.stats.acks, 1);
	cr_expect_eq(r.stats.packets, 32);
	cr_expect_eq(r.stats.messages, 32);
}

Test(rdma_responder, keeps_a_pending_nak_when_duplicates_follow)
{
	struct responder r = new_responder(1);

	receive(&r, &(struct step){ONLY, 3, 4, 4});
	receive(&r, &(struct step){ONLY, 0, 4, 4});
	expect_due(&r, 1, SEQ, 0);
}

Test(rdma_responder, acknowledges_by_the_fatal_nak_even_if_an_ack_was_due)
{
	struct responder r = new_responder(1);

	receive(&r, &(struct step){ONLY, 1, 4, 4});
	receive(&r, &(struct step){ONLY, 2, 4, 4, .wrong_rkey = true});
	receive(&r, &(struct step){ONLY, 1, 4, 4});
	expect_due(&r, 2, RKE, 1);
	cr_expect(r.error);
}

Test(rdma_responder, counts_messages_modulo_24_bits)
{
	struct responder r = new_responder(0);

	r.msn = 0xffffff;
	receive(&r, &(struct step){ONLY, 0, 4, 4});
	expect_due(&r, 0, ACK, 0);
}

Test(rdma_responder, takes_a_region_that_ends_with_the_address_space)
{
	struct rdma_region region = {.va = -16ull, .length = 16, .rkey = RKEY};
	struct responder r;
	struct step s = {ONLY, 0, 16, 16, -16ull - VA};

	responder_init(&r, &region, MTU, 0);
	cr_expect_eq(receive(&r, &s), ACCEPT);
	s = (struct step){ONLY, 1, 17, 17, -16ull - VA};
	cr_expect_eq(receive(&r, &s), ACCESS);
}

Test(rdma_responder, takes_a_start_psn_of_more_than_24_bits)
{
	struct responder r = new_responder(0xff000005);

	cr_expect_eq(receive(&r, &(struct step){ONLY, 5, 4, 4}), ACCEPT);
}

Test(rdma_responder, tells_of_congestion_once_per_interval)
{
	struct responder r = new_responder(0);

	responder_notify_every(&r, 50);
	cr_expect_not(responder_notification_due(&r));
	for (uint64_t now = 1000; now < 1050; now++)
		responder_marked(&r, now);
	cr_expect(responder_notification_due(&r), "the first mark");
	cr_expect_not(responder_notification_due(&r), "noted once, told once");
	responder_marked(&r, 1049);
	cr_expect_not(responder_notification_due(&r));
	responder_marked(&r, 1050);
	cr_expect(responder_notification_due(&r));
	cr_expect_eq(r.stats.marked, 52);
	cr_expect_eq(r.stats.notifications, 2);
}

Test(rdma_responder, tells_nobody_when_rate_control_is_off_or_the_queue_pair_dead)
{
	struct responder r = new_responder(0);

	responder_marked(&r, 1);
	cr_expect_not(responder_notification_due(&r));
	cr_expect_eq(r.stats.marked, 1, "counted all the same");
	responder_notify_every(&r, 50);
	r.error = true;
	responder_marked(&r, 2);
	cr_expect_not(responder_notification_due(&r));
}

Test(rdma_responder, counts_duplicates_and_gaps)
{
	struct responder r = new_responder(1);

	receive(&r, &(struct step){ONLY, 1, 4, 4});
	receive(&r, &(struct step){ONLY, 1, 4, 4});
	for (unsigned int i = 0; i < 3; i++)
		receive(&r, &(struct step){ONLY, 5, 4, 4});
	cr_expect_eq(r.stats.duplicates, 1);
	cr_expect_eq(r.stats.ahead, 3);
}
