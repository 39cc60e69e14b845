/* SPDX-License-Identifier: BSD-3-Clause */
/* Our responder, rdma_rxe's requester; and acknowledgements that our responder never sends. */
#include <string.h>

#include "craft.h"

#define QP_ERROR 6
/* enum ibv_wc_status */
#define WC_OK             0
#define WC_REM_INV_REQ    9
#define WC_REM_ACCESS     10
#define WC_REM_OP         11
#define WC_RETRY_EXCEEDED 12

#define SEED 21

static struct craft craft;

static struct rig_qp *joined(struct rig *rig)
{
	return rig_connect(rig, &rig_defaults);
}

/* The peer writes <bytes> of its memory at 0 to ours at <to>; they are what SEED gives. */
static void peer_writes(struct rig *rig, struct rig_qp *qp, uint32_t bytes, uint32_t to)
{
	peer_ask(rig, "fill %#lx %u %u", qp->va, bytes, SEED);
	peer_ask(rig, "write %u %#lx %#x %u %#llx %#x", qp->peer, qp->va, qp->lkey, bytes,
		 RIG_VA + to, RIG_RKEY);
}

static void peer_writes_imm(struct rig *rig, struct rig_qp *qp, uint32_t bytes, uint32_t imm)
{
	peer_ask(rig, "fill %#lx %u %u", qp->va, bytes, SEED);
	peer_ask(rig, "write_imm %u %#lx %#x %u %#llx %#x %#x", qp->peer, qp->va, qp->lkey, bytes,
		 RIG_VA, RIG_RKEY, imm);
}

static void expect_done(struct rig *rig, struct rig_qp *qp)
{
	peer_expect(rig, qp, WC_OK);
}

static void expect_memory(struct rig *rig, uint32_t at, uint32_t bytes)
{
	RIG_EXPECT(rig, rig_has(rig, at, bytes, SEED), "our memory at %u does not have %u bytes",
		   at, bytes);
}

static void expect_opcode(struct rig *rig, struct rig_qp *qp, unsigned int n, uint8_t opcode,
			  uint32_t bytes, bool ack_request)
{
	const struct roce_packet *p = &rig_seen_at(rig, qp, n)->packet;

	RIG_EXPECT(rig,
		   p->opcode == opcode && p->payload_length == bytes &&
			   p->ack_request == ack_request,
		   "packet %u: opcode %#x, %u bytes, A %d", n, p->opcode, p->payload_length,
		   p->ack_request);
}

static void one_packet(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	peer_writes(rig, qp, 37, 100);
	expect_done(rig, qp);
	expect_opcode(rig, qp, 0, ROCE_WRITE_ONLY, 37, true);
	RIG_EXPECT(rig, qp->seen[0].packet.pad == 3, "pad %u", qp->seen[0].packet.pad);
	expect_memory(rig, 100, 37);
	RIG_EXPECT(rig, rig->memory[137] == 0, "the pad was written");
}

static void several_packets(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint32_t mtu = rig->way->mtu;

	peer_writes(rig, qp, 3 * mtu - 72, 64);
	expect_done(rig, qp);
	expect_opcode(rig, qp, 0, ROCE_WRITE_FIRST, mtu, false);
	expect_opcode(rig, qp, 1, ROCE_WRITE_MIDDLE, mtu, false);
	expect_opcode(rig, qp, 2, ROCE_WRITE_LAST, mtu - 72, true);
	expect_memory(rig, 64, 3 * mtu - 72);
}

static void nothing(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	peer_ask(rig, "write %u 0 0 0 0 0", qp->peer);
	expect_done(rig, qp);
	RIG_EXPECT(rig, qp->writes == 1, "%u messages", qp->writes);
}

static void immediate(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	peer_writes_imm(rig, qp, 100, 0xcafe0001);
	expect_done(rig, qp);
	expect_opcode(rig, qp, 0, ROCE_WRITE_ONLY_IMM, 100, true);
	RIG_EXPECT(rig, qp->imms == 1 && qp->imm == 0xcafe0001, "%u immediates, %#x", qp->imms,
		   qp->imm);
	expect_memory(rig, 0, 100);
}

