/* SPDX-License-Identifier: BSD-3-Clause */
/* Our requester, rdma_rxe's responder. */
#include <string.h>

#include "rig.h"

/* enum ibv_wc_opcode, ibv_wc_flags and ibv_wc_status, ibv_qp_state, as rxe_peer prints them. */
#define WC_RECV_RDMA_WITH_IMM 129
#define WC_WITH_IMM           2
#define WC_GRH                1
#define WC_FLUSHED            5
#define QP_ERROR              6

#define ACK REQUESTER_ACK_REQUEST
#define IMM (REQUESTER_ACK_REQUEST | REQUESTER_IMM)

static struct rig_qp *joined(struct rig *rig)
{
	return rig_connect(rig, &rig_defaults);
}

/* For rows with a timeout: it comes soon, and retries do not run out. */
static struct rig_qp *joined_hasty(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;

	o.timeout = 14; /* 67 ms */
	o.retries = 50;
	return rig_connect(rig, &o);
}

static void expect_data(struct rig *rig, struct rig_qp *qp, uint32_t offset, uint32_t bytes,
			unsigned int seed)
{
	RIG_EXPECT(rig, peer_has(rig, qp->va + offset, bytes, seed),
		   "the peer's memory at %u does not have the %u bytes written", offset, bytes);
}

static void expect_imm(struct rig *rig, struct rig_qp *qp, uint32_t imm, uint32_t bytes)
{
	struct peer_completion c = peer_poll(rig, qp, RIG_PATIENCE_MS);

	RIG_EXPECT(rig, c.any, "the receive did not complete");
	RIG_EXPECT(rig,
		   c.status == 0 && c.opcode == WC_RECV_RDMA_WITH_IMM &&
			   (c.flags | WC_GRH) == (WC_WITH_IMM | WC_GRH) && c.imm == imm &&
			   c.bytes == bytes,
		   "completion: status %d opcode %d flags %u imm %#x bytes %u", c.status, c.opcode,
		   c.flags, c.imm, c.bytes);
}

/* Messages of <bytes>, <count> of them, at multiples of a power of two. */
static void write_many(struct rig *rig, struct rig_qp *qp, unsigned int count, uint32_t bytes,
		       uint32_t stride, uint32_t flags)
{
	for (unsigned int i = 0; i < count; i++)
		rig_write(rig, qp, i * stride, bytes, i, i, flags);
}

static void expect_many(struct rig *rig, struct rig_qp *qp, unsigned int count, uint32_t bytes,
			uint32_t stride)
{
	rig_expect_acked(rig, qp);
	for (unsigned int i = 0; i < count; i++)
		expect_data(rig, qp, i * stride, bytes, i);
}

static void one_packet(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	const struct rig_seen *s;

	rig_write(rig, qp, 16, 28, 1, 0, ACK);
	rig_expect_acked(rig, qp);
	expect_data(rig, qp, 16, 28, 1);
	s = rig_seen_at(rig, qp, 0);
	RIG_EXPECT(rig,
		   s->packet.psn == qp->first_psn && s->packet.syndrome == 0x1f &&
			   s->packet.msn == 1,
		   "ACK of PSN %#x, syndrome %#x, MSN %u", s->packet.psn, s->packet.syndrome,
		   s->packet.msn);
	RIG_EXPECT(rig, (s->flags & 0x40) == 0, "rxe sets the M bit now");
}

static void nothing(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	rig_write(rig, qp, 0, 0, 0, 0, ACK);
	rig_expect_acked(rig, qp);
}

static void padding(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	for (uint32_t bytes = 1; bytes <= 8; bytes++)
		rig_write(rig, qp, bytes * 16, bytes, bytes, 0, ACK);
	rig_expect_acked(rig, qp);
	for (uint32_t bytes = 1; bytes <= 8; bytes++) {
		expect_data(rig, qp, bytes * 16, bytes, bytes);
		peer_ask(rig, "peek %#lx 8", qp->va + bytes * 16 + bytes);
		RIG_EXPECT(rig, strcmp(rig->reply, "ok 0000000000000000") == 0,
			   "pad was written behind %u bytes: %s", bytes, rig->reply);
	}
}

