/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators' settings, the limits of registration, and workers whose agents are silent. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "walk.h"
#include "worker.h"
#include "lb.h"
#include "lcore/lcore.h"

static const struct packet ask = {.family = 4, .payload = 100};

static enum worker_state state_of(const struct walk_worker *v)
{
	const struct worker *w = walk_worker_of(v);

	return w == NULL ? WORKER_GONE : w->state;
}

static void set_drain(struct walk *w, const char *name, bool drain)
{
	walk_need(lb_settings_drain(w->lb, name, drain, w->error, sizeof(w->error)) == 0, "%s",
		  w->error);
}

WALK(a_drained_worker_that_registers_again_gets_nothing_until_it_is_resumed)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *first = walk_worker(w, &(struct walk_worker_params){.name = "a"});
	struct walk_worker *second;

	set_drain(w, "a", true);
	walk_expect_eq(state_of(first), WORKER_DRAINING);
	lb_worker_remove(w->lb, walk_worker_of(first), "connection closed");
	first->gone = true;
	second = walk_worker_register(w, &(struct walk_worker_params){.name = "a"});
	walk_need(second != NULL, "%s", w->error);
	walk_expect(!walk_worker_start(second), "it is active");
	walk_expect_eq(state_of(second), WORKER_DRAINING);
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_forget(w, 0);
	walk_expect_drops(w, {LB_DROP_NO_WORKER, 1});
	set_drain(w, "a", false);
	walk_pass(w, 50);
	walk_expect_eq(state_of(second), WORKER_ACTIVE);
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_echo(w, 0, &ask);
	walk_destroy(w);
}

/* --- a worker that takes another one's place ----------------------------------------------------
 */

static void replace(struct walk *w, struct walk_worker *old, const struct walk_worker *successor)
{
	walk_need(lb_settings_replace(w->lb, walk_worker_of(old), walk_worker_of(successor), false,
				      w->error, sizeof(w->error)) == 0,
		  "%s", w->error);
}

/* A walk with the workers a, b and c, of which a has a request in hand that it does not answer. */
static struct walk *walk_with_busy_worker(struct walk_worker *v[3])
{
	static const char *const name[] = {"a", "b", "c"};
	struct walk *w = walk_create(NULL);

	v[0] = walk_worker(w, &(struct walk_worker_params){.name = name[0]});
	v[0]->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	walk_need(v[0]->n_requests == 1);
	for (unsigned int i = 1; i < 3; i++)
		v[i] = walk_worker(w, &(struct walk_worker_params){.name = name[i]});
	return w;
}

static void die(struct walk *w, struct walk_worker *v)
{
	v->beats = false;
	walk_pass(w, 600);
	walk_expect_eq(state_of(v), WORKER_GONE);
	v->gone = true;
}

WALK(a_worker_serves_again_when_its_successor_dies_before_it_is_drained)
{
	struct walk_worker *v[3];
	struct walk *w = walk_with_busy_worker(v);

	replace(w, v[0], v[1]);
	walk_expect_eq(state_of(v[0]), WORKER_DRAINING);
	die(w, v[2]);
	walk_expect_eq(state_of(v[0]), WORKER_DRAINING);
	die(w, v[1]);
	walk_pass(w, 10);
	walk_expect_eq(state_of(v[0]), WORKER_ACTIVE);
	walk_expect(workers_settings_find(lb_settings(w->lb), "a") == NULL,
		    "the drain is still kept");
	walk_forget(w, 0);
	walk_destroy(w);
}

WALK(a_successor_that_is_replaced_itself_hands_the_place_on)
{
	struct walk_worker *v[3];
	struct walk *w = walk_with_busy_worker(v);

	replace(w, v[0], v[1]);
	replace(w, v[1], v[2]);
	lb_worker_remove(w->lb, walk_worker_of(v[1]), "connection closed");
	v[1]->gone = true;
	walk_pass(w, 10);
	walk_expect_eq(state_of(v[0]), WORKER_DRAINING);
	die(w, v[2]);
	walk_pass(w, 10);
	walk_expect_eq(state_of(v[0]), WORKER_ACTIVE);
	walk_forget(w, 0);
	walk_destroy(w);
}

