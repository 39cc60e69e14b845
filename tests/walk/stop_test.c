/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a load balancer, and of its workers: each request gets a reply or a notice. */
#include "worker.h"

#include "reload/reload.h"
#include "lb.h"

static struct packet ask_from(uint16_t port)
{
	return (struct packet){.family = 4, .payload = 40, .source_port = 2000 + port};
}

/* Sends <n> requests, each from a client of its own. */
static void ask_many(struct walk *w, unsigned int n, uint16_t first)
{
	for (unsigned int i = 0; i < n; i++) {
		struct packet p = ask_from(first + i);

		walk_send(w, 0, &p);
	}
	walk_turns(w, 2);
}

/* The number of notices of each code, and of replies. */
struct outcome {
	unsigned int notice[LB_NOTICE_CODES], replies;
};

static struct outcome take_all(struct walk *w)
{
	struct outcome o = {0};
	struct walk_frame f;

	while (walk_take(w, 0, &f)) {
		if (f.notice)
			o.notice[f.code % LB_NOTICE_CODES]++;
		else
			o.replies += f.kind == WALK_UDP;
	}
	return o;
}

WALK(a_load_balancer_without_anything_in_hand_stops_at_once)
{
	struct walk *w = walk_create(NULL);

	walk_worker(w, NULL);
	walk_expect(!lb_is_stopping(w->lb));
	lb_stop_begin(w->lb);
	walk_expect(lb_is_stopping(w->lb) && !lb_stop_over(w->lb));
	walk_tick(w);
	walk_expect(lb_stop_over(w->lb));
	walk_destroy(w);
}

WALK(it_refuses_new_requests_and_serves_those_it_has)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	struct packet first = ask_from(1001), late = ask_from(1002);

	v->answers = false;
	walk_send(w, 0, &first);
	walk_turns(w, 2);
	lb_stop_begin(w->lb);
	walk_send(w, 0, &late);
	walk_turn(w);
	walk_expect_notice(w, 0, &late, LB_NOTICE_STOPPING);
	walk_expect_drops(w, {LB_DROP_STOPPING, 1});
	walk_tick(w);
	walk_expect(!lb_stop_over(w->lb), "somebody waits for an answer");
	v->answers = true;
	walk_settle(w);
	walk_expect_echo(w, 0, &first);
	walk_expect_no_drops(w);
	walk_tick(w);
	walk_expect(lb_stop_over(w->lb));
	walk_destroy(w);
}

WALK(it_tells_whoever_is_left_when_its_time_is_over)
{
	struct walk *w = walk_create(&(struct walk_params){.more = "stop_timeout_ms: 50\n"});
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 16});
	struct outcome o;

	v->answers = false;
	ask_many(w, 20, 1000);
	walk_expect_eq(v->n_requests, 16);
	lb_stop_begin(w->lb);
	walk_pass(w, 40);
	walk_expect_silence(w, 0);
	walk_pass(w, 30);
	o = take_all(w);
	walk_expect_eq(o.notice[LB_NOTICE_TIMEOUT], 16);
	walk_expect_eq(o.notice[LB_NOTICE_STOPPING], 4);
	walk_expect_drops(w, {LB_DROP_STOPPING, 4}, {LB_DROP_STOP_TIMEOUT, 16});
	walk_expect(lb_stop_over(w->lb));
	/* A late answer does not become a second reply. */
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 16});
	walk_destroy(w);
}

WALK(more_than_a_port_takes_at_a_time_are_told_all_the_same)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("echo", 8000, "echo", ", queue: 4096"),
		.more = "stop_timeout_ms: 0\n",
		.flows = 8192,
		.packets = 8192});
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 1024});
	unsigned int told = 0;

	v->answers = false;
	for (unsigned int i = 0; i < 3000; i += 30)
		ask_many(w, 30, 1000 + i);
	lb_stop_begin(w->lb);
	for (int ms = 0; ms < 100 && told < 3000; ms++) {
		struct outcome o;

		walk_pass(w, 1);
		o = take_all(w);
		told += o.notice[LB_NOTICE_TIMEOUT] + o.notice[LB_NOTICE_STOPPING];
	}
	walk_expect_eq(told, 3000);
	walk_tick(w);
	walk_expect(lb_stop_over(w->lb));
	walk_expect_drops(w, {LB_DROP_STOPPING, 3000 - 1024}, {LB_DROP_STOP_TIMEOUT, 1024});
	walk_destroy(w);
}

