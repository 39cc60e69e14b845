/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP (RFC 826) and neighbour discovery (RFC 4861) byte by byte. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "runtime/neigh.h"
#include "rdma_vectors.h"

#define ARP 0x0806
#define IP6 0x86dd

static const uint8_t our_mac[6] = {2, 0, 0, 0, 0, 9};
static const uint8_t their_mac[6] = {2, 0, 0, 0, 0, 2};

static struct in6_addr mapped(const char *ip4)
{
	struct in6_addr a = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	vector_bytes(ip4, a.s6_addr + 12);
	return a;
}

static struct in6_addr ip6(const char *hex)
{
	struct in6_addr a;

	vector_bytes(hex, a.s6_addr);
	return a;
}

#define OURS   "fd000000000000000000000000000009"
#define THEIRS "fd000000000000000000000000000002"

static bool equal(const struct in6_addr *a, struct in6_addr b)
{
	return memcmp(a, &b, sizeof(b)) == 0;
}

/* Exactly as long as the packet, so that the sanitizer sees a read past the end. */
static bool parse(uint16_t type, const uint8_t *bytes, uint32_t length, struct neigh_message *m)
{
	uint8_t *exact = malloc(length);
	bool good;

	memcpy(exact, bytes, length);
	good = neigh_parse(type, exact, length, m);
	free(exact);
	return good;
}

#define ETHER_IP4 "0001 0800 06 04"
#define HE_ASKS   ETHER_IP4 "0001 020000000002 0a4d0002 000000000000 0a4d0009"
#define HE_TELLS  ETHER_IP4 "0002 020000000002 0a4d0002 020000000009 0a4d0009"

Test(rdma_neigh, reads_an_arp_request)
{
	uint8_t arp[64];
	uint32_t n = vector_bytes(HE_ASKS, arp);
	struct neigh_message m;

	cr_assert(parse(ARP, arp, n, &m));
	cr_expect_eq(m.kind, NEIGH_REQUEST);
	cr_expect_eq(m.family, 4);
	cr_expect(equal(&m.target, mapped("0a4d0009")));
	cr_expect(equal(&m.sender, mapped("0a4d0002")));
	cr_expect_arr_eq(m.sender_mac, their_mac, 6);
}

Test(rdma_neigh, reads_an_arp_reply_with_link_padding)
{
	uint8_t arp[64] = {0};
	struct neigh_message m;

	vector_bytes(HE_TELLS, arp);
	cr_assert(parse(ARP, arp, 46, &m));
	cr_expect_eq(m.kind, NEIGH_REPLY);
	cr_expect(equal(&m.sender, mapped("0a4d0002")));
	cr_expect_arr_eq(m.sender_mac, their_mac, 6);
}

struct row {
	const char *what, *bytes;
	bool good;
	enum neigh_kind kind;
};

static const struct row arp_rows[] = {
	{"a probe", ETHER_IP4 "0001 020000000002 00000000 000000000000 0a4d0009", true,
	 NEIGH_REQUEST},
	{"reverse ARP", ETHER_IP4 "0003 020000000002 0a4d0002 000000000000 0a4d0009", true,
	 NEIGH_OTHER},
	{"operation 0", ETHER_IP4 "0000 020000000002 0a4d0002 000000000000 0a4d0009", true,
	 NEIGH_OTHER},
	{"not Ethernet", "0006 0800 06 04 0001 020000000002 0a4d0002 000000000000 0a4d0009", false,
	 NEIGH_OTHER},
	{"not IPv4", "0001 86dd 06 04 0001 020000000002 0a4d0002 000000000000 0a4d0009", false,
	 NEIGH_OTHER},
	{"long hardware addresses",
	 "0001 0800 08 04 0001 020000000002 0a4d0002 000000000000 0a4d0009", false, NEIGH_OTHER},
	{"long protocol addresses",
	 "0001 0800 06 10 0001 020000000002 0a4d0002 000000000000 0a4d0009", false, NEIGH_OTHER},
	{"one byte short", ETHER_IP4 "0001 020000000002 0a4d0002 000000000000 0a4d00", false,
	 NEIGH_OTHER},
	{"nothing", "", false, NEIGH_OTHER},
};

