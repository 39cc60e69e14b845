/* SPDX-License-Identifier: BSD-3-Clause */
/* Reassembly: fragments in any order, never of two datagrams, a time limit, and counts that add up.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/fragment.h"
#include "packet.h"
#include "packet/parse.h"

#define BYTES 1480

struct fixture {
	struct fragment_table *table;
	uint64_t drop[LB_DROPS];
	unsigned int added, taken; /* fragments */
	uint32_t now;
};

static struct fixture setup(void)
{
	struct fragment_params p = {.bytes = BYTES,
				    .seed = {0x1234567890abcdef, 0xfedcba0987654321}};
	struct fixture f = {.table = fragment_table_create(&p), .now = UINT32_MAX - 500};

	cr_assert(f.table);
	return f;
}

static unsigned int dropped(const struct fixture *f)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < LB_DROPS; i++)
		sum += f->drop[i];
	return sum;
}

/* Each fragment that came in is waiting, part of a whole datagram, or counted as dropped. */
static void check_accounts(const struct fixture *f)
{
	cr_assert_eq(f->added, f->taken + fragment_held(f->table) + dropped(f));
	cr_assert_leq(fragment_waiting(f->table), FRAGMENT_SETS * FRAGMENT_WAYS);
}

static void teardown(struct fixture *f)
{
	check_accounts(f);
	fragment_expire(f->table, f->now + FRAGMENT_TIMEOUT_MS, f->drop);
	check_accounts(f);
	cr_assert_eq(fragment_waiting(f->table), 0);
	cr_assert_eq(fragment_held(f->table), 0);
	fragment_table_destroy(f->table);
}

static bool add_frame(struct fixture *f, const uint8_t *frame, uint32_t length)
{
	struct fragment fragment;
	struct flow_key key;
	struct parsed p;

	parse_frame(frame, length, packet_our_mac, 0, &p, &key);
	cr_assert_eq(p.kind, PARSE_FRAGMENT);
	fragment_read(frame, &p, &key, &fragment);
	f->added++;
	return fragment_add(f->table, &fragment, f->now, f->drop);
}

/* A piece of source <source>'s datagram <id>; its bytes tell whose they are. */
static bool add(struct fixture *f, uint32_t source, uint32_t id, uint16_t offset, uint16_t length,
		bool more)
{
	static const uint8_t head[34] = {[12] = 8, [14] = 0x45};
	struct fragment fragment = {
		.src.s6_addr32 = {0, 0, htonl(0xffff), htonl(source)},
		.dst.s6_addr32 = {0, 0, htonl(0xffff), htonl(0xc6336401)},
		.id = id,
		.protocol = IPPROTO_UDP,
		.family = FLOW_IPV4,
		.more = more,
		.offset = offset,
		.length = length,
		.head = head,
		.ip_offset = 14,
		.head_length = sizeof(head),
	};
	uint8_t *data = malloc(length);
	bool whole;

	for (uint32_t i = 0; i < length; i++)
		data[i] = source * 7 + id * 31 + (offset + i) % 251;
	fragment.data = data;
	f->added++;
	whole = fragment_add(f->table, &fragment, f->now, f->drop);
	free(data);
	return whole;
}

static void take(struct fixture *f, uint32_t source, uint32_t id, uint32_t length)
{
	uint8_t frame[FRAGMENT_HEAD_MAX + BYTES];

	cr_assert_eq(fragment_frame_length(f->table), 34 + length);
	f->taken += fragment_take(f->table, frame);
	cr_expect_eq((uint32_t)(frame[16] << 8 | frame[17]), 20 + length);
	for (uint32_t i = 0; i < length; i++)
		cr_assert_eq(frame[34 + i], (uint8_t)(source * 7 + id * 31 + i % 251));
}

static const struct packet whole_packets[] = {
	{.family = 4, .payload = 1400},
	{.family = 4, .payload = 57},
	{.family = 4, .options = 40, .tagged = true, .tci = 77, .payload = 1000},
	{.family = 6, .payload = 1401},
	{.family = 6, .tagged = true, .tci = 77, .payload = 100},
	{.family = 6, .icmp = true, .icmp_type = 128, .payload = 900},
};

