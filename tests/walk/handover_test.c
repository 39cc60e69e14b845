/* SPDX-License-Identifier: BSD-3-Clause */
/* Several lcores: packets arrive on an lcore that does not own them and are handed over. */
#include "worker.h"

static const struct packet ask = {.family = 4, .payload = 100};

struct shape {
	unsigned int lcores, queues;
	uint16_t shift; /* queues between a worker's packets and their lcore's queue */
};

static const struct shape shapes[] = {
	{2, 2, 0}, {2, 2, 1}, {2, 1, 0}, {3, 3, 1}, {3, 3, 2},
	{3, 2, 0}, {3, 2, 1}, {4, 1, 0}, {4, 4, 3},
};

WALK(every_request_is_answered_wherever_its_packets_come_in)
{
	for (size_t i = 0; i < RTE_DIM(shapes); i++) {
		const struct shape *s = &shapes[i];
		struct walk *w = walk_create(
			&(struct walk_params){.lcores = s->lcores, .queues = s->queues});
		struct walk_worker *v = walk_worker(w, NULL);
		struct packet p = ask;

		walk_context("%u lcores, %u queues, shifted by %u", s->lcores, s->queues, s->shift);
		v->queue = s->shift;
		for (unsigned int k = 0; k < 40; k++) {
			p.source_port = 2000 + k;
			walk_send_on(w, 0, k % s->queues, &p);
		}
		walk_settle(w);
		walk_expect_eq(walk_count(w, 0), 40);
		walk_expect_no_drops(w);
		walk_expect((walk_stats(w).handed_over > 0) ==
			    (s->queues < s->lcores || s->shift > 0));
		walk_pass(w, 100);
		walk_expect(walk_worker_of(v) != NULL && walk_worker_of(v)->state == WORKER_ACTIVE);
		walk_destroy(w);
	}
}

WALK(a_flow_stays_on_its_lcore)
{
	struct walk *w = walk_create(&(struct walk_params){.lcores = 3, .queues = 1});

	walk_worker(w, NULL);
	for (int i = 0; i < 9; i++) {
		walk_send(w, 0, &ask);
		walk_settle(w);
	}
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t n = w->lb->lcore[i]->stats.requests;

		walk_expect(n == 0 || n == 9, "lcore %u sent %lu", i, n);
	}
	walk_destroy(w);
}

WALK(a_full_handover_ring_is_counted)
{
	struct walk *w = walk_create(&(struct walk_params){.lcores = 2, .queues = 1});
	struct walk_worker *v = walk_worker(w, NULL);
	struct packet p = ask;
	struct lb_lcore_stats before, after;

	walk_expect_no_drops(w);
	before = walk_stats(w);
	v->answers = false;
	/* One lcore receives and hands over, the other does not poll. */
	for (unsigned int k = 0; k < 4000; k++) {
		p.source_port = 2000 + k;
		walk_send(w, 0, &p);
		if (k % 32 == 31)
			walk_turn_lcore(w, w->lb->first_lcore[0]);
	}
	after = walk_stats(w);
	walk_expect(after.drop[LB_DROP_HANDOVER_FULL] > before.drop[LB_DROP_HANDOVER_FULL]);
	walk_settle(w);
	walk_destroy(w);
}

WALK(a_packet_for_an_lcore_that_is_not)
{
	struct walk *w = walk_create(&(struct walk_params){.lcores = 2});
	struct walk_worker *v = walk_worker(w, NULL);

	v->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_need(v->n_requests == 1);
	walk_answer(v, 0, &(struct walk_reply){.qpn = 0x3f});
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_ROCE_QPN, 1});
	walk_destroy(w);
}

WALK(a_worker_is_dead_when_one_of_its_links_is_silent)
{
	struct walk *w = walk_create(&(struct walk_params){.lcores = 2});
	struct walk_worker *v = walk_worker(w, NULL);

	v->beats = false;
	for (int i = 0; i < 60; i++) {
		/* A link to the first lcore only. */
		v->registration.n_links = 1;
		walk_beat(v);
		v->registration.n_links = 2;
		walk_pass(w, 10);
	}
	walk_expect(walk_worker_of(v) == NULL);
	walk_destroy(w);
}
