/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies to clients: chunks, sizes, states of the worker's answer, times. */
#include "worker.h"

static const struct packet ask = {.family = 4, .payload = 100};

static struct walk_worker *asked(struct walk *w, const struct packet *p)
{
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = false;
	walk_send(w, 0, p);
	walk_settle(w);
	walk_need(v->n_requests == 1);
	return v;
}

struct outcome {
	const char *name;
	uint8_t status, notice; /* 0: the reply itself */
};

WALK(what_the_worker_says_of_a_request)
{
	static const struct outcome rows[] = {
		{"ok", RING_OK, 0},
		{"the model failed", RING_ERROR, LB_NOTICE_MODEL_ERROR},
		{"it came too late", RING_EXPIRED, LB_NOTICE_EXPIRED},
		{"it was cancelled", RING_CANCELLED, LB_NOTICE_CANCELLED},
		{"it did not hold", RING_BAD, LB_NOTICE_MODEL_ERROR},
		{"a state that is not", 77, LB_NOTICE_MODEL_ERROR},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct walk *w = walk_create(NULL);
		struct walk_worker *v = asked(w, &ask);

		walk_context("%s", rows[i].name);
		walk_answer(v, 0, &(struct walk_reply){.status = rows[i].status});
		walk_settle(w);
		if (rows[i].notice != 0)
			walk_expect_notice(w, 0, &ask, rows[i].notice);
		else
			walk_expect_echo(w, 0, &ask);
		walk_expect_no_drops(w);
		walk_expect_eq(walk_worker_stats(v).outstanding, 0);
		walk_expect_eq(walk_worker_stats(v).errors, rows[i].status != RING_OK);
		walk_destroy(w);
	}
}

WALK(replies_of_any_length_and_path)
{
	static const uint16_t lengths[] = {0, 1, 2, 3, 4, 215, 216, 217, 512, 999, 1472};
	static uint8_t bytes[1472];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i * 7;
	for (uint32_t mtu = 256; mtu <= 1024; mtu *= 2) {
		struct walk *w = walk_create(NULL);
		struct walk_worker *v =
			walk_worker(w, &(struct walk_worker_params){.path_mtu = mtu});

		v->answers = false;
		for (size_t i = 0; i < RTE_DIM(lengths); i++) {
			walk_context("%u bytes at %u", lengths[i], mtu);
			walk_send(w, 0, &ask);
			walk_settle(w);
			walk_need(v->n_requests == 1);
			walk_answer(v, 0,
				    &(struct walk_reply){.bytes = bytes, .n_bytes = lengths[i]});
			walk_settle(w);
			walk_expect_reply(w, 0, &ask, bytes, lengths[i]);
		}
		walk_context("%s", "");
		walk_expect_no_drops(w);
		walk_expect_eq(walk_stats(w).payload_copies, 0);
		walk_destroy(w);
	}
}

WALK(chunks_come_one_by_one_and_the_last_frees_the_slot)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = asked(w, &ask);

	walk_answer(v, 0, &(struct walk_reply){.bytes = "one", .n_bytes = 3, .more = true});
	walk_settle(w);
	walk_expect_reply(w, 0, &ask, "one", 3);
	walk_expect_eq(walk_worker_stats(v).outstanding, 1);
	walk_expect_eq(walk_service_stats(w, 0).replies, 0);
	walk_answer(v, 0, &(struct walk_reply){.bytes = "two", .n_bytes = 3});
	walk_settle(w);
	walk_expect_reply(w, 0, &ask, "two", 3);
	walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	walk_expect_eq(walk_service_stats(w, 0).replies, 1);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(replies_and_heartbeats_tell_the_backlog)
{
	struct walk *w = walk_create(&(struct walk_params){.lcores = 2});
	struct walk_worker *v = asked(w, &ask);

	v->backlog = 70000;
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_expect_eq(walk_worker_stats(v).backlog, 65535);
	walk_beat(v);
	walk_settle(w);
	walk_expect_eq(walk_worker_stats(v).backlog, 70000);
	v->backlog = 0;
	walk_beat(v);
	walk_settle(w);
	walk_expect_eq(walk_worker_stats(v).backlog, 0);
	walk_destroy(w);
}

