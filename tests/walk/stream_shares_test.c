/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of memory: segments without room, holes, slow readers. */
#include "edge/edge.h"
#include "raw.h"
#include "worker.h"

/* Resets the connection that began with number <first>, whatever of its bytes was taken. */
static void raw_abort(struct raw *r, uint32_t first)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_forget(r->w, 0);
	r->seq = first;
	raw_send(r, TCP_BIT_ACK, NULL, 0); /* an old number: the answer says which is next */
	while (raw_take(r, &h, payload))
		r->seq = h.ack;
	raw_send(r, TCP_BIT_RST, NULL, 0);
}

/* Replies have their own half of a client's share: those that its other connection does not read
 * keep no segment of a request out. */
WALK(unread_replies_refuse_no_segments)
{
	struct walk *w =
		large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1, min_rate: 4KiB");
	struct walk_worker *v = large_silent_worker(w);
	static uint8_t bytes[30000];
	struct raw r, other;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 4000);
	raw_ask(&other, 10, 10);
	raw_ask(&other, 10, 10);
	walk_settle(w);
	walk_need(v->n_requests == 2);
	walk_answer(v, 1, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_answer(v, 0, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_settle(w);
	/* 1 % of 8 MiB are 35 packets. */
	walk_expect(edge_held_packets(w->lb->lcore[0]) > 35, "the replies are not held");
	for (unsigned int i = 4; i < 9; i++) {
		raw_part(&r, 14000, 1000 * i, 1000 * (i + 1));
		other.ack += 2000;
		raw_send(&other, TCP_BIT_ACK, NULL, 0);
		walk_pass(w, 100);
	}
	/* The beginning of the next request, which has no place, and a hole before it. */
	r.seq += 5000;
	raw_part(&r, 20000, 0, 1000);
	r.seq -= 6004;
	raw_part(&r, 14000, 9000, 14000);
	walk_expect_no_drops(w);
	walk_pass(w, 2);
	large_expect_request(v, 0, 14000);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	r.seq += 1004;
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* While a request waits for its place the window is closed, and the client's TCP asks for it less
 * and less often. */
WALK(a_request_that_waited_for_its_place_has_as_long_again)
{
	struct walk *w = large_create(", queue_timeout_ms: 5000, request_timeout_ms: 8000",
				      "buffer_mb: 8, window: 128KiB, min_rate: 4KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 2,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw r[2];

	v->answers = false;
	raw_open(&r[0], w, 3000);
	raw_open(&r[1], w, 3001);
	raw_part(&r[0], 60000, 0, 60000);
	walk_settle(w);
	walk_need(v->n_requests == 1);
	raw_part(&r[1], 60000, 0, 2000);
	walk_pass(w, 3000);
	raw_send(&r[1], TCP_BIT_ACK, NULL, 0);
	large_answer(v);
	walk_pass(w, 7000);
	walk_expect_no_drops(w);
	walk_pass(w, 3000);
	walk_expect_drops(w, {LB_DROP_TCP_SLOW, 1});
	for (unsigned int i = 0; i < 2; i++)
		raw_send(&r[i], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_settle(w);
	walk_destroy(w);
}

/* Bytes of its other connection that nothing explains yet fill the client's share; returns the
 * number of the one that is missing. */
static uint32_t raw_fill_share(struct raw *other)
{
	uint64_t *refused = &other->w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT];
	uint32_t seq = other->seq;
	uint8_t bytes[300] = {0}; /* smaller ones would share packets */

	other->seq += 1000;
	for (unsigned int i = 0; i < 40; i++)
		raw_send(other, TCP_BIT_ACK, bytes, sizeof(bytes));
	walk_expect(*refused > 0, "the share is not used up");
	return seq;
}

/* A segment was refused, so the client's TCP tries again later and later, also when there is memory
 * by then. But one that stays away is not waited for. */
WALK(a_request_is_not_slow_because_its_client_was_refused)
{
	struct walk *w =
		large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1, min_rate: 4KiB");
	uint64_t *refused = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT], before;
	struct raw r, other;
	uint32_t seq;

	large_silent_worker(w);
	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 2000);
	walk_settle(w);
	other.seq = raw_fill_share(&other);
	before = *refused;
	seq = r.seq;
	r.seq += 12000; /* of the next request, which has no place */
	raw_part(&r, 30000, 0, 500);
	walk_expect_eq(*refused, before + 1);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	walk_pass(w, 3000);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
	r.seq = seq;
	raw_part(&r, 14000, 2000, 3000);
	walk_pass(w, 3000);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
	walk_pass(w, 9000);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 1);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Its segments were refused for six seconds, so its timer is at six more, and twelve if the next
 * one is lost. */
WALK(a_client_that_was_refused_for_long_comes_back_late)
{
	for (unsigned int later = 0; later < 2; later++) {
		struct walk *w = large_create(
			"", "buffer_mb: 8, window: 64KiB, client_percent: 1, min_rate: 4KiB");
		struct raw r, other;
		uint32_t seq;

		walk_context("%u ms later", later);
		large_silent_worker(w);
		raw_open(&r, w, 3000);
		raw_open(&other, w, 3001);
		raw_part(&r, 14000, 0, 2000);
		walk_settle(w);
		other.seq = raw_fill_share(&other);
		walk_pass(w, later);
		seq = r.seq + 12000;
		for (unsigned int ms = 200; ms <= 6400; ms *= 2) {
			for (unsigned int k = 0; k < 3; k++) {
				r.seq = seq;
				raw_part(&r, 30000, 0, 500);
			}
			walk_pass(w, ms < 6400 ? ms : 0);
		}
		raw_send(&other, TCP_BIT_RST, NULL, 0);
		walk_pass(w, 19000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
		walk_pass(w, 13000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 1);
		r.seq = seq - 12000;
		raw_send(&r, TCP_BIT_RST, NULL, 0);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

/* The memory of the client is full of bytes that nothing explains yet. Those that have their place
 * in a worker's memory are not held: they are taken, in order or not. */
WALK(bytes_with_a_place_are_taken_when_the_client_has_no_memory)
{
	struct walk *w = large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = large_silent_worker(w);
	uint64_t *refused = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT], before;
	struct raw r, other;
	uint32_t seq, other_seq;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 4000);
	walk_settle(w);
	other_seq = raw_fill_share(&other);
	before = *refused;
	seq = r.seq;
	r.seq += 1000;
	raw_part(&r, 14000, 5000, 14000);
	walk_expect_eq(*refused, before);
	r.seq = seq;
	raw_part(&r, 14000, 4000, 5000);
	walk_pass(w, 2);
	large_expect_request(v, 0, 14000);
	/* Bytes behind the request have none. */
	r.seq = seq + 11000;
	raw_part(&r, 14000, 1000, 2000);
	walk_expect_eq(*refused, before + 1);
	r.seq = seq + 10000;
	other.seq = other_seq;
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* A client sends again from the last number that it knows to have come, and its last segment of a
 * request may have the beginning of the next one: both have bytes with a place in them. */
WALK(segments_with_some_bytes_that_have_a_place_are_taken)
{
	struct walk *w = large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	uint64_t *refused = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT], before;
	struct walk_worker *v = large_silent_worker(w);
	struct raw r, other;
	uint8_t bytes[520] = {[501] = 64}; /* the next request says that it has 16,384 */

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 4000);
	walk_settle(w);
	other.seq = raw_fill_share(&other);
	before = *refused;
	r.seq -= 500;
	raw_part(&r, 14000, 3500, 13500);
	raw_send(&r, TCP_BIT_ACK, bytes, 520);
	walk_expect_eq(*refused, before);
	walk_pass(w, 2);
	walk_expect_eq(v->n_requests, 1);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Its acknowledgement counts, and its sender is told at once that the bytes did not come. */
WALK(a_segment_without_memory_for_its_bytes_is_answered)
{
	struct walk *w = large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	uint64_t *refused = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT], before;
	struct walk_worker *v = large_silent_worker(w);
	static uint8_t payload[PACKET_MAX], bytes[500];
	struct tcp_header h;
	struct raw r, other;
	uint32_t held;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_ask(&r, 10, 10);
	walk_settle(w);
	walk_answer(v, 0, &(struct walk_reply){.bytes = payload, .n_bytes = 1000});
	walk_settle(w);
	other.seq = raw_fill_share(&other);
	held = edge_held_packets(w->lb->lcore[0]);
	before = *refused;
	while (raw_take(&r, &h, payload))
		r.ack = h.seq + tcp_header_span(&h);
	r.seq += 1000; /* a hole before it */
	raw_send(&r, TCP_BIT_ACK, bytes, sizeof(bytes));
	r.seq -= 1500;
	walk_expect_eq(*refused, before + 1);
	walk_expect(edge_held_packets(w->lb->lcore[0]) < held, "the reply is still held");
	walk_need(raw_take(&r, &h, payload), "no acknowledgement");
	walk_expect_eq(h.ack, r.seq);
	walk_expect_eq(h.length, 0);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Nothing comes on such a connection, so the memory that another gives back must be told. */
WALK(a_window_that_closed_for_want_of_memory_opens_again)
{
	struct walk *w = large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	uint8_t payload[PACKET_MAX];
	struct tcp_header h = {.window = UINT16_MAX};
	struct raw r, other;
	uint32_t other_seq;

	large_silent_worker(w);
	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 65300, 0, 10000);
	walk_settle(w);
	other_seq = raw_fill_share(&other);
	for (uint32_t at = 10000; at < 65000; at += 500) {
		raw_part(&r, 65300, at, at + 500);
		walk_pass(w, 5);
		while (raw_take(&r, &h, payload))
			;
	}
	walk_expect(h.window < 536, "a window of %u", h.window);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->windows_closed, 1);
	walk_pass(w, 5000);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->windows_closed, 1);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
	other.seq = other_seq;
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_pass(w, 5);
	walk_expect(raw_take(&r, &h, payload), "no news of the window");
	walk_expect(h.window > 5000, "a window of %u", h.window);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_pass(w, 5);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* Numbers beyond the window prove nothing, with bytes or without, whether or not there is memory.
 */
