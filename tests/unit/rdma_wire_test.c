/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets are built byte for byte and read back: known packets, and nonsense. */
#include <criterion/criterion.h>
#include <endian.h>

#include "rdma/frame.h"
#include "rdma_vectors.h"

#define ICRC ROCE_ICRC_LENGTH

struct message {
	struct roce_header header;
	uint64_t va;
	uint32_t rkey, length, imm;
};

/* One packet the way an endpoint builds it: masked header, the rest, ICRC, real header. */
static uint32_t build(uint8_t *frame, const struct roce_path *path, const struct message *m,
		      const void *payload, uint32_t n)
{
	uint8_t has = roce_opcode_traits(m->header.opcode);
	struct roce_reth reth = {htobe64(m->va), htobe32(m->rkey), htobe32(m->length)};
	struct roce_header header = m->header;
	uint8_t *at = frame + path->length;
	uint32_t imm = htobe32(m->imm), crc;

	if (has & ROCE_HAS_RETH)
		at = (uint8_t *)memcpy(at, &reth, sizeof(reth)) + sizeof(reth);
	if (has & ROCE_HAS_IMM)
		at = (uint8_t *)memcpy(at, &imm, sizeof(imm)) + sizeof(imm);
	memcpy(at, payload, n);
	memset(at + n, 0, header.pad);
	at += n + header.pad;
	header.body = at - frame - path->length;
	roce_header_write(frame, path, &header);
	crc = htole32(roce_icrc(ROCE_ICRC_SEED, frame + ROCE_ETHER_LENGTH,
				at - frame - ROCE_ETHER_LENGTH));
	memcpy(at, &crc, sizeof(crc));
	roce_header_unmask(frame, path);
	return at + ICRC - frame;
}

static void expect_packet(const uint8_t *frame, uint32_t length, const char *vector)
{
	uint8_t expected[2048];
	uint32_t n = vector_bytes(vector, expected);

	cr_assert_eq(length, ROCE_ETHER_LENGTH + n);
	cr_assert_arr_eq(frame + ROCE_ETHER_LENGTH, expected, n);
}

static const struct message write_only = {
	.header = {.opcode = ROCE_WRITE_ONLY, .ack_request = true, .psn = 0x100},
	.va = 0x7f0000001000,
	.rkey = 0x1234,
	.length = 8,
};

Test(rdma_wire, builds_a_write_only_byte_for_byte)
{
	struct roce_path path;
	uint8_t frame[256];

	vector_path(&path, 4, false, 1024);
	expect_packet(frame, build(frame, &path, &write_only, "ABCDEFGH", 8), VECTOR_WRITE_ONLY);
}

Test(rdma_wire, builds_a_write_only_over_ipv6_byte_for_byte)
{
	struct roce_path path;
	uint8_t frame[256];

	vector_path(&path, 6, false, 1024);
	expect_packet(frame, build(frame, &path, &write_only, "ABCDEFGH", 8), VECTOR_WRITE_ONLY6);
}

Test(rdma_wire, builds_an_immediate_and_a_pad_byte_for_byte)
{
	struct message m = {
		.header = {.opcode = ROCE_WRITE_ONLY_IMM,
			   .pad = 3,
			   .ack_request = true,
			   .psn = 0x101},
		.va = 0x7f0000001008,
		.rkey = 0x1234,
		.length = 5,
		.imm = 0xdeadbeef,
	};
	struct roce_path path;
	uint8_t frame[256];

	vector_path(&path, 4, false, 1024);
	expect_packet(frame, build(frame, &path, &m, "hello", 5), VECTOR_WRITE_ONLY_IMM);
}

Test(rdma_wire, builds_acknowledgements_byte_for_byte)
{
	struct roce_path path;
	uint8_t frame[ROCE_ACK_FRAME_MAX];

	vector_path(&path, 4, true, 1024);
	expect_packet(frame, roce_ack_build(frame, &path, 0x101, 0x1f, 2), VECTOR_ACK);
	expect_packet(frame, roce_ack_build(frame, &path, 0x102, ROCE_NAK_SEQUENCE, 2), VECTOR_NAK);
}

