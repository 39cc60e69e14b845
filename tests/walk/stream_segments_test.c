/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP services, segment by segment: connections and their ends, shares of connections, small
 * requests. */
#include <string.h>

#include "edge/edge.h"
#include "packet/notice.h"
#include "raw.h"
#include "worker.h"

static void raw_expect_reset(struct raw *r)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_need(raw_take(r, &h, payload), "no reset");
	walk_expect(h.flags & TCP_BIT_RST, "flags 0x%x", h.flags);
}

WALK(segments_of_no_connection_get_a_reset)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r = {.w = w, .port = 3000, .seq = 5, .ack = 9};

	raw_send(&r, TCP_BIT_ACK, "data", 4);
	raw_expect_reset(&r);
	walk_expect_drops(w, {LB_DROP_TCP_UNKNOWN, 1});
	/* A reset gets no answer. */
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_TCP_UNKNOWN, 1});
	walk_destroy(w);
}

WALK(answers_that_no_worker_wrote)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r;

	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5); /* there is no worker */
	raw_expect_answer(&r, LB_NOTICE_BUSY, 0);
	walk_worker(w, NULL);
	raw_ask(&r, 0, 0);
	raw_expect_answer(&r, LB_NOTICE_MALFORMED, 0);
	raw_ask(&r, 1401, 1401);
	raw_expect_answer(&r, LB_NOTICE_TOO_LARGE, 0);
	raw_ask(&r, 7, 7);
	raw_expect_answer(&r, 0, 7);
	walk_destroy(w);
}

WALK(a_reset_cancels_what_the_worker_has)
{
	struct walk *w = walk_create(&raw_small);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	walk_turn(w);
	walk_expect_eq(v->n_requests, 1);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_expect_none_left(w, 1);
	walk_pass(w, 100);
	walk_expect(v->n_requests == 1 && v->request[0].cancelled, "the worker was not told");
	walk_destroy(w);
}

WALK(a_client_that_closes_gets_its_replies_and_no_more)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	raw_send(&r, TCP_BIT_ACK, "\x08\0\0\0half", 8); /* a request that never comes whole */
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	raw_expect_answer(&r, 0, 5);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	raw_expect_none_left(w, 1);
	walk_destroy(w);
}

WALK(a_client_that_is_gone_is_noticed)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r;

	raw_open(&r, w, 3000);
	/* keepalive_ms, and three probes */
	walk_jump(w, 59000);
	walk_turn(w);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 1);
	raw_expect_none_left(w, 45000);
	walk_destroy(w);
}

WALK(a_flood_of_SYNs)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 64, buffer_mb: 4, backlog: 8}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw before, after, flood;

	walk_worker(w, NULL);
	raw_open(&before, w, 3000);
	for (uint16_t i = 0; i < 500; i++) {
		flood = (struct raw){.w = w, .port = 10000 + i, .seq = i};
		raw_send(&flood, TCP_BIT_SYN, NULL, 0);
	}
	walk_forget(w, 0);
	/* eight half-open ones, and what was there */
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 9);
	raw_ask(&before, 5, 5);
	raw_expect_answer(&before, 0, 5);
	raw_open(&after, w, 3001); /* by a cookie */
	raw_ask(&after, 6, 6);
	raw_expect_answer(&after, 0, 6);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_out, 493);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_in, 1);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(a_handshake_with_a_wrong_number_gets_a_reset_and_goes_on)
{
	static const struct walk_params params = {.services = RAW_SERVICES};
	struct walk *w = walk_create(&params);
	struct raw r = {.w = w, .port = 3002, .seq = 1000};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no SYN-ACK");
	r.ack = h.seq + 1000; /* of a stranger, or of a connection that was here before */
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	raw_expect_reset(&r);
	r.ack = h.seq + 1;
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	walk_expect_eq(w->lb->lcore[0]->stats.drop[LB_DROP_TCP_REFUSED], 1);
	walk_destroy(w);
}

