/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers that join, are doubted, come back, drain and die; the control thread's side of it. */
#include "worker.h"
#include "lb.h"

static const struct packet ask = {.family = 4, .payload = 100};

static enum worker_state state_of(const struct walk_worker *v)
{
	const struct worker *worker = walk_worker_of(v);

	return worker == NULL ? WORKER_GONE : worker->state;
}

WALK(a_worker_that_lacks_something_is_removed_with_the_reason)
{
	static const struct {
		const char *name, *reason;
		bool resolves, ready, beats;
	} rows[] = {
		{"no address", "does not answer ARP", false, true, true},
		{"no ready", "no agent.ready came", true, false, true},
		{"no heartbeat", "no heartbeat of its loop came", true, true, false},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct walk *w = walk_create(NULL);
		struct walk_worker *v = walk_worker_register(w, NULL);
		struct worker *worker = walk_worker_of(v);

		walk_context("%s", rows[i].name);
		v->resolves = rows[i].resolves;
		v->beats = rows[i].beats;
		v->beat_at = 0;
		if (rows[i].ready)
			lb_worker_ready(w->lb, worker);
		walk_pass(w, 9900);
		walk_expect_eq(state_of(v), WORKER_JOINING);
		walk_pass(w, 200);
		walk_expect_eq(state_of(v), WORKER_GONE);
		walk_expect(strstr(worker->reason, rows[i].reason) != NULL, "%s", worker->reason);
		walk_destroy(w);
	}
}

WALK(a_silent_worker_is_suspect_then_dead)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *a = walk_worker(w, NULL), *b = walk_worker(w, NULL);

	a->beats = false;
	walk_pass(w, 40);
	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	walk_pass(w, 40);
	walk_expect_eq(state_of(a), WORKER_SUSPECT);
	for (int i = 0; i < 8; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_eq(a->answered, 0);
	walk_expect_eq(b->answered, 8);
	walk_pass(w, 450);
	walk_expect_eq(state_of(a), WORKER_GONE);
	walk_expect_eq(state_of(b), WORKER_ACTIVE);
	walk_destroy(w);
}

WALK(a_worker_that_beats_again_is_active_again)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);

	v->beats = false;
	walk_pass(w, 100);
	walk_expect_eq(state_of(v), WORKER_SUSPECT);
	v->beats = true;
	walk_pass(w, 40);
	walk_expect_eq(state_of(v), WORKER_ACTIVE);
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_destroy(w);
}

WALK(who_comes_and_goes_waits_longer_and_longer)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	uint32_t waited[3] = {0};

	walk_worker(w, NULL); /* a second worker, as an only one would not have to wait */
	for (int i = 0; i < 3; i++) {
		v->beats = false;
		while (state_of(v) == WORKER_ACTIVE)
			walk_pass(w, 10);
		v->beats = true;
		while (state_of(v) == WORKER_SUSPECT && waited[i] < 2000) {
			walk_pass(w, 10);
			waited[i] += 10;
		}
	}
	walk_expect(waited[0] < waited[1] && waited[1] < waited[2], "%u, %u, %u", waited[0],
		    waited[1], waited[2]);
	walk_destroy(w);
}

WALK(a_batch_may_be_long_if_the_agent_said_so)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.max_run_ms = 1000});

	v->beats = false;
	walk_pass(w, 1000);
	walk_expect_eq(state_of(v), WORKER_ACTIVE);
	walk_pass(w, 600);
	walk_expect_eq(state_of(v), WORKER_GONE);
	walk_destroy(w);
}

WALK(a_stalled_load_balancer_blames_nobody)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);

	/* Heartbeats came and lie in the ring while the lcore does not poll. */
	for (int i = 0; i < 40; i++) {
		walk_jump(w, 10);
		walk_beat(v);
		walk_tick(w);
	}
	walk_expect_eq(state_of(v), WORKER_ACTIVE);
	walk_pass(w, 20);
	walk_expect_eq(state_of(v), WORKER_ACTIVE);
	walk_destroy(w);
}