Test(rdma_wire, builds_a_long_write_byte_for_byte)
{
	uint8_t payload[VECTOR_LONG_LENGTH], frame[512];
	struct roce_path path;

	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = i;
	vector_path(&path, 4, false, 256);
	for (unsigned int i = 0; i < VECTOR_LONG_PACKETS; i++) {
		struct message m = {.header = {.opcode = vector_long[i].opcode,
					       .ack_request = i == 2,
					       .psn = 0x200 + i},
				    .va = VECTOR_LONG_VA,
				    .rkey = 0x1234,
				    .length = VECTOR_LONG_LENGTH};
		uint32_t n = i < 2 ? 256 : 88;
		uint32_t length = build(frame, &path, &m, payload + 256 * i, n);
		const uint8_t *ip = frame + ROCE_ETHER_LENGTH;

		cr_expect_eq(length, 14u + vector_long[i].ip_length);
		cr_expect_eq(ip[2] << 8 | ip[3], vector_long[i].ip_length);
		cr_expect_eq(ip[10] << 8 | ip[11], vector_long[i].ip_checksum);
		cr_expect_eq(ip[24] << 8 | ip[25], vector_long[i].udp_length);
		cr_expect_arr_eq(frame + length - ICRC, vector_long[i].icrc, ICRC);
	}
}

Test(rdma_wire, knows_a_good_icrc_from_a_bad_one)
{
	static const char *const vectors[] = {VECTOR_WRITE_ONLY, VECTOR_WRITE_ONLY_IMM, VECTOR_ACK,
					      VECTOR_NAK, VECTOR_WRITE_ONLY6};
	uint8_t packet[256];

	for (unsigned int v = 0; v < sizeof(vectors) / sizeof(vectors[0]); v++) {
		uint32_t n = vector_bytes(vectors[v], packet);
		uint32_t ip_length = packet[0] >> 4 == 4 ? 20 : 40;

		cr_expect(roce_icrc_ok(packet, ip_length, n - ICRC), "vector %u", v);
		for (uint32_t bit = 0; bit < 8 * n; bit++) {
			uint32_t byte = bit / 8;
			bool v4 = ip_length == 20;
			/* what routers may change */
			bool free = (v4 && (byte == 1 || byte == 8 || byte == 10 || byte == 11)) ||
				    (!v4 && (byte == 1 || byte == 2 || byte == 3 || byte == 7)) ||
				    (!v4 && byte == 0 && bit % 8 < 4) || byte == ip_length + 6 ||
				    byte == ip_length + 7 || byte == ip_length + 8 + 4;

			packet[byte] ^= 1 << bit % 8;
			cr_expect_eq(roce_icrc_ok(packet, ip_length, n - ICRC), free,
				     "vector %u, byte %u bit %u", v, byte, bit % 8);
			packet[byte] ^= 1 << bit % 8;
		}
	}
}

Test(rdma_wire, reads_what_a_linux_kernel_sent_and_took)
{
	for (unsigned int i = 0; i < RXE_FRAMES; i++) {
		const struct rxe_frame *e = &rxe_frames[i];
		uint8_t frame[256];
		uint32_t n = vector_bytes(e->bytes, frame);
		struct roce_packet p;
		struct roce_frame f;

		cr_assert_eq(frame_locate(frame, n, &f), FRAME_ROCE, "%s", e->name);
		cr_assert_eq(f.bth_offset + f.bth_length, n, "%s", e->name);
		cr_expect(roce_icrc_ok(frame + f.ip_offset, f.ip_length, f.l3_length - ICRC), "%s",
			  e->name);
		cr_assert_eq(roce_parse(frame + f.bth_offset, f.bth_length, &p), ROCE_PARSED, "%s",
			     e->name);
		cr_expect_eq(p.opcode, e->opcode, "%s", e->name);
		cr_expect_eq(p.pad, e->pad, "%s", e->name);
		cr_expect_eq(p.ack_request, e->ack_request, "%s", e->name);
		cr_expect_eq(p.qpn, e->qpn, "%s", e->name);
		cr_expect_eq(p.psn, e->psn, "%s", e->name);
		cr_expect_eq(p.syndrome, e->syndrome, "%s", e->name);
		cr_expect_eq(p.msn, e->msn, "%s", e->name);
		cr_expect_eq(p.va, e->va, "%s", e->name);
		cr_expect_eq(p.rkey, e->rkey, "%s", e->name);
		cr_expect_eq(p.length, e->length, "%s", e->name);
		cr_expect_eq(p.imm, e->imm, "%s", e->name);
		cr_expect_eq(p.payload_length, e->payload_length, "%s", e->name);
		cr_expect_eq(p.payload_offset + p.payload_length + p.pad + ICRC, f.bth_length, "%s",
			     e->name);
	}
}

