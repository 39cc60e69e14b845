/* SPDX-License-Identifier: BSD-3-Clause */
/* Housekeeping visits the links that wait for something; idle ones cost nothing. */
#include <criterion/criterion.h>
#include <sys/mman.h>

#include "lb_workers_fixture.h"
#include "walk/cancel.h"
#include "walk/forward.h"
#include "walk/overdue.h"
#include "walk/replay.h"

/* Does what housekeeping does for links each ms, without the timers that loop.c runs. */
static void look_after(struct rig *r)
{
	overdue_check(r->lc);
	replay_suspects(r->lc);
	cancel_housekeeping(r->lc);
}

/* Visiting one of these links would crash. */
Test(lb_active, idle_links_are_not_looked_at)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_REQUEST);
	struct link *forbidden = mmap(NULL, sizeof(*forbidden), PROT_NONE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int n = r->lc->n_links;
	struct flow *flow = flow_of(r, 1);

	cr_assert_neq(forbidden, MAP_FAILED);
	while (r->lc->n_links < WORKERS_MAX)
		r->lc->links[r->lc->n_links++] = forbidden;
	r->lc->replay_copies = 1; /* or replays are not searched */
	look_after(r);
	cancel_request(r->lc, flow, flow->service, conntrack_handle(r->lc->ct, flow), 1);
	r->lc->replay_copies = 0;
	r->lc->n_links = n;
	munmap(forbidden, sizeof(*forbidden));
	rig_destroy(r);
}

Test(lb_active, a_link_is_active_from_its_first_request_on)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_REQUEST);
	struct flow *flow = flow_of(r, 1);
	uint16_t worker = ask(r, flow);
	struct link *link = r->lc->link[worker];

	cr_expect_eq(r->lc->n_active, 0, "not before the burst is out");
	forward_flush(r->lc);
	cr_assert_eq(r->lc->n_active, 1);
	cr_expect_eq(r->lc->active[0], link);
	forward_flush(r->lc);
	ask(r, flow);
	ask(r, flow);
	ask(r, flow);
	forward_flush(r->lc);
	cr_expect_eq(r->lc->n_active, WORKERS, "each once");
	next_turn(r);
	cr_expect(link_has_work(link), "acknowledged and not answered");
	answer_all(r);
	cr_expect_not(link_has_work(link));
	rig_destroy(r);
}

Test(lb_active, timeouts_and_cancels_find_what_is_in_flight)
{
	struct rig *r = rig_of(PICK_ROUND_ROBIN, LB_AFFINITY_REQUEST);
	struct flow *flow = flow_of(r, 1);

	for (unsigned int i = 0; i < WORKERS; i++)
		ask(r, flow);
	next_turn(r);
	r->lc->now += 1001 * r->lb->tsc_per_ms;
	r->lc->drained.at = r->lc->now;
	r->lb->shortest_timeout = 1000 * r->lb->tsc_per_ms;
	conntrack_flow_remove(r->lc->ct, flow); /* so that no notice is due */
	overdue_check(r->lc);
	cr_expect_eq(r->lc->stats.drop[LB_DROP_REQUEST_TIMEOUT], WORKERS);
	for (unsigned int i = 0; i < WORKERS; i++)
		cr_expect(link_has_work(r->lc->links[i]), "the worker owes an answer still");
	rig_destroy(r);
}