WALK(a_stranger_s_segments_without_memory_are_seldom_answered)
{
	struct walk *w =
		large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1, min_rate: 4KiB");
	uint8_t payload[PACKET_MAX], bytes[500] = {0};
	struct raw r, other, stranger;
	unsigned int answers = 0;
	struct tcp_header h;

	large_silent_worker(w);
	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 2000);
	walk_settle(w);
	other.seq = raw_fill_share(&other);
	walk_pass(w, 50);
	walk_forget(w, 0);
	stranger = r;
	for (unsigned int i = 0; i < 20; i++) {
		stranger.seq = r.seq + (1 << 20);
		raw_send(&stranger, TCP_BIT_ACK, bytes, sizeof(bytes));
		while (raw_take(&r, &h, payload))
			answers++;
	}
	walk_expect(answers <= 1, "%u answers", answers);
	/* Nor do they excuse the client, who is silent. */
	for (unsigned int i = 0; i < 60; i++) {
		stranger.seq = r.seq + (1 << 20);
		raw_send(&stranger, TCP_BIT_ACK, bytes, sizeof(bytes));
		walk_pass(w, 100);
	}
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 1);
	walk_pass(w, 600);
	walk_forget(w, 0);
	raw_send(&r, TCP_BIT_RST, bytes, sizeof(bytes));
	walk_expect_silence(w, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Their windows closed while all of them were busy, and each one's part of the share is less than
 * two segments: when nothing is held any more, they open. */
WALK(windows_of_more_connections_than_the_share_has_segments_open_again)
{
	enum { CONNECTIONS = 16 };
	struct walk *w = large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = large_silent_worker(w);
	struct raw r[CONNECTIONS];

	for (unsigned int i = 0; i < CONNECTIONS; i++)
		raw_open(&r[i], w, 3000 + i);
	for (unsigned int k = 0; k < 40; k++) {
		/* With the acknowledgement of the last reply: all of them are always busy. */
		for (unsigned int i = 0; i < CONNECTIONS; i++)
			raw_ask(&r[i], 800, 800);
		for (unsigned int i = 0; i < 5; i++) {
			walk_pass(w, 2);
			large_answer(v);
			walk_pass(w, 2);
			raw_note_acks(r, CONNECTIONS);
		}
		walk_expect_eq(walk_stats(w).replies, (k + 1) * CONNECTIONS);
	}
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		raw_send(&r[i], TCP_BIT_ACK, NULL, 0);
	walk_pass(w, 5);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* The packet in which a request is gathered is its place, as a worker's memory is that of a large
 * one.
 */
WALK(a_small_request_that_has_begun_can_end_when_the_client_has_no_memory)
{
	struct walk *w = large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = large_silent_worker(w);
	struct tcp_header h = {.window = 0};
	struct raw r, other;
	uint8_t payload[PACKET_MAX], rest[500] = {0};
	uint32_t other_seq;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	/* More than half of its share: no window grows. */
	other_seq = other.seq;
	other.seq += 100;
	for (unsigned int i = 0; i < 20; i++)
		raw_send(&other, TCP_BIT_ACK, rest, sizeof(rest));
	for (unsigned int k = 0; k < 20; k++) {
		raw_ask(&r, 800, 800);
		walk_pass(w, 2);
		large_answer(v);
		walk_pass(w, 2);
		while (raw_take(&r, &h, payload))
			r.ack = h.seq + h.length;
	}
	raw_ask(&r, 800, 300); /* what is left of the first window */
	walk_pass(w, 5);
	while (raw_take(&r, &h, payload))
		;
	walk_expect(h.window >= sizeof(rest), "a window of %u", h.window);
	raw_fill_share(&other);
	raw_send(&r, TCP_BIT_ACK, rest, sizeof(rest));
	walk_pass(w, 2);
	walk_expect_eq(v->n_requests, 1);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	other.seq = other_seq;
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Time for which it waited counts once, and no place is kept for more than a minute without bytes.
 */
WALK(a_silent_client_keeps_its_place_for_a_minute)
{
	struct walk *w = large_create(", queue_timeout_ms: 60000, request_timeout_ms: 70000",
				      "buffer_mb: 8, window: 128KiB, min_rate: 4KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 2,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw r[2];

	v->answers = false;
	raw_open(&r[0], w, 3000);
	raw_open(&r[1], w, 3001);
	raw_part(&r[0], 60000, 0, 60000);
	walk_settle(w);
	raw_part(&r[1], 60000, 0, 2000);
	walk_pass(w, 50000);
	large_answer(v);
	walk_pass(w, 5);
	for (unsigned int s = 0; s < 70; s++) {
		raw_send(&r[1], TCP_BIT_ACK, NULL, 0);
		walk_pass(w, 1000);
	}
	walk_expect_drops(w, {LB_DROP_TCP_SLOW, 1});
	for (unsigned int i = 0; i < 2; i++)
		raw_send(&r[i], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_settle(w);
	walk_destroy(w);
}

/* Clients that hold little each, but all of it together, and send nothing that lets go of it:
 * others have their turn when these have not come on for long. */
WALK(holes_of_many_addresses_leave_memory_for_others)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 256, buffer_mb: 1, client_percent: 100, window: "
			"64KiB}\n",
	};
	struct walk *w = walk_create(&params);
	static char source[16][16];
	struct raw hole[16], r, begun = {.w = w, .port = 4000, .source = "192.0.2.50"};
	struct raw last = {.w = w, .port = 4001, .source = "192.0.2.51"};
	uint8_t rest[95] = {0};

	walk_worker(w, NULL);
	raw_connect(&begun);
	raw_ask(&begun, 100, 5);
	for (unsigned int k = 0; k < 16; k++) {
		snprintf(source[k], sizeof(source[k]), "192.0.2.%u", 20 + k);
		hole[k] = (struct raw){.w = w, .port = 3010 + k, .seq = k, .source = source[k]};
		raw_connect(&hole[k]);
		for (unsigned int i = 600; i > 0; i--) {
			hole[k].seq = k + 1 + i;
			raw_send(&hole[k], TCP_BIT_ACK, "a", 1);
		}
		hole[k].seq = k + 1;
	}
	/* Bytes that have their place are taken, whatever is used up. */
	walk_forget(w, 0);
	raw_send(&begun, TCP_BIT_ACK, rest, sizeof(rest));
	raw_expect_answer(&begun, 0, 100);
	raw_connect(&last);
	for (unsigned int i = 0; i < 3; i++, last.seq++)
		raw_send(&last, TCP_BIT_ACK | TCP_BIT_PSH, "a", i > 0);
	raw_open(&r, w, 3001);
	raw_ask(&r, 5, 5);
	walk_expect_eq(walk_stats(w).replies, 1);
	/* They live: each answers whatever it is asked. */
	for (unsigned int s = 0; s < 10; s++) {
		for (unsigned int k = 0; k < 16; k++)
			raw_send(&hole[k], TCP_BIT_ACK, NULL, 0);
		walk_pass(w, 1000);
	}
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_SLOW] > 0, "none was reset");
	walk_forget(w, 0);
	r.seq -= 9;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	last.seq = 1;
	raw_send(&last, TCP_BIT_RST, NULL, 0);
	for (unsigned int k = 0; k < 16; k++)
		raw_send(&hole[k], TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Sends a byte of a header on each of <n> connections. */
static void raw_byte_on_each(struct raw *r, unsigned int n, struct walk *w)
{
	for (unsigned int i = 0; i < n; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_send(&r[i], TCP_BIT_ACK, "\5", 1);
	}
	walk_forget(w, 0);
}

/* It keeps a connection busy, of which there are fewer than connections: a client has a share of
 * these, too. */
WALK(a_byte_on_each_connection_keeps_no_other_client_out)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 1024, buffer_mb: 1, window: 64KiB}\n",
	};
	struct walk *w = walk_create(&params);
	static struct raw r[500];
	struct raw other = {.w = w, .port = 9000, .source = "192.0.2.50"};

	walk_worker(w, NULL);
	raw_connect(&other);
	raw_byte_on_each(r, 500, w);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_CLIENT] > 0, "it has no share");
	raw_ask(&other, 5, 5);
	raw_expect_answer(&other, 0, 5);
	/* One whose first byte was taken goes on. */
	raw_send(&r[0], TCP_BIT_ACK, "\0\0\0hello", 8);
	raw_expect_answer(&r[0], 0, 5);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_turn(w);
	walk_destroy(w);
}