/* Ours differs from the accepted one only in the IP identification, which we leave 0. */
Test(rdma_wire, builds_the_ack_that_a_linux_kernel_took)
{
	struct roce_path_spec spec = {
		.source_mac = {2, 0, 0, 0, 0, 9},
		.destination_mac = {2, 0, 0, 0, 0, 2},
		.family = 4,
		.udp_source = 0xc123,
		.qpn = 0x1c,
		.migrated = true,
		.mtu = 1024,
	};
	uint8_t expected[ROCE_ACK_FRAME_MAX], frame[ROCE_ACK_FRAME_MAX],
		*ip = frame + ROCE_ETHER_LENGTH;
	uint32_t n = vector_bytes(VECTOR_OUR_ACK, expected), crc;
	struct roce_path path;

	memcpy(spec.source.s6_addr + 10, "\xff\xff\x0a\x4d\x00\x09", 6);
	memcpy(spec.destination.s6_addr + 10, "\xff\xff\x0a\x4d\x00\x02", 6);
	roce_path_init(&path, &spec);
	cr_assert_eq(roce_ack_build(frame, &path, 0x500, 0x1f, 1), n);
	ip[4] = 0x12;
	ip[5] = 0x34;
	ip[10] = 0x13; /* the header's sum with that identification */
	ip[11] = 0xe5;
	crc = htole32(roce_icrc_of_packet(ip, 20, n - ROCE_ETHER_LENGTH - ICRC));
	memcpy(frame + n - ICRC, &crc, ICRC);
	cr_expect_arr_eq(frame, expected, n);
}

