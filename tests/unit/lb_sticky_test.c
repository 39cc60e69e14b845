/* SPDX-License-Identifier: BSD-3-Clause */
/* Sticky affinity: which worker gets a flow's requests, which ones wait, and when flows move.
 */
#include "lb_workers_fixture.h"
#include "walk/choose.h"

static void expect_counts(const struct rig *r, uint64_t preferred, uint64_t spilled, uint64_t moved)
{
	const struct lb_service_stats *stats = &r->lc->service[0].stats;

	cr_expect_eq(stats->preferred, preferred, "%lu preferred", stats->preferred);
	cr_expect_eq(stats->spilled, spilled, "%lu spilled", stats->spilled);
	cr_expect_eq(stats->moved, moved, "%lu moved", stats->moved);
}

static const enum pick_policy not_maglev[] = {PICK_ROUND_ROBIN, PICK_WEIGHTED,
					      PICK_LEAST_OUTSTANDING, PICK_POWER_OF_TWO,
					      PICK_EARLIEST_FINISH};

Test(lb_sticky, a_flow_stays_with_its_worker_while_that_has_room)
{
	for (unsigned int k = 0; k < RTE_DIM(not_maglev); k++) {
		struct rig *r = rig_of(not_maglev[k], LB_AFFINITY_STICKY);
		struct flow *flow[6];
		uint16_t preferred[6];

		for (unsigned int i = 0; i < 6; i++) {
			flow[i] = flow_of(r, i + 1);
			preferred[i] = ask(r, flow[i]);
		}
		answer_all(r);
		for (unsigned int turn = 0; turn < 20; turn++) {
			for (unsigned int i = 0; i < 6; i++) {
				cr_assert_eq(ask(r, flow[i]), preferred[i], "%s",
					     pick_policy_name(not_maglev[k]));
				answer(r, preferred[i]);
			}
		}
		expect_counts(r, 120, 0, 0);
		rig_destroy(r);
	}
}

Test(lb_sticky, spills_when_the_preferred_worker_is_full_and_comes_back)
{
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct rig *r = rig_of(policy, LB_AFFINITY_STICKY);
		struct flow *flow = flow_of(r, 1);
		uint16_t preferred = ask(r, flow), other;

		for (unsigned int i = 1; i < SLOTS; i++)
			cr_assert_eq(ask(r, flow), preferred);
		r->lc->service[0].stats = (struct lb_service_stats){0};
		other = ask(r, flow);
		cr_assert(other != preferred && other != NOBODY);
		cr_expect_eq(flow->worker, preferred, "%s", pick_policy_name(policy));
		expect_counts(r, 0, 1, 0);
		answer(r, preferred);
		cr_expect_eq(ask(r, flow), preferred);
		expect_counts(r, 1, 1, 0);
		rig_destroy(r);
	}
}

Test(lb_sticky, nobody_waits_while_anybody_has_a_slot)
{
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct rig *r = rig_of(policy, LB_AFFINITY_STICKY);
		struct flow *flow = flow_of(r, 1);

		for (unsigned int i = 0; i < WORKERS * SLOTS; i++)
			cr_assert_neq(ask(r, flow), NOBODY, "%s", pick_policy_name(policy));
		cr_expect_eq(ask(r, flow), NOBODY);
		cr_expect_eq(r->lc->n_waiting, 1);
		rig_destroy(r);
	}
}

Test(lb_sticky, a_waiting_request_goes_to_the_preferred_worker_or_any_free_one)
{
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct rig *r = rig_of(policy, LB_AFFINITY_STICKY);
		struct flow *flow = flow_of(r, 1);
		uint16_t preferred = ask(r, flow), other = (preferred + 1) % WORKERS;
		uint64_t spilled;

		for (unsigned int i = 1; i < WORKERS * SLOTS; i++)
			ask(r, flow);
		spilled = r->lc->service[0].stats.spilled;
		ask(r, flow);
		ask(r, flow);
		cr_assert_eq(r->lc->n_waiting, 2);
		cr_expect_eq(look_at_queue(r), NOBODY);

		answer(r, other);
		cr_expect_eq(look_at_queue(r), other, "%s", pick_policy_name(policy));
		cr_expect_eq(flow->worker, preferred);
		cr_expect_eq(r->lc->service[0].stats.spilled, spilled + 1);

		for (uint16_t i = 0; i < WORKERS; i++)
			answer(r, i);
		cr_expect_eq(look_at_queue(r), preferred, "%s", pick_policy_name(policy));
		cr_expect_eq(r->lc->n_waiting, 0);
		rig_destroy(r);
	}
}