/* If there is no share, or many clients use up theirs, they have to go on. */
WALK(bytes_of_headers_that_never_come_whole_keep_others_out_for_seconds)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 1024, buffer_mb: 1, window: 64KiB, client_percent: "
			"100}\n",
	};
	struct walk *w = walk_create(&params);
	static struct raw r[500];
	struct raw other = {.w = w, .port = 9000, .source = "192.0.2.50"};

	walk_worker(w, NULL);
	raw_connect(&other);
	raw_byte_on_each(r, 500, w);
	raw_ask(&other, 5, 5);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_MEMORY] > 0, "there is memory");
	walk_expect_eq(walk_stats(w).replies, 0);
	walk_pass(w, 10000);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_SLOW] > 0, "none was reset");
	walk_forget(w, 0);
	other.seq -= 9;
	raw_ask(&other, 5, 5);
	raw_expect_answer(&other, 0, 5);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_turn(w);
	walk_destroy(w);
}

/* Few connections can have bytes out of order at once: those whose holes stay make room for others.
 */
WALK(holes_leave_room_for_the_holes_of_others)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw hole[3], r = {.w = w, .port = 4000, .source = "192.0.2.50"};
	uint32_t seq;

	walk_worker(w, NULL);
	raw_connect(&r);
	for (unsigned int i = 0; i < 3; i++) {
		raw_open(&hole[i], w, 3000 + i);
		hole[i].seq++;
		raw_send(&hole[i], TCP_BIT_ACK, "a", 1);
	}
	walk_pass(w, 9000);
	walk_expect_no_drops(w);
	seq = r.seq;
	for (unsigned int i = 0; i < 2; i++) {
		r.seq = seq + 4;
		raw_send(&r, TCP_BIT_ACK, "hello", 5);
		walk_pass(w, 9000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_REFUSED], 1);
	}
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 3);
	walk_forget(w, 0);
	r.seq = seq;
	raw_send(&r, TCP_BIT_ACK, "\5\0\0\0", 4);
	r.seq += 5;
	raw_expect_answer(&r, 0, 5);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* The same for other connections of one client, and its share. One that has none keeps what it has.
 */