Test(rdma_wire, writes_traffic_class_ttl_and_a_good_header_checksum)
{
	struct roce_path_spec spec = vector_spec(4, false, 1024);
	struct roce_path path;
	uint8_t frame[ROCE_ACK_FRAME_MAX], *ip = frame + ROCE_ETHER_LENGTH;
	uint32_t sum = 0;

	spec.tos = 0x6a;
	roce_path_init(&path, &spec);
	roce_ack_build(frame, &path, 1, 0x1f, 1);
	cr_expect_eq(ip[1], 0x6a);
	cr_expect_eq(ip[8], 64);
	for (unsigned int i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	cr_expect_eq((sum & 0xffff) + (sum >> 16), 0xffff);

	spec = vector_spec(6, false, 1024);
	spec.tos = 0x6a;
	roce_path_init(&path, &spec);
	roce_ack_build(frame, &path, 1, 0x1f, 1);
	cr_expect_arr_eq(ip, "\x66\xa0\x00\x00", 4);
	cr_expect_eq(ip[7], 64);
}

/* The layout is that of a notification captured from a ConnectX-4 Lx. */
Test(rdma_wire, builds_congestion_notifications_as_nics_do)
{
	for (unsigned int family = 4; family <= 6; family += 2) {
		uint32_t ip_length = family == 4 ? 20 : 40, n, sum = 0;
		uint8_t frame[ROCE_CNP_FRAME_MAX], *ip = frame + ROCE_ETHER_LENGTH;
		const uint8_t *udp = ip + ip_length, *bth = udp + 8;
		struct roce_path path;
		struct roce_packet p;

		vector_path(&path, family, false, 1024);
		n = roce_cnp_build(frame, &path);
		cr_assert_eq(n, ROCE_ETHER_LENGTH + ip_length + 40);
		cr_expect_eq(udp[4] << 8 | udp[5], 40, "UDP length");
		cr_expect_eq(bth[0], 0x81);
		cr_expect_eq(bth[2] << 8 | bth[3], 0xffff);
		cr_expect_eq(bth[4], 0x40, "BECN and nothing else");
		cr_expect_eq(bth[5] << 16 | bth[6] << 8 | bth[7], 0x11, "the sender's queue pair");
		for (unsigned int i = 8; i < 12 + 16; i++)
			cr_expect_eq(bth[i], 0, "byte %u", i);
		cr_expect(roce_icrc_ok(ip, ip_length, n - ROCE_ETHER_LENGTH - ICRC));
		if (family == 4) {
			cr_expect_eq(ip[1], 0xc2);
			for (unsigned int i = 0; i < 20; i += 2)
				sum += ip[i] << 8 | ip[i + 1];
			cr_expect_eq((sum & 0xffff) + (sum >> 16), 0xffff, "header checksum");
		} else {
			cr_expect_eq(ip[0], 0x6c);
			cr_expect_eq(ip[1], 0x20);
		}
		cr_expect_eq(path.tos, ROCE_TOS_DEFAULT, "of this packet only");
		cr_expect_eq(roce_parse(bth, 12 + 16 + ICRC, &p), ROCE_PARSED);
		cr_expect_eq(p.opcode, ROCE_CNP);
	}
}

Test(rdma_wire, sees_the_mark_of_a_switch_and_only_that)
{
	for (unsigned int tos = 0; tos < 256; tos++) {
		uint8_t four[2] = {0x45, tos}, six[2] = {0x60 | tos >> 4, tos << 4 | 0x0f};

		cr_expect_eq(roce_is_marked(four), (tos & 3) == 3, "IPv4, %02x", tos);
		cr_expect_eq(roce_is_marked(six), (tos & 3) == 3, "IPv6, %02x", tos);
	}
}

Test(rdma_wire, follows_a_changed_mac_address)
{
	static const uint8_t mac[6] = {2, 9, 8, 7, 6, 5};
	struct roce_path path;
	uint8_t frame[ROCE_ACK_FRAME_MAX];

	vector_path(&path, 4, false, 1024);
	roce_path_set_mac(&path, mac);
	roce_ack_build(frame, &path, 1, 0x1f, 1);
	cr_expect_arr_eq(frame, mac, 6);
}

Test(rdma_wire, takes_packets_of_the_peer_only)
{
	uint8_t packet[256];

	for (uint8_t family = 4; family <= 6; family += 2) {
		const char *there = family == 4 ? VECTOR_WRITE_ONLY : VECTOR_WRITE_ONLY6;
		uint32_t source = family == 4 ? 12 : 8, end = family == 4 ? 20 : 40;
		struct roce_path ours, others;

		/* 10.0.0.1 sent this packet: to 10.0.0.2 it comes from the peer. */
		vector_bytes(there, packet);
		vector_path(&ours, family, true, 1024);
		vector_path(&others, family == 4 ? 6 : 4, true, 1024);
		cr_expect(roce_path_is_from_peer(&ours, packet));
		cr_expect_not(roce_path_is_from_peer(&others, packet), "the other family");
		for (uint32_t i = source; i < end; i++) {
			packet[i] ^= 1;
			cr_expect_not(roce_path_is_from_peer(&ours, packet), "byte %u", i);
			packet[i] ^= 1;
		}
	}
}

Test(rdma_wire, counts_psns_in_a_circle)
{
	static const struct {
		uint32_t a, b;
		int32_t diff;
	} rows[] = {
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, 0xffffff, 1},
		{0xffffff, 0, -1},
		{5, 0xfffffb, 10},
		{0x7fffff, 0, 0x7fffff},
		{0x800000, 0, -0x800000},
		{0, 0x800001, 0x7fffff},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(roce_psn_diff(rows[i].a, rows[i].b), rows[i].diff, "row %u", i);
	cr_expect_eq(roce_psn_add(0xffffff, 1), 0);
	cr_expect_eq(roce_psn_add(0xfffffe, 5), 3);
	cr_expect_eq(roce_psn_add(3, ROCE_PSN_MASK), 2, "adding the mask takes one away");
}

Test(rdma_wire, picks_the_path_mtu_that_other_stacks_pick)
{
	static const struct {
		uint32_t ip_mtu, mtu;
	} rows[] = {{0, 256},     {335, 256},   {336, 256},   {592, 512},   {1103, 512},
		    {1104, 1024}, {1500, 1024}, {2127, 1024}, {2128, 2048}, {4096, 2048},
		    {4175, 2048}, {4176, 4096}, {9000, 4096}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(roce_path_mtu(rows[i].ip_mtu), rows[i].mtu, "MTU %u", rows[i].ip_mtu);
}

Test(rdma_wire, knows_the_rnr_timers)
{
	static const struct {
		uint8_t code;
		uint32_t us;
	} rows[] = {{0, 655360},  {1, 10},      {2, 20},     {5, 60},
		    {12, 640},    {14, 1280},   {18, 5120},  {22, 20480},
		    {28, 163840}, {31, 491520}, {0x2c, 640}, {0x20, 655360}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(roce_rnr_us(rows[i].code), rows[i].us, "code %u", rows[i].code);
	for (uint8_t code = 2; code < 32; code++)
		cr_expect_gt(roce_rnr_us(code), roce_rnr_us(code - 1), "code %u", code);
}

struct malformed {
	const char *what, *bth; /* BTH to ICRC */
	enum roce_parse_result result;
};

#define PSN  "80000001"
#define RETH "00007f0000001000 00001234 00000008"
#define CRC  "00000000"

static const struct malformed malformed[] = {
	{"a good write", "0a00ffff00000011" PSN RETH "4142434445464748" CRC, ROCE_PARSED},
	{"half-member P_Key", "0a007fff00000011" PSN RETH "4142434445464748" CRC, ROCE_PARSED},
	{"M, SE, FECN and BECN set", "0ac0ffffff000011" PSN RETH "4142434445464748" CRC,
	 ROCE_PARSED},
	{"nothing", "", ROCE_PARSE_MALFORMED},
	{"a BTH without ICRC", "1100ffff0000001100000001", ROCE_PARSE_MALFORMED},
	{"an ICRC one byte short", "0700ffff00000011" PSN "000000", ROCE_PARSE_MALFORMED},
	{"version 1", "0a01ffff00000011" PSN RETH "4142434445464748" CRC, ROCE_PARSE_MALFORMED},
	{"version 8", "0a08ffff00000011" PSN RETH "4142434445464748" CRC, ROCE_PARSE_MALFORMED},
	{"P_Key 8001", "0a00800100000011" PSN RETH "4142434445464748" CRC, ROCE_PARSE_MALFORMED},
	{"P_Key 0", "0a00000000000011" PSN RETH "4142434445464748" CRC, ROCE_PARSE_MALFORMED},
	{"SEND only", "0400ffff00000011" PSN "41424344" CRC, ROCE_PARSED},
	{"READ request", "0c00ffff00000011" PSN RETH CRC, ROCE_PARSED},
	{"compare and swap", "1300ffff00000011" PSN RETH RETH CRC, ROCE_PARSED},
	{"READ response", "1000ffff00000011" PSN RETH CRC, ROCE_PARSE_OPCODE},
	{"atomic acknowledge", "1200ffff00000011" PSN RETH CRC, ROCE_PARSE_OPCODE},
	{"a SEND with a pad of nothing", "0430ffff00000011" PSN CRC, ROCE_PARSE_MALFORMED},
	{"UC WRITE only", "2a00ffff00000011" PSN RETH CRC, ROCE_PARSE_OPCODE},
	{"CNP", "8100ffff40000011 00000000" RETH CRC, ROCE_PARSED},
	{"opcode ff", "ff00ffff00000011" PSN CRC, ROCE_PARSE_OPCODE},
	{"no RETH", "0a00ffff00000011" PSN CRC, ROCE_PARSE_MALFORMED},
	{"half a RETH", "0600ffff00000011" PSN "00007f0000001000" CRC, ROCE_PARSE_MALFORMED},
	{"no immediate", "0b00ffff00000011" PSN RETH CRC, ROCE_PARSE_MALFORMED},
	{"no immediate in a last", "0900ffff00000011" PSN CRC, ROCE_PARSE_MALFORMED},
	{"no AETH", "1100ffff0000001100000001" CRC, ROCE_PARSE_MALFORMED},
	{"an ACK with a pad", "1110ffff0000001100000001 1f000001" CRC, ROCE_PARSE_MALFORMED},
	{"pad of an empty payload", "0a10ffff00000011" PSN RETH CRC, ROCE_PARSE_MALFORMED},
	{"pad of an empty middle", "0730ffff00000011" PSN CRC, ROCE_PARSE_MALFORMED},
	{"payload of 5 bytes", "0a30ffff00000011" PSN RETH "4142434445" CRC, ROCE_PARSE_MALFORMED},
	{"payload of 3 bytes", "0a00ffff00000011" PSN RETH "414243" CRC, ROCE_PARSE_MALFORMED},
	{"pad fills the payload but one", "0a30ffff00000011" PSN RETH "41000000" CRC, ROCE_PARSED},
	{"an empty write", "0a00ffff00000011" PSN RETH CRC, ROCE_PARSED},
	{"an empty middle", "0700ffff00000011" PSN CRC, ROCE_PARSED},
};

Test(rdma_wire, refuses_malformed_packets)
{
	for (unsigned int i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		uint8_t bytes[128], *exact;
		uint32_t n = vector_bytes(malformed[i].bth, bytes);
		struct roce_packet p;

		/* of the exact size, so that the sanitizer sees a read past the end */
		exact = malloc(n);
		memcpy(exact, bytes, n);
		cr_expect_eq(roce_parse(exact, n, &p), malformed[i].result, "%s",
			     malformed[i].what);
		free(exact);
	}
}

Test(rdma_wire, refuses_every_packet_cut_short)
{
	uint8_t bytes[256], *exact;

	for (unsigned int i = 0; i < RXE_FRAMES; i++) {
		uint32_t n = vector_bytes(rxe_frames[i].bytes, bytes) - 42;

		for (uint32_t length = 0; length < n; length++) {
			struct roce_packet p;

			exact = malloc(length);
			memcpy(exact, bytes + 42, length);
			if (roce_parse(exact, length, &p) == ROCE_PARSED)
				cr_expect_leq(p.payload_offset + p.payload_length + p.pad + ICRC,
					      length);
			free(exact);
		}
	}
}

Test(rdma_wire, refuses_a_packet_longer_than_ip_can_carry)
{
	uint8_t *bytes = calloc(1, UINT16_MAX + 2);
	struct roce_packet p;

	vector_bytes("0a00ffff00000011" PSN RETH, bytes);
	cr_expect_eq(roce_parse(bytes, UINT16_MAX + 1, &p), ROCE_PARSE_MALFORMED);
	cr_expect_eq(roce_parse(bytes, UINT16_MAX + 1 - 4, &p), ROCE_PARSED);
	free(bytes);
}

Test(rdma_wire, describes_every_opcode_once)
{
	unsigned int known = 0;

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		uint8_t has = roce_opcode_traits(opcode);

		if (!has)
			continue;
		known++;
		cr_expect(has & ROCE_IS_KNOWN);
		/* A write, another request, an acknowledgement, or a congestion notification. */
		cr_expect_eq((has & ROCE_IS_WRITE ? 1 : 0) + (has & ROCE_IS_UNSERVED ? 1 : 0) +
				     (has & ROCE_HAS_AETH ? 1 : 0) + (opcode == ROCE_CNP),
			     1, "%02x", opcode);
		if (has & ROCE_IS_UNSERVED)
			cr_expect_eq(has, ROCE_IS_KNOWN | ROCE_IS_UNSERVED, "%02x", opcode);
		if (has & ROCE_HAS_RETH)
			cr_expect(has & ROCE_IS_FIRST, "%02x", opcode);
		if (has & ROCE_HAS_IMM)
			cr_expect(has & ROCE_IS_LAST, "%02x", opcode);
	}
	/* Of the 32 opcodes of RC, five are responses that are not for us; and the notification. */
	cr_expect_eq(known, 32 - 5 + 1);
}
