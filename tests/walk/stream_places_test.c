/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of large requests in a worker's ring, and turns of long replies. */
#include <arpa/inet.h>

#include "edge/edge.h"
#include "edge/edge_private.h"
#include "lb.h"
#include "packet/notice.h"
#include "raw.h"
#include "worker.h"

/* A worker of 16 slots that is known to take <ms> for each of its requests. */
static struct walk_worker *known_worker(struct walk *w, struct raw *r, uint32_t ms)
{
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 16,
						       .max_batch = 1,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 1 << 20,
					       });

	v->delay_ms = ms;
	v->run_ns = ms * 1000000;
	for (unsigned int i = 0; i < 24; i++) {
		raw_ask(r, 10, 10);
		walk_pass(w, ms + 2);
	}
	walk_pass(w, 100);
	return v;
}

/* Its client holds a place for long, and other requests come seldom: each is answered at once, and
 * the worker is as fast as it was. */
WALK(a_place_that_is_not_filled_is_no_work_of_its_worker)
{
	struct walk *w = large_create("", "buffer_mb: 8, min_rate: 0");
	struct raw drip, other;
	struct walk_worker *v;

	raw_open(&drip, w, 3000);
	raw_open(&other, w, 3001);
	v = known_worker(w, &other, 2);
	raw_part(&drip, 60000, 0, 1000);
	for (unsigned int i = 0; i < 40; i++) {
		raw_ask(&other, 10, 10);
		walk_pass(w, 60);
	}
	walk_expect_eq(v->n_requests, 0);
	v->answers = false;
	for (unsigned int i = 0; i < 8; i++)
		raw_ask(&other, 10, 10);
	walk_settle(w);
	walk_expect_eq(v->n_requests, 8);
	walk_expect_no_drops(w);
	raw_send(&drip, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	large_answer(v);
	walk_settle(w);
	large_expect_room(w);
	walk_destroy(w);
}

/* Large requests are complete, and small ones come: the slow worker gets few at a time, small ones
 * first, and a large one after as many bytes. Those that waited for longer than they may go behind
 * what is there. */
WALK(large_requests_wait_for_a_slow_worker_and_have_their_turns)
{
	struct walk *w = large_create(", queue_timeout_ms: 3000", "buffer_mb: 8");
	unsigned int n_large = 0, n_small = 0, before;
	struct walk_worker *v;
	struct raw r[6], other;

	raw_open(&other, w, 3100);
	v = known_worker(w, &other, 20);
	v->answers = false;
	for (unsigned int i = 0; i < 6; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 20000, 0, 10000);
	}
	for (unsigned int i = 0; i < 6; i++)
		raw_part(&r[i], 20000, 10000, 20000);
	walk_settle(w);
	before = v->n_requests;
	walk_expect(before >= 2 && before <= 4, "%u", before);
	for (unsigned int i = 0; i < 40; i++)
		raw_ask(&other, 1000, 1000);
	for (unsigned int i = 0; i < 30; i++) {
		walk_need(v->n_requests > 0);
		n_large += v->request[0].length == 20000;
		n_small += v->request[0].length == 1000;
		walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
		walk_settle(w);
		walk_expect(v->n_requests <= 4, "%u", v->n_requests);
	}
	walk_expect(n_large > before && n_large <= before + 2, "%u large of %u, %u small", n_large,
		    before, n_small);
	walk_expect_no_drops(w);
	walk_pass(w, 3100);
	walk_expect_eq(v->n_requests, 46 - n_large - n_small);
	walk_expect_no_drops(w);
	large_answer(v);
	for (unsigned int i = 0; i < 6; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	large_expect_room(w);
	walk_destroy(w);
}

/* The worker has enough of large requests, which run for long, beside small ones: those go on while
 * another large one waits. */
WALK(small_requests_go_on_while_large_ones_wait_for_each_other)
{
	struct walk *w = large_create(", queue_timeout_ms: 3000", "buffer_mb: 8");
	uint8_t payload[PACKET_MAX];
	struct tcp_header h = {0};
	struct walk_worker *v;
	struct raw r[4], other;

	raw_open(&other, w, 3100);
	v = known_worker(w, &other, 2);
	for (unsigned int i = 0; i < 4; i++)
		raw_open(&r[i], w, 3000 + i);
	raw_part(&r[0], 20000, 0, 20000);
	walk_pass(w, 100);
	v->answers = false;
	for (unsigned int i = 1; i < 4; i++)
		raw_part(&r[i], 20000, 0, 20000);
	walk_settle(w);
	walk_expect_eq(v->n_requests, 2);
	for (unsigned int i = 0; i < 60; i++) {
		while (raw_take(&other, &h, payload))
			other.ack = h.seq + tcp_header_span(&h);
		raw_ask(&other, 1000, 1000);
		walk_settle(w);
		walk_need(v->n_requests == 3, "%u of %u", v->n_requests, i);
		walk_answer(v, 2, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
		walk_settle(w);
	}
	/* One of them is answered: its turn has come before the next small one. */
	walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
	walk_settle(w);
	raw_ask(&other, 1000, 1000);
	walk_settle(w);
	walk_expect_eq(v->request[1].length, 20000);
	walk_expect_no_drops(w);
	for (unsigned int i = 0; i < 4; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	large_answer(v);
	walk_settle(w);
	large_expect_room(w);
	walk_destroy(w);
}

static struct flow *flow_of(const struct raw *r)
{
	struct packet p = {.family = 4, .tcp = true, .source_port = r->port, .payload = 20};
	struct conntrack *ct = r->w->lb->lcore[0]->ct;
	uint8_t frame[PACKET_MAX];
	struct flow_key key;
	struct flow *flow;
	uint32_t hash;
	uint16_t vlan;

	walk_need(parse_flow(frame, packet_build(&p, frame), &key, &vlan));
	hash = conntrack_hash(ct, &key);
	conntrack_lookup_burst(ct, &key, &hash, 1, &flow);
	return flow;
}

/* The flow of the request whose turn is next has ended: its connection does, and those behind it
 * go on. */
WALK(a_flow_that_ended_holds_up_no_request_behind_its_own)
{
	struct walk *w = large_create(", queue_timeout_ms: 3000", "buffer_mb: 8");
	struct walk_worker *v;
	struct raw r[6], other;
	unsigned int n;

	raw_open(&other, w, 3100);
	v = known_worker(w, &other, 20);
	v->answers = false;
	for (unsigned int i = 0; i < 6; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 20000 + i, 0, 10000);
	}
	for (unsigned int i = 0; i < 6; i++)
		raw_part(&r[i], 20000 + i, 10000, 20000 + i);
	walk_settle(w);
	n = v->n_requests;
	walk_need(n < 4, "%u", n);
	conntrack_flow_remove(w->lb->lcore[0]->ct, flow_of(&r[n]));
	walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
	walk_settle(w);
	walk_expect(v->n_requests == n && v->request[n - 1].length == 20001 + n, "%u of %u",
		    v->n_requests, n);
	walk_expect_no_drops(w);
	for (unsigned int i = 0; i < 6; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	large_answer(v);
	walk_settle(w);
	large_expect_room(w);
	walk_destroy(w);
}

#define PLACES 500

/* The time of many requests with a place is over at once: a ms ends some of them, and the next ones
 * the others. */
WALK(many_places_are_looked_at_in_turn)
{
	static const struct walk_params params = {
		.services = "  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB, "
			    "deadline_ms: 2000}\n",
		.more = "tcp: {connections: 1024, connections_percent: 100, buffer_mb: 64, "
			"unfinished: 4096, min_rate: 0}\n",
	};
	static struct raw r[PLACES];
	struct walk *w = walk_create(&params);
	struct lcore *lc = w->lb->lcore[0];

	walk_worker(w, &(struct walk_worker_params){
			       .slots = 1024,
			       .max_request = 65536,
			       .max_reply = 65536,
			       .room = PLACES * 32768,
		       });
	for (unsigned int i = 0; i < PLACES; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 30000, 0, 10);
		walk_forget(w, 0);
	}
	walk_pass(w, 1999);
	walk_expect_eq(link_outstanding(lc->links[0]), PLACES);
	walk_pass(w, 3);
	walk_expect(walk_stats(w).drop[LB_DROP_DEADLINE] >= 100 &&
			    walk_stats(w).drop[LB_DROP_DEADLINE] < PLACES,
		    "%lu", walk_stats(w).drop[LB_DROP_DEADLINE]);
	walk_pass(w, 3);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_DEADLINE], PLACES);
	large_expect_room(w);
	edge_reset(lc, EDGE_ALL_SERVICES);
	walk_pass(w, 20);
	walk_destroy(w);
}