WALK(a_hole_of_a_client_s_connection_leaves_memory_for_its_others)
{
	for (unsigned int others = 0; others < 2; others++) {
		struct walk *w = large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
		struct raw r, other;

		walk_context("%u others", others);
		walk_worker(w, &large_roomy);
		raw_open(&other, w, 3001);
		if (others > 0) {
			raw_open(&r, w, 3000);
			raw_ask(&r, 100, 5);
		}
		raw_fill_share(&other);
		walk_pass(w, 7000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
		if (others > 0) {
			raw_send(&r, TCP_BIT_ACK, (uint8_t[95]){0}, 95);
			raw_expect_answer(&r, 0, 100);
			raw_ask(&r, 100, 5);
		}
		walk_pass(w, 7000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], others);
		walk_expect(others == 0 || edge_held_packets(w->lb->lcore[0]) == 1, "held");
		edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
		walk_turn(w);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

WALK(a_client_has_a_share_of_unfinished_requests)
{
	struct walk *w = large_create("", "buffer_mb: 8, unfinished: 2");
	struct lcore *lc = w->lb->lcore[0];
	struct walk_worker *v = large_silent_worker(w);
	struct raw r[3];

	for (unsigned int i = 0; i < 3; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 30000, 0, 20000);
	}
	walk_expect_eq(link_outstanding(lc->links[0]), 2);
	raw_part(&r[0], 30000, 20000, 30000);
	walk_pass(w, 2);
	walk_expect_eq(link_outstanding(lc->links[0]), 3);
	raw_part(&r[2], 30000, 20000, 30000);
	raw_part(&r[1], 30000, 20000, 30000);
	walk_pass(w, 2);
	for (unsigned int i = 0; i < 3; i++)
		large_expect_request(v, i, 30000);
	walk_expect_no_drops(w);
	large_answer(v);
	for (unsigned int i = 0; i < 3; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	large_expect_room(w);
	walk_destroy(w);
}

/* A client asks for ever, and does not read: its other connection, and the memory, are none the
 * worse. */
WALK(a_reader_that_does_not_read)
{
	struct walk *w = large_create("", "buffer_mb: 8, client_percent: 25");
	struct raw slow, good;
	bool answered = false;
	uint32_t most = 0, seq;

	walk_worker(w, &large_roomy);
	raw_open(&slow, w, 3000);
	raw_open(&good, w, 3001);
	for (unsigned int i = 0; i < 40; i++) {
		raw_part(&slow, 30000, 0, 30000);
		walk_pass(w, 5);
		most = RTE_MAX(most, edge_held_packets(w->lb->lcore[0]));
	}
	/* A quarter of 8 MiB are 885 packets, half of them for replies, and the last one begins
	 * below that. */
	walk_expect(most > 400 && most < 600, "%u packets", most);
	seq = good.seq;
	raw_part(&good, 30000, 0, 30000);
	walk_forget(w, 0);
	walk_pass(w, 4000);
	/* Some segments were refused until the reader was reset. */
	good.seq = seq;
	raw_part(&good, 30000, 0, 30000);
	for (unsigned int ms = 0; ms < 200 && !answered; ms++) {
		walk_pass(w, 1);
		answered = raw_read(&good, &good);
	}
	walk_expect(answered, "no answer");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 1);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 1);
	raw_send(&good, TCP_BIT_RST, NULL, 0);
	walk_pass(w, 10);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* Readers that were reset ask again: each time their client has a smaller part of its share, and
 * all of it later. */
WALK(readers_that_are_reset_again_and_again_get_less)
{
	struct walk *w = large_create("", "buffer_mb: 8, client_percent: 25");
	uint64_t *resets = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_READER];
	uint32_t most[4] = {0}, held;
	struct raw slow, idle;

	walk_worker(w, &large_roomy);
	raw_open(&idle, w, 3000);
	for (unsigned int k = 0; k < 4; k++) {
		if (k == 3)
			walk_pass(w, 20000);
		raw_open(&slow, w, 3001 + k);
		for (unsigned int i = 0; i < 40; i++) {
			raw_part(&slow, 30000, 0, 30000);
			walk_pass(w, 5);
			held = edge_held_packets(w->lb->lcore[0]);
			most[k] = RTE_MAX(most[k], held);
		}
		raw_ask(&idle, 10, 10); /* has to wait */
		for (unsigned int ms = 0; ms < 5000 && *resets == k; ms++)
			walk_pass(w, 1);
		walk_expect_eq(*resets, k + 1);
		raw_expect_answer(&idle, 0, 10);
		walk_forget(w, 0);
	}
	walk_expect(most[1] < most[0] * 2 / 3, "%u and %u packets", most[0], most[1]);
	walk_expect(most[2] < most[0] * 2 / 3, "%u and %u packets", most[0], most[2]);
	walk_expect(most[3] > most[0] * 3 / 4, "%u and %u packets", most[0], most[3]);
	raw_send(&idle, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Clients of many addresses hold all that requests may, while none gets a place. One that holds
 * little is offered whole segments all the same: else it would ask for the rest of each request by
 * its timer. */
WALK(clients_that_wait_for_places_leave_a_window_for_others)
{
	struct walk *w = large_create("", "buffer_mb: 4, window: 64KiB, min_rate: 0");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 4,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	static struct raw waits[80];
	static char source[10][16];
	struct tcp_header h = {0};
	uint8_t payload[PACKET_MAX];
	struct raw good;

	walk_expect(v != NULL);
	for (unsigned int i = 0; i < 80; i++) {
		snprintf(source[i % 10], sizeof(source[0]), "192.0.2.%u", 20 + i % 10);
		waits[i] =
			(struct raw){.w = w, .port = 3000 + i, .seq = i, .source = source[i % 10]};
		raw_connect(&waits[i]);
	}
	for (unsigned int i = 0; i < 80; i++)
		raw_part(&waits[i], 60000, 0, 12000);
	/* 4 MiB are 1,770 packets, half of them for requests. */
	walk_expect(edge_held_packets(w->lb->lcore[0]) > 885, "there is memory");
	walk_forget(w, 0);
	raw_open(&good, w, 3200);
	for (unsigned int i = 0; i < 60; i++) {
		raw_ask(&good, 1000, 1000);
		walk_pass(w, 2);
		while (raw_take(&good, &h, payload))
			good.ack = h.seq + tcp_header_span(&h);
		walk_expect(h.ack == good.seq && h.window >= 2048, "window %u", h.window);
	}
	walk_expect_eq(walk_stats(w).replies, 60);
	for (unsigned int i = 0; i < 80; i++)
		raw_send(&waits[i], TCP_BIT_RST, NULL, 0);
	raw_send(&good, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	large_expect_room(w);
	walk_destroy(w);
}

/* Their shares together are twice the memory. */
WALK(readers_of_many_addresses_leave_memory_for_others)
{
	struct walk *w = large_create("", "buffer_mb: 8, client_percent: 25");
	static struct raw slow[8];
	static char source[8][16];
	struct raw good;
	bool answered = false;
	uint64_t before;

	walk_worker(w, &large_roomy);
	for (unsigned int i = 0; i < 8; i++) {
		snprintf(source[i], sizeof(source[i]), "192.0.2.%u", 20 + i);
		slow[i] = (struct raw){.w = w, .port = 3000 + i, .seq = i, .source = source[i]};
		raw_connect(&slow[i]);
	}
	for (unsigned int k = 0; k < 30; k++) {
		for (unsigned int i = 0; i < 8; i++)
			raw_part(&slow[i], 30000, 0, 30000);
		walk_pass(w, 5);
		walk_forget(w, 0);
	}
	before = walk_stats(w).drop[LB_DROP_TCP_MEMORY];
	raw_open(&good, w, 3100);
	raw_part(&good, 30000, 0, 30000);
	walk_forget(w, 0);
	for (unsigned int ms = 0; ms < 100 && !answered; ms++) {
		walk_pass(w, 1);
		answered = raw_read(&good, &good);
	}
	walk_expect(answered, "no answer");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_MEMORY], before);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 0);
	walk_pass(w, 600); /* until old numbers are answered again */
	for (unsigned int i = 0; i < 8; i++)
		raw_abort(&slow[i], i);
	raw_send(&good, TCP_BIT_RST, NULL, 0);
	walk_pass(w, 10);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

WALK(a_connection_that_is_idle_for_too_long)
{
	struct walk *w = large_create("", "buffer_mb: 8, idle_ms: 2000");
	struct raw r;

	walk_worker(w, &large_roomy);
	raw_open(&r, w, 3000);
	walk_pass(w, 1500);
	raw_ask(&r, 10, 10);
	raw_expect_answer(&r, 0, 10);
	walk_pass(w, 1500);
	walk_expect(!r.fin);
	walk_pass(w, 600);
	raw_expect_fin(&r);
	raw_end(&r);
}

WALK(a_reply_whose_chunks_are_too_many)
{
	struct walk *w = large_create("", "buffer_mb: 8");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.max_request = 65536,
									    .max_reply = 65536,
									    .max_chunks = 16,
									    .room = 262144});
	static uint8_t bytes[40000];
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	raw_ask(&r, 10, 10);
	walk_settle(w);
	walk_answer(v, 0, &(struct walk_reply){.bytes = bytes, .n_bytes = 40000, .more = true});
	walk_answer(v, 0, &(struct walk_reply){.bytes = bytes, .n_bytes = 40000});
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_REPLY_TOO_LARGE, 1});
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* A reader that acknowledges nothing may have lost a segment and the one that replaced it. */
WALK(a_reader_whose_segments_were_lost_has_more_time)
{
	struct walk *w = large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = large_silent_worker(w);
	static uint8_t bytes[30000];
	struct raw r, other;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_ask(&other, 10, 10);
	raw_ask(&r, 10, 10);
	raw_ask(&r, 20, 20);
	walk_settle(w);
	walk_need(v->n_requests == 3);
	walk_answer(v, 2, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_answer(v, 1, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_pass(w, 5);
	raw_ask(&other, 10, 10); /* which is not read, as a reply has no room */
	walk_pass(w, 2500);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 0);
	walk_pass(w, 1000);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 1);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* An answer waits for that of an older request longer than a reader may take for a packet. */
WALK(a_reader_is_not_slow_because_a_worker_is)
{
	struct walk *w = large_create("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = large_silent_worker(w);
	static uint8_t bytes[30000];
	struct raw r, other;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_ask(&other, 10, 10);
	raw_ask(&r, 10, 10);
	raw_ask(&r, 20, 20);
	walk_settle(w);
	walk_need(v->n_requests == 3);
	walk_answer(v, 2, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_pass(w, 2000);
	walk_answer(v, 1, &(struct walk_reply){.bytes = bytes, .n_bytes = 10000});
	walk_pass(w, 20);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 0);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}