static void several_packets(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint32_t mtu = rig->way->mtu;

	rig_write(rig, qp, 0, 3 * mtu - 72, 3, 0, ACK);
	rig_write(rig, qp, 16384, 2 * mtu, 4, 0, ACK);
	rig_write(rig, qp, 32768, mtu, 5, 0, ACK);
	rig_write(rig, qp, 49152, mtu + 1, 6, 0, ACK);
	rig_expect_acked(rig, qp);
	RIG_EXPECT(rig, qp->requester.stats.packets == 3 + 2 + 1 + 2, "%lu packets",
		   qp->requester.stats.packets);
	expect_data(rig, qp, 0, 3 * mtu - 72, 3);
	expect_data(rig, qp, 16384, 2 * mtu, 4);
	expect_data(rig, qp, 32768, mtu, 5);
	expect_data(rig, qp, 49152, mtu + 1, 6);
	RIG_EXPECT(rig, qp->seen[qp->n_seen - 1].packet.msn == 4, "MSN %u after 4 messages",
		   qp->seen[qp->n_seen - 1].packet.msn);
}

static void immediate(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	peer_ask(rig, "recv %u 1", qp->peer);
	rig_write(rig, qp, 0, 64, 7, 0xdeadbeef, IMM);
	rig_expect_acked(rig, qp);
	expect_imm(rig, qp, 0xdeadbeef, 64);
	expect_data(rig, qp, 0, 64, 7);
}

static void immediate_several(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint32_t bytes = 2 * rig->way->mtu + 37;

	peer_ask(rig, "recv %u 1", qp->peer);
	rig_write(rig, qp, 0, bytes, 8, 0x01020304, IMM);
	rig_expect_acked(rig, qp);
	expect_imm(rig, qp, 0x01020304, bytes);
	expect_data(rig, qp, 0, bytes, 8);
}

static void immediate_nothing(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	peer_ask(rig, "recv %u 1", qp->peer);
	rig_write(rig, qp, 0, 0, 0, 77, IMM);
	rig_expect_acked(rig, qp);
	expect_imm(rig, qp, 77, 0);
}

static void not_ready(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	struct requester *rq = &qp->requester;

	rig_write(rig, qp, 0, 64, 9, 5, IMM);
	RIG_EXPECT(rig, RIG_AWAIT(rig, rq->stats.rnr_naks >= 3), "%lu RNR NAKs",
		   rq->stats.rnr_naks);
	RIG_EXPECT(rig, qp->seen[0].packet.syndrome == (0x20 | rig_defaults.rnr_code),
		   "syndrome %#x", qp->seen[0].packet.syndrome);
	RIG_EXPECT(rig, !peer_has(rig, qp->va, 64, 9), "written before it was ready");
	peer_ask(rig, "recv %u 1", qp->peer);
	rig_expect_acked(rig, qp);
	expect_imm(rig, qp, 5, 64);
	expect_data(rig, qp, 0, 64, 9);
}

/* Behind the packet that the peer was not ready for, the first one is a gap to it. */
static void not_ready_in_stream(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	rig_write(rig, qp, 0, 64, 0, 1, ACK);
	rig_write(rig, qp, 256, 64, 1, 0xab, IMM);
	rig_write(rig, qp, 512, 64, 2, 2, ACK);
	rig_write(rig, qp, 768, 64, 3, 3, ACK);
	RIG_EXPECT(rig, RIG_AWAIT(rig, qp->requester.stats.rnr_naks > 0), "no RNR NAK");
	peer_ask(rig, "recv %u 1", qp->peer);
	expect_many(rig, qp, 4, 64, 256);
	expect_imm(rig, qp, 0xab, 64);
}

static void psn_wrap(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;

	o.psn = 0xfffffe;
	qp = rig_connect(rig, &o);
	write_many(rig, qp, 6, 100, 256, ACK);
	expect_many(rig, qp, 6, 100, 256);
	RIG_EXPECT(rig, qp->requester.una_psn == 4, "PSN %#x", qp->requester.una_psn);
}

static void psn_wrap_with_loss(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;

	o.psn = 0xfffffd;
	qp = rig_connect(rig, &o);
	rig->n_sent = 0;
	rig->lose_sent = 1 << 2; /* PSN 0xffffff */
	write_many(rig, qp, 6, 100, 256, ACK);
	expect_many(rig, qp, 6, 100, 256);
}