WALK(as_many_connections_as_may_be)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, connections_percent: 100}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r[16], more = {.w = w, .port = 4000, .seq = 1};

	walk_worker(w, NULL);
	for (unsigned int i = 0; i < 16; i++)
		raw_open(&r[i], w, 3000 + i);
	raw_send(&more, TCP_BIT_SYN, NULL, 0);
	walk_expect_drops(w, {LB_DROP_TCP_FULL, 1});
	walk_expect_silence(w, 0);
	raw_send(&r[3], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	raw_open(&more, w, 4000);
	raw_ask(&more, 5, 5);
	raw_expect_answer(&more, 0, 5);
	walk_destroy(w);
}

static void reload_tcp(struct walk *w, const char *section)
{
	const struct walk_params params = {.more = section};
	char text[4096];

	walk_yaml(&params, RAW_SERVICES, text, sizeof(text));
	walk_need(walk_reload(w, text) == 0, "%s", w->error);
}

/* Sends a SYN, and expects nothing but a drop: its client has as many connections as it may. */
static void raw_expect_full(struct walk *w, uint16_t port, const char *source)
{
	struct raw r = {.w = w, .port = port, .seq = 1, .source = source};
	uint64_t before = walk_stats(w).drop[LB_DROP_TCP_CLIENT_FULL];

	walk_forget(w, 0);
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_expect_silence(w, 0);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_CLIENT_FULL], before + 1);
}

WALK(a_client_has_a_share_of_the_connections)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, connections_percent: 50}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r[8], more, other = {.w = w, .port = 5000, .source = "192.0.2.21"};

	walk_worker(w, NULL);
	for (unsigned int i = 0; i < 8; i++)
		raw_open(&r[i], w, 3000 + i);
	raw_expect_full(w, 4000, NULL);
	raw_connect(&other);
	raw_ask(&other, 5, 5);
	raw_expect_answer(&other, 0, 5);
	/* One of them ends: there is room for another one, and no more. */
	raw_send(&r[3], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	raw_open(&more, w, 4001);
	raw_ask(&more, 6, 6);
	raw_expect_answer(&more, 0, 6);
	raw_expect_full(w, 4002, NULL);
	/* Those that are open stay, however small the share becomes. */
	reload_tcp(w, "tcp: {connections: 16, buffer_mb: 4, connections_percent: 1}\n");
	raw_ask(&r[0], 7, 7);
	raw_expect_answer(&r[0], 0, 7);
	raw_expect_full(w, 4003, NULL);
	raw_expect_full(w, 5001, "192.0.2.21");
	reload_tcp(w, "tcp: {connections: 16, buffer_mb: 4, connections_percent: 100}\n");
	for (unsigned int i = 0; i < 7; i++)
		raw_open(&more, w, 4010 + i);
	raw_send(&(struct raw){.w = w, .port = 4020}, TCP_BIT_SYN, NULL, 0);
	walk_expect_drops(w, {LB_DROP_TCP_CLIENT_FULL, 4}, {LB_DROP_TCP_FULL, 1});
	walk_destroy(w);
}

WALK(cookies_give_a_client_no_more_than_its_share)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 8, buffer_mb: 4, connections_percent: 50, backlog: "
			"1}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw half = {.w = w, .port = 4000, .source = "192.0.2.21"}, r[5];
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	raw_send(&half, TCP_BIT_SYN, NULL, 0);
	walk_forget(w, 0);
	for (unsigned int i = 0; i < 5; i++) {
		r[i] = (struct raw){.w = w, .port = 3000 + i};
		raw_send(&r[i], TCP_BIT_SYN, NULL, 0);
		walk_need(raw_take(&r[i], &h, payload), "no cookie");
		r[i].ack = h.seq + 1;
	}
	for (unsigned int i = 0; i < 5; i++)
		raw_send(&r[i], TCP_BIT_ACK, NULL, 0);
	walk_expect_drops(w, {LB_DROP_TCP_CLIENT_FULL, 1});
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 5);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_in, 4);
	raw_expect_full(w, 3010, NULL);
	/* Its acknowledgement comes again, with a request, when one of the others has ended. */
	raw_send(&r[0], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	raw_ask(&r[4], 5, 5);
	raw_expect_answer(&r[4], 0, 5);
	walk_destroy(w);
}