WALK(a_drain_that_is_an_operators_own_or_is_over_stays_when_a_successor_dies)
{
	struct walk_worker *v[3];
	struct walk *w = walk_with_busy_worker(v);

	/* what the operator says last counts, and what was said before the replacement */
	replace(w, v[0], v[1]);
	set_drain(w, "a", true);
	set_drain(w, "c", true);
	replace(w, v[2], v[1]);
	die(w, v[1]);
	walk_pass(w, 10);
	walk_expect_eq(state_of(v[0]), WORKER_DRAINING);
	walk_expect_eq(state_of(v[2]), WORKER_DRAINING);
	/* and a worker that is drained has been replaced */
	set_drain(w, "c", false);
	v[1] = walk_worker(w, &(struct walk_worker_params){.name = "b"});
	replace(w, v[2], v[1]);
	walk_pass(w, 10);
	die(w, v[1]);
	walk_expect_eq(state_of(v[2]), WORKER_DRAINING);
	walk_forget(w, 0);
	walk_destroy(w);
}

WALK(a_successor_that_is_drained_or_leaves_does_not_serve_either)
{
	for (unsigned int leaves = 0; leaves < 2; leaves++) {
		struct walk_worker *v[3];
		struct walk *w = walk_with_busy_worker(v);

		replace(w, v[0], v[1]);
		if (leaves)
			lb_worker_drain(w->lb, walk_worker_of(v[1]));
		else
			set_drain(w, "b", true);
		walk_pass(w, 10);
		walk_expect_eq(state_of(v[0]), WORKER_ACTIVE);
		walk_forget(w, 0);
		walk_destroy(w);
	}
}

WALK(a_worker_serves_again_though_that_cannot_be_saved)
{
	struct walk_worker *v[3];
	struct walk *w = walk_with_busy_worker(v);

	replace(w, v[0], v[1]);
	/* as on a full disk: the file cannot be made */
	w->lb->state_file.path = "/proc/none/state.json";
	die(w, v[1]);
	walk_pass(w, 10);
	walk_expect_eq(state_of(v[0]), WORKER_ACTIVE);
	walk_expect(workers_settings_find(lb_settings(w->lb), "a") == NULL, "it is still set");
	w->lb->state_file.path = NULL;
	walk_forget(w, 0);
	walk_destroy(w);
}

/* A load balancer whose state file has a replacement that was under way when the last one ended. */
static struct walk *walk_with_kept_replacement(void)
{
	struct walk *w = walk_create(NULL);

	walk_need(workers_settings_replace(w->lb->settings, "a", "b", false) == 0);
	return w;
}

static bool is_kept(const struct walk *w, bool successor)
{
	const struct worker_setting *s = workers_settings_find(lb_settings(w->lb), "a");

	return s != NULL && s->drain && (s->successor[0] != '\0') == successor;
}

WALK(after_a_restart_a_worker_serves_until_its_successor_does)
{
	struct walk *w = walk_with_kept_replacement();
	struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.name = "a"}), *b;

	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	walk_pass(w, 5000);
	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	walk_expect(is_kept(w, true), "the replacement is not kept");
	b = walk_worker(w, &(struct walk_worker_params){.name = "b"});
	walk_pass(w, 50);
	walk_expect_eq(state_of(a), WORKER_DRAINING);
	walk_expect_eq(state_of(b), WORKER_ACTIVE);
	walk_expect(is_kept(w, false), "the replacement is not over");
	/* which holds when the successor goes */
	die(w, b);
	walk_expect_eq(state_of(a), WORKER_DRAINING);
	walk_destroy(w);
}

WALK(after_a_restart_a_worker_that_comes_after_its_successor_gets_nothing)
{
	struct walk *w = walk_with_kept_replacement();
	struct walk_worker *b = walk_worker(w, &(struct walk_worker_params){.name = "b"}), *a;

	a = walk_worker_register(w, &(struct walk_worker_params){.name = "a"});
	walk_need(a != NULL, "%s", w->error);
	walk_expect(!walk_worker_start(a), "it is active");
	walk_expect_eq(state_of(a), WORKER_DRAINING);
	walk_expect_eq(state_of(b), WORKER_ACTIVE);
	walk_expect(is_kept(w, false), "the replacement is not over");
	walk_destroy(w);
}

