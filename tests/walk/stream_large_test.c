/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests larger than a packet, segment by segment. */
#include "lb.h"
#include "packet/notice.h"
#include "raw.h"
#include "stop.h"
#include "worker.h"

WALK(a_stop_ends_large_requests_that_are_not_complete)
{
	struct walk *w = large_create("", "buffer_mb: 8");
	struct walk_worker *v = walk_worker(w, &large_roomy);
	struct raw half, whole;

	v->answers = false;
	raw_open(&half, w, 3000);
	raw_open(&whole, w, 3001);
	raw_part(&half, 30000, 0, 20000);
	raw_part(&whole, 30000, 0, 30000);
	walk_expect_eq(link_outstanding(w->lb->lcore[0]->link[walk_worker_of(v)->number]), 2);
	lb_stop_begin(w->lb);
	raw_expect_fin(&half);
	raw_send(&half, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_expect(!whole.fin && !lb_stop_over(w->lb));
	large_answer(v);
	raw_expect_answer(&whole, 0, 2);
	raw_expect_fin(&whole);
	raw_send(&whole, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_pass(w, 50);
	walk_expect(lb_stop_over(w->lb));
	large_expect_room(w);
	walk_destroy(w);
}

WALK(a_large_request_whose_worker_is_lost_half_way_gets_a_notice_and_the_connection_lives)
{
	struct walk *w = large_create("", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	large_two_and_a_part(&r, w, &has, &other);
	large_take_worker(w, has);
	raw_expect_answer(&r, LB_NOTICE_WORKER_LOST, 0);
	raw_part(&r, 30000, 20000, 30000);
	walk_expect_eq(other->n_requests, 0);
	raw_part(&r, 9000, 0, 9000);
	large_expect_request(other, 0, 9000);
	large_answer(other);
	raw_expect_answer(&r, 0, 2);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	raw_end(&r);
}

WALK(a_large_request_that_is_kept_moves_half_way)
{
	struct walk *w = large_create(", replay: 1", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	large_two_and_a_part(&r, w, &has, &other);
	large_take_worker(w, has);
	raw_part(&r, 30000, 20000, 30000);
	walk_settle(w);
	large_expect_request(other, 0, 30000);
	large_answer(other);
	raw_expect_answer(&r, 0, 2);
	walk_expect_no_drops(w);
	raw_end(&r);
}

WALK(a_large_request_that_is_kept_is_sent_again)
{
	struct walk *w = large_create(", replay: 1", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	large_two_and_a_part(&r, w, &has, &other);
	raw_part(&r, 30000, 20000, 30000);
	large_expect_request(has, 0, 30000);
	large_take_worker(w, has);
	walk_pass(w, 2);
	large_expect_request(other, 0, 30000);
	walk_expect_eq(walk_service_stats(w, 0).replays, 1);
	/* And no more than once. */
	large_take_worker(w, other);
	raw_expect_answer(&r, LB_NOTICE_WORKER_LOST, 0);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	raw_end(&r);
}

WALK(a_suspect_worker_s_large_request_moves)
{
	struct walk *w = large_create(", replay: 1", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	large_two_and_a_part(&r, w, &has, &other);
	raw_part(&r, 30000, 20000, 30000);
	has->beats = false;
	walk_pass(w, 100);
	walk_expect_eq(walk_worker_of(has)->state, WORKER_SUSPECT);
	large_expect_request(other, 0, 30000);
	large_answer(has);
	walk_settle(w);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_REPLY_STALE], 1);
	large_answer(other);
	walk_settle(w);
	walk_expect_eq(walk_stats(w).replies, 1);
	raw_expect_answer(&r, 0, 2);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 1}, {LB_DROP_CANCEL_UNSENT, 1});
	raw_end(&r);
}

WALK(a_client_that_resets_half_way_gives_the_place_back)
{
	struct walk *w = large_create("", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	large_two_and_a_part(&r, w, &has, &other);
	raw_send(&r, TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_settle(w);
	large_expect_room(w);
	walk_destroy(w);
}

WALK(a_large_request_whose_last_segment_has_the_FIN_is_answered)
{
	struct walk *w = large_create("", "buffer_mb: 8");
	struct walk_worker *has, *other;
	uint8_t bytes[1000];
	struct raw r;

	large_two_and_a_part(&r, w, &has, &other);
	raw_part(&r, 30000, 20000, 29000);
	for (uint32_t i = 0; i < 1000; i++)
		bytes[i] = (29000 + i) * 7;
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, bytes, 1000);
	large_expect_request(has, 0, 30000);
	large_answer(has);
	raw_expect_answer(&r, 0, 2);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	large_expect_room(w);
	walk_destroy(w);
}

WALK(large_requests_wait_for_room)
{
	struct walk *w = large_create("", "buffer_mb: 8, window: 128KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw r[3];

	v->answers = false;
	for (unsigned int i = 0; i < 3; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 60000, 0, 60000);
		walk_pass(w, 1);
	}
	/* One fits the room; the third's client has waited no longer than the second's. */
	for (unsigned int i = 0; i < 3; i++) {
		large_expect_request(v, 0, 60000);
		walk_expect_eq(v->n_requests, 1);
		large_answer(v);
		raw_expect_answer(&r[i], 0, 2);
		walk_pass(w, 2);
	}
	walk_expect_no_drops(w);
	for (unsigned int i = 1; i < 3; i++)
		raw_send(&r[i], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	raw_end(&r[0]);
}

WALK(a_large_request_that_finds_no_room_in_time)
{
	struct walk *w = large_create(", queue_timeout_ms: 50", "buffer_mb: 8, window: 128KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw r[2];

	v->answers = false;
	for (unsigned int i = 0; i < 2; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 60000, 0, 60000);
	}
	walk_pass(w, 60);
	raw_expect_answer(&r[1], LB_NOTICE_BUSY, 0);
	walk_expect_drops(w, {LB_DROP_QUEUE_TIMEOUT, 1});
	large_answer(v);
	raw_expect_answer(&r[0], 0, 2);
	raw_send(&r[1], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	raw_end(&r[0]);
}

WALK(small_requests_do_not_go_before_an_older_large_one)
{
	struct walk *w = large_create("", "buffer_mb: 8, window: 128KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 2,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 131072,
					       });
	struct raw r[4];

	v->answers = false;
	for (unsigned int i = 0; i < 4; i++)
		raw_open(&r[i], w, 3000 + i);
	raw_ask(&r[0], 10, 10);
	raw_ask(&r[1], 10, 10);
	walk_pass(w, 1);
	walk_expect_eq(v->n_requests, 2);
	raw_part(&r[2], 30000, 0, 30000);
	walk_pass(w, 1);
	raw_ask(&r[3], 10, 10);
	walk_pass(w, 1);
	walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
	walk_pass(w, 2);
	walk_expect_eq(v->n_requests, 2);
	walk_expect_eq(v->request[1].length, 30000);
	large_answer(v);
	walk_pass(w, 2);
	walk_expect_eq(v->n_requests, 1);
	walk_expect_eq(v->request[0].length, 10);
	large_answer(v);
	for (unsigned int i = 0; i < 4; i++)
		raw_send(&r[i], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_settle(w);
	large_expect_room(w);
	walk_destroy(w);
}

WALK(a_stop_ends_large_requests)
{
	struct walk *w = large_create("", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	large_two_and_a_part(&r, w, &has, &other);
	w->lb->lcore[0]->stop = STOP_NOTIFYING;
	raw_expect_answer(&r, LB_NOTICE_BUSY, 0);
	walk_expect_drops(w, {LB_DROP_STOPPING, 1});
	w->lb->lcore[0]->stop = STOP_NOT;
	raw_end(&r);
}

WALK(a_large_request_that_drips_loses_its_place)
{
	struct walk *w = large_create("", "buffer_mb: 8, min_rate: 4KiB");
	struct walk_worker *v = large_silent_worker(w);
	struct lcore *lc = w->lb->lcore[0];
	struct raw r;

	raw_open(&r, w, 3000);
	/* At twice the rate it keeps the place, below it not. */
	raw_part(&r, 30000, 0, 1000);
	for (uint32_t at = 1000; at < 20000; at += 1000) {
		walk_pass(w, 125);
		raw_part(&r, 30000, at, at + 1000);
	}
	walk_expect_no_drops(w);
	walk_expect_eq(link_outstanding(lc->links[0]), 1);
	for (uint32_t at = 20000; at < 20022; at++) {
		walk_pass(w, 500);
		raw_part(&r, 30000, at, at + 1);
	}
	walk_expect_drops(w, {LB_DROP_TCP_SLOW, 1});
	walk_expect_eq(link_outstanding(lc->links[0]), 0);
	raw_expect_answer(&r, LB_NOTICE_TIMEOUT, 0);
	walk_forget(w, 0);
	raw_part(&r, 30000, 20022, 30000);
	raw_part(&r, 20000, 0, 20000);
	walk_settle(w);
	large_expect_request(v, 0, 20000);
	large_answer(v);
	raw_expect_answer(&r, 0, 2);
	raw_end(&r);
}