static void immediate_several(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint32_t mtu = rig->way->mtu;

	peer_writes_imm(rig, qp, mtu + 9, 0x01020304);
	expect_done(rig, qp);
	expect_opcode(rig, qp, 0, ROCE_WRITE_FIRST, mtu, false);
	expect_opcode(rig, qp, 1, ROCE_WRITE_LAST_IMM, 9, true);
	RIG_EXPECT(rig, qp->imm == 0x01020304, "immediate %#x", qp->imm);
	expect_memory(rig, 0, mtu + 9);
}

static void one_ack_for_many(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	qp->mute = true;
	for (unsigned int i = 0; i < 3; i++)
		peer_writes(rig, qp, 64, i * 64);
	rig_seen_at(rig, qp, 2);
	RIG_EXPECT(rig, !peer_poll(rig, qp, 0).any, "complete without an acknowledgement");
	qp->mute = false;
	for (unsigned int i = 0; i < 3; i++)
		expect_done(rig, qp);
}

static void psn_wrap(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;

	o.peer_psn = 0xffffff;
	qp = rig_connect(rig, &o);
	peer_writes(rig, qp, 3 * rig->way->mtu, 0);
	expect_done(rig, qp);
	RIG_EXPECT(rig, qp->responder.epsn == 2, "expects PSN %#x", qp->responder.epsn);
	expect_memory(rig, 0, 3 * rig->way->mtu);
}

/* Packets that we never saw: our NAK makes the peer go back. */
static void lose(struct rig *rig, uint64_t which, uint32_t first_psn)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;
	uint32_t bytes = 6 * rig->way->mtu;

	o.peer_psn = first_psn;
	o.peer_timeout = 14;
	qp = rig_connect(rig, &o);
	rig->n_received = 0;
	rig->lose_received = which;
	peer_writes(rig, qp, bytes, 0);
	expect_done(rig, qp);
	RIG_EXPECT(rig, qp->responder.stats.naks >= 1, "no NAK was needed");
	expect_memory(rig, 0, bytes);
}

static void first_lost(struct rig *rig)
{
	lose(rig, 1, 0x500);
}

static void middle_lost(struct rig *rig)
{
	lose(rig, 1 << 3, 0x500);
}

static void many_lost(struct rig *rig)
{
	lose(rig, 0x92, 0x500);
}

static void lost_at_wrap(struct rig *rig)
{
	lose(rig, 1 << 3, 0xfffffd);
}

/* The peer's timeout: the packet that it sends again is the same, and a duplicate to us if we had
 * it. */
static void last_lost(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;

	o.peer_timeout = 14;
	qp = rig_connect(rig, &o);
	rig->n_received = 0;
	rig->lose_received = 1;
	peer_writes(rig, qp, 64, 0);
	expect_done(rig, qp);
	RIG_EXPECT(rig, qp->responder.stats.naks == 0, "%lu NAKs", qp->responder.stats.naks);
	expect_memory(rig, 0, 64);
}

static void acks_lost(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;

	o.peer_timeout = 14;
	qp = rig_connect(rig, &o);
	qp->mute = true;
	peer_writes_imm(rig, qp, 64, 9);
	rig_seen_at(rig, qp, 2);
	RIG_EXPECT(rig,
		   qp->seen[1].packet.psn == qp->peer_psn && qp->seen[2].packet.psn == qp->peer_psn,
		   "PSNs %#x %#x", qp->seen[1].packet.psn, qp->seen[2].packet.psn);
	qp->mute = false;
	expect_done(rig, qp);
	RIG_EXPECT(rig, qp->imms == 1, "%u immediates of one", qp->imms);
	RIG_EXPECT(rig, qp->responder.stats.duplicates >= 2, "%lu duplicates",
		   qp->responder.stats.duplicates);
}

