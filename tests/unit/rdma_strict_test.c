/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks that a frame must pass before it has any effect, in the order of Linux's rdma_rxe, and
 * the answer to each that fails. A frame that belongs to no live queue pair gets no answer; any
 * other gets at most one, so that the endpoint multiplies no packets.
 */
#include <criterion/criterion.h>
#include <endian.h>

#include "faults.h"
#include "rdma/frame.h"
#include "rdma_vectors.h"
#include "rdma/responder.h"

#define QPN  0x11
#define PSN  0x100
#define VA   0x7f0000001000ull
#define RKEY 0x1234
#define MTU  256
#define ROOM 2048

#define SILENCE 0xff
#define ACK     ROCE_CREDITS_UNUSED
#define SEQ     ROCE_NAK_SEQUENCE
#define REQ     ROCE_NAK_INVALID_REQUEST
#define RKE     ROCE_NAK_REMOTE_ACCESS

/* A packet to build. Offsets of <set> count from the Ethernet header; the ICRC is right unless
 * said. */
struct row {
	const char *check;
	uint8_t answer;
	uint8_t opcode, pad;
	uint32_t psn, rkey, length, payload;
	uint64_t va;
	bool bad_icrc;
	struct {
		uint8_t at, value;
	} set[2];
};

#define IP  14
#define UDP (IP + 20)
#define BTH (UDP + 8)
#define WRITE(code, number, key, to, size, bytes)                                                  \
	.opcode = (code), .psn = (number), .rkey = (key), .va = (to), .length = (size),            \
	.payload = (bytes)
#define ONLY WRITE(ROCE_WRITE_ONLY, PSN, RKEY, VA, 8, 8)