WALK(a_worker_that_is_lost_meanwhile_is_replaced)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("echo", 8000, "echo", ", replay: 1")});
	struct walk_worker *a = walk_worker(w, NULL), *b = walk_worker(w, NULL);
	struct outcome o;

	a->answers = b->answers = false;
	ask_many(w, 8, 1000);
	walk_expect(a->n_requests > 0);
	lb_stop_begin(w->lb);
	lb_worker_remove(w->lb, walk_worker_of(a), "killed");
	a->gone = true;
	b->answers = true;
	walk_pass(w, 40);
	o = take_all(w);
	walk_expect_eq(o.replies, 8);
	walk_expect(lb_stop_over(w->lb));
	walk_destroy(w);
}

WALK(nobody_registers_and_nothing_is_applied_meanwhile)
{
	struct walk_params params = {0};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	char yaml[4096];

	v->answers = false;
	ask_many(w, 1, 1000);
	lb_stop_begin(w->lb);
	walk_expect(walk_worker_register(w, NULL) == NULL);
	walk_expect(strstr(w->error, "stopping") != NULL, "%s", w->error);
	walk_yaml(&params, NULL, yaml, sizeof(yaml));
	walk_expect(walk_reload(w, yaml) < 0);
	walk_expect(strstr(w->error, "stopping") != NULL, "%s", w->error);
	walk_destroy(w);
}

/* --- all workers at once -----------------------------------------------------------------------
 */

#define REPLAYED WALK_SERVICE("echo", 8000, "echo", ", replay: 1, queue_timeout_ms: 300")

WALK(requests_of_the_last_worker_wait_for_the_next)
{
	struct walk *w = walk_create(&(struct walk_params){.services = REPLAYED});
	struct walk_worker *v = walk_worker(w, NULL);
	struct packet mine = ask_from(1000), late = ask_from(2000);

	v->answers = false;
	walk_send(w, 0, &mine);
	walk_turns(w, 2);
	lb_worker_remove(w->lb, walk_worker_of(v), "killed");
	v->gone = true;
	walk_pass(w, 100);
	walk_expect_silence(w, 0);
	/* New clients can still go elsewhere. */
	walk_send(w, 0, &late);
	walk_turn(w);
	walk_expect_notice(w, 0, &late, LB_NOTICE_BUSY);
	walk_expect_drops(w, {LB_DROP_NO_WORKER, 1});
	walk_worker(w, NULL);
	walk_pass(w, 5);
	walk_expect_echo(w, 0, &mine);
	walk_expect_no_drops(w);
	walk_expect_eq(walk_service_stats(w, 0).replays, 1);
	walk_destroy(w);
}

WALK(and_are_told_when_none_comes)
{
	struct walk *w = walk_create(&(struct walk_params){.services = REPLAYED});
	struct walk_worker *v = walk_worker(w, NULL);
	struct packet mine = ask_from(1000);

	v->answers = false;
	walk_send(w, 0, &mine);
	walk_turns(w, 2);
	lb_worker_remove(w->lb, walk_worker_of(v), "killed");
	v->gone = true;
	walk_pass(w, 290);
	walk_expect_silence(w, 0);
	walk_pass(w, 20);
	walk_expect_notice(w, 0, &mine, LB_NOTICE_WORKER_LOST);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	walk_destroy(w);
}

WALK(who_may_not_be_sent_again_is_told_at_once)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	struct packet mine = ask_from(1000);

	v->answers = false;
	walk_send(w, 0, &mine);
	walk_turns(w, 2);
	lb_worker_remove(w->lb, walk_worker_of(v), "killed");
	v->gone = true;
	walk_pass(w, 3);
	walk_expect_notice(w, 0, &mine, LB_NOTICE_WORKER_LOST);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	walk_destroy(w);
}

/* --- how much a worker has before it ------------------------------------------------------------
 */

/* A worker of 16 slots that is known to take 20 ms for each of its requests. */
static struct walk_worker *slow_worker(struct walk *w)
{
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.max_batch = 1});

	v->delay_ms = 20;
	v->run_ns = 20000000;
	for (int i = 0; i < 24; i++) {
		struct packet p = ask_from(1000);

		walk_send(w, 0, &p);
		walk_pass(w, 22);
	}
	walk_pass(w, 100);
	walk_forget(w, 0);
	v->answers = false;
	return v;
}