static void we_are_gone(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;

	o.peer_timeout = 12;
	o.peer_retries = 3;
	qp = rig_connect(rig, &o);
	qp->mute = true;
	peer_writes(rig, qp, 64, 0);
	peer_expect(rig, qp, WC_RETRY_EXCEEDED);
	RIG_EXPECT(rig, qp->n_seen == 4, "%u transmissions", qp->n_seen);
	RIG_EXPECT(rig, peer_state(rig, qp) == QP_ERROR, "state %s", rig->reply);
}

static void wrong_key(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	peer_ask(rig, "write %u %#lx %#x 64 %#llx %#x", qp->peer, qp->va, qp->lkey, RIG_VA,
		 RIG_RKEY ^ 1);
	peer_expect(rig, qp, WC_REM_ACCESS);
	RIG_EXPECT(rig, qp->responder.error && qp->writes == 0, "our responder took it");
}

static void out_of_range(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	peer_writes(rig, qp, 64, RIG_MEMORY - 63);
	peer_expect(rig, qp, WC_REM_ACCESS);
	RIG_EXPECT(rig, qp->responder.error && qp->writes == 0, "our responder took it");
}

static void many_messages(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	for (unsigned int i = 0; i < 200; i++) {
		peer_ask(rig, "write_imm %u %#lx %#x %u %#llx %#x %u", qp->peer, qp->va, qp->lkey,
			 i * 20, RIG_VA, RIG_RKEY, i);
	}
	for (unsigned int i = 0; i < 200; i++)
		expect_done(rig, qp);
	RIG_EXPECT(rig, qp->imms == 200 && qp->imm == 199, "%u immediates, the last %u", qp->imms,
		   qp->imm);
}

static void both_directions(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint32_t bytes = 2 * rig->way->mtu + 100;

	for (unsigned int i = 0; i < 20; i++) {
		rig_write(rig, qp, 32768, bytes, i, 0, REQUESTER_ACK_REQUEST);
		peer_writes(rig, qp, bytes, i * 16);
	}
	for (unsigned int i = 0; i < 20; i++)
		expect_done(rig, qp);
	rig_expect_acked(rig, qp);
	RIG_EXPECT(rig, peer_has(rig, qp->va + 32768, bytes, 19), "the peer has other bytes");
	expect_memory(rig, 19 * 16, bytes);
	RIG_EXPECT(rig, qp->responder.stats.naks + qp->requester.stats.naks == 0, "%lu + %lu NAKs",
		   qp->responder.stats.naks, qp->requester.stats.naks);
}

/* --- acknowledgements by hand ---------------------------------------------------------------- */

/* The peer has sent a message of one packet and waits for our acknowledgement. */
static struct rig_qp *waiting(struct rig *rig, uint32_t bytes)
{
	struct rig_qp *qp = joined(rig);

	qp->mute = true;
	peer_writes(rig, qp, bytes, 0);
	expect_opcode(rig, qp, 0, bytes > rig->way->mtu ? ROCE_WRITE_FIRST : ROCE_WRITE_ONLY,
		      RTE_MIN(bytes, rig->way->mtu), bytes <= rig->way->mtu);
	return qp;
}

static void nak(struct rig *rig, uint8_t syndrome, int status)
{
	struct rig_qp *qp = waiting(rig, 64);

	rig_ack(rig, qp, qp->peer_psn, syndrome, 0);
	peer_expect(rig, qp, status);
	RIG_EXPECT(rig, peer_state(rig, qp) == QP_ERROR, "state %s", rig->reply);
}

static void nak_invalid(struct rig *rig)
{
	nak(rig, 0x61, WC_REM_INV_REQ);
}

static void nak_access(struct rig *rig)
{
	nak(rig, 0x62, WC_REM_ACCESS);
}

static void nak_operation(struct rig *rig)
{
	nak(rig, 0x63, WC_REM_OP);
}