#define LONG_REPLIES 24u
#define LONG_SIZE    30000u
#define FIRST_PORT   3000

/* Takes all that was sent, to the clients <r>; how many segments? */
static unsigned int take_long(struct walk *w, struct raw *r)
{
	static struct walk_frame f;
	unsigned int n = 0;

	while (walk_take(w, 0, &f)) {
		const uint8_t *tcp = f.bytes + 34;
		uint32_t i = (uint32_t)(tcp[2] << 8 | tcp[3]) - FIRST_PORT;
		struct tcp_header h;

		walk_need(f.bytes[23] == IPPROTO_TCP && i <= LONG_REPLIES &&
			  tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		walk_expect_eq(h.seq, r[i].ack);
		r[i].ack = h.seq + tcp_header_span(&h);
		n++;
	}
	return n;
}

/* Acknowledgements that come at once open the windows of many long replies. */
WALK(long_replies_share_a_part_of_each_turn)
{
	struct walk *w = large_create("", "buffer_mb: 16, window: 256KiB");
	struct raw r[LONG_REPLIES + 1], *quick = &r[LONG_REPLIES];
	uint32_t first[LONG_REPLIES], answer;
	unsigned int n, turns = 0, left;

	walk_worker(w, &(struct walk_worker_params){.slots = 64,
						    .max_request = 65536,
						    .max_reply = 65536,
						    .room = (LONG_REPLIES + 1) * 32768});
	for (unsigned int i = 0; i <= LONG_REPLIES; i++)
		raw_open(&r[i], w, FIRST_PORT + i);
	walk_forget(w, 0);
	for (unsigned int i = 0; i < LONG_REPLIES; i++) {
		first[i] = r[i].ack;
		raw_part(&r[i], LONG_SIZE, 0, LONG_SIZE);
		walk_pass(w, 5);
		take_long(w, r);
		walk_expect(r[i].ack - first[i] > 1000 && r[i].ack - first[i] < LONG_SIZE / 2);
	}
	for (unsigned int i = 0; i < LONG_REPLIES; i++)
		raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	n = take_long(w, r);
	/* The first ones had their part of the turn, and the others two each. */
	walk_expect(n > 32 && n < 48 + 2 * LONG_REPLIES, "%u segments", n);
	answer = quick->ack;
	raw_ask(quick, 5, 5);
	do {
		n = take_long(w, r);
		walk_expect(n <= 48 + 2, "%u segments in a turn", n);
		walk_need(turns++ < 8, "the long replies are in front of a short one");
		walk_turn(w);
	} while (quick->ack == answer);
	walk_turn(w);
	n = take_long(w, r);
	walk_expect(n > 0, "the long replies were over before");
	/* All of them come. */
	do {
		left = 0;
		for (unsigned int i = 0; i <= LONG_REPLIES; i++) {
			left += i < LONG_REPLIES && r[i].ack - first[i] != LONG_SIZE + 8;
			raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
		}
		walk_pass(w, 5);
		take_long(w, r);
		walk_need(turns++ < 100, "%u are not over", left);
	} while (left > 0);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

/* Long replies have begun, and their clients have not acknowledged what came. */
static struct walk *begin_long_replies(struct raw *r, unsigned int n)
{
	struct walk *w = large_create("", "buffer_mb: 16, window: 256KiB");

	walk_worker(w, &(struct walk_worker_params){
			       .slots = 64,
			       .max_request = 65536,
			       .max_reply = 65536,
			       .room = (n + 1) * 32768,
		       });
	for (unsigned int i = 0; i < n; i++)
		raw_open(&r[i], w, FIRST_PORT + i);
	walk_forget(w, 0);
	for (unsigned int i = 0; i < n; i++) {
		raw_part(&r[i], LONG_SIZE, 0, LONG_SIZE);
		walk_pass(w, 5);
		take_long(w, r);
	}
	return w;
}

/* Replies of many go on, two in a turn: what a client sends meanwhile is acknowledged at once, and
 * it is offered as much again. */
WALK(acknowledgements_do_not_wait_behind_long_replies)
{
	struct raw r[LONG_REPLIES + 1], *last = &r[LONG_REPLIES - 1];
	struct walk *w = begin_long_replies(r, LONG_REPLIES);
	const struct edge *e = w->lb->lcore[0]->edge;
	uint8_t payload[PACKET_MAX];
	unsigned int waiting = 0, acks = 0;
	const struct edge_client *client;
	struct edge_connection *c;
	uint32_t acked = 0;
	struct tcp_header h;

	for (unsigned int i = 0; i < LONG_REPLIES; i++)
		raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	take_long(w, r);
	TAILQ_FOREACH (client, &e->due_more, more_turn)
		STAILQ_FOREACH (c, &client->more, due)
			waiting++;
	walk_expect(waiting > 12, "%u wait", waiting);
	raw_part(last, 10000, 0, 2000);
	while (raw_take(last, &h, payload)) {
		walk_expect_eq(h.length, 0);
		acked = h.ack;
		acks++;
	}
	/* One for each turn: both bring bytes of a request whose reply is far away. */
	walk_expect_eq(acks, 2);
	walk_expect_eq(acked, last->seq);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_pass(w, 20);
	walk_destroy(w);
}

static struct edge_connection *connection_of(const struct walk *w, const struct raw *r)
{
	struct edge *e = w->lb->lcore[0]->edge;

	for (uint32_t i = 1; i <= e->connections; i++)
		if (e->connection[i].handle != 0 &&
		    edge_flow(e, &e->connection[i])->client_port == htons(r->port))
			return &e->connection[i];
	walk_need(false, "no connection");
	return NULL;
}

/* It owes an acknowledgement, too, which does not follow its reset. It is gone, and has no part in
 * later turns. */
WALK(a_connection_that_is_reset_behind_long_replies_is_gone)
{
	struct raw r[LONG_REPLIES + 1];
	struct walk *w = begin_long_replies(r, 6);
	struct edge *e = w->lb->lcore[0]->edge;
	uint32_t half = 1000;

	for (unsigned int i = 0; i < 5; i++)
		raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
	raw_put(&r[5], TCP_BIT_ACK | TCP_BIT_PSH, &half, 4);
	tcp_abort(&connection_of(w, &r[5])->tcp);
	walk_turn(w);
	while (take_long(w, r) > 0) {
		for (unsigned int i = 0; i < 5; i++)
			raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
		walk_pass(w, 5);
	}
	walk_expect_eq(e->n_open, 5);
	walk_expect_eq(e->n_open + e->n_free, e->connections);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* All requests are of one client. Those of a slow worker that are complete, and wait for it, keep
 * it from a place there, but not at a worker of another service. */
WALK(complete_requests_of_a_slow_worker_leave_their_client_places_elsewhere)
{
	static const struct walk_params params = {
		.services = "  - {name: slow, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8000, model: other, max_request: 64KiB, max_reply: 64KiB}\n"
			    "  - {name: one, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8001, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
		.more = "tcp: {connections: 256, buffer_mb: 8, unfinished: 2}\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *slow, *v = large_silent_worker(w);
	struct raw r[5], first, one = {.w = w, .port = 2000, .service = 8001, .seq = 5};

	slow = walk_worker(w, &(struct walk_worker_params){.model = "other",
							   .max_batch = 1,
							   .max_request = 65536,
							   .max_reply = 65536,
							   .room = 262144});
	slow->delay_ms = 20;
	slow->run_ns = 20000000;
	raw_open(&first, w, 2999);
	raw_part(&first, 20000, 0, 20000);
	walk_pass(w, 30);
	slow->answers = false;
	for (unsigned int i = 0; i < 5; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 20000, 0, 20000);
	}
	walk_settle(w);
	walk_expect_eq(slow->n_requests, 2);
	/* Two are placed beside them, and the fifth is not. */
	walk_expect_eq(link_outstanding(w->lb->lcore[0]->link[walk_worker_of(slow)->number]), 4);
	raw_connect(&one);
	raw_part(&one, 30000, 0, 30000);
	walk_settle(w);
	walk_expect_eq(v->n_requests, 1);
	slow->answers = true;
	walk_pass(w, 200);
	walk_expect_eq(walk_stats(w).replies, 6);
	large_answer(v);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_pass(w, 20);
	large_expect_room(w);
	walk_destroy(w);
}

#define FAR 200

/* Clients send the rest of their request 30 ms after it has its place. The worker takes a ms for
 * each, and does not run dry. */
WALK(a_worker_does_not_run_dry_while_clients_far_away_fill_their_places)
{
	static const struct walk_params params = {
		.services = "  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB, "
			    "queue_timeout_ms: 10000}\n",
		.more = "tcp: {connections: 512, connections_percent: 100, buffer_mb: 64, "
			"unfinished: 4096}\n",
	};
	struct walk *w = walk_create(&params);
	struct lcore *lc = w->lb->lcore[0];
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 64,
						       .max_batch = 1,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 64 * 32768,
					       });
	unsigned int placed = 0, answered = 0;
	static struct raw r[FAR], first;
	unsigned int at[FAR];

	v->run_ns = 1000000;
	v->answers = false;
	raw_open(&first, w, 2999);
	for (unsigned int i = 0; i < 10; i++) {
		raw_part(&first, 20000, 0, 20000);
		walk_pass(w, 1);
		walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
		walk_settle(w);
	}
	for (unsigned int i = 0; i < FAR; i++)
		raw_open(&r[i], w, 3000 + i);
	for (unsigned int i = 0; i < FAR; i++)
		raw_part(&r[i], 20000, 0, 10000);
	for (unsigned int ms = 0; ms < 200; ms++) {
		for (; placed < answered + link_outstanding(lc->links[0]); placed++)
			at[placed] = ms;
		for (unsigned int i = 0; i < placed; i++)
			if (at[i] + 30 == ms)
				raw_part(&r[i], 20000, 10000, 20000);
		if (v->n_requests > 0)
			walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
		answered = walk_stats(w).replies - 10;
		walk_pass(w, 1);
		walk_forget(w, 0);
	}
	walk_expect(answered > 140, "%u", answered);
	edge_reset(lc, EDGE_ALL_SERVICES);
	walk_pass(w, 20);
	walk_destroy(w);
}

/* A client goes, and then the worker, while requests are complete and wait for it. */
WALK(complete_requests_of_a_slow_worker_that_goes_are_ended)
{
	struct walk *w = large_create(", queue_timeout_ms: 3000", "buffer_mb: 8");
	struct walk_worker *v;
	struct raw r[6], other;

	raw_open(&other, w, 3100);
	v = known_worker(w, &other, 20);
	v->answers = false;
	for (unsigned int i = 0; i < 6; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 20000, 0, 10000);
	}
	for (unsigned int i = 0; i < 6; i++)
		raw_part(&r[i], 20000, 10000, 20000);
	walk_settle(w);
	walk_expect(v->n_requests <= 4, "%u", v->n_requests);
	raw_send(&r[5], TCP_BIT_RST, NULL, 0);
	large_take_worker(w, v);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 5});
	for (unsigned int i = 0; i < 5; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	large_expect_room(w);
	walk_destroy(w);
}