WALK(requests_wait_here_and_not_in_a_slow_workers_ring)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services =
			WALK_SERVICE("echo", 8000, "echo", ", queue: 8, queue_timeout_ms: 100")});
	struct walk_worker *v = slow_worker(w);
	struct outcome o;

	ask_many(w, 8, 2000);
	walk_expect(v->n_requests >= 2 && v->n_requests <= 4, "%u", v->n_requests);
	walk_expect_eq(v->n_requests + walk_service_stats(w, 0).queued, 8);
	/* No request is refused while there is a slot: with a full queue the first go into the
	 * ring. */
	ask_many(w, 14, 3000);
	walk_expect_eq(walk_service_stats(w, 0).queued, 8);
	walk_expect_eq(v->n_requests, 14);
	walk_expect_no_drops(w);
	ask_many(w, 3, 4000);
	walk_expect_eq(v->n_requests, 16);
	walk_expect_drops(w, {LB_DROP_QUEUE_FULL, 1});
	o = take_all(w);
	walk_expect_eq(o.notice[LB_NOTICE_BUSY], 1);
	walk_destroy(w);
}

WALK(who_waited_for_too_long_gets_a_slot_that_was_kept_back)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services =
			WALK_SERVICE("echo", 8000, "echo", ", queue: 8, queue_timeout_ms: 100")});
	struct walk_worker *v = slow_worker(w);

	ask_many(w, 8, 2000);
	walk_expect(v->n_requests < 8);
	walk_pass(w, 105);
	walk_expect_eq(v->n_requests, 8);
	walk_expect_eq(walk_service_stats(w, 0).queued, 0);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(policies_that_promise_turns_fill_rings)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("echo", 8000, "echo", ", policy: round-robin")});
	struct walk_worker *v = slow_worker(w);

	ask_many(w, 16, 2000);
	walk_expect_eq(v->n_requests, 16);
	walk_destroy(w);
}

/* A queue is full of new requests, and in front of them are requests that were sent before. The
 * next one gets a notice or waits, and is not lost between the two. */
WALK(a_newcomer_behind_replays_is_not_lost)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("echo", 8000, "echo",
					 ", queue: 4, queue_timeout_ms: 900, replay: 1")});
	struct walk_worker *v = slow_worker(w), *other;
	unsigned int asked = 0;
	struct outcome o;

	other = walk_worker(w, &(struct walk_worker_params){.slots = 4});
	other->answers = false;
	while (walk_service_stats(w, 0).queued < 4 && asked < 30)
		ask_many(w, 1, 3000 + asked++);
	walk_expect_eq(other->n_requests, 4);
	walk_expect(v->n_requests < 8);
	walk_expect_no_drops(w);
	lb_worker_remove(w->lb, walk_worker_of(other), "killed");
	other->gone = true;
	walk_turns(w, 2);
	walk_jump(w, 1);
	walk_turns(w, 2);
	walk_expect_eq(walk_service_stats(w, 0).replays, 4);
	/* There are slots left for all of these. */
	for (unsigned int i = 0; i < 3; i++)
		ask_many(w, 1, 4000 + asked++);
	walk_expect_no_drops(w);
	v->answers = true;
	walk_pass(w, 600);
	o = take_all(w);
	walk_expect_eq(o.replies, asked);
	walk_destroy(w);
}

/* `stopping` would say that it never ran. */
WALK(who_was_sent_before_may_have_run_and_is_told_so)
{
	struct walk *w = walk_create(
		&(struct walk_params){.services = REPLAYED, .more = "stop_timeout_ms: 50\n"});
	struct walk_worker *v = walk_worker(w, NULL);
	struct packet mine = ask_from(1000);

	v->answers = false;
	walk_send(w, 0, &mine);
	walk_turns(w, 2);
	lb_worker_remove(w->lb, walk_worker_of(v), "killed");
	v->gone = true;
	walk_pass(w, 5);
	lb_stop_begin(w->lb);
	walk_pass(w, 70);
	walk_expect_notice(w, 0, &mine, LB_NOTICE_TIMEOUT);
	walk_expect_drops(w, {LB_DROP_STOP_TIMEOUT, 1});
	walk_expect(lb_stop_over(w->lb));
	walk_destroy(w);
}
