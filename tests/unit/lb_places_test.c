/* SPDX-License-Identifier: BSD-3-Clause */
/* near and spread on an lcore: which host's workers get requests, and what happens when they are
 * full, saturated, lost or without labels.
 */
#include "lb_workers_fixture.h"

static const char *host[8];

/* Workers of SLOTS slots and as large a batch, one per host name; NULL: without the label. */
static struct rig *rig_on(enum lb_affinity affinity, const char *near, const char *spread,
			  unsigned int n, const char *const *hosts)
{
	struct rig *r = rig_create(PICK_LEAST_OUTSTANDING, affinity);

	r->service->sticky_load_percent = 125;
	snprintf(r->service->near, sizeof(r->service->near), "%s", near);
	snprintf(r->service->spread, sizeof(r->service->spread), "%s", spread);
	snprintf(r->lb->config.label[0], sizeof(r->lb->config.label[0]), "host=h0");
	r->lb->config.n_labels = 1;
	for (unsigned int i = 0; i < n; i++) {
		struct worker *w = add_worker(r, (char[]){'a' + i, '\0'}, SLOTS, SLOTS);

		host[i] = hosts[i];
		if (hosts[i] == NULL)
			continue;
		snprintf(w->spec.label[0].key, sizeof(w->spec.label[0].key), "host");
		snprintf(w->spec.label[0].value, sizeof(w->spec.label[0].value), "%s", hosts[i]);
		w->spec.n_labels = 1;
	}
	publish(r);
	return r;
}

static const char *const two_and_two[] = {"h0", "h0", "h1", "h1"};
static const char *const three_and_one[] = {"h0", "h0", "h0", "h1"};
static const char *const all_one[] = {"h0", "h0", "h0", "h0"};
static const char *const none[] = {NULL, NULL, NULL, NULL};

static bool same(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) == 0;
}

Test(lb_places, consecutive_requests_go_to_different_hosts)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "", "host", 4, two_and_two);
	struct flow *flow = flow_of(r, 1);
	uint16_t before = NOBODY, worker;

	for (unsigned int i = 0; i < 4 * SLOTS; i++) {
		worker = ask(r, flow);
		cr_assert_neq(worker, NOBODY);
		cr_expect(before == NOBODY || !same(host[worker], host[before]), "request %u", i);
		before = worker;
	}
	cr_expect_eq(ask(r, flow), NOBODY);
	rig_destroy(r);
}

Test(lb_places, so_do_those_of_services_whose_worker_has_answered)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "", "host", 4, three_and_one);
	struct flow *flow = flow_of(r, 1);
	unsigned int on_h1 = 0;

	for (unsigned int i = 0; i < 100; i++) {
		uint16_t worker = ask(r, flow);

		on_h1 += same(host[worker], "h1");
		answer(r, worker);
	}
	cr_expect_eq(on_h1, 50, "%u", on_h1);
	rig_destroy(r);
}

Test(lb_places, a_small_host_gets_no_more_than_its_workers_can_take)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "", "host", 4, three_and_one);
	struct flow *flow = flow_of(r, 1);

	for (unsigned int i = 0; i < 4 * SLOTS; i++)
		cr_assert_neq(ask(r, flow), NOBODY, "request %u", i);
	for (unsigned int i = 0; i < 4; i++)
		cr_expect_eq(r->lc->load.outstanding[i], SLOTS, "worker %u", i);
	rig_destroy(r);
}

Test(lb_places, a_saturated_host_is_passed_over)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "", "host", 4, three_and_one);
	struct flow *flow = flow_of(r, 1);

	for (unsigned int i = 0; i < 4; i++)
		r->lc->link[i]->batch_share = 1; /* more than one outstanding request is too many */
	for (unsigned int i = 0; i < 2 * SLOTS; i++)
		cr_assert_neq(ask(r, flow), NOBODY);
	cr_expect_leq(r->lc->load.outstanding[3], 3, "%u", r->lc->load.outstanding[3]);
	cr_expect_geq(r->lc->load.outstanding[3], 2);
	rig_destroy(r);
}

Test(lb_places, one_host_serves_as_if_there_were_no_spread)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "", "host", 4, all_one);
	struct flow *flow = flow_of(r, 1);

	for (unsigned int i = 0; i < 4 * SLOTS; i++)
		cr_assert_eq(ask(r, flow), i % 4);
	cr_expect_eq(ask(r, flow), NOBODY);
	rig_destroy(r);
}

Test(lb_places, a_worker_without_the_label_is_a_place_of_its_own)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "", "host", 4, none);
	struct flow *flow = flow_of(r, 1);
	uint16_t before = NOBODY;

	for (unsigned int i = 0; i < 40; i++) {
		uint16_t worker = ask(r, flow);

		cr_assert_neq(worker, NOBODY);
		cr_expect_neq(worker, before);
		answer(r, worker);
		before = worker;
	}
	rig_destroy(r);
}

/* A request that worker <lost> had waits to be sent again. */
static void wait_for_another(struct rig *r, struct flow *flow, uint16_t lost)
{
	struct waiting w = {
		.packet = fixture_message(r->f, 100),
		.flow = conntrack_handle(r->lc->ct, flow),
		.hash = hash_of(flow),
		.arrived = r->lc->now,
		.since = r->lc->now,
		.level = QUEUE_LEVEL_REPLAY,
		.replays = 1,
		.lost = lost + 1,
	};

	cr_assert(waiting_push(r->lc, 0, &w));
}