/* Adds the fragments last one first, so that the header comes last. */
static void check_packet(const struct packet *packet, uint32_t bytes)
{
	uint8_t frame[PACKET_MAX], piece[PACKET_MAX], *whole;
	uint32_t length = packet_build(packet, frame), ip = packet->tagged ? 18 : 14, l4, offset;
	struct fixture f = setup();
	bool done = false;

	l4 = length - ip - (packet->family == 4 ? 20 + packet->options : 40);
	for (offset = (l4 - 1) / bytes * bytes;; offset -= bytes) {
		uint32_t n = packet_cut(frame, length, offset, bytes, piece);

		cr_assert_not(done);
		done = add_frame(&f, piece, n);
		if (offset == 0)
			break;
	}
	cr_assert(done);
	cr_assert_eq(fragment_frame_length(f.table), length);
	whole = malloc(length);
	f.taken += fragment_take(f.table, whole);
	cr_expect_arr_eq(whole, frame, length, "family %u, pieces of %u", packet->family, bytes);
	free(whole);
	teardown(&f);
}

Test(lb_fragment, gives_back_the_frame_that_was_cut)
{
	for (unsigned int i = 0; i < sizeof(whole_packets) / sizeof(whole_packets[0]); i++) {
		bool is_long = whole_packets[i].payload > 200;

		check_packet(&whole_packets[i], is_long ? 504 : 8);
		check_packet(&whole_packets[i], is_long ? 96 : 48);
	}
}

Test(lb_fragment, takes_pieces_in_any_order)
{
	static const unsigned int orders[24][4] = {
		{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1},
		{1, 0, 2, 3}, {1, 0, 3, 2}, {1, 2, 0, 3}, {1, 2, 3, 0}, {1, 3, 0, 2}, {1, 3, 2, 0},
		{2, 0, 1, 3}, {2, 0, 3, 1}, {2, 1, 0, 3}, {2, 1, 3, 0}, {2, 3, 0, 1}, {2, 3, 1, 0},
		{3, 0, 1, 2}, {3, 0, 2, 1}, {3, 1, 0, 2}, {3, 1, 2, 0}, {3, 2, 0, 1}, {3, 2, 1, 0},
	};
	static const uint16_t start[5] = {0, 8, 408, 416, 421};
	struct fixture f = setup();

	for (unsigned int i = 0; i < 24; i++) {
		for (unsigned int k = 0; k < 4; k++) {
			unsigned int piece = orders[i][k];

			cr_assert_eq(add(&f, 1, i, start[piece], start[piece + 1] - start[piece],
					 piece < 3),
				     k == 3, "order %u", i);
		}
		take(&f, 1, i, 421);
	}
	cr_expect_eq(dropped(&f), 0);
	teardown(&f);
}

Test(lb_fragment, keeps_datagrams_apart_by_all_of_their_name)
{
	struct fixture f = setup();
	uint8_t frame[PACKET_MAX], piece[PACKET_MAX];
	struct packet p = {.family = 4, .payload = 32};
	uint32_t length, n;

	/* Another source, another id. */
	cr_expect_not(add(&f, 1, 1, 0, 8, true));
	cr_expect_not(add(&f, 2, 1, 8, 8, false));
	cr_expect_not(add(&f, 1, 2, 8, 8, false));
	/* Another protocol, with the same addresses and id. */
	length = packet_build(&p, frame);
	n = packet_cut(frame, length, 0, 24, piece);
	cr_expect_not(add_frame(&f, piece, n));
	p.icmp = true;
	p.icmp_type = 8;
	length = packet_build(&p, frame);
	n = packet_cut(frame, length, 24, 24, piece);
	cr_expect_not(add_frame(&f, piece, n));
	/* Another destination. */
	p.icmp = false;
	p.destination = "198.51.100.2";
	length = packet_build(&p, frame);
	n = packet_cut(frame, length, 24, 24, piece);
	cr_expect_not(add_frame(&f, piece, n));
	cr_expect_eq(fragment_waiting(f.table), 6);
	cr_expect(add(&f, 1, 1, 8, 8, false));
	take(&f, 1, 1, 16);
	teardown(&f);
}

Test(lb_fragment, refuses_all_of_a_datagram_whose_pieces_overlap)
{
	static const struct {
		uint16_t offset, length;
		bool more;
	} rows[] = {
		{0, 24, true}, {8, 8, true},  {8, 40, true},
		{0, 16, true}, {16, 8, true}, {16, 7, false},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture f = setup();

		cr_expect_not(add(&f, 1, 1, 8, 16, true));
		cr_expect_not(add(&f, 1, 1, rows[i].offset, rows[i].length, rows[i].more));
		cr_expect_eq(f.drop[LB_DROP_FRAGMENT_OVERLAP], 2, "row %u", i);
		cr_expect_eq(fragment_held(f.table), 0);
		/* The missing fragment comes too late. */
		cr_expect_not(add(&f, 1, 1, 0, 8, true));
		cr_expect_not(add(&f, 1, 1, 24, 8, false));
		cr_expect_eq(f.drop[LB_DROP_FRAGMENT_OVERLAP], 4);
		/* The name can be used again when the time is over. */
		f.now += FRAGMENT_TIMEOUT_MS;
		fragment_expire(f.table, f.now, f.drop);
		cr_expect_not(add(&f, 1, 1, 0, 8, true));
		cr_expect(add(&f, 1, 1, 8, 8, false));
		take(&f, 1, 1, 16);
		teardown(&f);
	}
}