WALK(after_a_restart_a_successor_that_does_not_come_is_not_waited_for_for_ever)
{
	struct walk *w = walk_with_kept_replacement();
	struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.name = "a"}), *b;

	walk_pass(w, 11000);
	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	walk_expect(workers_settings_find(lb_settings(w->lb), "a") == NULL, "it is still kept");
	/* days later somebody starts one of that name */
	b = walk_worker(w, &(struct walk_worker_params){.name = "b"});
	walk_pass(w, 50);
	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	walk_expect_eq(state_of(b), WORKER_ACTIVE);
	walk_destroy(w);
}

WALK(after_a_restart_an_operator_s_drain_is_not_undone)
{
	struct walk *w = walk_with_kept_replacement();
	struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.name = "a"});

	set_drain(w, "a", true);
	walk_pass(w, 11000);
	walk_expect_eq(state_of(a), WORKER_DRAINING);
	walk_destroy(w);
}

/* --- services that a worker's successor must serve, too ----------------------------------------
 */

#define OWN_AND_ALL                                                                                \
	WALK_SERVICE("own", 8000, "echo", ", workers: assigned, min_workers: 1, spares: 1")        \
	WALK_SERVICE("all", 8001, "echo", "")

static void assign(struct walk *w, struct walk_worker *v, unsigned int service, bool in)
{
	walk_need((in ? lb_worker_assign : lb_worker_release)(w->lb, walk_worker_of(v), &service, 1,
							      w->error, sizeof(w->error)) == 0,
		  "%s", w->error);
}

static int gap(struct walk *w, struct walk_worker *old, struct walk_worker *successor)
{
	return lb_replace_gap(w->lb, walk_worker_of(old), walk_worker_of(successor));
}

WALK(a_successor_must_serve_what_the_worker_serves)
{
	struct walk *w = walk_create(&(struct walk_params){.services = OWN_AND_ALL});
	struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.name = "a"});
	struct walk_worker *b = walk_worker(w, &(struct walk_worker_params){.name = "b"});

	/* a steps in as a spare, and b would instead */
	walk_expect_eq(gap(w, a, b), -1);
	assign(w, a, 0, true);
	/* b would step in as the spare of <own>: it serves it */
	walk_expect_eq(gap(w, a, b), -1);
	assign(w, b, 0, true);
	assign(w, b, 1, false);
	walk_expect_eq(gap(w, a, b), 1);
	walk_expect_eq(gap(w, b, a), -1);
	/* a silent worker would serve again: what it serves then counts */
	a->beats = false;
	walk_pass(w, 100);
	walk_expect_eq(state_of(a), WORKER_SUSPECT);
	walk_expect_eq(gap(w, a, b), 1);
	assign(w, b, 1, true);
	walk_expect_eq(gap(w, a, b), -1);
	walk_expect_eq(state_of(a), WORKER_SUSPECT);
	walk_destroy(w);
}

/* As walk_with_kept_replacement(), with both services. */
static struct walk *walk_with_kept_pins(bool partly, const char *name, const char *service,
					enum assign_pin pin)
{
	struct walk *w = walk_create(&(struct walk_params){.services = OWN_AND_ALL});

	walk_need(workers_settings_replace(w->lb->settings, "a", "b", partly) == 0);
	walk_need(workers_settings_pin(w->lb->settings, name, service, pin) == 0);
	return w;
}

WALK(after_a_restart_what_a_successor_need_not_serve_is_remembered)
{
	for (unsigned int partly = 0; partly < 2; partly++) {
		struct walk *w = walk_with_kept_pins(partly, "b", "all", ASSIGN_OUT);
		struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.name = "a"});

		walk_worker(w, &(struct walk_worker_params){.name = "b"});
		walk_pass(w, 50);
		walk_expect_eq(state_of(a), partly ? WORKER_DRAINING : WORKER_ACTIVE);
		walk_pass(w, 11000);
		walk_expect_eq(state_of(a), partly ? WORKER_DRAINING : WORKER_ACTIVE);
		walk_expect(partly ? is_kept(w, false)
				   : workers_settings_find(lb_settings(w->lb), "a") == NULL,
			    "the replacement is not over");
		walk_destroy(w);
	}
}