/* A worker may not answer a request that it was not told of. */
WALK(a_reply_to_a_request_that_is_still_being_filled)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = asked(w, &ask);
	struct link *link = w->lb->lcore[0]->link[walk_worker_of(v)->number];
	struct walk_request again = v->request[0];
	struct link_place place;

	walk_answer_all(v);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_expect_eq(link_take(link, 100, 0, &place), LINK_TAKEN);
	walk_expect_eq(place.slot, again.slot);
	v->request[v->n_requests++] = again;
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 1});
	walk_expect_eq(walk_worker_stats(v).outstanding, 1);
	link_give_back(link, &place);
	walk_destroy(w);
}

/* Announced by hand as the owner of a stream does it, in pieces, into the room. */
WALK(a_request_in_pieces_lies_in_the_room)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v =
		walk_worker(w, &(struct walk_worker_params){.max_request = 40000, .room = 81920});
	struct lcore *lc = w->lb->lcore[0];
	struct link *link = lc->link[walk_worker_of(v)->number];
	struct ring_descriptor request = {.length = 20000};
	struct link_place place;

	walk_expect_eq(link_take(link, 40001, 0, &place), LINK_TAKEN);
	link_give_back(link, &place);
	walk_expect_eq(link_take(link, 20000, 0, &place), LINK_TAKEN);
	v->answers = false;
	for (uint32_t at = 0; at < 20000; at += 1000) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(lc->packets);

		memset(rte_pktmbuf_append(m, 1000), at / 1000, 1000);
		walk_expect_eq(link_write(link, &place, at, m, at == 19000, REQUESTER_WINDOW), 0);
	}
	walk_expect_eq(link_announce(link, &place, &request, 0, lc->now, lc->now, REQUESTER_WINDOW,
				     lc->packets),
		       0);
	workers_load_sent(&lc->load, link->worker, lc->now);
	lcore_mark_dirty(lc, link);
	walk_settle(w);
	walk_need(v->n_requests == 1, "%u requests", v->n_requests);
	walk_expect_eq(v->request[0].length, 20000);
	for (uint32_t at = 0; at < 20000; at++)
		walk_need(v->request[0].bytes[at] == at / 1000, "byte %u", at);
	link->slot[place.slot].state = SLOT_PROBE; /* no client waits for it */
	link->busy = (struct slot_list){SLOT_NONE, SLOT_NONE};
	walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
	walk_settle(w);
	walk_expect_eq(link->room.free, link->room.pages);
	walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	walk_destroy(w);
}

WALK(a_reply_that_fits_no_datagram_of_the_service)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("a", 8000, "echo", ", max_reply: 50")
			WALK_SERVICE("b", 8001, "echo", ", max_reply: 1472")});
	struct walk_worker *v = asked(w, &ask);

	walk_answer_all(v);
	walk_settle(w);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_MODEL_ERROR);
	walk_expect_drops(w, {LB_DROP_REPLY_TOO_LARGE, 1});
	walk_destroy(w);
}

WALK(a_reply_for_a_flow_that_is_over)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = asked(w, &ask);

	conntrack_flow_remove(w->lb->lcore[0]->ct, walk_flow(w, &ask));
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_REPLY_NO_FLOW, 1});
	walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	walk_destroy(w);
}

WALK(a_second_answer_to_a_request_is_stale)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = asked(w, &ask);
	struct walk_request again = v->request[0];

	walk_answer_all(v);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	v->request[v->n_requests++] = again;
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 1});
	walk_destroy(w);
}