/* Go-back-N after a gap: a NAK 0x60 that names the lost packet, which is the next that is sent;
 * unless the peer stalled and a clock of ours came before the NAK. */
static void expect_back(struct rig *rig, struct rig_qp *qp, unsigned int sent, uint32_t lost)
{
	const struct requester_stats *stats = &qp->requester.stats;
	unsigned int i = 0;

	RIG_EXPECT(rig, stats->naks >= 1 && stats->resent >= 1, "%lu NAKs, %lu packets again",
		   stats->naks, stats->resent);
	while (i < qp->n_seen && qp->seen[i].packet.syndrome != ROCE_NAK_SEQUENCE)
		i++;
	RIG_EXPECT(rig, i < qp->n_seen && qp->seen[i].packet.psn == lost, "NAK of PSN %#x",
		   qp->seen[i].packet.psn);
	RIG_EXPECT(rig, rig->sent_psn[sent] == lost || qp->seen[i].tries > 0,
		   "went back to PSN %#x instead of %#x", rig->sent_psn[sent], lost);
}

static void lose(struct rig *rig, uint64_t which, unsigned int count, uint32_t bytes)
{
	struct rig_qp *qp = joined_hasty(rig);

	rig->n_sent = 0;
	rig->lose_sent = which;
	write_many(rig, qp, count, bytes, 2048, ACK);
	expect_many(rig, qp, count, bytes, 2048);
	expect_back(rig, qp, count, qp->first_psn + __builtin_ctzll(which));
}

static void first_lost(struct rig *rig)
{
	lose(rig, 1, 8, 512);
}

static void middle_lost(struct rig *rig)
{
	lose(rig, 1 << 3, 8, 512);
}

static void many_lost(struct rig *rig)
{
	/* Packets that are sent again are lost, too. */
	lose(rig, 0x8421084210842110, 30, 512);
}

static void part_lost(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint32_t bytes = 3 * rig->way->mtu + 5;

	rig->n_sent = 0;
	rig->lose_sent = 1 << 1; /* the middle packet of the first message */
	rig_write(rig, qp, 0, bytes, 1, 0, ACK);
	rig_write(rig, qp, 32768, bytes, 2, 0, ACK);
	rig_expect_acked(rig, qp);
	expect_back(rig, qp, 8, qp->first_psn + 1);
	expect_data(rig, qp, 0, bytes, 1);
	expect_data(rig, qp, 32768, bytes, 2);
}

static void last_lost(struct rig *rig)
{
	struct rig_qp *qp = joined_hasty(rig);
	uint64_t tries;

	rig->n_sent = 0;
	rig->lose_sent = 1 << 3;
	write_many(rig, qp, 4, 64, 256, ACK);
	expect_many(rig, qp, 4, 64, 256);
	/* No later packet reveals the loss of the last: our own clock does, at the timeout or after
	 * some round trips. */
	tries = qp->requester.stats.timeouts + qp->requester.stats.early;
	RIG_EXPECT(rig, tries >= 1 && qp->requester.stats.naks == 0, "%lu tries, %lu NAKs", tries,
		   qp->requester.stats.naks);
}

/* Repeated packets are acknowledged again and not executed again. */
static void acks_lost(struct rig *rig)
{
	struct rig_qp *qp = joined_hasty(rig);

	peer_ask(rig, "recv %u 4", qp->peer);
	rig->lose_acks = true;
	write_many(rig, qp, 3, 64, 256, ACK);
	rig_write(rig, qp, 768, 64, 3, 42, IMM);
	rig_poll(rig);
	expect_imm(rig, qp, 42, 64);
	peer_ask(rig, "poke %#lx 00112233", qp->va);
	RIG_EXPECT(rig, RIG_AWAIT(rig, qp->requester.stats.resent >= 4), "%lu packets again",
		   qp->requester.stats.resent);
	rig->lose_acks = false;
	rig_expect_acked(rig, qp);
	RIG_EXPECT(rig, strcmp(peer_ask(rig, "peek %#lx 4", qp->va), " 00112233") == 0,
		   "executed again: %s", rig->reply);
	RIG_EXPECT(rig, !peer_poll(rig, qp, 0).any, "a second completion");
}