static void nak_sequence(struct rig *rig)
{
	struct rig_qp *qp = waiting(rig, 3 * rig->way->mtu);

	rig_seen_at(rig, qp, 2);
	rig_ack(rig, qp, qp->peer_psn + 1, 0x60, 0);
	rig_seen_at(rig, qp, 4);
	RIG_EXPECT(rig, qp->seen[3].packet.psn == qp->peer_psn + 1, "went back to PSN %#x",
		   qp->seen[3].packet.psn);
	rig_ack(rig, qp, qp->peer_psn + 2, 0x1f, 1);
	expect_done(rig, qp);
}

/* rxe waits, then sends the same again; it never starts before the time that the code says. */
static void rnr(struct rig *rig)
{
	struct rig_qp *qp = waiting(rig, 64);
	uint64_t us;

	rig_ack(rig, qp, qp->peer_psn, 0x20 | 20, 0);
	rig_seen_at(rig, qp, 1);
	us = (qp->seen[1].time - qp->seen[0].time) / (rte_get_tsc_hz() / 1000000);
	RIG_EXPECT(rig, qp->seen[1].packet.psn == qp->peer_psn, "PSN %#x", qp->seen[1].packet.psn);
	RIG_EXPECT(rig, us >= roce_rnr_us(20), "after %lu us", us);
	qp->mute = false;
	rig_ack(rig, qp, qp->peer_psn, 0x1f, 1);
	expect_done(rig, qp);
}

static void ack_completes_earlier(struct rig *rig)
{
	struct rig_qp *qp = waiting(rig, 64);

	peer_writes(rig, qp, 64, 64);
	rig_seen_at(rig, qp, 1);
	rig_ack(rig, qp, qp->peer_psn + 1, 0x1f, 2);
	expect_done(rig, qp);
	expect_done(rig, qp);
}

static void ack_of_first(struct rig *rig)
{
	struct rig_qp *qp = waiting(rig, 2 * rig->way->mtu);

	rig_seen_at(rig, qp, 1);
	rig_ack(rig, qp, qp->peer_psn, 0x1f, 0);
	RIG_EXPECT(rig, !peer_poll(rig, qp, 30).any, "complete with half acknowledged");
	rig_ack(rig, qp, qp->peer_psn + 1, 0x1f, 1);
	expect_done(rig, qp);
}

static void ack_beyond(struct rig *rig)
{
	struct rig_qp *qp = waiting(rig, 64);

	rig_ack(rig, qp, qp->peer_psn + 7, 0x1f, 1);
	expect_done(rig, qp);
}

static void any_msn(struct rig *rig)
{
	struct rig_qp *qp = waiting(rig, 64);

	rig_ack(rig, qp, qp->peer_psn, 0x1f, 0xabcdef);
	expect_done(rig, qp);
}

static void ack_sent(struct rig *rig, void (*change)(struct rig_qp *, struct craft *), bool seal,
		     bool good)
{
	struct rig_qp *qp = waiting(rig, 64);

	craft_ack(&craft, qp, qp->peer_psn, 0x1f, 1);
	change(qp, &craft);
	if (seal)
		craft_seal(&craft);
	craft_send(rig, &craft);
	if (!good) {
		RIG_EXPECT(rig, !peer_poll(rig, qp, 30).any, "that completed it");
		rig_ack(rig, qp, qp->peer_psn, 0x1f, 1);
	}
	expect_done(rig, qp);
}