WALK(a_draining_worker_finishes_what_it_has)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *a = walk_worker(w, NULL), *b = walk_worker(w, NULL);

	a->answers = b->answers = false;
	for (int i = 0; i < 4; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_eq(a->n_requests, 2);
	lb_worker_drain(w->lb, walk_worker_of(a));
	for (int i = 0; i < 4; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_eq(a->n_requests, 2);
	walk_expect_eq(b->n_requests, 6);
	walk_expect(!lb_worker_drained(w->lb, walk_worker_of(a)));
	walk_answer_all(a);
	walk_pass(w, 10);
	walk_expect_eq(walk_count(w, 0), 2);
	walk_expect(lb_worker_drained(w->lb, walk_worker_of(a)));
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(a_worker_that_comes_back_under_its_name)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.name = "x"}), *again;

	walk_expect(walk_worker_register(w, &(struct walk_worker_params){.name = "x"}) == NULL);
	lb_worker_remove(w->lb, walk_worker_of(v), "it starts again");
	v->gone = true;
	again = walk_worker(w, &(struct walk_worker_params){.name = "x"});
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_expect_eq(again->answered, 1);
	walk_destroy(w);
}

WALK(replies_of_a_worker_that_was_removed_reach_nobody)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
	walk_answer_all(v);
	walk_settle(w);
	walk_pass(w, 3);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_WORKER_LOST);
	walk_expect_silence(w, 0);
	v->gone = true;
	walk_destroy(w);
}

/* 300 of them, which a turn cannot visit all; their worker is told that nobody waits. */
WALK(a_request_whose_deadline_passes_is_ended_then_whatever_its_worker_does)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services =
			WALK_SERVICE("echo", 8000, "echo",
				     ", deadline_ms: 100, request_timeout_ms: 5000, queue: 512")});
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 512});

	v->answers = false;
	for (int i = 0; i < 300; i++) {
		walk_send(w, 0, &ask);
		walk_settle(w);
	}
	walk_expect_eq(v->n_requests, 300);
	walk_jump(w, 99);
	walk_expect_silence(w, 0);
	walk_pass(w, 10);
	walk_expect_drops(w, {LB_DROP_DEADLINE, 300});
	walk_expect_notice(w, 0, &ask, LB_NOTICE_DEADLINE);
	walk_expect(v->request[0].cancelled && v->request[299].cancelled);
	walk_forget(w, 0);
	/* its replies come late, and free their slots */
	v->answers = true;
	walk_pass(w, 20);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 300});
	walk_destroy(w);
}

/* A worker whose slots are all taken, by requests that take long, has a round of visits each ms:
 * those of another one have theirs, too. */
WALK(a_deadline_counts_beside_a_worker_that_is_full)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("long", 8000, "echo", "")
			WALK_SERVICE("quick", 8001, "other", ", deadline_ms: 20")});
	struct walk_worker *full = walk_worker(w, &(struct walk_worker_params){.slots = 64}),
			   *silent;
	struct packet quick = ask;

	full->answers = false;
	for (int i = 0; i < 64; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_need(full->n_requests == 64);
	silent = walk_worker(w, &(struct walk_worker_params){.model = "other"});
	silent->answers = false;
	quick.destination_port = 8001;
	walk_send(w, 0, &quick);
	walk_settle(w);
	walk_need(silent->n_requests == 1);
	walk_pass(w, 24);
	walk_expect_notice(w, 0, &quick, LB_NOTICE_DEADLINE);
	walk_expect(silent->request[0].cancelled);
	walk_destroy(w);
}

/* The reply of a request in time had begun when its worker was lost, after its deadline. */
WALK(a_reply_that_began_in_time_is_not_late_when_its_worker_is_lost)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("a", 8000, "echo", ", framing: tagged, deadline_ms: 20")});
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.max_chunks = 4});
	struct walk_tagged t = {.id = 7};
	struct packet p = walk_tagged(&t);
	static struct walk_frame f;

	v->answers = false;
	walk_send(w, 0, &p);
	walk_settle(w);
	walk_need(v->n_requests == 1);
	walk_answer(v, 0, &(struct walk_reply){.bytes = "one", .n_bytes = 3, .more = true});
	walk_settle(w);
	walk_need(walk_take(w, 0, &f));
	walk_pass(w, 30);
	walk_expect_silence(w, 0);
	v->gone = true;
	lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
	walk_pass(w, 3);
	walk_expect_notice(w, 0, &p, LB_NOTICE_WORKER_LOST);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	walk_destroy(w);
}