static void one_ack_for_many(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	write_many(rig, qp, 15, 64, 256, 0);
	rig_write(rig, qp, 15 * 256, 64, 15, 0, ACK);
	expect_many(rig, qp, 16, 64, 256);
	RIG_EXPECT(rig, qp->n_seen == 1 && qp->seen[0].packet.msn == 16, "%u ACKs, MSN %u",
		   qp->n_seen, qp->seen[0].packet.msn);
}

static void a_thousand(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	for (unsigned int i = 0; i < 1000; i++) {
		/* No more than the peer's socket buffer takes. */
		RIG_EXPECT(rig, RIG_AWAIT(rig, requester_unacked(&qp->requester) < 32),
			   "stuck after %u", i);
		rig_write(rig, qp, (i & 63) * 1024, 1024, i, 0, i % 8 == 7 ? ACK : 0);
		rig_poll(rig);
	}
	rig_expect_acked(rig, qp);
	for (unsigned int i = 1000 - 64; i < 1000; i++)
		expect_data(rig, qp, (i & 63) * 1024, 1024, i);
}

/* A refusal for good: our requester knows the reason, and the peer's queue pair is dead. */
static void refused(struct rig *rig, struct rig_qp *qp)
{
	struct requester *rq = &qp->requester;

	peer_ask(rig, "recv %u 1", qp->peer);
	rig_write(rig, qp, 0, 64, 1, 0, ACK);
	RIG_EXPECT(rig, RIG_AWAIT(rig, rq->error != REQUESTER_OK), "not refused");
	RIG_EXPECT(rig, rq->error == REQUESTER_NAK && rq->nak == ROCE_NAK_REMOTE_ACCESS,
		   "error %d, NAK %#x", rq->error, rq->nak);
	peer_expect(rig, qp, WC_FLUSHED);
	RIG_EXPECT(rig, peer_state(rig, qp) == QP_ERROR, "state %s", rig->reply);
}

static void wrong_rkey(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	qp->rkey ^= 0x55;
	refused(rig, qp);
}

static void no_permission(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;

	o.access = "l";
	refused(rig, rig_connect(rig, &o));
}

static void out_of_range(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	qp->va += rig_defaults.bytes - 63;
	refused(rig, qp);
}

static void before_range(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	qp->va -= 1;
	refused(rig, qp);
}

static void peer_gone(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct requester *rq;
	struct rig_qp *qp;

	o.retries = 2;
	o.timeout = 13;
	qp = rig_connect(rig, &o);
	rq = &qp->requester;
	peer_ask(rig, "close %u", qp->peer);
	rig_write(rig, qp, 0, 64, 1, 0, ACK);
	RIG_EXPECT(rig, RIG_AWAIT(rig, rq->error != REQUESTER_OK), "still waiting");
	RIG_EXPECT(rig, rq->error == REQUESTER_RETRY_EXCEEDED && rq->stats.packets == 3,
		   "error %d after %lu packets", rq->error, rq->stats.packets);
}

const struct row requester_rows[] = {
	{"a message of one packet", one_packet},
	{"a message of nothing, with no key", nothing},
	{"lengths that need padding", padding},
	{"messages of several packets", several_packets},
	{"an immediate with one packet", immediate},
	{"an immediate with the last of several packets", immediate_several},
	{"an immediate with nothing", immediate_nothing},
	{"an immediate that no receive waits for (RNR)", not_ready},
	{"RNR in the middle of a stream", not_ready_in_stream},
	{"packet numbers wrap", psn_wrap},
	{"packet numbers wrap and one is lost", psn_wrap_with_loss},
	{"the first packet of a burst is lost", first_lost},
	{"a packet in the middle of a burst is lost", middle_lost},
	{"every fifth packet is lost", many_lost},
	{"the middle of a message is lost", part_lost},
	{"the last packet is lost (time-out)", last_lost},
	{"all acknowledgements are lost for a while", acks_lost},
	{"one acknowledgement for 16 messages", one_ack_for_many},
	{"1,000 messages", a_thousand, ROW_ONCE},
	{"a wrong rkey", wrong_rkey},
	{"memory that may not be written", no_permission},
	{"a message past the end of the memory", out_of_range},
	{"a message before the start of the memory", before_range},
	{"a peer that has gone", peer_gone},
	{NULL, NULL},
};
