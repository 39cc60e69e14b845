/* SPDX-License-Identifier: BSD-3-Clause */
/* One row for each part of the fixture: requests, replies, notices, several lcores, time. */
#include "worker.h"

static const struct packet ask = {.family = 4, .payload = 100};

WALK(a_request_goes_to_the_worker_and_its_reply_to_the_client)
{
	struct walk *w = walk_create(NULL);

	walk_worker(w, NULL);
	walk_send(w, 0, &ask);
	walk_turn(w); /* the request to the worker, which answers at once */
	walk_turn(w); /* the reply to the client */
	walk_expect_echo(w, 0, &ask);
	walk_expect_silence(w, 0);
	walk_expect_no_drops(w);
	walk_expect_eq(walk_service_stats(w, 0).replies, 1);
	walk_destroy(w);
}

WALK(frames_and_what_becomes_of_them)
{
	static const struct walk_row rows[] = {
		{"IPv4", {.family = 4, .payload = 100}, WALK_ECHO},
		{"IPv6", {.family = 6, .payload = 100}, WALK_ECHO},
		{"one byte", {.family = 4, .payload = 1}, WALK_ECHO},
		{"as long as may be", {.family = 4, .payload = 1472}, WALK_ECHO},
		{"with a VLAN", {.family = 4, .payload = 9, .tagged = true, .tci = 5}, WALK_ECHO},
		{"with IPv4 options", {.family = 4, .payload = 10, .options = 8}, WALK_ECHO},
		{"without a checksum", {.family = 4, .payload = 10, .l4_sum = SUM_NONE}, WALK_ECHO},
		{"with padding", {.family = 4, .payload = 2, .padding = 16}, WALK_ECHO},
		{"for another station",
		 {.family = 4, .payload = 10, .to = TO_ANOTHER},
		 WALK_SILENCE,
		 .dropped = true,
		 .drop = LB_DROP_NOT_OUR_MAC},
		{"wrong checksum",
		 {.family = 4, .payload = 10, .l4_sum = SUM_WRONG},
		 WALK_SILENCE,
		 .dropped = true,
		 .drop = LB_DROP_UDP_CHECKSUM},
		{"no service there",
		 {.family = 4, .payload = 10, .destination_port = 1},
		 WALK_SILENCE,
		 .dropped = true,
		 .drop = LB_DROP_UNKNOWN_SERVICE},
		{"not our address",
		 {.family = 4, .payload = 10, .destination = "198.51.100.2"},
		 WALK_SILENCE,
		 .dropped = true,
		 .drop = LB_DROP_NOT_OUR_ADDRESS},
		{"RoCE from a client",
		 {.family = 4, .payload = 40, .destination_port = 4791},
		 WALK_SILENCE,
		 .dropped = true,
		 .drop = LB_DROP_ROCE_CLIENT_PORT},
		{"a notice",
		 {.family = 4, .body = "db44424e 01010000 0000000000000000"},
		 WALK_SILENCE,
		 .dropped = true,
		 .drop = LB_DROP_NOTICE_RECEIVED},
	};
	struct walk *w = walk_create(NULL);

	walk_worker(w, NULL);
	walk_rows(w, rows, RTE_DIM(rows));
	walk_destroy(w);
}

WALK(without_a_worker_the_client_is_told)
{
	struct walk *w = walk_create(NULL);

	walk_send(w, 0, &ask);
	walk_turn(w);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_BUSY);
	walk_expect_drops(w, {LB_DROP_NO_WORKER, 1});
	walk_destroy(w);
}

