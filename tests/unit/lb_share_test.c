/* SPDX-License-Identifier: BSD-3-Clause */
/* Resources that services share on an lcore, and the part that is reserved for each. */
#include "lb_workers_fixture.h"
#include "walk/cancel.h"
#include "walk/forward.h"
#include "walk/replay.h"
#include "walk/waiting.h"

/* Another service of the same model, with the same workers. */
static void add_service(struct rig *r, uint16_t number, uint32_t queue)
{
	r->view->config[number] = *r->service;
	r->view->n = RTE_MAX(r->view->n, number + 1u);
	cr_assert_eq(queue_init(&r->lc->service[number].queue, queue, 0), 0);
	r->lb->pick[number] = r->lb->pick[0];
}

static void remove_service(struct rig *r, uint16_t number)
{
	struct queue *queue = &r->lc->service[number].queue;

	while (queue->count > 0)
		rte_pktmbuf_free(queue_remove(queue, queue_oldest(queue)).packet);
	queue_fini(queue);
	r->lb->pick[number] = NULL;
}

static struct flow *flow_for(struct rig *r, unsigned int n, uint16_t service)
{
	struct flow *flow = flow_of(r, n);

	flow->service = service;
	return flow;
}

static void wait_in(struct rig *r, uint16_t service, struct rte_mbuf *m, struct flow *flow)
{
	struct waiting w = {
		.packet = m,
		.flow = conntrack_handle(r->lc->ct, flow),
		.since = r->lc->now,
		.level = 2,
		.client_queue = service % QUEUE_CLIENTS,
	};

	cr_assert(waiting_push(r->lc, service, &w));
}

Test(lb_share, full_queues_of_others_refuse_nobody)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_REQUEST);
	struct flow *healthy = flow_of(r, 1);

	r->lc->waiting_max = 8 * 1024 + 64; /* as the configuration guarantees */
	for (uint16_t s = 1; s <= 8; s++) {
		struct flow *flow;

		add_service(r, s, 1024);
		flow = flow_for(r, 1 + s, s);
		for (unsigned int i = 0; i < 1024; i++)
			wait_in(r, s, NULL, flow);
	}
	for (unsigned int i = 0; i < WORKERS * SLOTS; i++)
		cr_expect_neq(ask(r, healthy), NOBODY, "request %u", i);
	for (unsigned int i = 0; i < 64; i++)
		cr_expect_eq(ask(r, healthy), NOBODY);
	cr_expect_eq(r->lc->service[0].queue.count, 64, "its own queue is its own");
	cr_expect_eq(r->lc->stats.drop[LB_DROP_QUEUE_FULL], 0);
	for (uint16_t s = 1; s <= 8; s++)
		remove_service(r, s);
	rig_destroy(r);
}

/* Sends requests until no worker takes another, without acknowledgements. Returns how many were
 * taken. */
static unsigned int ask_unacknowledged(struct rig *r, struct flow *flow, unsigned int most)
{
	struct queue *queue = &r->lc->service[0].queue;
	unsigned int n = 0;

	for (; n < most; n++) {
		struct burst *b = &r->burst;

		*b = (struct burst){
			.n = 1,
			.packet[0] = fixture_message(r->f, 100),
			.flow[0] = flow,
			.service[0] = flow->service,
			.handle[0] = conntrack_handle(r->lc->ct, flow),
			.priority[0].level = 2,
		};
		forward_assign(r->lc, b);
		forward_send(r->lc, b);
		forward_flush(r->lc);
		fixture_sent(r->f);
		if (b->link[0] == NULL)
			break;
	}
	/* The waiting request would hold up the next ones. */
	while (queue->count > 0) {
		rte_pktmbuf_free(queue_take(queue, queue_oldest(queue)).packet);
		r->lc->n_waiting--;
	}
	return n;
}

static void only(struct rig *r, uint16_t worker)
{
	for (uint16_t i = 0; i < r->lc->n_links; i++)
		workers_get(r->lb->pool, i)->state = WORKER_SUSPECT;
	set_state(r, worker, WORKER_ACTIVE);
}

/* Each request is two packets: itself and its descriptor. */
Test(lb_share, links_that_are_not_acknowledged_leave_the_others_their_part)
{
	struct rig *r = rig_create(PICK_ROUND_ROBIN, LB_AFFINITY_REQUEST);
	enum { ALL = 512, LINKS = 8, PART = ALL / 4 / LINKS };

	r->lc->window_max = ALL;
	for (unsigned int i = 0; i < LINKS; i++)
		add_worker(r, (char[]){'a' + i, '\0'}, 1024, 4);
	lcore_share_windows(r->lc);
	for (uint16_t i = 0; i < LINKS; i++) {
		struct flow *flow = flow_of(r, 1 + i);
		unsigned int n;

		only(r, i);
		n = ask_unacknowledged(r, flow, 1024);
		/* The request and the room for its descriptor must both fit. */
		cr_expect_geq(2 * n, PART - 2, "link %u took %u requests", i, n);
		cr_expect_leq(r->lc->held, ALL);
	}
	rig_destroy(r);
}