Test(lb_fragment, takes_the_first_of_two_equal_pieces)
{
	struct fixture f = setup();

	cr_expect_not(add(&f, 1, 1, 0, 8, true));
	cr_expect_not(add(&f, 1, 1, 0, 8, true));
	cr_expect_eq(f.drop[LB_DROP_FRAGMENT_DUPLICATE], 1);
	cr_expect(add(&f, 1, 1, 8, 3, false));
	take(&f, 1, 1, 11);
	teardown(&f);
}

struct piece {
	uint16_t offset, length;
	bool more;
};

static const struct {
	const char *name;
	struct piece piece[3];
	unsigned int n;
	enum lb_drop reason;
	unsigned int count;
} bad[] = {
	{"nothing in it", {{8, 0, true}}, 1, LB_DROP_FRAGMENT_MALFORMED, 1},
	{"odd, and not the last", {{0, 12, true}}, 1, LB_DROP_FRAGMENT_MALFORMED, 1},
	{"beyond what is left of 64 KiB", {{65528, 16, false}}, 1, LB_DROP_FRAGMENT_TOO_LARGE, 1},
	{"one byte too long", {{1472, 9, false}}, 1, LB_DROP_FRAGMENT_TOO_LARGE, 1},
	{"too long after a good start",
	 {{0, 1480, true}, {1480, 8, false}},
	 2,
	 LB_DROP_FRAGMENT_TOO_LARGE,
	 2},
	{"odd after a good start", {{0, 8, true}, {8, 4, true}}, 2, LB_DROP_FRAGMENT_MALFORMED, 2},
	{"two ends", {{16, 8, false}, {8, 8, false}}, 2, LB_DROP_FRAGMENT_MALFORMED, 2},
	{"another end behind it",
	 {{16, 8, false}, {24, 8, false}},
	 2,
	 LB_DROP_FRAGMENT_MALFORMED,
	 2},
	{"more behind the end", {{16, 8, false}, {24, 8, true}}, 2, LB_DROP_FRAGMENT_MALFORMED, 2},
	{"an end before what came",
	 {{0, 8, true}, {24, 8, true}, {16, 8, false}},
	 3,
	 LB_DROP_FRAGMENT_MALFORMED,
	 3},
};

Test(lb_fragment, refuses_what_cannot_be_a_datagram)
{
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fixture f = setup();

		for (unsigned int k = 0; k < bad[i].n; k++)
			cr_expect_not(add(&f, 1, 1, bad[i].piece[k].offset, bad[i].piece[k].length,
					  bad[i].piece[k].more));
		cr_expect_eq(f.drop[bad[i].reason], bad[i].count, "%s", bad[i].name);
		cr_expect_eq(dropped(&f), bad[i].count, "%s", bad[i].name);
		teardown(&f);
	}
}

Test(lb_fragment, takes_the_longest_datagram_and_the_most_pieces)
{
	struct fixture f = setup();

	cr_expect_not(add(&f, 1, 1, 0, 1472, true));
	cr_expect(add(&f, 1, 1, 1472, 8, false));
	take(&f, 1, 1, 1480);
	for (unsigned int i = 0; i + 1 < FRAGMENT_PIECES_MAX; i++)
		cr_expect_not(add(&f, 1, 2, i * 8, 8, true));
	cr_expect(add(&f, 1, 2, (FRAGMENT_PIECES_MAX - 1) * 8, 1, false));
	take(&f, 1, 2, (FRAGMENT_PIECES_MAX - 1) * 8 + 1);
	for (unsigned int i = 0; i < FRAGMENT_PIECES_MAX; i++)
		cr_expect_not(add(&f, 1, 3, i * 8, 8, true));
	cr_expect_eq(dropped(&f), 0);
	cr_expect_not(add(&f, 1, 3, FRAGMENT_PIECES_MAX * 8, 8, false));
	cr_expect_eq(f.drop[LB_DROP_FRAGMENT_TOO_MANY], FRAGMENT_PIECES_MAX + 1);
	teardown(&f);
}

