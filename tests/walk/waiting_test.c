/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that wait for a credit: which go first, and which get a notice after too long a wait. */
#include "packet/request.h"
#include "worker.h"
#include "lb.h"

static const struct packet ask = {.family = 4, .payload = 100};

/* A worker that answers nothing and has all its slots taken by one client. */
static const struct packet filling = {.family = 4, .payload = 40, .source = "192.0.2.200"};

static struct walk_worker *full_worker(struct walk *w, uint32_t slots)
{
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = slots});

	v->answers = false;
	for (uint32_t i = 0; i < slots; i++)
		walk_send(w, 0, &filling);
	walk_settle(w);
	walk_need(v->n_requests == slots);
	return v;
}

static struct walk *walk_with(const char *more)
{
	char services[512];

	snprintf(services, sizeof(services),
		 "  - {name: a, address: " PACKET_DESTINATION4 ", port: 8000, model: echo%s}\n",
		 more);
	return walk_create(&(struct walk_params){.services = services});
}

WALK(who_waits_too_long_is_told_so)
{
	struct walk *w = walk_with(", queue_timeout_ms: 50");

	full_worker(w, 2);
	walk_send(w, 0, &ask);
	walk_pass(w, 50);
	walk_expect_silence(w, 0);
	walk_expect_eq(walk_service_stats(w, 0).queued, 1);
	walk_pass(w, 2);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_BUSY);
	walk_expect_drops(w, {LB_DROP_QUEUE_TIMEOUT, 1});
	walk_expect_eq(walk_service_stats(w, 0).queued, 0);
	walk_destroy(w);
}

WALK(a_full_queue_refuses)
{
	struct walk *w = walk_with(", queue: 3");

	full_worker(w, 2);
	for (int i = 0; i < 5; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_eq(walk_service_stats(w, 0).queued, 3);
	walk_expect_eq(walk_count(w, 0), 2);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_BUSY);
	walk_expect_drops(w, {LB_DROP_QUEUE_FULL, 2});
	walk_destroy(w);
}

WALK(a_service_without_a_queue_refuses_at_once)
{
	struct walk *w = walk_with(", queue: 0");

	full_worker(w, 2);
	walk_send(w, 0, &ask);
	walk_turn(w);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_BUSY);
	walk_expect_drops(w, {LB_DROP_QUEUE_FULL, 1});
	walk_destroy(w);
}

WALK(each_credit_lets_one_go_in_the_order_of_arrival)
{
	struct walk *w = walk_with("");
	struct walk_worker *v = full_worker(w, 2);
	struct packet p[3] = {ask, ask, ask};

	for (int i = 0; i < 3; i++) {
		p[i].payload = 60 + i;
		walk_send(w, 0, &p[i]);
	}
	walk_settle(w);
	for (int i = 0; i < 3; i++) {
		walk_answer(v, 0, NULL);
		walk_settle(w);
		walk_expect_eq(v->n_requests, 2);
		walk_expect_eq(v->request[1].length, 60 + i);
		walk_expect_eq(walk_service_stats(w, 0).queued, 2 - i);
	}
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(clients_take_turns)
{
	struct walk *w = walk_with("");
	struct walk_worker *v = full_worker(w, 2);
	struct packet greedy = ask, modest = {.family = 4, .payload = 20, .source = "192.0.2.99"};
	unsigned int at = 0;

	/* With a random seed they would share a client queue one time in 64. */
	w->lb->lcore[0]->client_queue_seed = 1;
	for (int i = 0; i < 20; i++)
		walk_send(w, 0, &greedy);
	walk_send(w, 0, &modest);
	walk_settle(w);
	/* It is among the next two, for any order of the client queues. */
	for (at = 0; at < 20 && v->request[v->n_requests - 1].length != 20; at++) {
		walk_answer(v, 0, NULL);
		walk_settle(w);
	}
	walk_expect(at <= 2, "it was number %u", at);
	walk_destroy(w);
}

WALK(the_more_urgent_go_first)
{
	struct walk *w = walk_with(", framing: tagged, priority: 1");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 2});
	static const uint8_t sent[] = {0, 0, 4, 2, 3, 1}, expected[] = {0, 0, 1, 2, 3, 4};
	static struct walk_frame f;

	v->answers = false;
	for (int i = 0; i < 6; i++) {
		struct walk_tagged t = {.id = sent[i], .priority = sent[i]};
		struct packet p = walk_tagged(&t);

		p.source_port = 2000 + i;
		walk_send(w, 0, &p);
		walk_settle(w);
	}
	for (int i = 0; i < 6; i++) {
		walk_context("place %d", i);
		walk_answer(v, 0, NULL);
		walk_settle(w);
		walk_need(walk_take(w, 0, &f));
		walk_expect_eq(f.payload[8], expected[i]);
	}
	walk_destroy(w);
}

