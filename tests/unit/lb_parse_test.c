/* SPDX-License-Identifier: BSD-3-Clause */
/* Every row of tests/packets through the parser, whole and cut short at every byte. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

/* Parses a heap block of the frame's exact size, so that the sanitizer sees a read past the end. */
static void parse(const uint8_t *frame, uint32_t length, uint32_t checked, struct parsed *out,
		  struct flow_key *key)
{
	uint8_t *exact = malloc(length);

	memcpy(exact, frame, length);
	memset(out, 0xaa, sizeof(*out));
	memset(key, 0xaa, sizeof(*key));
	parse_frame(exact, length, packet_our_mac, checked, out, key);
	free(exact);
}

static struct flow_key key_of(const struct packet *p)
{
	struct flow_key key = {
		.family = p->family,
		.protocol = p->tcp ? IPPROTO_TCP : IPPROTO_UDP,
		.src_port = htons(p->source_port ? p->source_port : PACKET_SOURCE_PORT),
		.dst_port =
			htons(p->destination_port ? p->destination_port : PACKET_DESTINATION_PORT),
	};

	if (p->family == 4) {
		key.src.s6_addr32[2] = key.dst.s6_addr32[2] = htonl(0xffff);
		inet_pton(AF_INET, p->source ? p->source : PACKET_SOURCE4, &key.src.s6_addr32[3]);
		inet_pton(AF_INET, p->destination ? p->destination : PACKET_DESTINATION4,
			  &key.dst.s6_addr32[3]);
	} else {
		inet_pton(AF_INET6, p->source ? p->source : PACKET_SOURCE6, &key.src);
		inet_pton(AF_INET6, p->destination ? p->destination : PACKET_DESTINATION6,
			  &key.dst);
	}
	return key;
}

static void check(const struct packet_row *row)
{
	uint8_t frame[PACKET_MAX];
	uint32_t length = packet_build(&row->packet, frame);
	struct flow_key key, expected;
	struct parsed out;

	parse(frame, length, row->checked, &out, &key);
	cr_expect_eq(out.kind, row->kind, "%s: kind %u, reason %s", row->name, out.kind,
		     lb_drop_name(out.reason));
	if (out.kind != row->kind)
		return;
	if (row->kind == PARSE_DROP) {
		cr_expect_eq(out.reason, row->reason, "%s: %s instead of %s", row->name,
			     lb_drop_name(out.reason), lb_drop_name(row->reason));
		return;
	}
	if (row->kind == PARSE_ICMP_ERROR)
		cr_expect_eq(out.reason, row->reason, "%s: %s instead of %s", row->name,
			     lb_drop_name(out.reason), lb_drop_name(row->reason));
	cr_expect_eq(out.vlan, row->packet.tci, "%s", row->name);
	cr_expect_eq(out.ip_offset, row->packet.tagged ? 18 : 14, "%s", row->name);
	cr_expect_eq(out.family, row->packet.family, "%s", row->name);
	cr_expect_eq(out.l4_offset, row->l4_offset, "%s", row->name);
	cr_expect_eq(out.l4_length, row->l4_length, "%s", row->name);
	cr_expect_eq(out.payload_offset, row->payload_offset, "%s", row->name);
	cr_expect_eq(out.payload_length, row->payload_length, "%s", row->name);
	if (row->kind != PARSE_UDP && row->kind != PARSE_TCP && row->kind != PARSE_ROCE &&
	    row->kind != PARSE_ICMP_ERROR)
		return;
	expected = key_of(&row->packet);
	if (row->about_tcp)
		expected.protocol = IPPROTO_TCP;
	cr_expect_arr_eq(&key, &expected, sizeof(key), "%s: key", row->name);
}

Test(lb_parse, gives_the_verdict_of_every_row)
{
	for (unsigned int i = 0; i < packet_rows_n; i++)
		check(&packet_rows[i]);
}

/* The fields by which an lcore finds the owner of a packet, read without any check. */
Test(lb_parse, knows_the_flow_of_every_request_without_checking_it)
{
	for (unsigned int i = 0; i < packet_rows_n; i++) {
		const struct packet_row *row = &packet_rows[i];
		uint8_t frame[PACKET_MAX];
		uint32_t length = packet_build(&row->packet, frame);
		struct flow_key key, expected = key_of(&row->packet);
		uint16_t vlan;
		bool is_flow = parse_flow(frame, length, &key, &vlan);
		struct parsed parsed;
		struct flow_key full;

		if (row->kind == PARSE_DROP)
			continue;
		cr_expect_eq(is_flow, row->kind == PARSE_UDP || row->kind == PARSE_TCP, "%s",
			     row->name);
		if (is_flow)
			cr_expect_arr_eq(&key, &expected, sizeof(key), "%s: key", row->name);
		if (!is_flow)
			continue;
		parse_frame(frame, length, packet_our_mac, 0, &parsed, &full);
		cr_expect_eq(vlan, parsed.vlan, "%s: VLAN", row->name);
	}
}

