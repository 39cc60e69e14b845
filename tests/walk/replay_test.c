/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of workers that are lost or suspect: to another worker, or a notice. */
#include "packet/request.h"
#include "worker.h"
#include "lb.h"

static const struct packet ask = {.family = 4, .payload = 700};

static struct walk *walk_with(const char *more, const char *global)
{
	char services[512];

	snprintf(services, sizeof(services),
		 "  - {name: a, address: " PACKET_DESTINATION4 ", port: 8000, model: echo%s}\n",
		 more);
	return walk_create(&(struct walk_params){.services = services, .more = global});
}

/* Makes two workers: <has> is the one that got the request of <ask>. */
static void two_workers(struct walk *w, struct walk_worker **has, struct walk_worker **other)
{
	struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.path_mtu = 256});
	struct walk_worker *b = walk_worker(w, &(struct walk_worker_params){.path_mtu = 256});

	a->answers = b->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_need(a->n_requests + b->n_requests == 1);
	*has = a->n_requests == 1 ? a : b;
	*other = a->n_requests == 1 ? b : a;
}

WALK(a_request_of_a_worker_that_is_removed_goes_to_another)
{
	struct walk *w = walk_with(", replay: 1", NULL);
	struct walk_worker *has, *other;

	two_workers(w, &has, &other);
	lb_worker_remove(w->lb, walk_worker_of(has), "it leaves");
	has->gone = true;
	walk_pass(w, 3);
	walk_expect_eq(other->n_requests, 1);
	walk_answer_all(other);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_expect_no_drops(w);
	walk_expect_eq(walk_service_stats(w, 0).replays, 1);
	walk_destroy(w);
}

WALK(a_suspect_workers_late_answer_reaches_nobody)
{
	struct walk *w = walk_with(", replay: 1", NULL);
	struct walk_worker *has, *other;

	two_workers(w, &has, &other);
	has->beats = false;
	walk_pass(w, 100);
	walk_need(walk_worker_of(has) != NULL);
	walk_expect_eq(walk_worker_of(has)->state, WORKER_SUSPECT);
	walk_expect_eq(other->n_requests, 1);
	/* A worker that does not answer gets no cancel word, which would only take memory. */
	walk_expect(!has->request[0].cancelled);
	walk_answer_all(has);
	walk_settle(w);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 1}, {LB_DROP_CANCEL_UNSENT, 1});
	walk_answer_all(other);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_destroy(w);
}

WALK(a_request_is_sent_no_more_often_than_the_service_allows)
{
	struct walk *w = walk_with(", replay: 1", NULL);
	struct walk_worker *v[3];

	for (int i = 0; i < 3; i++) {
		v[i] = walk_worker(w, NULL);
		v[i]->answers = false;
	}
	walk_send(w, 0, &ask);
	walk_settle(w);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++) {
			if (v[i]->gone || v[i]->n_requests == 0)
				continue;
			lb_worker_remove(w->lb, walk_worker_of(v[i]), "it leaves");
			v[i]->gone = true;
			break;
		}
		walk_pass(w, 3);
	}
	walk_expect_notice(w, 0, &ask, LB_NOTICE_WORKER_LOST);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	walk_expect_eq(walk_service_stats(w, 0).replays, 1);
	walk_destroy(w);
}

WALK(a_request_that_was_answered_in_part_is_not_replayed)
{
	struct walk *w = walk_with(", replay: 1", NULL);
	struct walk_worker *has, *other;

	two_workers(w, &has, &other);
	walk_answer(has, 0, &(struct walk_reply){.bytes = "first", .n_bytes = 5, .more = true});
	walk_settle(w);
	walk_expect_reply(w, 0, &ask, "first", 5);
	lb_worker_remove(w->lb, walk_worker_of(has), "it leaves");
	has->gone = true;
	walk_pass(w, 3);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_WORKER_LOST);
	walk_expect_eq(other->n_requests, 0);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	walk_destroy(w);
}

WALK(what_was_written_and_not_acknowledged_is_copied_for_the_replay)
{
	struct walk *w = walk_with(", replay: 1", NULL);
	struct walk_worker *has, *other;

	two_workers(w, &has, &other);
	walk_answer_all(has);
	walk_settle(w);
	walk_forget(w, 0);
	/* The window still holds the packet that the replay wants to send. */
	has->acknowledges = other->acknowledges = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	if (has->n_requests == 0)
		RTE_SWAP(has, other);
	walk_need(has->n_requests == 1);
	other->acknowledges = true;
	has->beats = false;
	walk_pass(w, 100);
	walk_expect_eq(other->n_requests, 1);
	walk_expect(walk_stats(w).payload_copies >= 1);
	walk_answer_all(other);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_destroy(w);
}

WALK(without_replay_the_client_is_told)
{
	struct walk *w = walk_with("", NULL);
	struct walk_worker *has, *other;

	two_workers(w, &has, &other);
	lb_worker_remove(w->lb, walk_worker_of(has), "it leaves");
	has->gone = true;
	walk_pass(w, 2);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_WORKER_LOST);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	walk_expect_eq(other->n_requests, 0);
	walk_destroy(w);
}

WALK(many_requests_of_a_dead_worker_all_end)
{
	for (int replay = 0; replay < 2; replay++) {
		struct walk *w = walk_with(replay ? ", replay: 1" : "", NULL);
		struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 256});
		struct walk_worker *other;
		struct packet p = {.family = 4, .payload = 64};

		v->answers = false;
		for (int i = 0; i < 256; i++) {
			p.source_port = 2000 + i;
			walk_send(w, 0, &p);
		}
		walk_settle(w);
		walk_need(v->n_requests == 256);
		other = walk_worker(w, &(struct walk_worker_params){.slots = 64});
		v->gone = true;
		walk_context("replay: %d", replay);
		walk_pass(w, 1000);
		walk_expect_eq(walk_count(w, 0), 256);
		walk_expect_eq(other->answered, replay ? 256 : 0);
		walk_expect_eq(walk_stats(w).notices, replay ? 0 : 256);
		walk_destroy(w);
	}
}

WALK(a_request_that_waits_to_be_sent_again_can_be_cancelled)
{
	struct walk *w = walk_with(", replay: 1, framing: tagged, queue_timeout_ms: 500", NULL);
	struct walk_worker *v = walk_worker(w, NULL);
	struct walk_tagged t = {.id = 7}, c = {.kind = LB_REQUEST_CANCEL, .id = 7};
	struct packet p = walk_tagged(&t), cancel = walk_tagged(&c);

	v->answers = false;
	walk_send(w, 0, &p);
	walk_settle(w);
	lb_worker_remove(w->lb, walk_worker_of(v), "killed");
	v->gone = true;
	walk_pass(w, 5);
	walk_expect_eq(walk_service_stats(w, 0).queued, 1);
	walk_send(w, 0, &cancel);
	walk_turn(w);
	walk_expect_notice(w, 0, &p, LB_NOTICE_CANCELLED);
	walk_expect_drops(w, {LB_DROP_CANCELLED, 1});
	walk_expect_eq(walk_service_stats(w, 0).queued, 0);
	walk_destroy(w);
}