WALK(SYNs_with_the_address_of_a_client_do_not_shut_it_out)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, connections_percent: 25}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw forged, late = {.w = w, .port = 4000}, r[4];
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	raw_send(&late, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&late, &h, payload), "no SYN-ACK");
	late.ack = h.seq + 1;
	for (unsigned int i = 1; i < 6; i++) {
		forged = (struct raw){.w = w, .port = 4000 + i, .seq = i};
		raw_send(&forged, TCP_BIT_SYN, NULL, 0);
	}
	walk_forget(w, 0);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 4);
	for (unsigned int i = 0; i < 4; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_ask(&r[i], 5, 5);
		raw_expect_answer(&r[i], 0, 5);
	}
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_in, 4);
	walk_expect_no_drops(w);
	raw_expect_full(w, 5000, NULL);
	/* One that was half-open then is its own, and has its turn when another has ended. */
	raw_send(&late, TCP_BIT_ACK, NULL, 0);
	walk_expect_drops(w, {LB_DROP_TCP_CLIENT_FULL, 2});
	raw_send(&r[0], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	raw_ask(&late, 5, 5);
	raw_expect_answer(&late, 0, 5);
	raw_expect_full(w, 5001, NULL);
	walk_destroy(w);
}

WALK(a_chunk_for_a_connection_in_TIME_WAIT)
{
	struct walk *w = walk_create(&raw_small);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	/* The worker says that the request failed, and that chunks follow. */
	walk_answer(v, 0, &(struct walk_reply){.status = RING_ERROR, .more = true});
	raw_expect_answer(&r, LB_NOTICE_MODEL_ERROR, 0);
	raw_take_service_away(w, &raw_small);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_forget(w, 0);
	walk_answer(v, 0, &(struct walk_reply){.more = true});
	walk_pass(w, 20);
	walk_answer(v, 0, &(struct walk_reply){.status = RING_ERROR});
	walk_pass(w, 20);
	walk_expect_silence(w, 0);
	walk_destroy(w);
}

WALK(a_request_without_memory_for_its_bytes)
{
	struct walk *w = walk_create(&raw_small);
	struct lcore *lc = w->lb->lcore[0];
	struct rte_mbuf *taken[65536];
	unsigned int n = 0;
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	while (n < RTE_DIM(taken) && (taken[n] = rte_pktmbuf_alloc(lc->packets)) != NULL)
		n++;
	/* One packet is left to receive the segment, none for the request. */
	rte_pktmbuf_free(taken[--n]);
	raw_ask(&r, 100, 50);
	raw_expect_answer(&r, LB_NOTICE_BUSY, 0);
	while (n > 0)
		rte_pktmbuf_free(taken[--n]);
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	raw_expect_none_left(w, 1);
	walk_destroy(w);
}

WALK(idle_connections_let_the_lcore_sleep)
{
	struct walk *w = walk_create(&raw_small);
	struct lcore *lc = w->lb->lcore[0];
	struct raw r;

	raw_open(&r, w, 3000);
	walk_pass(w, 1000);
	/* The next timer is the keepalive's. */
	walk_expect(edge_deadline(lc) >= lc->now + 40 * w->lb->tsc_per_ms, "%lu ms",
		    (edge_deadline(lc) - lc->now) / w->lb->tsc_per_ms);
	walk_jump(w, 60000 - 1020);
	walk_turn(w);
	walk_expect(edge_deadline(lc) <= lc->now + 21 * w->lb->tsc_per_ms, "%lu ms",
		    (edge_deadline(lc) - lc->now) / w->lb->tsc_per_ms);
	walk_destroy(w);
}

WALK(a_client_that_repeats_its_FIN_takes_one_place)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r[4];

	for (unsigned int i = 0; i < 4; i++)
		raw_open(&r[i], w, 3000 + i);
	raw_take_service_away(w, &params);
	for (unsigned int i = 0; i < 4; i++)
		raw_into_time_wait(&r[i]);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 4);
	for (unsigned int i = 0; i < 100; i++) {
		r[3].seq--;
		raw_send(&r[3], TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
		walk_jump(w, 1);
	}
	walk_forget(w, 0);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 4);
	/* Its minute began anew, that of the others did not. */
	walk_jump(w, 59960);
	walk_turn(w);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 1);
	walk_jump(w, 50);
	walk_turn(w);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
	walk_destroy(w);
}