WALK(a_deadline_that_cannot_be_kept_is_refused_early)
{
	struct walk *w = walk_with(", deadline_ms: 20, queue_timeout_ms: 500");

	full_worker(w, 2);
	walk_forget(w, 0);
	walk_expect_no_drops(w);
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_pass(w, 25);
	/* The request waited until its time was over, or was refused at once: it gets the notice in
	 * both cases. So do the two that the worker has not answered. */
	walk_expect_notice(w, 0, &ask, LB_NOTICE_DEADLINE);
	for (int i = 0; i < 2; i++)
		walk_expect_notice(w, 0, &filling, LB_NOTICE_DEADLINE);
	walk_expect_silence(w, 0);
	walk_destroy(w);
}

/* Time in the queue is gone at the worker, which gets the load balancer's clock for the rest. */
WALK(a_request_that_waited_has_less_time_at_the_worker)
{
	static const unsigned int waits[] = {0, 15, 40};

	for (unsigned int i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		struct walk *w = walk_with(", deadline_ms: 100, queue_timeout_ms: 500");
		struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 2});
		const struct walk_request *last;
		uint32_t sent_us;

		v->answers = false;
		for (int k = 0; k < 3; k++)
			walk_send(w, 0, &ask);
		walk_settle(w);
		walk_need(v->n_requests == 2);
		sent_us = v->request[0].sent_us;
		walk_expect(sent_us != 0, "no stamp");
		walk_pass(w, waits[i]);
		walk_answer(v, 0, NULL);
		walk_settle(w);
		walk_need(v->n_requests == 2);
		last = &v->request[1];
		walk_expect(last->deadline_us <= 100000 - waits[i] * 1000 &&
				    last->deadline_us >= 95000 - waits[i] * 1000,
			    "it waited for %u ms and has %u us left", waits[i], last->deadline_us);
		walk_expect(last->sent_us - sent_us >= waits[i] * 1000 &&
				    last->sent_us - sent_us <= waits[i] * 1000 + 5000,
			    "%u us between two stamps", last->sent_us - sent_us);
		walk_destroy(w);
	}
}

WALK(those_who_wait_are_told_when_the_last_worker_leaves)
{
	struct walk *w = walk_with("");
	struct walk_worker *v = full_worker(w, 2);

	walk_send(w, 0, &ask);
	walk_settle(w);
	lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
	v->gone = true;
	walk_turn(w);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_BUSY);
	walk_pass(w, 2);
	walk_expect_drops(w, {LB_DROP_NO_WORKER, 1}, {LB_DROP_WORKER_LOST, 2});
	walk_destroy(w);
}

WALK(a_new_worker_gets_those_who_wait)
{
	struct walk *w = walk_with("");
	struct walk_worker *v = full_worker(w, 2), *other;

	for (int i = 0; i < 5; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	other = walk_worker(w, NULL);
	walk_settle(w);
	walk_expect_eq(other->answered, 5);
	walk_expect_eq(v->n_requests, 2);
	for (int i = 0; i < 5; i++)
		walk_expect_echo(w, 0, &ask);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(a_request_whose_flow_has_gone_waits_no_longer)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("a", 8000, "echo", ", queue_timeout_ms: 400"),
		.flows = 64,
		.more = "reclaim_after_ms: 1\n"});
	struct packet p = ask;

	full_worker(w, 2);
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_pass(w, 5);
	/* The table is full of other flows: the flow ends early. */
	for (int i = 0; i < 200; i++) {
		p.source_port = 5000 + i;
		p.payload = 0;
		walk_send(w, 0, &p);
		walk_turn(w);
		walk_jump(w, 2);
	}
	if (walk_flow(w, &ask) == NULL)
		walk_pass(w, 420);
	walk_expect_eq(walk_service_stats(w, 0).queued, 0);
	walk_destroy(w);
}
