/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests in IP fragments: put together, refused, forgotten, on several lcores. */
#include "worker.h"

static void send_pieces(struct walk *w, unsigned int port, const struct packet *p, uint32_t bytes,
			uint32_t only)
{
	uint8_t frame[PACKET_MAX], piece[PACKET_MAX];
	uint32_t length = packet_build(p, frame), n = 0;
	uint32_t head = (p->tagged ? 18 : 14) + (p->family == 4 ? 20 + p->options : 40);

	for (uint32_t at = 0; head + at < length; at += bytes, n++)
		if (only >> n & 1)
			walk_send_frame(w, port, n % w->nic[port].n_queues, piece,
					packet_cut(frame, length, at, bytes, piece));
}

#define ALL UINT32_MAX

WALK(requests_in_pieces_are_served)
{
	static const struct {
		const char *name;
		struct packet p;
		uint32_t bytes;
	} rows[] = {
		{"IPv4 in two", {.family = 4, .payload = 1000}, 800},
		{"IPv4 in nineteen", {.family = 4, .payload = 1472}, 80},
		{"IPv6 in two", {.family = 6, .payload = 1000}, 800},
		{"IPv6 in eight", {.family = 6, .payload = 1400}, 176},
		{"tagged", {.family = 4, .payload = 1000, .tagged = true, .tci = 3}, 800},
	};
	struct walk *w = walk_create(NULL);

	walk_worker(w, NULL);
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		walk_context("%s", rows[i].name);
		send_pieces(w, 0, &rows[i].p, rows[i].bytes, ALL);
		walk_settle(w);
		walk_expect_echo(w, 0, &rows[i].p);
		walk_expect_no_drops(w);
		walk_jump(w, 1);
	}
	walk_expect_eq(walk_stats(w).reassembled, RTE_DIM(rows));
	walk_destroy(w);
}

WALK(pieces_meet_on_one_lcore_wherever_they_come_in)
{
	for (unsigned int queues = 1; queues <= 4; queues *= 2) {
		struct walk *w = walk_create(&(struct walk_params){.lcores = 4, .queues = queues});
		struct packet p = {.family = 4, .payload = 1000};

		walk_worker(w, NULL);
		for (unsigned int i = 0; i < 20; i++) {
			p.source_port = 3000 + i;
			p.payload = 900 + i;
			send_pieces(w, 0, &p, 320, ALL);
			walk_settle(w);
			walk_context("%u queues, flow %u", queues, i);
			walk_expect_echo(w, 0, &p);
		}
		walk_context("%s", "");
		walk_expect_no_drops(w);
		walk_destroy(w);
	}
}

WALK(what_never_becomes_whole_is_counted)
{
	struct walk *w = walk_create(NULL);
	struct packet p = {.family = 4, .payload = 1000};

	walk_worker(w, NULL);
	send_pieces(w, 0, &p, 400, 1 | 4);
	walk_pass(w, 900);
	walk_expect_no_drops(w);
	walk_pass(w, 200);
	walk_expect_drops(w, {LB_DROP_FRAGMENT_TIMEOUT, 2});
	walk_expect_silence(w, 0);
	walk_destroy(w);
}

WALK(a_piece_that_comes_twice_counts_once)
{
	struct walk *w = walk_create(NULL);
	struct packet p = {.family = 4, .payload = 1000};

	walk_worker(w, NULL);
	send_pieces(w, 0, &p, 400, 1);
	send_pieces(w, 0, &p, 400, ALL);
	walk_settle(w);
	walk_expect_echo(w, 0, &p);
	walk_expect_drops(w, {LB_DROP_FRAGMENT_DUPLICATE, 1});
	walk_destroy(w);
}

WALK(pieces_on_the_fabric_are_never_put_together)
{
	struct walk *w = walk_create(NULL);
	struct packet p = {.family = 4, .payload = 1000};

	w->lb->port[1].mac[4] = 0;
	send_pieces(w, 1, &p, 800, ALL);
	walk_settle(w);
	w->lb->port[1].mac[4] = 0xfa;
	walk_expect_drops(w, {LB_DROP_FRAGMENT, 2});
	walk_destroy(w);
}

WALK(a_ping_in_pieces_is_answered_as_long_as_it_fits)
{
	struct walk *w = walk_create(NULL);
	struct packet p = {.family = 4, .icmp = true, .icmp_type = 8, .payload = 1200};
	static struct walk_frame f;

	send_pieces(w, 0, &p, 800, ALL);
	walk_settle(w);
	walk_expect(walk_take(w, 0, &f) && f.kind == WALK_ICMP && f.sums_hold);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(RoCE_in_pieces_is_refused)
{
	struct walk *w = walk_create(NULL);
	struct packet p = {.family = 4, .payload = 1000, .destination_port = 4791};

	send_pieces(w, 0, &p, 800, ALL);
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_FRAGMENT, 1});
	walk_destroy(w);
}

WALK(a_wrong_checksum_shows_when_the_pieces_are_together)
{
	struct walk *w = walk_create(NULL);
	struct packet p = {.family = 4, .payload = 1000, .l4_sum = SUM_WRONG};

	walk_worker(w, NULL);
	send_pieces(w, 0, &p, 800, ALL);
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_UDP_CHECKSUM, 1});
	walk_expect_silence(w, 0);
	walk_destroy(w);
}