/* Sends <n> requests of a byte each. */
static void raw_ask_many(struct raw *r, unsigned int n)
{
	uint8_t bytes[1400];

	for (unsigned int at = 0; n > 0; at = 0) {
		for (; n > 0 && at + 5 <= sizeof(bytes); n--, at += 5)
			memcpy(bytes + at, "\x01\0\0\0a", 5);
		raw_send(r, TCP_BIT_ACK, bytes, at);
	}
}

/* Acknowledges what comes to each. */
static void raw_read_each(struct raw *r, unsigned int n)
{
	raw_note_acks(r, n);
	for (unsigned int i = 0; i < n; i++)
		raw_send(&r[i], TCP_BIT_ACK, NULL, 0);
}

WALK(connections_that_wait_have_their_turns)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"pipeline: 65536}\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw many, one;
	bool answered = false;

	v->answers = false;
	raw_open(&many, w, 3000);
	raw_open(&one, w, 3001);
	raw_ask_many(&many, 2000);
	raw_ask(&one, 7, 7);
	walk_forget(w, 0);
	v->answers = true;
	walk_answer_all(v);
	for (unsigned int i = 0; i < 200 && !answered; i++)
		answered = raw_read(&many, &one);
	walk_expect(answered, "no answer");
	walk_expect(walk_stats(w).requests < 2000, "it came last");
	raw_send(&many, TCP_BIT_RST, NULL, 0);
	raw_send(&one, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Bytes 0 to <n> of a request, one per segment; the first <skip> come last. */
static void raw_ask_by_byte(struct raw *r, const uint8_t *bytes, uint32_t n, uint32_t skip)
{
	uint32_t first = r->seq;

	for (uint32_t i = 0; i < n; i++) {
		r->seq = first + (skip + i) % n;
		raw_send(r, TCP_BIT_ACK, bytes + (skip + i) % n, 1);
	}
	r->seq = first + n;
}

/* A client that sends byte by byte, of which none can be read yet, does not hold a packet for each.
 */
WALK(small_pieces_share_packets)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, pipeline: 1}\n",
	};
	enum { SIZE = 500, ORDERS = 2 };

	for (unsigned int order = 0; order < ORDERS; order++) {
		struct walk *w = walk_create(&params);
		struct walk_worker *v = walk_worker(w, NULL);
		uint8_t request[4 + SIZE], payload[PACKET_MAX];
		uint32_t length = SIZE;
		struct tcp_header h = {0};
		struct raw r;

		walk_context("the first %u bytes last", order * 100);
		memcpy(request, &length, 4);
		for (unsigned int i = 0; i < SIZE; i++)
			request[4 + i] = i * 7;
		v->answers = false;
		raw_open(&r, w, 3000);
		raw_ask(&r, 5, 5);
		raw_ask_by_byte(&r, request, sizeof(request), order * 100);
		walk_forget(w, 0);
		walk_expect(edge_held_packets(w->lb->lcore[0]) <= 4, "%u packets are held",
			    edge_held_packets(w->lb->lcore[0]));
		v->answers = true;
		walk_answer_all(v);
		raw_expect_answer(&r, 0, 5);
		do
			walk_need(raw_take(&r, &h, payload), "no answer");
		while (h.length == 0);
		walk_expect_eq(h.length, 8 + SIZE);
		walk_expect_eq(memcmp(payload + 8, request + 4, SIZE), 0);
		r.ack = h.seq + h.length;
		raw_send(&r, TCP_BIT_ACK, NULL, 0);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
		walk_expect_no_drops(w);
		walk_destroy(w);
	}
}