/* Bytes come in the same ms in which the worker goes: nothing is written to it any more, or counted
 * for the worker that gets its number. */
WALK(bytes_that_come_when_their_worker_has_gone_are_not_written)
{
	struct walk *w = large_create("", "buffer_mb: 8");
	struct walk_worker *v = large_silent_worker(w);
	struct lcore *lc = w->lb->lcore[0];
	uint16_t number = walk_worker_of(v)->number;
	struct raw r;

	raw_open(&r, w, 3000);
	raw_part(&r, 30000, 0, 10000);
	walk_settle(w);
	walk_expect_eq(lc->load.placed[number], 1);
	lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
	raw_part(&r, 30000, 10000, 30000);
	walk_settle(w);
	walk_expect_eq(lc->load.placed[number], 0);
	walk_expect_eq(lc->n_active, 0);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	raw_expect_answer(&r, LB_NOTICE_WORKER_LOST, 0);
	raw_end(&r);
}

/* The worker has room for one of them. The first is given four seconds less than if it were alone.
 */
WALK(a_drip_loses_its_place_sooner_when_another_request_waits)
{
	struct walk *w = large_create(", queue_timeout_ms: 5000", "buffer_mb: 8, min_rate: 4KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 2,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw drip, other;

	v->answers = false;
	raw_open(&drip, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&drip, 60000, 0, 2000);
	walk_pass(w, 2000);
	walk_expect_no_drops(w);
	raw_part(&other, 60000, 0, 60000);
	walk_pass(w, 5);
	walk_expect_no_drops(w);
	walk_pass(w, 50);
	walk_expect_drops(w, {LB_DROP_TCP_SLOW, 1});
	raw_part(&other, 60000, 0, 60000);
	large_expect_request(v, 0, 60000);
	raw_send(&drip, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	walk_destroy(w);
}

#define CROWD 1400

/* All of one client but the last, whose service is another; its model has a worker. */
WALK(many_requests_that_wait_hold_up_no_other_service)
{
	static const struct walk_params params = {
		.services = "  - {name: crowd, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8000, model: other, max_request: 64KiB, max_reply: 64KiB, "
			    "queue_timeout_ms: 60000}\n"
			    "  - {name: one, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8001, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
		.more = "tcp: {connections: 2048, connections_percent: 100, buffer_mb: 64, "
			"unfinished: 4096}\n",
		.flows = 4096,
	};
	static struct raw crowd[CROWD];
	struct walk *w = walk_create(&params);
	struct walk_worker *v = large_silent_worker(w);
	struct raw r;

	walk_worker(w, &(struct walk_worker_params){.model = "other",
						    .max_request = 65536,
						    .max_reply = 65536,
						    .room = 262144});
	for (unsigned int i = 0; i < CROWD; i++) {
		raw_open(&crowd[i], w, 3000 + i);
		raw_part(&crowd[i], 30000, 0, 10);
		walk_forget(w, 0);
	}
	r = (struct raw){.w = w, .port = 2000, .service = 8001, .seq = 5};
	raw_connect(&r);
	raw_part(&r, 30000, 0, 30000);
	walk_pass(w, 20);
	walk_expect_eq(v->n_requests, 1);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_pass(w, 100);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}