Test(rdma_neigh, knows_arp_from_nonsense)
{
	for (unsigned int i = 0; i < sizeof(arp_rows) / sizeof(arp_rows[0]); i++) {
		uint8_t arp[64];
		uint32_t n = vector_bytes(arp_rows[i].bytes, arp);
		struct neigh_message m;

		cr_expect_eq(parse(ARP, arp, n, &m), arp_rows[i].good, "%s", arp_rows[i].what);
		if (arp_rows[i].good)
			cr_expect_eq(m.kind, arp_rows[i].kind, "%s", arp_rows[i].what);
	}
}

Test(rdma_neigh, builds_an_arp_reply)
{
	uint8_t arp[64], frame[NEIGH_FRAME_MAX], expected[64];
	struct neigh_message m;
	uint32_t n;

	n = vector_bytes(HE_ASKS, arp);
	parse(ARP, arp, n, &m);
	n = vector_bytes("020000000002 020000000009 0806" ETHER_IP4
			 "0002 020000000009 0a4d0009 020000000002 0a4d0002",
			 expected);
	cr_assert_eq(neigh_reply_build(frame, &m, our_mac), n);
	cr_expect_arr_eq(frame, expected, n);
}

Test(rdma_neigh, builds_an_arp_request)
{
	struct in6_addr target = mapped("0a4d0002"), us = mapped("0a4d0009");
	uint8_t frame[NEIGH_FRAME_MAX], expected[64];
	uint32_t n = vector_bytes("ffffffffffff 020000000009 0806" ETHER_IP4
				  "0001 020000000009 0a4d0009 000000000000 0a4d0002",
				  expected);

	cr_assert_eq(neigh_request_build(frame, 4, &target, &us, our_mac), n);
	cr_expect_arr_eq(frame, expected, n);
}

/* A solicitation of a kernel for fd00::9, checksum included. */
#define ALL_9     "ff0200000000000000000001ff000009"
#define SOLICIT   "6000000000203aff" THEIRS ALL_9 "87007d8700000000" OURS "0101020000000002"
#define ADVERTISE "6000000000203aff" THEIRS OURS "88001c9260000000" THEIRS "0201020000000002"

Test(rdma_neigh, reads_a_solicitation)
{
	uint8_t nd[128];
	uint32_t n = vector_bytes(SOLICIT, nd);
	struct neigh_message m;

	cr_assert_eq(neigh_icmp6_checksum(nd, n - 40), 0);
	cr_assert(parse(IP6, nd, n, &m));
	cr_expect_eq(m.kind, NEIGH_REQUEST);
	cr_expect_eq(m.family, 6);
	cr_expect(equal(&m.target, ip6(OURS)));
	cr_expect(equal(&m.sender, ip6(THEIRS)));
	cr_expect_arr_eq(m.sender_mac, their_mac, 6);
}

Test(rdma_neigh, reads_an_advertisement)
{
	uint8_t nd[128];
	uint32_t n = vector_bytes(ADVERTISE, nd);
	struct neigh_message m;

	cr_assert_eq(neigh_icmp6_checksum(nd, n - 40), 0);
	cr_assert(parse(IP6, nd, n, &m));
	cr_expect_eq(m.kind, NEIGH_REPLY);
	cr_expect(equal(&m.sender, ip6(THEIRS)));
	cr_expect_arr_eq(m.sender_mac, their_mac, 6);
}

Test(rdma_neigh, builds_an_advertisement)
{
	uint8_t nd[128], frame[NEIGH_FRAME_MAX], expected[128];
	struct neigh_message m;
	uint32_t n;

	n = vector_bytes(SOLICIT, nd);
	parse(IP6, nd, n, &m);
	n = vector_bytes("020000000002 020000000009 86dd 6000000000203aff" OURS THEIRS
			 "88001c8460000000" OURS "0201020000000009",
			 expected);
	cr_assert_eq(neigh_reply_build(frame, &m, our_mac), n);
	cr_expect_eq(neigh_icmp6_checksum(frame + 14, n - 54), 0);
	cr_expect_arr_eq(frame, expected, n);
}