Test(lb_fragment, lets_no_source_take_more_than_its_share)
{
	struct fixture f = setup();

	for (unsigned int id = 0; id < 100; id++) {
		cr_expect_not(add(&f, 1, id, 0, 8, true));
		cr_expect_leq(fragment_waiting(f.table), FRAGMENT_PER_SOURCE);
		f.now++;
	}
	cr_expect_eq(f.drop[LB_DROP_FRAGMENT_SOURCE], 100 - FRAGMENT_PER_SOURCE);
	/* The youngest are there. */
	for (unsigned int id = 100 - FRAGMENT_PER_SOURCE; id < 100; id++) {
		cr_expect(add(&f, 1, id, 8, 8, false));
		take(&f, 1, id, 16);
	}
	teardown(&f);
}

/* One host may use every address of its /64. */
Test(lb_fragment, takes_the_addresses_of_a_network_for_one_source)
{
	struct packet p = {.family = 6, .payload = 32};
	struct fixture f = setup();
	uint8_t frame[PACKET_MAX], piece[PACKET_MAX];
	char source[64];

	p.source = source;
	for (unsigned int i = 0; i < 64; i++) {
		uint32_t length, n;

		snprintf(source, sizeof(source), "2001:db8:1:2:%x::%x", i, i + 1);
		length = packet_build(&p, frame);
		n = packet_cut(frame, length, 0, 24, piece);
		cr_expect_not(add_frame(&f, piece, n));
	}
	cr_expect_eq(fragment_waiting(f.table), FRAGMENT_PER_SOURCE);
	teardown(&f);
}

Test(lb_fragment, serves_a_client_in_a_flood_of_others)
{
	struct fixture f = setup();

	for (uint32_t i = 0; i < 20000; i++) {
		cr_expect_not(add(&f, 0x0b000000 + i, i, 0, 8, true));
		if (i % 50 != 0)
			continue;
		/* Its second piece comes after 8 of theirs: too soon to have been pushed out. */
		cr_expect_not(add(&f, 1, i, 0, 8, true));
		for (uint32_t k = 0; k < 8; k++)
			cr_expect_not(add(&f, 0x0c000000 + i * 8 + k, i, 0, 8, true));
		cr_expect(add(&f, 1, i, 8, 8, false));
		take(&f, 1, i, 16);
	}
	cr_expect_gt(f.drop[LB_DROP_FRAGMENT_FULL], 15000);
	teardown(&f);
}

Test(lb_fragment, forgets_by_the_clock_alone)
{
	struct fixture f = setup();

	cr_expect_not(add(&f, 1, 1, 0, 8, true));
	f.now += FRAGMENT_TIMEOUT_MS - 1;
	cr_expect_not(add(&f, 1, 1, 8, 8, true));
	fragment_expire(f.table, f.now, f.drop);
	cr_expect_eq(fragment_held(f.table), 2);
	f.now++;
	fragment_expire(f.table, f.now, f.drop);
	cr_expect_eq(fragment_held(f.table), 0);
	cr_expect_eq(f.drop[LB_DROP_FRAGMENT_TIMEOUT], 2);
	cr_expect_not(add(&f, 1, 1, 16, 8, false));
	teardown(&f);
}

Test(lb_fragment, spreads_names_by_a_secret)
{
	struct fragment_params p = {.bytes = 8, .seed = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9}},
			       q = {.bytes = 8, .seed = {0x94d049bb133111eb, 0xc2b2ae3d27d4eb4f}};
	struct fragment_table *a = fragment_table_create(&p), *b = fragment_table_create(&q);
	struct fragment f = {.family = FLOW_IPV4, .protocol = IPPROTO_UDP};
	unsigned int half = 0, same = 0;

	for (f.id = 0; f.id < 4096; f.id++) {
		half += fragment_hash(a, &f) >> 31;
		same += fragment_hash(a, &f) >> 31 == fragment_hash(b, &f) >> 31;
	}
	cr_expect(half > 1850 && half < 2250, "%u", half);
	cr_expect(same > 1850 && same < 2250, "%u", same);
	fragment_table_destroy(a);
	fragment_table_destroy(b);
}

/* For any fragments the counters add up, and each whole datagram has the right bytes. */
Test(lb_fragment, accounts_for_every_piece_of_a_random_mess)
{
	struct fixture f = setup();
	unsigned int whole = 0;

	srandom(1);
	for (unsigned int i = 0; i < 200000; i++) {
		uint32_t source = random() % 12, id = random() % 4;
		uint16_t total = 8 + id * 8, offset = random() % (1 + total / 8) * 8;
		bool last = random() % 64 != 0 && offset == total;

		if (add(&f, source, id, offset, last ? 3 : 8, !last)) {
			whole++;
			take(&f, source, id, total + 3);
		}
		f.now += random() % 64 == 0;
		if (i % 16 == 0)
			fragment_expire(f.table, f.now, f.drop);
		check_accounts(&f);
	}
	cr_expect_gt(whole, 1000);
	teardown(&f);
}