/* Both ends of a request are found in one turn, as of an lcore that others kept from its CPU. */
WALK(a_request_whose_time_was_over_before_its_worker_was_lost_is_late)
{
#define LIMITED(more) WALK_SERVICE("echo", 8000, "echo", ", request_timeout_ms: 300" more)
	static const struct {
		const char *services;
		uint32_t ms;
		uint8_t notice;
		enum lb_drop drop;
	} rows[] = {
		{LIMITED(""), 200, LB_NOTICE_WORKER_LOST, LB_DROP_WORKER_LOST},
		{LIMITED(""), 301, LB_NOTICE_TIMEOUT, LB_DROP_REQUEST_TIMEOUT},
		{LIMITED(", replay: 1"), 301, LB_NOTICE_TIMEOUT, LB_DROP_REQUEST_TIMEOUT},
		{LIMITED(", deadline_ms: 250"), 200, LB_NOTICE_WORKER_LOST, LB_DROP_WORKER_LOST},
		{LIMITED(", deadline_ms: 100"), 200, LB_NOTICE_DEADLINE, LB_DROP_DEADLINE},
		{LIMITED(", deadline_ms: 100, replay: 1"), 200, LB_NOTICE_DEADLINE,
		 LB_DROP_DEADLINE},
	};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct walk *w = walk_create(&(struct walk_params){.services = rows[i].services});
		struct walk_worker *v = walk_worker(w, NULL), *other;

		walk_context("row %zu", i);
		v->answers = false;
		walk_send(w, 0, &ask);
		walk_settle(w);
		other = walk_worker(w, NULL);
		walk_expect_eq(v->n_requests, 1);
		walk_jump(w, rows[i].ms);
		v->gone = true;
		lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
		walk_pass(w, 3);
		walk_expect_notice(w, 0, &ask, rows[i].notice);
		walk_expect_drops(w, {rows[i].drop, 1});
		walk_expect_eq(other->n_requests, 0);
		walk_destroy(w);
	}
}

WALK(a_worker_that_acknowledges_nothing_is_given_up)
{
	struct walk *w = walk_create(&(struct walk_params){.more = "fabric: {ack_timeout: 8, "
								   "retry_count: 2}\n"});
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = v->acknowledges = false;
	walk_send(w, 0, &ask);
	walk_pass(w, 40);
	walk_expect_eq(state_of(v), WORKER_GONE);
	walk_pass(w, 2);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_WORKER_LOST);
	walk_destroy(w);
}

WALK(a_probe_comes_before_the_first_request)
{
	static const struct {
		const char *name;
		uint8_t status;
		enum worker_state state;
	} rows[] = {{"good", RING_OK, WORKER_ACTIVE}, {"bad", RING_ERROR, WORKER_GONE}};

	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		struct walk *w = walk_create(&(struct walk_params){
			.services = WALK_SERVICE("a", 8000, "echo", ", probe_bytes: 64"),
			.lcores = 2});
		struct walk_worker *v = walk_worker_register(w, NULL);

		walk_context("%s", rows[i].name);
		v->answers = false;
		walk_expect(!walk_worker_start(v));
		walk_expect_eq(state_of(v), WORKER_PROBING);
		walk_expect_eq(v->n_requests, 2);
		walk_expect_eq(v->request[0].length, 64);
		v->status = rows[i].status;
		walk_answer_all(v);
		walk_pass(w, 20);
		walk_expect_eq(state_of(v), rows[i].state);
		walk_expect_silence(w, 0);
		walk_destroy(w);
	}
}

WALK(a_worker_that_fails_often_is_put_out_for_a_while)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v[4];

	for (int i = 0; i < 4; i++)
		v[i] = walk_worker(w, NULL);
	v[0]->status = RING_ERROR;
	for (int k = 0; k < 250 && state_of(v[0]) == WORKER_ACTIVE; k++) {
		for (int i = 0; i < 4; i++)
			walk_send(w, 0, &ask);
		walk_pass(w, 10);
		walk_forget(w, 0);
	}
	walk_expect_eq(state_of(v[0]), WORKER_SUSPECT);
	for (int i = 1; i < 4; i++)
		walk_expect_eq(state_of(v[i]), WORKER_ACTIVE);
	v[0]->status = RING_OK;
	walk_pass(w, 5200);
	walk_expect_eq(state_of(v[0]), WORKER_ACTIVE);
	walk_destroy(w);
}

WALK(the_clock_may_wrap)
{
	struct walk *w = walk_create(&(struct walk_params){.start_ms = UINT32_MAX - 300});
	struct walk_worker *v = walk_worker(w, NULL);

	for (int i = 0; i < 60; i++) {
		walk_send(w, 0, &ask);
		walk_pass(w, 10);
		walk_expect_echo(w, 0, &ask);
	}
	walk_expect_eq(state_of(v), WORKER_ACTIVE);
	walk_expect_no_drops(w);
	walk_destroy(w);
}
