/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends single packets, made by hand, to rdma_rxe's responder: good and bad ones. Its memory shows
 * whether it executed one; the answer to a good packet that follows shows that it sent none before.
 */
#include <string.h>

#include "craft.h"

#define QP_ERROR     6
#define READ_REQUEST 0x0c
#define BYTES        28
/* The target of stimuli, and of the good packets that show how far the peer is. */
#define AT     4096
#define ELSE   8192
#define SEED   11
#define ACKED  0x1f
#define GAP    0x60
#define BAD    0x61
#define ACCESS 0x62

static struct craft craft;

static struct rig_qp *joined(struct rig *rig)
{
	struct rig_qp *qp = rig_connect(rig, &rig_defaults);

	qp->hands_off = true;
	return qp;
}

static struct craft *only(struct rig_qp *qp, uint32_t psn)
{
	craft_build(&craft, qp,
		    &(struct craft_write){.opcode = ROCE_WRITE_ONLY,
					  .psn = psn,
					  .offset = AT,
					  .bytes = BYTES,
					  .seed = SEED});
	return &craft;
}

static bool taken(struct rig *rig, struct rig_qp *qp)
{
	return peer_has(rig, qp->va + AT, BYTES, SEED);
}

static void expect_taken(struct rig *rig, struct rig_qp *qp, bool yes)
{
	RIG_EXPECT(rig, taken(rig, qp) == yes, "%s the peer's memory", yes ? "not in" : "in");
}

static void expect_answer(struct rig *rig, struct rig_qp *qp, unsigned int n, uint32_t psn,
			  uint8_t syndrome)
{
	const struct roce_packet *p = &rig_seen_at(rig, qp, n)->packet;

	RIG_EXPECT(rig, p->opcode == ROCE_ACK && p->psn == psn && p->syndrome == syndrome,
		   "answer %u: opcode %#x PSN %#x syndrome %#x instead of PSN %#x, %#x", n,
		   p->opcode, p->psn, p->syndrome, psn, syndrome);
}

/* Sends a good packet and expects its answer to be the <n>-th: no other packet was answered before.
 */
static void expect_next(struct rig *rig, struct rig_qp *qp, unsigned int n, uint32_t psn)
{
	craft_build(&craft, qp,
		    &(struct craft_write){
			    .opcode = ROCE_WRITE_ONLY, .psn = psn, .offset = ELSE, .bytes = 8});
	craft_send(rig, &craft);
	expect_answer(rig, qp, n, psn, ACKED);
}

/* --- one packet, changed --------------------------------------------------------------------- */

static struct rig_qp *send_changed(struct rig *rig, void (*change)(struct craft *), bool seal)
{
	struct rig_qp *qp = joined(rig);
	struct craft *c = only(qp, qp->first_psn);

	change(c);
	if (seal)
		craft_seal(c);
	craft_send(rig, c);
	return qp;
}

static void take(struct rig *rig, void (*change)(struct craft *), bool seal)
{
	struct rig_qp *qp = send_changed(rig, change, seal);

	expect_answer(rig, qp, 0, qp->first_psn, ACKED);
	expect_taken(rig, qp, true);
}

static void ignore(struct rig *rig, void (*change)(struct craft *), bool seal)
{
	struct rig_qp *qp = send_changed(rig, change, seal);

	/* The same PSN: if the other packet had been taken, this would be a duplicate. */
	expect_next(rig, qp, 0, qp->first_psn);
	expect_taken(rig, qp, false);
	RIG_EXPECT(rig, peer_has(rig, qp->va + ELSE, 8, 0), "the good packet is not there");
}

