/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that their clients cancel, and tagged framing. */
#include "packet/request.h"
#include "worker.h"
#include "walk/cancel.h"

static struct walk *tagged_walk(unsigned int lcores)
{
	return walk_create(&(struct walk_params){
		.services = WALK_SERVICE("a", 8000, "echo", ", framing: tagged"),
		.lcores = lcores});
}

static void send_tagged(struct walk *w, uint8_t kind, uint64_t id, struct walk_tagged *t)
{
	struct packet p;

	*t = (struct walk_tagged){.kind = kind, .id = id};
	p = walk_tagged(t);
	walk_send(w, 0, &p);
	walk_settle(w);
}

WALK(a_tagged_request_comes_back_with_its_id)
{
	struct walk *w = tagged_walk(1);
	struct walk_worker *v = walk_worker(w, NULL);
	static struct walk_frame f;
	struct walk_tagged t;

	send_tagged(w, 0, 77, &t);
	walk_expect_eq(v->answered, 1);
	walk_need(walk_take(w, 0, &f));
	walk_expect_eq(f.n_payload, 32);
	walk_expect_eq(f.payload[5], LB_REQUEST_REPLY);
	walk_expect_eq(f.payload[8], 77);
	walk_expect(memcmp(f.payload + 24, t.bytes + 24, 8) == 0);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(a_cancel_of_a_request_in_flight)
{
	struct walk *w = tagged_walk(1);
	struct walk_worker *v = walk_worker(w, NULL);
	struct walk_tagged a, b, c;
	struct packet p;

	v->answers = false;
	send_tagged(w, 0, 1, &a);
	send_tagged(w, 0, 2, &b);
	send_tagged(w, LB_REQUEST_CANCEL, 1, &c);
	p = walk_tagged(&a);
	walk_expect_notice(w, 0, &p, LB_NOTICE_CANCELLED);
	walk_expect_drops(w, {LB_DROP_CANCELLED, 1});
	walk_expect(v->request[0].cancelled && !v->request[1].cancelled);
	/* Only the other one's reply reaches the client. */
	v->answers = true;
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 1);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 1});
	walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	walk_destroy(w);
}

/* The load balancer slept, and finds them together. */
WALK(a_cancel_in_the_burst_of_its_request)
{
	struct walk *w = tagged_walk(1);
	struct walk_worker *v = walk_worker(w, NULL);
	struct walk_tagged t[5];
	struct packet p;

	v->answers = false;
	for (unsigned int i = 0; i < 5; i++) {
		t[i] = (struct walk_tagged){.kind = i < 3 ? 0 : LB_REQUEST_CANCEL,
					    .id = i < 3 ? i : 4 - i};
		p = walk_tagged(&t[i]);
		walk_send(w, 0, &p);
	}
	walk_settle(w);
	for (unsigned int i = 2; i-- > 0;) {
		p = walk_tagged(&t[i]);
		walk_expect_notice(w, 0, &p, LB_NOTICE_CANCELLED);
	}
	walk_expect_drops(w, {LB_DROP_CANCELLED, 2});
	walk_expect_eq(v->n_requests, 1);
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 1);
	walk_destroy(w);
}

WALK(a_cancel_of_a_request_that_waits)
{
	struct walk *w = tagged_walk(1);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 2});
	struct walk_tagged t, c;
	struct packet p;

	v->answers = false;
	for (uint64_t id = 1; id <= 3; id++)
		send_tagged(w, 0, id, &t);
	walk_expect_eq(walk_service_stats(w, 0).queued, 1);
	send_tagged(w, LB_REQUEST_CANCEL, 3, &c);
	p = walk_tagged(&t);
	walk_expect_notice(w, 0, &p, LB_NOTICE_CANCELLED);
	walk_expect_eq(walk_service_stats(w, 0).queued, 0);
	walk_expect_drops(w, {LB_DROP_CANCELLED, 1});
	walk_expect_eq(v->n_requests, 2);
	walk_destroy(w);
}

WALK(a_cancel_of_nothing_is_counted_and_not_answered)
{
	struct walk *w = tagged_walk(1);
	struct walk_tagged t;

	walk_worker(w, NULL);
	send_tagged(w, 0, 1, &t);
	walk_forget(w, 0);
	send_tagged(w, LB_REQUEST_CANCEL, 1, &t);
	send_tagged(w, LB_REQUEST_CANCEL, 99, &t);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_CANCEL_UNKNOWN, 2});
	walk_destroy(w);
}

WALK(nobody_cancels_anothers_request)
{
	struct walk *w = tagged_walk(1);
	struct walk_worker *v = walk_worker(w, NULL);
	struct walk_tagged t, c = {.kind = LB_REQUEST_CANCEL, .id = 1};
	struct packet p = walk_tagged(&c);

	v->answers = false;
	send_tagged(w, 0, 1, &t);
	p.source_port = 40001;
	walk_send(w, 0, &p);
	p.source_port = 40000;
	p.source = "192.0.2.8";
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_expect_silence(w, 0);
	walk_expect(!v->request[0].cancelled);
	walk_expect_drops(w, {LB_DROP_CANCEL_UNKNOWN, 2});
	walk_destroy(w);
}

WALK(cancels_beyond_the_budget_are_counted)
{
	struct walk *w = tagged_walk(1);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 256});
	struct walk_tagged t;
	uint64_t dropped;

	v->answers = false;
	for (uint64_t id = 0; id < 256; id++)
		send_tagged(w, 0, id, &t);
	for (int i = 0; i < 40; i++)
		send_tagged(w, LB_REQUEST_CANCEL, 1000 + i, &t);
	dropped = walk_stats(w).drop[LB_DROP_CANCEL_LIMIT];
	walk_expect(dropped > 0 && dropped + walk_stats(w).drop[LB_DROP_CANCEL_UNKNOWN] == 40,
		    "%lu", dropped);
	/* A ms later the budget admits another cancel. */
	walk_pass(w, 2);
	send_tagged(w, LB_REQUEST_CANCEL, 255, &t);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_CANCELLED], 1);
	walk_destroy(w);
}