/* Each reason counts once when it begins, not once per turn that it lasts. */
WALK(reasons_to_read_no_more_are_counted)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"pipeline: 4}\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	const struct tcp_counters *t = edge_counters(w->lb->lcore[0]);
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	for (unsigned int i = 0; i < 4; i++)
		raw_ask(&r, 1, 1);
	walk_expect_eq(t->pipeline_full, 0);
	raw_ask(&r, 1, 1);
	raw_ask(&r, 1, 1);
	walk_pass(w, 20);
	walk_expect_eq(t->pipeline_full, 1);
	walk_expect_eq(t->windows_closed, 0);
	walk_forget(w, 0);
	v->answers = true;
	walk_answer_all(v);
	for (unsigned int i = 0; i < 20; i++)
		raw_read(&r, &r);
	walk_expect_eq(walk_stats(w).replies, 6);
	v->answers = false;
	for (unsigned int i = 0; i < 5; i++)
		raw_ask(&r, 1, 1);
	walk_pass(w, 20);
	walk_expect_eq(t->pipeline_full, 2);
	walk_expect_eq(t->replies_full, 0);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Requests that are yet to be read fill the memory: only to read them makes room. */
WALK(requests_that_fill_the_memory_are_read)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"pipeline: 65536}\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw r[4];

	v->answers = false;
	/* Smaller ones would share packets. */
	for (unsigned int i = 0; i < 4; i++)
		raw_open(&r[i], w, 3000 + i);
	for (unsigned int i = 0; i < 4 * 150; i++)
		raw_ask(&r[i % 4], 256, 256);
	walk_forget(w, 0);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_MEMORY] > 0, "it is not full");
	walk_expect_eq(edge_counters(w->lb->lcore[0])->replies_full, 4);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->pipeline_full, 0);
	v->answers = true;
	walk_answer_all(v);
	for (unsigned int i = 0; i < 400; i++)
		raw_read_each(r, 4);
	walk_pass(w, 20);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	for (unsigned int i = 0; i < 4; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

static uint16_t take_nothing(void *queue, struct rte_mbuf **packet, uint16_t n)
{
	return 0;
}

WALK(a_port_that_takes_nothing_holds_up_no_other)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\n",
		.client_ports = 2,
	};
	struct walk *w = walk_create(&params);
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[w->nic[0].port];
	eth_tx_burst_t was = ops->tx_pkt_burst;
	struct raw r[2], stranger = {.w = w, .port = 4000, .seq = 1};

	walk_worker(w, NULL);
	raw_open_on(&r[0], w, 3000, 0);
	raw_open_on(&r[1], w, 3001, 1);
	ops->tx_pkt_burst = take_nothing;
	for (unsigned int i = 0; i < TXQ_SIZE; i++)
		raw_send(&stranger, TCP_BIT_ACK, NULL, 0);
	walk_expect_eq(txq_room(&w->lb->lcore[0]->tx[0]), 0);
	raw_ask(&r[0], 5, 5);
	walk_turn(w);
	raw_ask(&r[1], 6, 6);
	raw_expect_answer(&r[1], 0, 6);
	ops->tx_pkt_burst = was;
	walk_turn(w);
	walk_forget(w, 0);
	raw_expect_answer(&r[0], 0, 5);
	walk_destroy(w);
}

WALK(a_cookie_comes_back_with_bytes_for_which_there_is_no_memory)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 256, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"backlog: 1}\n",
	};
	struct walk *w = walk_create(&params);
	static char source[16][16];
	struct raw hole[16], half = {.w = w, .port = 4000, .seq = 1}, r = {.w = w, .port = 3001};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	/* One client leaves some for others. */
	for (unsigned int k = 0; k < 16; k++) {
		snprintf(source[k], sizeof(source[k]), "192.0.2.%u", 20 + k);
		hole[k] = (struct raw){.w = w, .port = 3010 + k, .seq = k, .source = source[k]};
		raw_connect(&hole[k]);
		hole[k].seq++;
		/* Backwards, so that they share no packets. */
		for (unsigned int i = 600; i > 0; i--) {
			hole[k].seq = k + 1 + i;
			raw_send(&hole[k], TCP_BIT_ACK, "a", 1);
		}
	}
	raw_send(&half, TCP_BIT_SYN, NULL, 0);
	walk_forget(w, 0);
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no SYN-ACK");
	r.ack = h.seq + 1;
	raw_ask(&r, 5, 5);
	/* Nothing is left of it: a connection that is not established has no timer. */
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 17);
	raw_send(&hole[0], TCP_BIT_RST, NULL, 0); /* not at the next number: no effect */
	hole[0].seq = 1;
	raw_send(&hole[0], TCP_BIT_RST, NULL, 0);
	r.seq -= 9;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	for (unsigned int k = 1; k < 16; k++) {
		hole[k].seq = k + 1;
		raw_send(&hole[k], TCP_BIT_RST, NULL, 0);
	}
	walk_destroy(w);
}