/* <a> steps in for one that has yet to come, which <b> cannot. */
WALK(after_a_restart_a_replacement_waits_for_those_that_were_there)
{
	struct walk *w = walk_with_kept_pins(false, "b", "own", ASSIGN_OUT);
	struct walk_worker *a;

	walk_need(workers_settings_pin(w->lb->settings, "c", "own", ASSIGN_IN) == 0);
	a = walk_worker(w, &(struct walk_worker_params){.name = "a"});
	walk_worker(w, &(struct walk_worker_params){.name = "b"});
	walk_pass(w, 3000);
	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	walk_expect(is_kept(w, true), "the replacement was taken back");
	walk_worker(w, &(struct walk_worker_params){.name = "c"});
	walk_pass(w, 50);
	walk_expect_eq(state_of(a), WORKER_DRAINING);
	walk_expect(is_kept(w, false), "the replacement is not over");
	walk_destroy(w);
}

WALK(a_successor_that_is_assigned_elsewhere_only_is_told_apart)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("own", 8000, "echo", ", workers: assigned")
			WALK_SERVICE("too", 8001, "echo", ", workers: assigned")});
	struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.name = "a"});
	struct walk_worker *b = walk_worker(w, &(struct walk_worker_params){.name = "b"});

	assign(w, a, 0, true);
	assign(w, b, 1, true);
	walk_expect_eq(gap(w, a, b), 0);
	walk_expect_eq(gap(w, b, a), 1);
	assign(w, b, 0, true);
	walk_expect_eq(gap(w, a, b), -1);
	walk_destroy(w);
}

WALK(an_operators_weight_overrides_the_agents_also_when_it_registers_again)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v =
		walk_worker(w, &(struct walk_worker_params){.name = "a", .weight = 3});

	walk_need(lb_settings_weight(w->lb, "a", 7, w->error, sizeof(w->error)) == 0);
	walk_expect_eq(walk_worker_of(v)->spec.weight, 7);
	lb_worker_remove(w->lb, walk_worker_of(v), "connection closed");
	v->gone = true;
	v = walk_worker(w, &(struct walk_worker_params){.name = "a", .weight = 5});
	walk_expect_eq(walk_worker_of(v)->spec.weight, 7);
	walk_need(lb_settings_forget(w->lb, "a", w->error, sizeof(w->error)) == 0);
	walk_expect_eq(walk_worker_of(v)->spec.weight, 5);
	walk_expect_eq((uint64_t)-lb_settings_forget(w->lb, "a", w->error, sizeof(w->error)),
		       ENOENT);
	walk_destroy(w);
}

WALK(assignments_are_made_whole_or_not_at_all)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services = WALK_SERVICE("own", 8000, "echo", ", workers: assigned") WALK_SERVICE(
			"other", 8001, "mlp", "") WALK_SERVICE("third", 8002, "echo", "")});
	struct walk_worker *v = walk_worker(w, NULL);
	const unsigned int bad[] = {0, 1}, good[] = {0, 2, 0}, again[] = {2, 0};
	struct worker *k = walk_worker_of(v);

	walk_expect(lb_worker_assign(w->lb, k, bad, 2, w->error, sizeof(w->error)) < 0);
	walk_expect(!lb_worker_serves(w->lb, k, 0), "the first of two was assigned");
	walk_expect(strstr(w->error, "service 'other' needs 'mlp'") != NULL, "%s", w->error);
	walk_expect(lb_worker_assign(w->lb, k, good, 3, w->error, sizeof(w->error)) == 0);
	walk_expect(lb_worker_serves(w->lb, k, 0));
	walk_expect(lb_worker_release(w->lb, k, bad, 2, w->error, sizeof(w->error)) < 0);
	walk_expect(lb_worker_serves(w->lb, k, 0), "the first of two was released");
	walk_expect(lb_worker_release(w->lb, k, again, 2, w->error, sizeof(w->error)) == 0);
	walk_expect(!lb_worker_serves(w->lb, k, 0));
	walk_expect(!lb_worker_serves(w->lb, k, 2));
	walk_destroy(w);
}