WALK(what_is_no_tagged_request_is_told_so)
{
	struct walk *w = tagged_walk(1);
	struct packet plain = {.family = 4, .payload = 100};

	walk_worker(w, NULL);
	walk_send(w, 0, &plain);
	walk_settle(w);
	walk_expect_notice(w, 0, &plain, LB_NOTICE_MALFORMED);
	walk_expect_drops(w, {LB_DROP_FRAMING, 1});
	walk_destroy(w);
}

WALK(a_requests_own_deadline_is_what_the_worker_gets)
{
	struct walk *w = tagged_walk(1);
	struct walk_worker *v = walk_worker(w, NULL);
	struct walk_tagged t = {.id = 1, .deadline_us = 30000};
	struct packet p = walk_tagged(&t);

	v->answers = false;
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_need(v->n_requests == 1);
	walk_expect_eq(v->request[0].deadline_us, 30000);
	walk_jump(w, 31);
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_notice(w, 0, &p, LB_NOTICE_DEADLINE);
	walk_expect_drops(w, {LB_DROP_DEADLINE, 1});
	walk_destroy(w);
}

WALK(a_flow_that_is_over_frees_its_slots)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("a", 8000, "echo",
					 ", queue_timeout_ms: 1, request_timeout_ms: 3000, "
					 "one_way_timeout_ms: 3001"),
		.more = "workers: {timeout_ms: 60000, suspect_ms: 0}\n"});
	struct walk_worker *v = walk_worker(w, NULL);
	struct packet ask = {.family = 4, .payload = 10};
	struct flow *flow;

	v->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	flow = walk_flow(w, &ask);
	walk_need(flow != NULL && v->n_requests == 1);
	conntrack_flow_remove(w->lb->lcore[0]->ct, flow);
	walk_pass(w, 2);
	walk_expect(v->request[0].cancelled);
	walk_expect_drops(w, {LB_DROP_CANCELLED, 1});
	walk_expect_silence(w, 0);
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 1});
	walk_destroy(w);
}

/* Requests that were written but not announced, because their descriptors are still to go, and
 * cancels that come before those: the window must have room for all. */
WALK(cancels_leave_the_window_room_for_what_is_to_be_announced)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("a", 8000, "echo", ", framing: tagged"), .packets = 8192});
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 1024});
	struct link *link = w->lb->lcore[0]->link[0];
	struct requester *rq = &link->requester;
	struct walk_tagged t;

	v->answers = v->acknowledges = false;
	for (uint64_t id = 1; requester_unacked(rq) < REQUESTER_WINDOW - 2; id++)
		send_tagged(w, 0, id, &t);
	walk_expect_eq(requester_unacked(rq), REQUESTER_WINDOW - 2);
	/* As after requests that housekeeping sends: announced in the next turn. */
	link->batched = 1;
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t newest = link->busy.newest;

		cancel_slot(w->lb->lcore[0], link, newest);
		walk_expect_eq(link->slot[newest].cancel_due, i == 1);
	}
	link->batched = 0;
	v->acknowledges = v->answers = true;
	walk_settle(w);
	walk_destroy(w);
}

/* 200 requests that their client has cancelled, at a worker that acknowledges late. */
static struct walk *given_up(struct walk_worker **v)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("a", 8000, "echo", ", request_timeout_ms: 20"),
		.more = "workers: {suspect_ms: 0}\n"});
	struct packet ask = {.family = 4, .payload = 10};

	*v = walk_worker(w, &(struct walk_worker_params){.slots = 256});
	(*v)->answers = false;
	for (unsigned int i = 0; i < 200; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_need((*v)->n_requests == 200);
	(*v)->acknowledges = false;
	walk_pass(w, 30);
	walk_expect_drops(w, {LB_DROP_REQUEST_TIMEOUT, 200});
	return w;
}

static unsigned int cancelled(const struct walk_worker *v)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < v->n_requests; i++)
		n += v->request[i].cancelled;
	return n;
}

WALK(a_worker_that_was_behind_is_told_once_it_has_caught_up)
{
	struct walk_worker *v;
	struct walk *w = given_up(&v);

	walk_expect_eq(cancelled(v), LINK_CANCELS_MAX);
	v->acknowledges = true;
	walk_pass(w, 40);
	walk_expect_eq(cancelled(v), 200);
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 200});
	walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	walk_destroy(w);
}

WALK(a_worker_is_not_told_of_what_it_has_answered_by_then)
{
	struct walk_worker *v;
	struct walk *w = given_up(&v);
	struct packet ask = {.family = 4, .payload = 10};

	walk_need(!v->request[150].cancelled);
	while (v->n_requests > 100)
		walk_answer(v, 100, &(struct walk_reply){0});
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 100}, {LB_DROP_CANCEL_UNSENT, 100});
	/* By now other requests have its slots. */
	v->acknowledges = true;
	for (unsigned int i = 0; i < 100; i++)
		walk_send(w, 0, &ask);
	walk_pass(w, 15);
	walk_need(v->n_requests == 200);
	walk_expect_eq(cancelled(v), 100);
	walk_expect(!v->request[150].cancelled);
	walk_answer_all(v);
	walk_settle(w);
	walk_destroy(w);
}