Test(lb_sticky, who_waits_keeps_its_place_while_nobody_is_free)
{
	struct rig *r = rig_of(PICK_MAGLEV, LB_AFFINITY_STICKY);
	struct flow *first = flow_of(r, 1), *second = flow_of(r, 2);

	second->client = first->client; /* they share a client queue */
	for (unsigned int i = 0; i <= WORKERS * SLOTS; i++)
		ask(r, first);
	for (unsigned int i = 0; i < LB_BURST + 8; i++)
		cr_assert_eq(ask(r, second), NOBODY);
	cr_expect_eq(look_at_queue(r), NOBODY);
	answer(r, 1);
	cr_expect_eq(look_at_queue(r), 1);
	cr_expect_eq(r->lc->burst.flow[0], first);
	rig_destroy(r);
}

Test(lb_sticky, newcomers_do_not_pass_who_waits)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_STICKY);
	struct flow *first = flow_of(r, 1), *second = flow_of(r, 2);

	for (unsigned int i = 0; i <= WORKERS * SLOTS; i++)
		ask(r, first);
	answer(r, 0);
	cr_expect_eq(ask(r, second), NOBODY);
	cr_expect_eq(look_at_queue(r), 0);
	cr_expect_eq(r->lc->burst.flow[0], first);
	rig_destroy(r);
}

Test(lb_sticky, flow_moves_when_its_worker_drains_or_rests)
{
	static const enum worker_state gone[] = {WORKER_DRAINING, WORKER_SUSPECT};

	for (unsigned int k = 0; k < RTE_DIM(gone); k++) {
		struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_STICKY);
		struct flow *flow = flow_of(r, 1);
		uint16_t preferred = ask(r, flow), other;

		workers_get(r->lb->pool, preferred)->doubt.ejected = true;
		set_state(r, preferred, gone[k]);
		other = ask(r, flow);
		cr_assert(other != preferred && other != NOBODY);
		cr_expect_eq(flow->worker, other);
		set_state(r, preferred, WORKER_ACTIVE);
		for (unsigned int i = 1; i < SLOTS; i++)
			cr_expect_eq(ask(r, flow), other, "there it stays");
		expect_counts(r, SLOTS - 1, 0, 1);
		rig_destroy(r);
	}
}

Test(lb_sticky, flow_stays_while_the_loop_is_silent_for_a_moment)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_STICKY);
	struct flow *flow = flow_of(r, 1);
	uint16_t preferred = ask(r, flow);

	set_state(r, preferred, WORKER_SUSPECT);
	for (unsigned int i = 0; i < 4; i++)
		cr_expect_neq(ask(r, flow), preferred);
	cr_expect_eq(flow->worker, preferred);
	set_state(r, preferred, WORKER_ACTIVE);
	cr_expect_eq(ask(r, flow), preferred);
	expect_counts(r, 1, 4, 0);
	rig_destroy(r);
}

Test(lb_sticky, flow_moves_when_its_worker_is_gone_even_if_another_has_the_number)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_STICKY);
	struct flow *flow = flow_of(r, 1);
	uint16_t preferred = ask(r, flow), other;
	struct worker *heir;

	workers_remove(r->lb->pool, workers_get(r->lb->pool, preferred));
	remove_link(r, preferred);
	heir = add_worker(r, "d", SLOTS, SLOTS);
	cr_assert_eq(heir->number, preferred);
	publish(r);
	other = ask(r, flow);
	cr_expect_eq(flow->worker, other);
	cr_expect_eq(flow->worker_generation, workers_get(r->lb->pool, other)->generation);
	expect_counts(r, 0, 0, 1);
	rig_destroy(r);
}

Test(lb_sticky, maglev_names_the_preferred_worker_and_has_it_back_in_the_end)
{
	struct rig *r = rig_of(PICK_MAGLEV, LB_AFFINITY_STICKY);
	struct flow *flow = flow_of(r, 1);
	uint16_t preferred = ask(r, flow), other;

	cr_expect_eq(preferred, workers_preferred(r->lb->pick[0], hash_of(flow), WORKER_NONE));
	expect_counts(r, 1, 0, 0);
	set_state(r, preferred, WORKER_DRAINING);
	other = ask(r, flow);
	cr_expect_neq(other, preferred);
	cr_expect_eq(flow->worker, other);
	expect_counts(r, 2, 0, 1);
	set_state(r, preferred, WORKER_ACTIVE);
	cr_expect_eq(ask(r, flow), preferred);
	expect_counts(r, 3, 0, 2);
	rig_destroy(r);
}