static const struct row rows[] = {
	{"a good one", ACK, ONLY},
	/* the frame */
	{"neither IPv4 nor IPv6", SILENCE, ONLY, .set = {{12, 0x88}}},
	{"IP options", SILENCE, ONLY, .set = {{IP, 0x46}}},
	{"a fragment", SILENCE, ONLY, .set = {{IP + 6, 0x20}}},
	{"another protocol", SILENCE, ONLY, .set = {{IP + 9, 6}}},
	{"another UDP port", SILENCE, ONLY, .set = {{UDP + 3, 0xb8}}},
	{"a UDP length beyond the packet", SILENCE, ONLY, .set = {{UDP + 5, 0xff}}},
	/* the device's address: part of the path */
	{"another destination address", SILENCE, ONLY, .set = {{IP + 19, 9}}},
	/* length for the opcode */
	{"no room for a RETH", SILENCE, .opcode = ROCE_WRITE_ONLY, .psn = PSN,
	 .length = UINT32_MAX},
	{"payload that is no multiple of four", SILENCE,
	 WRITE(ROCE_WRITE_ONLY, PSN, RKEY, VA, 8, 7)},
	{"a pad longer than the payload", SILENCE, WRITE(ROCE_WRITE_ONLY, PSN, RKEY, VA, 8, 0),
	 .pad = 3},
	/* BTH */
	{"transport version 1", SILENCE, ONLY, .set = {{BTH + 1, 0x01}}},
	{"a response to a READ", SILENCE, .opcode = 0x10, .psn = PSN, .payload = 8},
	{"a response to an atomic", SILENCE, .opcode = 0x12, .psn = PSN, .payload = 12},
	{"an opcode of UC", SILENCE, WRITE(0x2a, PSN, RKEY, VA, 8, 8)},
	{"an opcode of UD", SILENCE, WRITE(0x64, PSN, RKEY, VA, 8, 8)},
	{"no such queue pair", SILENCE, ONLY, .set = {{BTH + 7, QPN + 1}}},
	{"another partition", SILENCE, ONLY, .set = {{BTH + 3, 0xfe}}},
	{"our partition as a limited member", ACK, ONLY, .set = {{BTH + 2, 0x7f}}},
	{"a migrated path", ACK, ONLY, .set = {{BTH + 1, 0x40}}},
	{"a solicited event", ACK, ONLY, .set = {{BTH + 1, 0x80}}},
	/* addresses of the queue pair */
	{"another source address", SILENCE, ONLY, .set = {{IP + 15, 9}}},
	/* ICRC */
	{"a wrong ICRC", SILENCE, ONLY, .bad_icrc = true},
	/* PSN */
	{"a PSN ahead", SEQ, WRITE(ROCE_WRITE_ONLY, PSN + 1, RKEY, VA, 8, 8)},
	{"a PSN behind", ACK, WRITE(ROCE_WRITE_ONLY, PSN - 1, RKEY, VA, 8, 8)},
	/* requests that are not served: when their turn comes */
	{"a SEND", REQ, .opcode = 0x04, .psn = PSN, .payload = 8},
	{"a SEND with immediate", REQ, .opcode = 0x05, .psn = PSN, .payload = 12},
	{"the middle of a SEND", REQ, .opcode = 0x01, .psn = PSN, .payload = MTU},
	{"a SEND with invalidate", REQ, .opcode = 0x17, .psn = PSN, .payload = 4},
	{"a READ", REQ, .opcode = 0x0c, .psn = PSN, .payload = 16},
	{"an atomic", REQ, .opcode = 0x13, .psn = PSN, .payload = 28},
	{"a reserved opcode", REQ, .opcode = 0x1f, .psn = PSN, .payload = 8},
	{"a READ ahead", SEQ, .opcode = 0x0c, .psn = PSN + 1, .payload = 16},
	{"a SEND behind", ACK, .opcode = 0x04, .psn = PSN - 1, .payload = 8},
	{"a READ with a wrong ICRC", SILENCE, .opcode = 0x0c, .psn = PSN, .payload = 16,
	 .bad_icrc = true},
	{"a READ from another address", SILENCE, .opcode = 0x0c, .psn = PSN, .payload = 16,
	 .set = {{IP + 15, 9}}},
	{"a SEND for another queue pair", SILENCE, .opcode = 0x04, .psn = PSN, .payload = 8,
	 .set = {{BTH + 7, QPN + 1}}},
	{"a READ of another partition", SILENCE, .opcode = 0x0c, .psn = PSN, .payload = 16,
	 .set = {{BTH + 3, 0xfe}}},
	/* order of opcodes */
	{"a middle without a first", REQ, .opcode = ROCE_WRITE_MIDDLE, .psn = PSN, .payload = MTU},
	{"a last without a first", REQ, .opcode = ROCE_WRITE_LAST, .psn = PSN, .payload = 4},
	/* RETH */
	{"a message of more than 2 GiB", REQ, .opcode = ROCE_WRITE_FIRST, .psn = PSN, .rkey = RKEY,
	 .va = VA, .length = (1u << 31) + 1, .payload = MTU},
	{"a wrong rkey", RKE, WRITE(ROCE_WRITE_ONLY, PSN, RKEY + 1, VA, 8, 8)},
	{"an address before the region", RKE, WRITE(ROCE_WRITE_ONLY, PSN, RKEY, VA - 4, 8, 8)},
	{"an end behind the region", RKE, WRITE(ROCE_WRITE_ONLY, PSN, RKEY, VA + 4096 - 4, 8, 8)},
	/* payload */
	{"an only that is shorter than its message", REQ,
	 WRITE(ROCE_WRITE_ONLY, PSN, RKEY, VA, 12, 8)},
	{"an only that is longer than its message", REQ,
	 WRITE(ROCE_WRITE_ONLY, PSN, RKEY, VA, 4, 8)},
	{"an only beyond the path MTU", REQ,
	 WRITE(ROCE_WRITE_ONLY, PSN, RKEY, VA, MTU + 4, MTU + 4)},
	{"a first below the path MTU", REQ, WRITE(ROCE_WRITE_FIRST, PSN, RKEY, VA, 600, 8)},
	{"a pad that does not fit the length", REQ, ONLY, .pad = 1},
	/* ACKs are for the requester, and never answered */
	{"an ACK", SILENCE, .opcode = ROCE_ACK, .psn = PSN},
	{"an ACK with a payload", SILENCE, .opcode = ROCE_ACK, .psn = PSN, .payload = 4},
	{"a congestion notification", SILENCE, .opcode = ROCE_CNP, .psn = PSN, .payload = 16},
};

struct endpoint {
	struct roce_path there, back; /* the peer's path to us, ours to the peer */
	struct responder responder;
	uint64_t answers;
};

static void init(struct endpoint *e)
{
	struct rdma_region region = {.va = VA, .length = 4096, .rkey = RKEY};

	vector_path(&e->there, 4, false, MTU);
	vector_path(&e->back, 4, true, MTU);
	responder_init(&e->responder, &region, MTU, PSN);
	e->answers = 0;
}

