/* SPDX-License-Identifier: BSD-3-Clause */
/* A load balancer that was not scheduled: packets that wait in its rings are not taken for lost. */
#include "worker.h"

/* Several bursts. */
#define OTHERS 100

static const struct packet ask = {.family = 4, .payload = 100};

/* Puts frames that are for no one in front of the next ones on the fabric. */
static void crowd(struct walk *w)
{
	uint8_t frame[64] = {0};

	memcpy(frame, w->lb->port[w->fabric].mac, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5; /* for local experiments: IEEE 802 */
	for (unsigned int i = 0; i < OTHERS; i++)
		walk_send_frame(w, w->fabric, 0, frame, sizeof(frame));
}

static struct walk_worker *with_one_answer(struct walk *w)
{
	struct walk_worker *v = walk_worker(w, NULL);

	/* From then on the time that acknowledgements take is known. */
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	return v;
}

WALK(an_acknowledgement_in_the_ring_counts_before_the_timer)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = with_one_answer(w);

	v->answers = false;
	crowd(w);
	walk_send(w, 0, &ask);
	walk_turn(w); /* the request leaves, its acknowledgement comes in behind the others */
	walk_jump(w, 200);
	walk_turn(w);
	walk_expect_eq(walk_worker_stats(v).packets_resent, 0);
	v->answers = true;
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_expect_eq(walk_worker_stats(v).packets_resent, 0);
	walk_destroy(w);
}

WALK(a_reply_in_the_ring_counts_before_the_request_s_timeout)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("echo", 8000, "echo", ", request_timeout_ms: 100")});
	struct walk_worker *v = with_one_answer(w);

	crowd(w);
	walk_send(w, 0, &ask);
	walk_turn(w);
	walk_jump(w, 200);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_expect_silence(w, 0);
	walk_expect_eq(walk_worker_stats(v).packets_resent, 0);
	walk_destroy(w);
}

/* A packet that is not acknowledged is sent again, also while the ring is never empty. */
WALK(an_acknowledgement_that_is_lost_does_not_wait_for_an_empty_ring)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = with_one_answer(w);

	v->lose = 2; /* payload and descriptor */
	walk_send(w, 0, &ask);
	walk_turn(w);
	for (unsigned int i = 0; i < 400 && walk_worker_stats(v).packets_resent == 0; i++) {
		if (i % 3 == 0)
			crowd(w);
		walk_jump(w, 1);
		walk_turn_lcore(w, 0);
	}
	walk_expect(walk_worker_stats(v).packets_resent > 0);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_destroy(w);
}