Test(lb_sticky, takes_over_where_affinity_request_left_a_flow)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_STICKY);
	struct flow *flow = flow_of(r, 1);
	uint16_t last;

	r->service->affinity = LB_AFFINITY_REQUEST;
	for (unsigned int i = 0; i < 4; i++)
		last = ask(r, flow);
	answer_all(r);
	r->service->affinity = LB_AFFINITY_STICKY;
	cr_expect_eq(ask(r, flow), last);
	cr_expect_eq(ask(r, flow), last);
	expect_counts(r, 2, 0, 0);
	rig_destroy(r);
}

/* Returns how many of 120 requests go to the one worker that all their flows prefer. */
static unsigned int share_of_a_hot_worker(enum pick_policy policy, uint32_t percent)
{
	struct rig *r = rig_create(policy, LB_AFFINITY_STICKY);
	struct flow *flow[12];
	unsigned int share = 0;

	add_worker(r, "hot", 256, 2);
	publish(r);
	for (unsigned int i = 0; i < 12; i++) {
		flow[i] = flow_of(r, i + 1);
		cr_assert_eq(ask(r, flow[i]), 0);
	}
	answer_all(r);
	for (unsigned int i = 1; i < 4; i++)
		add_worker(r, (char[]){'a' + i, '\0'}, 256, 2);
	publish(r);
	r->service->sticky_load_percent = percent;
	for (unsigned int i = 0; i < 120; i++)
		share += ask(r, flow[i % 12]) == 0;
	rig_destroy(r);
	return share;
}

Test(lb_sticky, a_hot_worker_has_no_more_than_its_share_when_loads_are_bounded)
{
	for (unsigned int k = 0; k < RTE_DIM(not_maglev); k++) {
		unsigned int bounded = share_of_a_hot_worker(not_maglev[k], 125),
			     loose = share_of_a_hot_worker(not_maglev[k], 200),
			     unbounded = share_of_a_hot_worker(not_maglev[k], 0);

		/* A quarter of the requests, and about a quarter more. */
		cr_expect(bounded >= 30 && bounded <= 39, "%s: %u", pick_policy_name(not_maglev[k]),
			  bounded);
		cr_expect(loose > bounded && loose <= 62, "%s: %u", pick_policy_name(not_maglev[k]),
			  loose);
		cr_expect_eq(unbounded, 120);
	}
}

/* Sets the worker's speed as if it had answered so far at <ns> per request. */
static void set_speed(struct rig *r, uint16_t worker, float ns)
{
	r->lc->load.meter[worker].measured = true;
	r->lc->load.run_ns[worker] = r->lc->load.gap_ns[worker] = ns;
	r->lc->load.changes += LOAD_RECENT + 1;
}

Test(lb_sticky,
     a_deadline_that_the_preferred_worker_would_miss_spills_and_one_that_all_would_miss_refuses)
{
	for (enum pick_policy policy = 0; policy < PICK_POLICIES; policy++) {
		struct rig *r = rig_of(policy, LB_AFFINITY_STICKY);
		struct flow *flow = flow_of(r, 1);
		uint16_t preferred = ask(r, flow), other;
		bool late;

		answer_all(r);
		for (uint16_t i = 0; i < WORKERS; i++)
			set_speed(r, i, i == preferred ? 10e6f : 1e6f);
		other = ask_by(r, flow, r->lc->now + 5 * r->lb->tsc_per_ms);
		cr_expect(other != preferred && other != NOBODY, "%s", pick_policy_name(policy));
		cr_expect_eq(ask_by(r, flow, r->lc->now + 50 * r->lb->tsc_per_ms), preferred);
		cr_expect_null(choose_worker(r->lc, flow, flow->service, hash_of(flow), 1,
					     r->lc->now + 1000, &late));
		cr_expect(late);
		rig_destroy(r);
	}
}

Test(lb_sticky, a_request_with_a_deadline_does_not_wait_for_a_worker_whose_link_takes_nothing)
{
	for (unsigned int k = 0; k < RTE_DIM(not_maglev); k++) {
		struct rig *r = rig_of(not_maglev[k], LB_AFFINITY_STICKY);
		struct flow *flow = flow_of(r, 1);
		uint16_t preferred = ask(r, flow), got;

		answer_all(r);
		/* This is as good as a full window: there are slots, but no packet may be sent. */
		r->lc->link[preferred]->stride = 1;
		got = ask_by(r, flow, r->lc->now + 50 * r->lb->tsc_per_ms);
		/* Policies that draw at random may draw the same worker again. */
		for (unsigned int i = 0; i < 32 && got == NOBODY; i++)
			got = look_at_queue(r);
		cr_expect(got != preferred && got != NOBODY, "%s", pick_policy_name(not_maglev[k]));
		cr_expect_eq(flow->worker, preferred, "it stays the preferred one");
		rig_destroy(r);
	}
}