static uint32_t build(const struct endpoint *e, const struct row *r, uint8_t *frame)
{
	bool cut = r->length == UINT32_MAX;
	uint8_t has = cut ? 0 : roce_opcode_traits(r->opcode);
	struct roce_reth reth = {htobe64(r->va), htobe32(r->rkey), htobe32(r->length)};
	uint32_t extension = has & ROCE_HAS_RETH ? sizeof(reth) : has & ROCE_HAS_AETH ? 4 : 0;
	struct roce_header h = {.opcode = r->opcode,
				.pad = r->pad,
				.ack_request = true,
				.psn = r->psn,
				.body = extension + r->payload};
	uint32_t length = e->there.length + h.body, crc;
	bool four;

	memset(frame, 0, ROOM);
	roce_header_write(frame, &e->there, &h);
	if (extension == sizeof(reth))
		memcpy(frame + e->there.length, &reth, sizeof(reth));
	roce_header_unmask(frame, &e->there);
	for (unsigned int i = 0; i < 2 && r->set[i].at != 0; i++)
		frame[r->set[i].at] = r->set[i].value;
	/* The ICRC is right for the changed bytes, so that only the row's fault is found. */
	four = frame[12] == 0x08;
	crc = htole32(roce_icrc_of_packet(frame + IP, 20, length - IP)) ^ (four && r->bad_icrc);
	memcpy(frame + length, &crc, sizeof(crc));
	return length + sizeof(crc);
}

/* Takes a frame as the load balancer and the software RNIC do. Returns the answer's syndrome. */
static uint8_t take(struct endpoint *e, const uint8_t *frame, uint32_t length, uint32_t *size)
{
	uint8_t ack[ROCE_ACK_FRAME_MAX], syndrome;
	struct responder_placement at;
	struct roce_packet p;
	struct roce_frame f;
	uint32_t psn, msn;

	*size = 0;
	if (frame_locate(frame, length, &f) != FRAME_ROCE ||
	    roce_parse(frame + f.bth_offset, f.bth_length, &p) != ROCE_PARSED || p.qpn != QPN ||
	    roce_path_admit(&e->back, frame + f.ip_offset, f.ip_length,
			    f.bth_offset + f.bth_length - f.ip_offset) != ROCE_ADMITTED)
		return SILENCE;
	if (p.opcode == ROCE_ACK || p.opcode == ROCE_CNP)
		return SILENCE;
	responder_receive(&e->responder, &p, &at);
	if (!responder_ack_due(&e->responder, &psn, &syndrome, &msn))
		return SILENCE;
	e->answers++;
	*size = roce_ack_build(ack, &e->back, psn, syndrome, msn);
	cr_expect_not(responder_ack_due(&e->responder, &psn, &syndrome, &msn), "two answers");
	return ack[e->back.length];
}

Test(rdma_strict, answers_each_fault_as_it_should_and_once)
{
	uint8_t frame[ROOM];

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct endpoint e;
		uint32_t length, size;
		uint8_t answer;

		init(&e);
		length = build(&e, &rows[i], frame);
		answer = take(&e, frame, length, &size);
		cr_expect_eq(answer, rows[i].answer, "%s: %02x", rows[i].check, answer);
		cr_expect_leq(size, length + ROCE_AETH_LENGTH, "%s", rows[i].check);
		/* After a fatal NAK the queue pair is in error and answers nothing more. */
		if (answer == REQ || answer == RKE) {
			cr_expect(e.responder.error, "%s", rows[i].check);
			length = build(&e, &rows[0], frame);
			cr_expect_eq(take(&e, frame, length, &size), SILENCE, "%s", rows[i].check);
		} else {
			cr_expect_not(e.responder.error, "%s", rows[i].check);
		}
	}
}

/* Garbled packets of all kinds, in any order: fewer answers than packets, and no byte outside. */
Test(rdma_strict, never_answers_more_than_it_gets)
{
	struct faults_params params = {
		.corrupt = 0.5, .duplicate = 0.3, .reorder = 0.3, .drop = 0.1, .seed = 11};
	struct faults *link = faults_create(&params);
	uint64_t packets = 0, bytes = 0, answered = 0;
	uint8_t frame[ROOM];
	struct endpoint e;
	uint32_t length, size;

	for (unsigned int round = 0; round < 200; round++) {
		init(&e);
		for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			length = build(&e, &rows[i], frame);
			faults_put(link, frame, length, round * 1000000 + i);
		}
		while ((length = faults_take(link, UINT64_MAX, frame, sizeof(frame))) > 0) {
			packets++;
			bytes += length;
			take(&e, frame, length, &size);
			answered += size;
			cr_assert_leq(e.answers, packets);
		}
	}
	cr_expect_lt(answered, bytes);
	faults_destroy(link);
}