static const enum lb_drop reasons[] = {
	LB_DROP_NOT_OUR_MAC, LB_DROP_TRUNCATED,    LB_DROP_ETHERTYPE,  LB_DROP_IP_HEADER,
	LB_DROP_IP_CHECKSUM, LB_DROP_IP_EXTENSION, LB_DROP_FRAGMENT,   LB_DROP_L4_PROTOCOL,
	LB_DROP_UDP_LENGTH,  LB_DROP_UDP_CHECKSUM, LB_DROP_ICMP_OTHER, LB_DROP_ICMP_CHECKSUM,
	LB_DROP_BAD_SOURCE,  LB_DROP_ICMP_NO_FLOW, LB_DROP_TCP_HEADER, LB_DROP_TCP_CHECKSUM,
};

Test(lb_parse, has_rows_for_every_reason_and_kind)
{
	unsigned int by_reason[LB_DROPS] = {0}, by_kind[PARSE_DROP + 1] = {0};

	for (unsigned int i = 0; i < packet_rows_n; i++) {
		by_kind[packet_rows[i].kind]++;
		if (packet_rows[i].kind == PARSE_DROP)
			by_reason[packet_rows[i].reason]++;
	}
	for (unsigned int kind = 0; kind <= PARSE_DROP; kind++)
		cr_expect_gt(by_kind[kind], 0, "kind %u", kind);
	for (unsigned int i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		cr_expect_gt(by_reason[reasons[i]], 0, "%s", lb_drop_name(reasons[i]));
}

/* A frame cut short is never accepted, except for link padding, and no offset leaves the frame. */
static void check_cut(const struct packet_row *row, const uint8_t *frame, uint32_t whole,
		      uint32_t length)
{
	struct flow_key key;
	struct parsed out;

	parse(frame, length, row->checked, &out, &key);
	cr_assert_leq(out.kind, PARSE_DROP);
	if (out.kind == PARSE_DROP) {
		cr_assert_lt(out.reason, LB_DROPS);
		return;
	}
	cr_expect(out.kind == PARSE_ARP || length >= whole - row->packet.padding,
		  "%s: accepted with %u of %u bytes", row->name, length, whole);
	cr_expect_leq(out.l4_offset + out.l4_length, length, "%s", row->name);
	cr_expect_leq(out.payload_offset + out.payload_length, length, "%s", row->name);
}

Test(lb_parse, never_reads_past_a_frame_cut_at_any_byte)
{
	for (unsigned int i = 0; i < packet_rows_n; i++) {
		uint8_t frame[PACKET_MAX];
		uint32_t whole = packet_build(&packet_rows[i].packet, frame);

		for (uint32_t length = 0; length <= whole; length++)
			check_cut(&packet_rows[i], frame, whole, length);
	}
}

Test(lb_parse, sees_every_wrong_bit_that_a_check_sum_covers)
{
	static const struct packet packets[] = {
		{.family = 4, .payload = 9},
		{.family = 6, .payload = 9},
		{.family = 4, .icmp = true, .icmp_type = 8, .payload = 9},
		{.family = 6, .icmp = true, .icmp_type = 128, .payload = 9},
	};

	for (unsigned int i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		uint8_t frame[PACKET_MAX];
		uint32_t length = packet_build(&packets[i], frame);
		/* All of IPv4 is covered, of IPv6 the addresses. */
		uint32_t first = packets[i].family == 4 ? 14 : 14 + 8;

		for (uint32_t bit = 8 * first; bit < 8 * length; bit++) {
			struct flow_key key;
			struct parsed out;

			frame[bit / 8] ^= 1 << bit % 8;
			parse(frame, length, 0, &out, &key);
			/* Another destination port may be RoCE's, but not by one bit. */
			cr_expect_eq(out.kind, PARSE_DROP, "packet %u, byte %u bit %u", i, bit / 8,
				     bit % 8);
			frame[bit / 8] ^= 1 << bit % 8;
		}
	}
}

Test(lb_parse, takes_the_longest_frame_an_mbuf_can_hold)
{
	struct packet p = {.family = 6, .payload = 1};
	uint8_t *frame = calloc(1, UINT16_MAX);
	struct flow_key key;
	struct parsed out;

	packet_build(&p, frame);
	/* As much as IPv6 can announce and the frame can hold; the NIC has verified the checksum.
	 */
	frame[18] = (UINT16_MAX - 54) >> 8;
	frame[19] = (UINT16_MAX - 54) & 0xff;
	frame[58] = frame[18];
	frame[59] = frame[19];
	parse(frame, UINT16_MAX, PARSE_L4_CHECKED, &out, &key);
	cr_expect_eq(out.kind, PARSE_UDP);
	cr_expect_eq(out.payload_offset + out.payload_length, UINT16_MAX);
	parse(frame, UINT16_MAX - 1, PARSE_L4_CHECKED, &out, &key);
	cr_expect_eq(out.kind, PARSE_DROP);
	free(frame);
}

Test(lb_parse, names_every_reason)
{
	for (unsigned int i = 0; i < LB_DROPS; i++) {
		cr_assert(lb_drop_name(i) && lb_drop_text(i));
		cr_expect(lb_drop_name(i)[0] && lb_drop_text(i)[0]);
		for (unsigned int k = 0; k < i; k++)
			cr_expect_str_neq(lb_drop_name(i), lb_drop_name(k));
	}
}