Test(lb_places, a_replay_leaves_the_host_of_the_worker_that_was_lost)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "", "host", 4, three_and_one);
	struct flow *flow = flow_of(r, 1);

	queue_fini(&r->lc->service[0].queue);
	cr_assert_eq(queue_init(&r->lc->service[0].queue, 64, 8), 0);
	for (unsigned int i = 0; i < 4; i++)
		r->lc->link[i]->batch_share = 1;
	/* The other host's worker owes more than all others: saturated, but it has a slot. */
	while (r->lc->load.outstanding[3] < SLOTS - 1)
		workers_load_sent(&r->lc->load, 3, r->lc->now);
	set_state(r, 0, WORKER_SUSPECT);
	wait_for_another(r, flow, 0);
	cr_expect_eq(look_at_queue(r), 3);
	/* It has none: better on the same host than not at all. */
	wait_for_another(r, flow, 0);
	workers_load_sent(&r->lc->load, 3, r->lc->now);
	cr_expect(same(host[look_at_queue(r)], "h0"));
	cr_expect_eq(r->lc->lost, 0);
	rig_destroy(r);
}

Test(lb_places, requests_stay_near_while_there_is_room)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "host", "", 4, two_and_two);
	struct flow *flow = flow_of(r, 1);

	for (unsigned int i = 0; i < 2 * SLOTS; i++)
		cr_expect(same(host[ask(r, flow)], "h0"), "request %u", i);
	/* full: farther away, and nobody waits */
	for (unsigned int i = 0; i < 2 * SLOTS; i++)
		cr_expect(same(host[ask(r, flow)], "h1"), "request %u", i);
	cr_expect_eq(ask(r, flow), NOBODY);
	answer(r, 1);
	cr_expect_eq(look_at_queue(r), 1);
	rig_destroy(r);
}

Test(lb_places, a_saturated_near_worker_leaves_requests_to_others)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "host", "", 4, two_and_two);
	struct flow *flow = flow_of(r, 1);

	for (unsigned int i = 0; i < 4; i++)
		r->lc->link[i]->batch_share = 1;
	for (unsigned int i = 0; i < 2 * SLOTS; i++)
		cr_assert_neq(ask(r, flow), NOBODY);
	/* At 125 % of the mean they share: none is left idle. */
	for (unsigned int i = 0; i < 4; i++)
		cr_expect_geq(r->lc->load.outstanding[i], 1, "worker %u", i);
	rig_destroy(r);
}

/* The least time would be another place's, by a little. */
Test(lb_places, requests_with_a_deadline_stay_near_unless_they_would_be_late)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "host", "", 4, two_and_two);
	struct flow *flow = flow_of(r, 1);
	uint64_t ms = r->lb->tsc_per_ms;

	r->service->policy = PICK_EARLIEST_FINISH;
	publish(r);
	for (unsigned int i = 0; i < 4; i++) {
		r->lc->load.meter[i].measured = true;
		r->lc->load.run_ns[i] = r->lc->load.gap_ns[i] = i < 2 ? 1.1e6f : 1e6f;
	}
	for (unsigned int i = 0; i < 20; i++) {
		uint16_t worker = ask_by(r, flow, r->lc->now + 1000 * ms);

		cr_expect(same(host[worker], "h0"), "request %u: worker %u", i, worker);
		answer(r, worker);
	}
	r->lc->load.run_ns[0] = r->lc->load.run_ns[1] = 50e6f;
	cr_expect(same(host[ask_by(r, flow, r->lc->now + 10 * ms)], "h1"));
	rig_destroy(r);
}

Test(lb_places, with_nobody_near_all_are_as_good)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "host", "", 4, none);
	struct flow *flow = flow_of(r, 1);

	for (unsigned int i = 0; i < 4 * SLOTS; i++)
		cr_assert_eq(ask(r, flow), i % 4);
	rig_destroy(r);
}

Test(lb_places, a_sticky_flow_spills_near_its_preferred_worker)
{
	struct rig *r = rig_on(LB_AFFINITY_STICKY, "host", "", 4,
			       (const char *const[]){"h0", "h1", "h0", "h1"});
	struct flow *flow = flow_of(r, 1);
	uint16_t preferred, other;

	/* A flow without a preferred worker begins near the load balancer. */
	preferred = ask(r, flow);
	cr_assert(same(host[preferred], "h0"));
	answer_all(r);
	/* Then it is its preferred worker that counts: let that be on the other host. */
	flow->worker = preferred = 1;
	flow->worker_generation = workers_get(r->lb->pool, 1)->generation;
	for (unsigned int i = 0; i < SLOTS; i++)
		cr_assert_eq(ask(r, flow), preferred);
	for (unsigned int i = 0; i < SLOTS; i++)
		cr_expect_eq(ask(r, flow), 3, "request %u", i);
	other = ask(r, flow);
	cr_expect(same(host[other], "h0"), "the host is full");
	/* Silent for a moment, it stays preferred. */
	answer_all(r);
	set_state(r, 1, WORKER_SUSPECT);
	worker_set_add(&r->lb->pick[0]->away, 1);
	cr_expect_eq(ask(r, flow), 3);
	rig_destroy(r);
}

Test(lb_places, the_policy_decides_where_there_is_neither)
{
	struct rig *r = rig_on(LB_AFFINITY_REQUEST, "", "", 4, two_and_two);
	struct flow *flow = flow_of(r, 1);

	cr_assert_null(r->lb->pick[0]->groups);
	for (unsigned int i = 0; i < 4; i++)
		cr_expect_eq(ask(r, flow), i);
	rig_destroy(r);
}