#define ACK_CHANGE(name, sealed, good, what)                                                       \
	static void name##_change(struct rig_qp *qp, struct craft *c)                              \
	{                                                                                          \
		what;                                                                              \
	}                                                                                          \
	static void name(struct rig *rig)                                                          \
	{                                                                                          \
		ack_sent(rig, name##_change, sealed, good);                                        \
	}

ACK_CHANGE(ack_other_port, true, true, c->udp[0] = 0x11)
ACK_CHANGE(ack_migrated, true, true, c->bth[1] ^= 0x40)
ACK_CHANGE(ack_ttl, true, true, c->ip[c->ip_length == 20 ? 8 : 7] = 9)
ACK_CHANGE(ack_wrong_icrc, false, false, c->frame[c->length - 1] ^= 1)
ACK_CHANGE(ack_other_qp, true, false, c->bth[5] ^= 0x40)
ACK_CHANGE(ack_other_pkey, true, false, c->bth[3] = 1)
ACK_CHANGE(ack_older, true, false, c->bth[10]--)

/* --- what our responder does not serve ------------------------------------------------------- */

static void peer_reads(struct rig *rig, struct rig_qp *qp)
{
	peer_ask(rig, "read %u %#lx %#x 64 %#llx %#x", qp->peer, qp->va, qp->lkey, RIG_VA,
		 RIG_RKEY);
}

static void expect_refused(struct rig *rig, struct rig_qp *qp)
{
	peer_expect(rig, qp, WC_REM_INV_REQ);
	RIG_EXPECT(rig, peer_state(rig, qp) == QP_ERROR, "state %s", rig->reply);
	RIG_EXPECT(rig, qp->responder.error && qp->responder.stats.naks == 1, "%lu NAKs",
		   qp->responder.stats.naks);
}

static void read_refused(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	peer_reads(rig, qp);
	expect_refused(rig, qp);
}

static void send_refused(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	peer_ask(rig, "send %u %#lx %#x 64 0 0", qp->peer, qp->va, qp->lkey);
	expect_refused(rig, qp);
}

static void read_by_hand(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	qp->hands_off = true;
	peer_reads(rig, qp);
	rig_seen_at(rig, qp, 0);
	RIG_EXPECT(rig, qp->seen[0].packet.opcode == 0x0c, "opcode %#x", qp->seen[0].packet.opcode);
	craft_read_response(&craft, qp, qp->peer_psn, 64, SEED);
	craft_send(rig, &craft);
	expect_done(rig, qp);
	RIG_EXPECT(rig, peer_has(rig, qp->va, 64, SEED), "other bytes");
}

const struct row responder_rows[] = {
	{"a message of one packet, with a pad", one_packet},
	{"a message of three packets", several_packets},
	{"a message of nothing, with no key", nothing},
	{"an immediate with one packet", immediate},
	{"an immediate with the last of two packets", immediate_several},
	{"one acknowledgement for three messages", one_ack_for_many},
	{"packet numbers wrap", psn_wrap},
	{"the first packet is lost: our NAK", first_lost},
	{"a middle packet is lost: our NAK", middle_lost},
	{"several packets are lost, some twice", many_lost},
	{"a packet is lost where numbers wrap", lost_at_wrap},
	{"the only packet is lost: its time-out", last_lost},
	{"our acknowledgements are lost for a while", acks_lost},
	{"we never answer: four transmissions, then an error", we_are_gone},
	{"a wrong rkey", wrong_key},
	{"a message past the end of our memory", out_of_range},
	{"200 messages of up to 4 KB with immediates", many_messages, ROW_ONCE},
	{"both directions at once", both_directions},
	{"NAK 61 ends it", nak_invalid},
	{"NAK 62 ends it", nak_access},
	{"NAK 63 ends it", nak_operation},
	{"NAK 60 acknowledges what is before, and restarts there", nak_sequence},
	{"RNR NAK delays it", rnr},
	{"an ACK completes what is before it", ack_completes_earlier},
	{"an ACK of half a message", ack_of_first},
	{"an ACK of what was never sent completes", ack_beyond},
	{"an ACK with any MSN completes", any_msn},
	{"an ACK from any UDP port completes", ack_other_port},
	{"an ACK without the M bit completes", ack_migrated},
	{"an ACK with any TTL completes", ack_ttl},
	{"an ACK with a wrong ICRC is ignored", ack_wrong_icrc},
	{"an ACK for another queue pair is ignored", ack_other_qp},
	{"an ACK with another P_Key is ignored", ack_other_pkey},
	{"an ACK of an older PSN is ignored", ack_older},
	{"a READ answered by hand", read_by_hand},
	{"a READ is refused with NAK 61", read_refused},
	{"a SEND is refused with NAK 61", send_refused},
	{NULL, NULL},
};