Test(lb_share, a_request_of_many_packets_goes_out_alone)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_REQUEST);
	struct flow *flow = flow_of(r, 1);

	r->lc->window_max = 8;
	lcore_share_windows(r->lc);
	cr_assert_eq(r->lc->window_least, 0);
	for (unsigned int i = 0; i < WORKERS; i++)
		cr_expect_neq(ask(r, flow), NOBODY);
	rig_destroy(r);
}

Test(lb_share, services_that_wait_for_the_same_worker_take_turns)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_REQUEST);
	struct flow *flow[2] = {flow_of(r, 1), flow_for(r, 2, 1)};
	unsigned int served[2] = {0};

	add_service(r, 1, 64);
	r->view->n = LB_SERVICES_MAX; /* most have no requests */
	while (ask(r, flow[0]) != NOBODY)
		;
	for (unsigned int i = 0; i < 24; i++)
		for (uint16_t s = 0; s < 2; s++)
			wait_in(r, s, fixture_message(r->f, 100), flow[s]);
	for (unsigned int i = 0; i < 32; i++) {
		answer(r, i % WORKERS);
		cr_assert_neq(look_at_queue(r), NOBODY);
		served[r->lc->burst.flow[0]->service]++;
	}
	cr_expect_eq(served[0], 16);
	cr_expect_eq(served[1], 16);
	remove_service(r, 1);
	r->view->n = 1;
	rig_destroy(r);
}

/* Of 20 places each of two services has 5 in any case. */
Test(lb_share, no_service_takes_all_that_may_be_kept_for_replays)
{
	struct rig *r = rig_create(PICK_ROUND_ROBIN, LB_AFFINITY_REQUEST);
	struct flow *flow[2] = {flow_of(r, 1), flow_for(r, 2, 1)};

	for (unsigned int i = 0; i < WORKERS; i++)
		add_worker(r, (char[]){'a' + i, '\0'}, 16, 4);
	r->service->replay = 1;
	publish(r);
	add_service(r, 1, 64);
	r->lc->replay_copies_max = 20;
	replay_share(r->lc);
	for (unsigned int i = 0; i < 24; i++)
		cr_assert_neq(ask(r, flow[0]), NOBODY);
	cr_expect_eq(r->lc->service[0].replay_copies, 15);
	for (unsigned int i = 0; i < 10; i++)
		cr_assert_neq(ask(r, flow[1]), NOBODY);
	cr_expect_eq(r->lc->service[1].replay_copies, 5);
	cr_expect_eq(r->lc->replay_copies, 20);
	for (unsigned int i = 0; i < r->lc->n_links; i++) {
		struct link *link = r->lc->links[i];

		while (link->busy.oldest != SLOT_NONE) {
			replay_forget(r->lc, link, link->busy.oldest);
			link_slot_free(link, link->busy.oldest);
		}
	}
	cr_expect_eq(r->lc->replay_copies, 0);
	cr_expect_eq(r->lc->replay_copies_shared, 0);
	cr_expect_eq(r->lc->service[0].replay_copies + r->lc->service[1].replay_copies, 0);
	remove_service(r, 1);
	rig_destroy(r);
}

Test(lb_share, a_flood_of_cancels_leaves_other_services_theirs)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_REQUEST);
	struct flow *flow[2] = {flow_of(r, 1), flow_for(r, 2, 1)};
	uint64_t *drop = r->lc->stats.drop;

	add_service(r, 1, 64);
	for (unsigned int i = 0; i < WORKERS * SLOTS; i++)
		ask(r, flow[0]);
	next_turn(r);
	cancel_housekeeping(r->lc);
	for (unsigned int i = 0; drop[LB_DROP_CANCEL_LIMIT] == 0; i++) {
		cr_assert_lt(i, 4096);
		cancel_request(r->lc, flow[0], flow[0]->service,
			       conntrack_handle(r->lc->ct, flow[0]), 1234);
	}
	cr_expect_gt(drop[LB_DROP_CANCEL_UNKNOWN], 0);
	drop[LB_DROP_CANCEL_UNKNOWN] = 0;
	for (unsigned int i = 0; i < 16; i++)
		cancel_request(r->lc, flow[1], flow[1]->service,
			       conntrack_handle(r->lc->ct, flow[1]), 1234);
	cr_expect_eq(drop[LB_DROP_CANCEL_UNKNOWN], 16);
	cancel_housekeeping(r->lc);
	cancel_request(r->lc, flow[0], flow[0]->service, conntrack_handle(r->lc->ct, flow[0]),
		       1234);
	cr_expect_eq(drop[LB_DROP_CANCEL_UNKNOWN], 17, "the next ms is a new one");
	remove_service(r, 1);
	rig_destroy(r);
}