WALK(ports_that_send_no_chains_get_replies_in_one_piece)
{
	struct walk *w = walk_create(&(struct walk_params){.no_chains = true});
	struct packet large = {.family = 4, .payload = 1400};

	walk_worker(w, &(struct walk_worker_params){.path_mtu = 256});
	for (int i = 0; i < 3; i++) {
		walk_send(w, 0, &large);
		walk_settle(w);
		walk_expect_echo(w, 0, &large);
	}
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(times_that_make_no_sense_break_nothing)
{
	static const struct walk_reply rows[] = {
		{.seen_ns = 5, .start_ns = 4, .done_ns = 3},
		{.seen_ns = UINT64_MAX, .start_ns = 0, .done_ns = UINT64_MAX},
		{.seen_ns = 1, .start_ns = 1, .done_ns = UINT64_MAX},
		{.seen_ns = 0, .start_ns = UINT64_MAX, .done_ns = 1},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct walk *w = walk_create(NULL);
		struct walk_worker *v = asked(w, &ask);

		walk_context("row %zu", i);
		walk_answer(v, 0, &rows[i]);
		walk_settle(w);
		walk_expect_echo(w, 0, &ask);
		/* A reported time counts only up to a limit: the worker must still be missed when
		 * it is gone. */
		v->gone = true;
		walk_pass(w, 30);
		walk_jump(w, 20 * 60 * 1000);
		walk_turn(w);
		walk_tick(w);
		walk_turn(w);
		walk_expect(walk_worker_of(v) == NULL);
		walk_destroy(w);
	}
}

WALK(counters_of_a_reply)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	struct lb_service_stats s;
	struct lb_lcore_stats all;
	struct flow *flow;

	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_send(w, 0, &ask);
	walk_settle(w);
	s = walk_service_stats(w, 0);
	all = walk_stats(w);
	flow = walk_flow(w, &ask);
	walk_expect_eq(s.requests, 2);
	walk_expect_eq(s.replies, 2);
	walk_expect_eq(s.bytes_in, 200);
	walk_expect_eq(s.bytes_out, 200);
	walk_expect_eq(s.drops + s.notices + s.queued, 0);
	walk_expect_eq(all.requests, 2);
	walk_expect_eq(all.replies, 2);
	walk_need(flow != NULL);
	walk_expect_eq(flow->packets_in_low, 2);
	walk_expect_eq(flow->requests_low, 2);
	walk_expect_eq(flow->bytes_in, 200);
	walk_expect_eq(flow->state, FLOW_UDP_ESTABLISHED);
	walk_expect_eq(walk_worker_stats(v).replies, 2);
	walk_destroy(w);
}

/* The ports in the order in which they sent, from walk_turn() to walk_turn(). */
struct order {
	uint16_t port[8];
	unsigned int n;
};

static uint16_t note_port(uint16_t port, uint16_t queue, struct rte_mbuf *packet[], uint16_t n,
			  void *argument)
{
	struct order *o = argument;

	(void)queue;
	(void)packet;
	if (n > 0 && o->n < RTE_DIM(o->port))
		o->port[o->n++] = port;
	return n;
}

/* Answer <replies> requests while another one comes in if it <asks>. */
static void note_order(unsigned int replies, bool asks, struct order *o)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	const struct rte_eth_rxtx_callback *callback[2];
	unsigned int port[] = {0, w->fabric};

	v->answers = false;
	for (unsigned int i = 0; i < replies; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_need(v->n_requests == replies);
	for (unsigned int i = 0; i < replies; i++)
		walk_answer(v, 0, NULL);
	if (asks)
		walk_send(w, 0, &ask);
	*o = (struct order){0};
	for (unsigned int i = 0; i < 2; i++)
		callback[i] = rte_eth_add_tx_callback(w->nic[port[i]].port, 0, note_port, o);
	walk_turn_lcore(w, 0);
	for (unsigned int i = 0; i < 2; i++)
		rte_eth_remove_tx_callback(w->nic[port[i]].port, 0, callback[i]);
	for (unsigned int i = 0; i < o->n; i++)
		o->port[i] = o->port[i] == w->nic[w->fabric].port;
	walk_settle(w);
	walk_destroy(w);
}

/* A reply that comes alone does not wait for its acknowledgement, nor a request for many replies.
 */
WALK(few_replies_leave_first_then_requests)
{
	struct order o;

	note_order(1, false, &o);
	walk_expect_eq(o.n, 2);
	walk_expect_eq(o.port[0], 0);
	walk_expect_eq(o.port[1], 1);
	note_order(4, true, &o);
	walk_expect_eq(o.n, 2);
	walk_expect_eq(o.port[0], 0);
	note_order(5, true, &o);
	walk_expect_eq(o.n, 2);
	walk_expect_eq(o.port[0], 1);
	walk_expect_eq(o.port[1], 0);
}