/* Two segments of a request come in the wrong order, and nothing came in front of them. */
WALK(a_later_segment_overtakes_the_first_of_a_cookie)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, backlog: 1}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw half = {.w = w, .port = 4000}, r = {.w = w, .port = 3001};
	struct raw stray = {.w = w, .port = 2999, .ack = 77}, other = {.w = w, .port = 3002};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	raw_send(&stray, TCP_BIT_ACK, "a", 1);
	walk_need(raw_take(&stray, &h, payload), "no reset");
	raw_send(&half, TCP_BIT_SYN, NULL, 0);
	walk_forget(w, 0);
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no cookie");
	r.ack = h.seq + 1;
	r.seq += 4;
	raw_send(&r, TCP_BIT_ACK, "aaaaa", 5);
	walk_need(!raw_take(&r, &h, payload), "an answer to a segment that came early");
	r.seq -= 9;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_in, 1);
	/* A number that is no young cookie gets its reset. */
	raw_send(&other, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&other, &h, payload), "no cookie");
	other.ack = h.seq + 1 + (3u << 24);
	other.seq += 4;
	raw_send(&other, TCP_BIT_ACK, "a", 1);
	walk_need(raw_take(&other, &h, payload), "no reset");
	walk_expect_eq(h.flags & TCP_BIT_RST, TCP_BIT_RST);
	walk_expect_drops(w, {LB_DROP_TCP_EARLY, 1}, {LB_DROP_TCP_UNKNOWN, 2});
	walk_destroy(w);
}

WALK(a_handshake_that_ends_with_bytes_out_of_order)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"backlog: 1}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw hole[3], r = {.w = w, .port = 4000}, next = {.w = w, .port = 4001};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	/* There is no memory to remember more bytes out of order. */
	for (unsigned int i = 0; i < 3; i++) {
		raw_open(&hole[i], w, 3000 + i);
		hole[i].seq++;
		raw_send(&hole[i], TCP_BIT_ACK, "a", 1);
	}
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no SYN-ACK");
	r.ack = h.seq + 1;
	r.seq++;
	raw_send(&r, TCP_BIT_ACK, "a", 1);
	walk_expect_drops(w, {LB_DROP_TCP_REFUSED, 1});
	/* The connection is open: the backlog has room for the next one. */
	raw_send(&next, TCP_BIT_SYN, NULL, 0);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 5);
	for (unsigned int i = 0; i < 3; i++) {
		hole[i].seq -= 2;
		raw_send(&hole[i], TCP_BIT_RST, NULL, 0);
	}
	walk_destroy(w);
}

WALK(a_connection_that_is_idle_for_an_hour)
{
	static const struct walk_params params = {
		.services = RAW_SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, keepalive_ms: 7200000}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	for (unsigned int i = 0; i < 3600; i++) {
		walk_jump(w, 1000);
		walk_turn_lcore(w, 0);
	}
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 1);
	walk_destroy(w);
}

WALK(a_client_whose_router_changes)
{
	struct walk *w = walk_create(&raw_small);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	walk_expect_eq(r.sent_to, packet_their_mac[5]);
	r.station = 77;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	walk_expect_eq(r.sent_to, 77);
	/* A segment that is refused proves nothing. */
	r.station = 78;
	r.seq -= 9;
	raw_send(&r, TCP_BIT_ACK, "again", 5);
	r.seq += 4;
	r.station = 77;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	walk_expect_eq(r.sent_to, 77);
	walk_destroy(w);
}