#define CHANGE(name, verdict, sealed, what)                                                        \
	static void name##_change(struct craft *c)                                                 \
	{                                                                                          \
		what;                                                                              \
	}                                                                                          \
	static void name(struct rig *rig)                                                          \
	{                                                                                          \
		verdict(rig, name##_change, sealed);                                               \
	}

static void udp_checksum(struct craft *c)
{
	unsigned int length = c->udp[4] << 8 | c->udp[5];
	unsigned int addresses = c->ip_length == 20 ? 8 : 32;
	const uint8_t *from = c->udp - addresses;
	uint32_t sum = 17 + length;

	for (unsigned int i = 0; i < addresses; i += 2)
		sum += from[i] << 8 | from[i + 1];
	for (unsigned int i = 0; i < length; i += 2)
		sum += c->udp[i] << 8 | c->udp[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum & 0xffff;
	c->udp[6] = sum >> 8;
	c->udp[7] = sum;
}

CHANGE(as_it_is, take, true, (void)c)
CHANGE(other_mac, take, true, c->frame[11] ^= 0x5a)
CHANGE(other_udp_port, take, true, c->udp[1] ^= 0xff)
CHANGE(any_ip_id, take, true, c->ip[4] = 0x12)
CHANGE(may_fragment, take, true, c->ip[6] = 0)
CHANGE(any_ttl, take, false, c->ip[c->ip_length == 20 ? 8 : 7] = 3;
       if (c->ip_length == 20) craft_seal(c))
CHANGE(congestion4, take, true, c->ip[1] = 0x03)
CHANGE(congestion6, take, true, c->ip[1] |= 0x30)
CHANGE(flow_label, take, false, c->ip[2] = 0xab)
CHANGE(good_udp_sum, take, true, udp_checksum(c))
CHANGE(wrong_udp_sum, ignore, true, udp_checksum(c); c->udp[7] ^= 1)
CHANGE(not_migrated, take, true, c->bth[1] ^= 0x40)
CHANGE(solicited, take, true, c->bth[1] |= 0x80)
CHANGE(congestion_bits, take, true, c->bth[4] = 0xc0)
CHANGE(reserved_bits, take, true, c->bth[8] |= 0x7f)
CHANGE(limited_pkey, take, true, c->bth[2] = 0x7f)
CHANGE(other_pkey, ignore, true, c->bth[2] = 0x80; c->bth[3] = 0x01)
CHANGE(other_version, ignore, true, c->bth[1] |= 1)
CHANGE(wrong_icrc, ignore, false, c->frame[c->length - 1] ^= 0x80)
CHANGE(unknown_qp, ignore, true, c->bth[5] ^= 0x40)
CHANGE(other_source4, ignore, true, c->ip[15] ^= 3)
CHANGE(other_source6, ignore, true, c->ip[23] ^= 3)
CHANGE(dirty_payload, ignore, false, c->payload[3] ^= 1)
CHANGE(unknown_opcode, ignore, true, c->bth[0] = 0x1f)
CHANGE(cut_short, ignore, true, c->length -= 12)

static void trailing(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	struct craft *c = only(qp, qp->first_psn);

	memset(c->frame + c->length, 0xee, 6);
	rig_send(rig, c->frame, c->length + 6);
	expect_answer(rig, qp, 0, qp->first_psn, ACKED);
	expect_taken(rig, qp, true);
}

static void dirty_pad(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	craft_build(&craft, qp,
		    &(struct craft_write){.opcode = ROCE_WRITE_ONLY,
					  .psn = qp->first_psn,
					  .offset = AT,
					  .bytes = 5,
					  .seed = SEED});
	memset(craft.payload + 5, 0xff, 3);
	craft_seal(&craft);
	craft_send(rig, &craft);
	expect_answer(rig, qp, 0, qp->first_psn, ACKED);
	peer_ask(rig, "peek %#lx 3", qp->va + AT + 5);
	RIG_EXPECT(rig, strcmp(rig->reply, "ok 000000") == 0, "pad is written: %s", rig->reply);
}

/* --- sequences ------------------------------------------------------------------------------- */

static void send_write(struct rig *rig, struct rig_qp *qp, const struct craft_write *w)
{
	craft_build(&craft, qp, w);
	craft_send(rig, &craft);
}

static void no_ack_wanted(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	struct craft_write w = {.opcode = ROCE_WRITE_ONLY,
				.psn = qp->first_psn,
				.offset = AT,
				.bytes = BYTES,
				.seed = SEED,
				.no_ack_request = true};

	send_write(rig, qp, &w);
	expect_next(rig, qp, 0, qp->first_psn + 1);
	RIG_EXPECT(rig, qp->seen[0].packet.msn == 2, "MSN %u", qp->seen[0].packet.msn);
	expect_taken(rig, qp, true);
}

static void duplicate(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	craft_send(rig, only(qp, qp->first_psn));
	expect_answer(rig, qp, 0, qp->first_psn, ACKED);
	peer_ask(rig, "poke %#lx 0badc0de", qp->va + AT);
	craft_send(rig, only(qp, qp->first_psn));
	expect_answer(rig, qp, 1, qp->first_psn, ACKED);
	expect_taken(rig, qp, false);
	expect_next(rig, qp, 2, qp->first_psn + 1);
}

/* On a queue pair that has taken nothing yet, the answer has the number before the first, which may
 * be outside of all that the requester has sent. */
static void before_the_first(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	craft_send(rig, only(qp, qp->first_psn - 5));
	expect_answer(rig, qp, 0, 0xffffff, ACKED);
	expect_taken(rig, qp, false);
	expect_next(rig, qp, 1, qp->first_psn);
}

static void half_way_round(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	expect_next(rig, qp, 0, qp->first_psn);
	craft_send(rig, only(qp, (qp->first_psn + 1 + 0x800000) & 0xffffff));
	expect_answer(rig, qp, 1, qp->first_psn, ACKED);
	expect_taken(rig, qp, false);
}

/* One NAK per gap, then silence until the missing packet comes. */
static void gap(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	craft_send(rig, only(qp, qp->first_psn + 4));
	expect_answer(rig, qp, 0, qp->first_psn, GAP);
	craft_send(rig, only(qp, qp->first_psn + 5));
	craft_send(rig, only(qp, qp->first_psn + 6));
	expect_next(rig, qp, 1, qp->first_psn);
	expect_taken(rig, qp, false);
	craft_send(rig, only(qp, qp->first_psn + 9));
	expect_answer(rig, qp, 2, qp->first_psn + 1, GAP);
}

static void not_ready_then_next(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint32_t psn = qp->first_psn;
	struct craft_write w = {.opcode = ROCE_WRITE_ONLY_IMM,
				.psn = psn,
				.offset = AT,
				.bytes = BYTES,
				.seed = SEED};

	send_write(rig, qp, &w);
	expect_answer(rig, qp, 0, psn, 0x20 | rig_defaults.rnr_code);
	craft_send(rig, only(qp, psn + 1));
	expect_answer(rig, qp, 1, psn, GAP);
	expect_taken(rig, qp, false);
	peer_ask(rig, "recv %u 1", qp->peer);
	send_write(rig, qp, &w);
	expect_answer(rig, qp, 2, psn, ACKED);
	expect_next(rig, qp, 3, psn + 1);
	expect_taken(rig, qp, true);
}

/* --- refused for good ------------------------------------------------------------------------ */

/* The last of these gets a NAK, the queue pair is dead, and nothing is written. */
static void refuse(struct rig *rig, struct rig_qp *qp, uint8_t nak, const struct craft_write *w,
		   unsigned int n)
{
	struct craft_write next;
	struct rig_qp *other;

	for (unsigned int i = 0; i < n; i++) {
		next = w[i];
		next.psn += qp->first_psn;
		next.offset += AT;
		next.seed = SEED;
		next.no_ack_request = i + 1 < n;
		send_write(rig, qp, &next);
	}
	expect_answer(rig, qp, 0, qp->first_psn + n - 1, nak);
	RIG_EXPECT(rig, RIG_AWAIT(rig, peer_state(rig, qp) == QP_ERROR), "state %s", rig->reply);
	craft_send(rig, only(qp, qp->first_psn + n));
	craft_send(rig, only(qp, qp->first_psn));
	/* The answer of another queue pair comes later than any of this one. */
	other = joined(rig);
	expect_next(rig, other, 0, other->first_psn);
	RIG_EXPECT(rig, qp->n_seen == 1, "a dead queue pair speaks");
	expect_taken(rig, qp, false);
}

static void length_too_long(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	refuse(rig, qp, BAD,
	       (struct craft_write[]){
		       {.opcode = ROCE_WRITE_ONLY, .bytes = BYTES, .length = BYTES + 4}},
	       1);
}

static void length_too_short(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	refuse(rig, qp, BAD,
	       (struct craft_write[]){
		       {.opcode = ROCE_WRITE_ONLY, .bytes = BYTES, .length = BYTES - 4}},
	       1);
}

static void only_beyond_mtu(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	refuse(rig, qp, BAD,
	       (struct craft_write[]){{.opcode = ROCE_WRITE_ONLY, .bytes = rig->way->mtu + 4}}, 1);
}

static void first_too_short(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint32_t mtu = rig->way->mtu;

	refuse(rig, qp, BAD,
	       (struct craft_write[]){
		       {.opcode = ROCE_WRITE_FIRST, .bytes = mtu - 4, .length = 2 * mtu}},
	       1);
}

static void only_within_message(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint32_t mtu = rig->way->mtu;

	refuse(rig, qp, BAD,
	       (struct craft_write[]){{.opcode = ROCE_WRITE_FIRST,
				       .offset = ELSE,
				       .bytes = mtu,
				       .length = 2 * mtu},
				      {.opcode = ROCE_WRITE_ONLY, .psn = 1, .bytes = BYTES}},
	       2);
}

static void last_without_first(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	refuse(rig, qp, BAD, (struct craft_write[]){{.opcode = ROCE_WRITE_LAST, .bytes = BYTES}},
	       1);
}

static void middle_without_first(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	refuse(rig, qp, BAD,
	       (struct craft_write[]){{.opcode = ROCE_WRITE_MIDDLE, .bytes = rig->way->mtu}}, 1);
}

static void foreign_key(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	qp->rkey ^= 0x55;
	refuse(rig, qp, ACCESS, (struct craft_write[]){{.opcode = ROCE_WRITE_ONLY, .bytes = BYTES}},
	       1);
}

static void past_the_end(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);

	refuse(rig, qp, ACCESS,
	       (struct craft_write[]){{.opcode = ROCE_WRITE_ONLY,
				       .offset = rig_defaults.bytes - AT - BYTES + 1,
				       .bytes = BYTES}},
	       1);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void read_request(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;

	o.access = "wr";
	qp = rig_connect(rig, &o);
	qp->hands_off = true;
	peer_ask(rig, "fill %#lx %u %u", qp->va + AT, BYTES, SEED);
	send_write(rig, qp,
		   &(struct craft_write){.opcode = READ_REQUEST,
					 .psn = qp->first_psn,
					 .offset = AT,
					 .length = BYTES});
	rig_seen_at(rig, qp, 0);
	RIG_EXPECT(rig,
		   qp->seen[0].packet.opcode == 0x10 && qp->seen[0].packet.psn == qp->first_psn,
		   "opcode %#x PSN %#x", qp->seen[0].packet.opcode, qp->seen[0].packet.psn);
}

/* The peer accepts a larger path MTU than its link can carry; only packets show it. */
static void any_path_mtu(struct rig *rig)
{
	struct rig_qp_options o = rig_defaults;
	struct rig_qp *qp;

	o.mtu = 256;
	qp = rig_connect(rig, &o);
	rig_write(rig, qp, 0, 1000, 3, 0, REQUESTER_ACK_REQUEST);
	rig_expect_acked(rig, qp);
	RIG_EXPECT(rig, qp->requester.stats.packets == 4, "%lu packets",
		   qp->requester.stats.packets);
	RIG_EXPECT(rig, peer_has(rig, qp->va, 1000, 3), "the bytes are others");
}

static void noise(struct rig *rig)
{
	struct rig_qp *qp = joined(rig);
	uint64_t state = 88172645463325252ull;

	for (unsigned int i = 0; i < 300; i++) {
		struct craft *c = only(qp, qp->first_psn);

		/* Any bytes behind the UDP header, with an ICRC that fits every second time; never
		 * a BTH that is good by chance. */
		for (uint8_t *at = c->bth; at < c->frame + c->length; at++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			*at = state;
		}
		c->bth[5] = 0x70;
		if (i % 2)
			craft_seal(c);
		craft_send(rig, c);
	}
	expect_next(rig, qp, 0, qp->first_psn);
	expect_taken(rig, qp, false);
}

const struct row wire_rows[] = {
	{"taken: a packet as it should be", as_it_is},
	{"taken: from another MAC address", other_mac},
	{"taken: any UDP source port", other_udp_port},
	{"taken: any IP identification", any_ip_id, ROW_V4},
	{"taken: without DF", may_fragment, ROW_V4},
	{"taken: any TTL", any_ttl},
	{"taken: marked by a congested switch (IPv4)", congestion4, ROW_V4},
	{"taken: marked by a congested switch (IPv6)", congestion6, ROW_V6},
	{"taken: any flow label", flow_label, ROW_V6},
	{"taken: bytes behind the IP packet", trailing},
	{"taken: a UDP checksum that is right", good_udp_sum},
	{"taken: without the M bit", not_migrated},
	{"taken: with the solicited bit", solicited},
	{"taken: FECN and BECN", congestion_bits},
	{"taken: reserved bits next to A", reserved_bits},
	{"taken: P_Key of a limited member", limited_pkey},
	{"taken: a pad that is not zero, which is not written", dirty_pad},
	{"ignored: a UDP checksum that is wrong", wrong_udp_sum},
	{"ignored: another P_Key", other_pkey},
	{"ignored: another transport version", other_version},
	{"ignored: a wrong ICRC", wrong_icrc},
	{"ignored: a payload that its ICRC does not fit", dirty_payload},
	{"ignored: an unknown queue pair", unknown_qp},
	{"ignored: another source address (IPv4)", other_source4, ROW_V4},
	{"ignored: another source address (IPv6)", other_source6, ROW_V6},
	{"ignored: an opcode that does not exist", unknown_opcode},
	{"ignored: a frame cut short", cut_short},
	{"ignored: noise", noise},
	{"no acknowledgement is asked for", no_ack_wanted},
	{"a duplicate is acknowledged, not executed", duplicate},
	{"a PSN before the first is taken for a duplicate", before_the_first},
	{"a PSN half way round is taken for a duplicate", half_way_round},
	{"a gap is answered once", gap},
	{"what follows an RNR NAK is a gap", not_ready_then_next},
	{"refused: RETH promises more than there is", length_too_long},
	{"refused: RETH promises less than there is", length_too_short},
	{"refused: ONLY longer than the path MTU", only_beyond_mtu},
	{"refused: FIRST shorter than the path MTU", first_too_short},
	{"refused: ONLY within a message", only_within_message},
	{"refused: LAST without FIRST", last_without_first},
	{"refused: MIDDLE without FIRST", middle_without_first},
	{"refused: a foreign key", foreign_key},
	{"refused: past the end", past_the_end},
	{"READ is answered", read_request},
	{"a smaller path MTU than the link's", any_path_mtu},
	{NULL, NULL},
};