Test(rdma_neigh, builds_a_solicitation)
{
	struct in6_addr target = ip6(THEIRS), us = ip6(OURS);
	uint8_t frame[NEIGH_FRAME_MAX], expected[128];
	uint32_t n = vector_bytes("3333ff000002 020000000009 86dd 6000000000203aff" OURS
				  "ff0200000000000000000001ff000002 87007d8700000000" THEIRS
				  "0101020000000009",
				  expected);

	cr_assert_eq(neigh_request_build(frame, 6, &target, &us, our_mac), n);
	cr_expect_eq(neigh_icmp6_checksum(frame + 14, n - 54), 0);
	cr_expect_arr_eq(frame, expected, n);
}

static void set_checksum(uint8_t *ip, uint32_t length)
{
	uint16_t sum;

	ip[42] = ip[43] = 0;
	sum = neigh_icmp6_checksum(ip, length - 40);
	ip[42] = sum >> 8;
	ip[43] = sum & 0xff;
}

/* Duplicate address detection asks from :: without an option; all nodes must hear the answer. */
Test(rdma_neigh, answers_a_probe_to_all_nodes)
{
	uint8_t nd[128], frame[NEIGH_FRAME_MAX], *ip = frame + 14;
	uint32_t n = vector_bytes("6000000000183aff 00000000000000000000000000000000" ALL_9
				  "8700000000000000" OURS,
				  nd);
	struct neigh_message m;

	set_checksum(nd, n);
	cr_assert(parse(IP6, nd, n, &m));
	cr_expect_eq(m.kind, NEIGH_REQUEST);
	cr_expect_arr_eq(m.sender_mac, "\0\0\0\0\0\0", 6);
	neigh_reply_build(frame, &m, our_mac);
	cr_expect_arr_eq(frame, "\x33\x33\0\0\0\x01", 6);
	cr_expect_arr_eq(ip + 24, "\xff\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
	cr_expect_eq(ip[44], 0x20, "override, not solicited");
}

struct change {
	const char *what;
	uint32_t length;   /* of the IPv6 payload */
	uint32_t at;       /* byte from the IPv6 header */
	const char *bytes; /* written there */
	bool good;
	enum neigh_kind kind;
};

/* Changes to a good solicitation (80), made before its checksum is computed. */
static const struct change solicitations[] = {
	{"nothing", 32, 0, "", true, NEIGH_REQUEST},
	{"hop limit 254", 32, 7, "fe", false, NEIGH_OTHER},
	{"code 1", 32, 41, "01", false, NEIGH_OTHER},
	{"not ICMPv6", 32, 6, "11", false, NEIGH_OTHER},
	{"router solicitation", 32, 40, "85", true, NEIGH_OTHER},
	{"redirect", 32, 40, "89", true, NEIGH_OTHER},
	{"no option", 24, 0, "", true, NEIGH_REQUEST},
	{"another option", 32, 64, "0e01", true, NEIGH_REQUEST},
	{"an option before ours", 40, 64, "0e01000000000000 0101020000000002", true, NEIGH_REQUEST},
	{"an option of no length", 32, 65, "00", false, NEIGH_OTHER},
	{"an option of no length behind ours", 40, 72, "0e00000000000000", false, NEIGH_OTHER},
	{"an option longer than the packet", 32, 65, "02", false, NEIGH_OTHER},
	{"half an option", 28, 0, "", false, NEIGH_OTHER},
	{"payload shorter than a solicitation", 23, 0, "", false, NEIGH_OTHER},
	{"a multicast target", 32, 48, "ff02", false, NEIGH_OTHER},
	{"a multicast source", 32, 8, "ff02", false, NEIGH_OTHER},
	{"a probe with a source option", 32, 8, "00000000000000000000000000000000", false,
	 NEIGH_OTHER},
};

/* And in a good advertisement. */
static const struct change advertisements[] = {
	{"nothing", 32, 0, "", true, NEIGH_REPLY},
	{"no option", 24, 0, "", true, NEIGH_OTHER},
	{"the option of a solicitation", 32, 64, "01", true, NEIGH_OTHER},
	{"to all nodes, unsolicited", 32, 24, "ff020000000000000000000000000001 88000000 20000000",
	 true, NEIGH_REPLY},
	{"to all nodes, but solicited", 32, 24, "ff020000000000000000000000000001", false,
	 NEIGH_OTHER},
	{"an option of no length", 32, 65, "00", false, NEIGH_OTHER},
	{"a multicast target", 32, 48, "ff02", false, NEIGH_OTHER},
	{"hop limit 1", 32, 7, "01", false, NEIGH_OTHER},
};

static void check_changes(const char *original, const struct change *rows, unsigned int n_rows)
{
	for (unsigned int i = 0; i < n_rows; i++) {
		uint8_t nd[128] = {0};
		uint32_t length = 40 + rows[i].length;
		struct neigh_message m;
		bool good;

		vector_bytes(original, nd);
		vector_bytes(rows[i].bytes, nd + rows[i].at);
		nd[5] = rows[i].length;
		set_checksum(nd, length);
		good = parse(IP6, nd, length, &m);
		cr_expect_eq(good, rows[i].good, "%s", rows[i].what);
		if (good && rows[i].good)
			cr_expect_eq(m.kind, rows[i].kind, "%s", rows[i].what);
	}
}

Test(rdma_neigh, validates_solicitations)
{
	check_changes(SOLICIT, solicitations, sizeof(solicitations) / sizeof(solicitations[0]));
}

Test(rdma_neigh, validates_advertisements)
{
	check_changes(ADVERTISE, advertisements,
		      sizeof(advertisements) / sizeof(advertisements[0]));
}

Test(rdma_neigh, finds_the_option_behind_another)
{
	uint8_t nd[128];
	uint32_t n;
	struct neigh_message m;

	vector_bytes(SOLICIT, nd);
	n = 64 + vector_bytes("0e02ffffffffffffffffffffffffffff 0101020000000002", nd + 64);
	nd[5] = n - 40;
	set_checksum(nd, n);
	cr_assert(parse(IP6, nd, n, &m));
	cr_expect_arr_eq(m.sender_mac, their_mac, 6);
}

Test(rdma_neigh, refuses_every_wrong_bit_and_every_length)
{
	uint8_t nd[128];
	uint32_t n = vector_bytes(SOLICIT, nd);
	struct neigh_message m;

	for (uint32_t length = 0; length < n; length++)
		cr_expect_not(parse(IP6, nd, length, &m), "%u bytes", length);
	for (uint32_t bit = 8 * 8; bit < 8 * n; bit++) {
		nd[bit / 8] ^= 1 << bit % 8;
		cr_expect_not(parse(IP6, nd, n, &m), "bit %u", bit);
		nd[bit / 8] ^= 1 << bit % 8;
	}
	memset(nd + n, 0xee, 16);
	cr_expect(parse(IP6, nd, n + 16, &m), "link padding is no part of it");
}

Test(rdma_neigh, sums_odd_lengths)
{
	uint8_t ip[44] = {0x60, 0, 0, 0, 0, 3, 58, 255};

	/* 58 + 3 + 0x8000 + 0x0100, complemented */
	ip[40] = 0x80;
	ip[42] = 0x01;
	cr_expect_eq(neigh_icmp6_checksum(ip, 3), (uint16_t) ~(58 + 3 + 0x8000 + 0x0100));
}

/* --- addresses that move -------------------------------------------------------------------------
 */

static const uint8_t new_mac[6] = {2, 0, 0, 0, 0, 9};

Test(rdma_neigh, a_claim_is_denied_by_the_old_holder)
{
	struct neigh_claim c = {0};

	cr_expect_eq(neigh_claim_hear(&c, their_mac, their_mac, 1000), NEIGH_HEARD_KNOWN);
	cr_expect_eq(neigh_claim_due(&c, 1000, 100), NEIGH_DUE_NOTHING);
	cr_expect_eq(neigh_claim_hear(&c, their_mac, new_mac, 1000), NEIGH_HEARD_CLAIM);
	cr_expect_eq(neigh_claim_due(&c, 1000, 100), NEIGH_DUE_PROBE);
	cr_expect_eq(neigh_claim_hear(&c, their_mac, new_mac, 1005), NEIGH_HEARD_NOTHING);
	cr_expect_eq(neigh_claim_hear(&c, their_mac, their_mac, 1010), NEIGH_HEARD_DENIED);
	cr_expect_eq(neigh_claim_due(&c, 5000, 100), NEIGH_DUE_NOTHING);
}

/* The claim also moves if the clock wraps meanwhile, or if the table was not polled for long. */
Test(rdma_neigh, a_claim_that_nobody_denies_moves_after_several_questions)
{
	uint32_t begin = UINT32_MAX - 50;
	struct neigh_claim c = {0};
	unsigned int probes = 0;
	enum neigh_due due = NEIGH_DUE_NOTHING;

	neigh_claim_hear(&c, their_mac, new_mac, begin);
	for (uint32_t ms = 0; ms <= 100 && due != NEIGH_DUE_MOVE; ms++) {
		due = neigh_claim_due(&c, begin + ms, 100);
		probes += due == NEIGH_DUE_PROBE;
		cr_expect(due != NEIGH_DUE_MOVE || ms == 100, "after %u ms", ms);
	}
	cr_expect_eq(due, NEIGH_DUE_MOVE);
	cr_expect_eq(probes, 4);
	cr_expect_arr_eq(c.mac, new_mac, 6);
	cr_expect_not(c.open);
	neigh_claim_hear(&c, their_mac, new_mac, 0);
	cr_expect_eq(neigh_claim_due(&c, 10000, 100), NEIGH_DUE_PROBE, "never before it was asked");
}

Test(rdma_neigh, groups_and_zeros_claim_nothing)
{
	static const uint8_t macs[][6] = {
		{0}, {1, 0, 0x5e, 0, 0, 1}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	struct neigh_claim c = {0};

	for (unsigned int i = 0; i < sizeof(macs) / sizeof(macs[0]); i++)
		cr_expect_eq(neigh_claim_hear(&c, their_mac, macs[i], 1), NEIGH_HEARD_NOTHING);
	cr_expect_not(c.open);
}

Test(rdma_neigh, asks_one_station_whether_it_has_an_address)
{
	struct in6_addr target = {.s6_addr = {[10] = 0xff, 0xff, 10, 9, 0, 2}};
	struct in6_addr own = {.s6_addr = {[10] = 0xff, 0xff, 10, 9, 0, 1}};
	uint8_t frame[NEIGH_FRAME_MAX], reply[NEIGH_FRAME_MAX];
	struct neigh_message m;
	uint32_t n;

	for (uint8_t family = 4; family <= 6; family += 2) {
		if (family == 6) {
			target = (struct in6_addr){.s6_addr = {0xfd, [15] = 2}};
			own = (struct in6_addr){.s6_addr = {0xfd, [15] = 1}};
		}
		n = neigh_probe_build(frame, family, &target, &own, new_mac, their_mac);
		cr_expect_arr_eq(frame, their_mac, 6);
		cr_assert(neigh_parse(family == 4 ? 0x0806 : 0x86dd, frame + 14, n - 14, &m));
		cr_expect_eq(m.kind, NEIGH_REQUEST);
		cr_expect_not(neigh_gives_mac(&m));
		cr_expect(IN6_ARE_ADDR_EQUAL(&m.target, &target));
		cr_expect(IN6_ARE_ADDR_EQUAL(&m.sender, &own));
		cr_expect_arr_eq(m.sender_mac, new_mac, 6);
		n = neigh_reply_build(reply, &m, their_mac);
		cr_assert(neigh_parse(family == 4 ? 0x0806 : 0x86dd, reply + 14, n - 14, &m));
		cr_expect(neigh_gives_mac(&m));
		n = neigh_announcement_build(frame, family, &target, their_mac);
		cr_assert(neigh_parse(family == 4 ? 0x0806 : 0x86dd, frame + 14, n - 14, &m));
		cr_expect(neigh_gives_mac(&m));
	}
}