WALK(a_worker_whose_model_wants_more_than_a_datagram_is_refused)
{
	struct walk *w = walk_create(
		&(struct walk_params){.services = WALK_SERVICE("echo", 8000, "echo", "")});
	struct lb_registration r;

	walk_worker_registration(w, NULL, &r);
	r.worker.min_request = r.worker.max_request = 602112;
	walk_expect(walk_worker_register_as(w, &r) == NULL);
	walk_expect(strstr(w->error, "602112 bytes or more") != NULL &&
			    strstr(w->error, "1472 at most") != NULL,
		    "%s", w->error);
	r.worker.min_request = 1473;
	walk_expect(lb_registration_check(w->lb, &r, w->error, sizeof(w->error)) < 0);
	walk_destroy(w);
}

WALK(a_reload_that_makes_a_service_too_narrow_for_its_worker_is_refused)
{
	struct walk *w = walk_create(NULL);
	struct lb_registration r;
	struct walk_worker *v;
	char text[4096];

	walk_worker_registration(w, NULL, &r);
	r.worker.min_request = 1000;
	v = walk_worker_register_as(w, &r);
	walk_need(v != NULL && walk_worker_start(v), "%s", w->error);
	walk_yaml(NULL, WALK_SERVICE("echo", 8000, "echo", ", max_request: 999"), text,
		  sizeof(text));
	walk_expect(walk_reload(w, text) < 0);
	walk_expect(strstr(w->error, "takes requests of 1000 or more") != NULL, "%s", w->error);
	walk_yaml(NULL, WALK_SERVICE("echo", 8000, "echo", ", max_request: 1000"), text,
		  sizeof(text));
	walk_expect(walk_reload(w, text) == 0, "%s", w->error);
	walk_destroy(w);
}

/* --- agents that are not heard ------------------------------------------------------------------
 */

static void close_connection(struct walk *w, const struct walk_worker *v)
{
	lb_worker_control_lost(w->lb, walk_worker_of(v), true);
}

WALK(a_worker_stays_while_its_loop_beats_though_its_connection_closed)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *a = walk_worker(w, NULL), *b = walk_worker(w, NULL);
	const struct worker *k = walk_worker_of(a);

	close_connection(w, a);
	walk_expect_eq(state_of(a), WORKER_SUSPECT);
	walk_pass(w, 30);
	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	walk_expect(strcmp(k->reason, "control connection lost") == 0, "%s", k->reason);
	walk_pass(w, 30000);
	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	walk_expect_eq(state_of(b), WORKER_ACTIVE);
	for (unsigned int i = 0; i < 8; i++)
		walk_send(w, 0, &ask);
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 8);
	walk_forget(w, 0);
	walk_expect(a->answered > 0, "it got no requests");
	lb_worker_control_back(w->lb, walk_worker_of(a));
	walk_expect(k->reason[0] == '\0' && !k->uncontrolled, "%s", k->reason);
	walk_destroy(w);
}

WALK(a_worker_whose_lease_ends_stays_while_its_loop_beats)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *a = walk_worker(w, NULL);

	lb_worker_control_lost(w->lb, walk_worker_of(a), false);
	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	walk_pass(w, 10000);
	walk_expect_eq(state_of(a), WORKER_ACTIVE);
	/* without it the worker is treated as any other */
	a->beats = false;
	walk_pass(w, 700);
	walk_expect_eq(state_of(a), WORKER_GONE);
	walk_destroy(w);
}