WALK(workers_over_an_ipv6_fabric)
{
	struct walk *w = walk_create(&(struct walk_params){.fabric6 = true});

	walk_worker(w, NULL);
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(a_request_in_several_packets_of_the_path)
{
	struct walk *w = walk_create(NULL);
	struct packet large = {.family = 4, .payload = 1400};

	walk_worker(w, &(struct walk_worker_params){.path_mtu = 256});
	walk_send(w, 0, &large);
	walk_settle(w);
	walk_expect_echo(w, 0, &large);
	walk_expect_eq(walk_stats(w).payload_copies, 0);
	walk_destroy(w);
}

WALK(ports_that_send_no_chains)
{
	struct walk *w = walk_create(&(struct walk_params){.no_chains = true});
	struct packet large = {.family = 4, .payload = 1400};

	walk_worker(w, &(struct walk_worker_params){.path_mtu = 256});
	walk_send(w, 0, &large);
	walk_settle(w);
	walk_expect_echo(w, 0, &large);
	walk_expect(walk_stats(w).payload_copies > 0);
	walk_destroy(w);
}

WALK(a_silent_worker_is_cancelled_after_the_timeout)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("echo", 8000, "echo", ", request_timeout_ms: 100")});
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = false;
	walk_send(w, 0, &ask);
	walk_pass(w, 100);
	walk_expect_silence(w, 0);
	walk_pass(w, 2);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_TIMEOUT);
	walk_expect_drops(w, {LB_DROP_REQUEST_TIMEOUT, 1});
	walk_expect_eq(v->n_requests, 1);
	walk_expect(v->request[0].cancelled);
	/* The slot becomes a credit again when the worker releases it. */
	walk_expect_eq(walk_worker_stats(v).outstanding, 1);
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 1});
	walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	walk_destroy(w);
}

WALK(requests_beyond_the_credits_wait_their_turn)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.slots = 2});

	v->answers = false;
	for (int i = 0; i < 3; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_eq(v->n_requests, 2);
	walk_expect_eq(walk_service_stats(w, 0).queued, 1);
	v->answers = true;
	walk_settle(w);
	for (int i = 0; i < 3; i++)
		walk_expect_echo(w, 0, &ask);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(a_worker_that_dies_takes_its_requests_along_and_clients_are_told)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	v->gone = true;
	walk_pass(w, 600);
	walk_expect(walk_worker_of(v) == NULL);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_WORKER_LOST);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	walk_destroy(w);
}

WALK(a_replayed_request_is_answered_by_another_worker)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("echo", 8000, "echo", ", replay: 1")});
	struct walk_worker *a = walk_worker(w, NULL), *b = walk_worker(w, NULL);

	a->answers = b->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_eq(a->n_requests + b->n_requests, 1);
	*(a->n_requests == 1 ? &a->gone : &b->gone) = true;
	a->answers = b->answers = true;
	walk_pass(w, 100);
	walk_expect_echo(w, 0, &ask);
	walk_expect_no_drops(w);
	walk_expect_eq(walk_service_stats(w, 0).replays, 1);
	walk_destroy(w);
}

WALK(a_reply_with_a_wrong_key_ends_the_worker)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_answer(v, 0, &(struct walk_reply){.rkey = 1});
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_ROCE_ACCESS, 1});
	walk_expect_eq(v->link[0].nak, ROCE_NAK_REMOTE_ACCESS);
	walk_pass(w, 10);
	walk_expect(walk_worker_of(v) == NULL);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_WORKER_LOST);
	walk_destroy(w);
}

WALK(a_lost_write_is_sent_again)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, NULL);

	v->lose = 1; /* the payload is lost: the descriptor is out of sequence, and the NAK asks for
			both */
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_expect_eq(walk_worker_stats(v).naks_received, 1);
	walk_destroy(w);
}

WALK(several_lcores_share_one_queue)
{
	struct walk *w = walk_create(&(struct walk_params){.lcores = 3, .queues = 1});
	struct packet p = ask;

	walk_worker(w, NULL);
	for (int i = 0; i < 30; i++) {
		p.source_port = 2000 + i;
		walk_send(w, 0, &p);
	}
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 30);
	walk_expect_no_drops(w);
	walk_expect(walk_stats(w).handed_over > 0);
	for (unsigned int i = 0; i < 3; i++)
		walk_expect(w->lb->lcore[i]->stats.requests > 0, "lcore %u", i);
	walk_destroy(w);
}

WALK(a_refused_registration_says_why)
{
	struct walk *w = walk_create(NULL);

	walk_expect(walk_worker_register(w, &(struct walk_worker_params){.model = "other"}) ==
		    NULL);
	walk_expect(strstr(w->error, "no service uses 'other'") != NULL, "%s", w->error);
	walk_destroy(w);
}

WALK(a_reload_changes_what_a_service_takes)
{
	struct walk *w = walk_create(NULL);
	char text[4096];

	walk_worker(w, NULL);
	walk_yaml(NULL, WALK_SERVICE("echo", 8000, "echo", ", max_request: 50"), text,
		  sizeof(text));
	walk_need(walk_reload(w, text) == 0, "%s", w->error);
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_REQUEST_TOO_LARGE, 1});
	walk_destroy(w);
}