WALK(an_agent_that_was_killed_is_suspect_at_once_and_its_requests_go_elsewhere)
{
	struct walk *w = walk_create(&(struct walk_params){
		.services =
			WALK_SERVICE("echo", 8000, "echo", ", policy: round-robin, replay: 1")});
	struct walk_worker *a = walk_worker(w, NULL), *b = walk_worker(w, NULL);

	a->answers = false;
	walk_send(w, 0, &ask);
	walk_settle(w);
	if (a->n_requests == 0) {
		walk_forget(w, 0);
		walk_send(w, 0, &ask);
		walk_settle(w);
	}
	walk_need(a->n_requests == 1);
	walk_forget(w, 0);
	a->gone = true;
	close_connection(w, a);
	walk_expect_eq(state_of(a), WORKER_SUSPECT);
	/* no time has passed */
	walk_settle(w);
	walk_expect_eq(walk_count(w, 0), 1);
	walk_expect_echo(w, 0, &ask);
	walk_pass(w, 100);
	walk_expect_eq(state_of(a), WORKER_GONE);
	walk_expect_eq(state_of(b), WORKER_ACTIVE);
	walk_destroy(w);
}

/* Returns how many of <n> workers take no requests right after all connections closed. */
static unsigned int suspects_of(unsigned int n, const char *more)
{
	struct walk *w = walk_create(&(struct walk_params){.more = more});
	struct walk_worker *v[8];
	unsigned int suspects = 0;

	for (unsigned int i = 0; i < n; i++)
		v[i] = walk_worker(w, NULL);
	for (unsigned int i = 0; i < n; i++)
		close_connection(w, v[i]);
	for (unsigned int i = 0; i < n; i++)
		suspects += state_of(v[i]) == WORKER_SUSPECT;
	walk_pass(w, 1000);
	for (unsigned int i = 0; i < n; i++)
		walk_expect_eq(state_of(v[i]), WORKER_ACTIVE);
	walk_destroy(w);
	return suspects;
}

WALK(all_connections_at_once_take_no_more_than_their_share)
{
	walk_expect_eq(suspects_of(8, NULL), 4);
	walk_expect_eq(suspects_of(1, NULL), 0);
	walk_expect_eq(suspects_of(8, "workers: {control_loss_max_percent: 25}\n"), 2);
	walk_expect_eq(suspects_of(8, "workers: {control_loss_max_percent: 0}\n"), 0);
	walk_expect_eq(suspects_of(8, "workers: {control_loss_max_percent: 100}\n"), 8);
	walk_expect_eq(suspects_of(8, "workers: {suspect_ms: 0}\n"), 0);
}

WALK(closed_connections_make_nobody_wait_longer_each_time)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *a = walk_worker(w, NULL), *b = walk_worker(w, NULL);

	for (unsigned int i = 0; i < 10; i++) {
		close_connection(w, a);
		walk_expect_eq(state_of(a), WORKER_SUSPECT);
		walk_pass(w, 40);
		walk_expect_eq(state_of(a), WORKER_ACTIVE);
	}
	walk_expect_eq(state_of(b), WORKER_ACTIVE);
	walk_destroy(w);
}

WALK(who_joins_is_drained_or_leaves_goes_with_its_connection)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *joining = walk_worker_register(w, NULL);
	struct walk_worker *drained, *leaving;

	walk_need(joining != NULL, "%s", w->error);
	close_connection(w, joining);
	walk_expect_eq(state_of(joining), WORKER_GONE);
	joining->gone = true;
	drained = walk_worker(w, &(struct walk_worker_params){.name = "d"});
	set_drain(w, "d", true);
	close_connection(w, drained);
	walk_expect_eq(state_of(drained), WORKER_GONE);
	drained->gone = true;
	leaving = walk_worker(w, NULL);
	lb_worker_drain(w->lb, walk_worker_of(leaving));
	close_connection(w, leaving);
	walk_expect_eq(state_of(leaving), WORKER_GONE);
	leaving->gone = true;
	walk_destroy(w);
}

static unsigned int drained_events;

static void count_drained(struct worker *worker, void *context)
{
	drained_events += worker->state == WORKER_DRAINING;
}

WALK(an_agent_that_leaves_a_drained_worker_is_told_at_once)
{
	struct walk *w = walk_create(NULL);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.name = "d"});

	set_drain(w, "d", true);
	walk_pass(w, 50);
	lb_on_worker_event(w->lb, count_drained, NULL);
	drained_events = 0;
	lb_worker_drain(w->lb, walk_worker_of(v));
	walk_expect(drained_events > 0);
	lb_on_worker_event(w->lb, NULL, NULL);
	walk_destroy(w);
}
