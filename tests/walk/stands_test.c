/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The second of two lcores stands still in the middle of a turn: the control thread goes on, what
 * it changes is in force for the first lcore, and the second one takes it over when it goes on.
 * Memory that it may still look at is freed then, and not before.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lb.h"
#include "observe/capture.h"
#include "observe/flow_trace.h"
#include "reload/reload.h"
#include "runtime/clock.h"
#include "worker.h"

#define ECHO WALK_SERVICE("echo", 8000, "echo", "")
#define MORE WALK_SERVICE("more", 8001, "echo", "")

static const struct walk_params two = {.services = ECHO, .lcores = 2};

static uint64_t begun_ms;

/* From now on the second lcore ends no turn. */
static void stand(struct walk *w)
{
	rte_rcu_qsbr_thread_register(w->lb->qsbr, 1);
	rte_rcu_qsbr_thread_online(w->lb->qsbr, 1);
	mailbox_open(&w->lb->lcore[1]->mailbox);
	begun_ms = clock_now_ms();
}

/* It ends its turn, and goes on. */
static void go_on(struct walk *w)
{
	/* Each thing that stands still is waited for once, for LCORES_WAIT_US. */
	walk_expect(clock_now_ms() - begun_ms < 5000, "the control thread waited");
	mailbox_close(&w->lb->lcore[1]->mailbox);
	rte_rcu_qsbr_quiescent(w->lb->qsbr, 1);
	rte_rcu_qsbr_thread_offline(w->lb->qsbr, 1);
	rte_rcu_qsbr_thread_unregister(w->lb->qsbr, 1);
	walk_tick(w);
}

/* Time in which the first lcore turns, and the control thread ticks. */
static void pass(struct walk *w, uint32_t ms)
{
	for (uint32_t i = 0; i < ms; i += 10) {
		walk_jump(w, 10);
		walk_turn_lcore(w, 0);
		walk_wire(w);
		walk_tick(w);
	}
}

/* Requests of many flows, so that both lcores get some, are all answered. */
static void expect_served(struct walk *w, uint16_t port)
{
	uint64_t replies[2] = {w->lb->lcore[0]->stats.replies, w->lb->lcore[1]->stats.replies};

	for (uint16_t i = 0; i < 32; i++) {
		struct packet p = {.family = 4,
				   .payload = 20,
				   .source_port = 3000 + i,
				   .destination_port = port};

		walk_send_on(w, 0, i % 2, &p);
		walk_settle(w);
		walk_expect_echo(w, 0, &p);
	}
	for (unsigned int k = 0; k < 2; k++)
		walk_expect(w->lb->lcore[k]->stats.replies > replies[k], "none by lcore %u", k);
}

static int reload(struct walk *w, const char *services)
{
	char text[8192];

	walk_yaml(&two, services, text, sizeof(text));
	return walk_reload(w, text);
}

WALK(it_is_seen_and_said_for_how_long)
{
	struct walk *w = walk_create(&two);
	struct lb_lcore_stats stats;
	char error[256] = "";

	stand(w);
	pass(w, 990);
	walk_expect_eq(lb_lcore_stands_ms(w->lb, 1), 0);
	pass(w, 1010);
	lb_lcore_stats_read(w->lb, 1, &stats);
	walk_expect(stats.stands_ms > 1900 && stats.stands_ms <= 2000, "%lu", stats.stands_ms);
	walk_expect_eq(lb_lcore_stands_ms(w->lb, 0), 0);
	walk_expect(!lb_all_stand(w->lb));
	walk_expect_eq(lcores_any(w->lb), 0);
	walk_expect_eq(lcores_check(w->lb, error, sizeof(error)), 0);
	walk_expect_eq(lcores_check_all(w->lb, error, sizeof(error)), (uint64_t)-EBUSY);
	walk_expect(strncmp(error, "lcore 1 (CPU ", 13) == 0, "%s", error);
	/* The control thread itself was late: that time says nothing. */
	walk_jump(w, 5000);
	walk_tick(w);
	walk_expect(lb_lcore_stands_ms(w->lb, 1) > 1900 && lb_lcore_stands_ms(w->lb, 1) <= 2000);
	go_on(w);
	walk_expect_eq(lb_lcore_stands_ms(w->lb, 1), 0);
	walk_expect_eq(lcores_check_all(w->lb, error, sizeof(error)), 0);
	/* Times in ms that are as long ago as half of their numbers would seem to lie ahead. */
	walk_expect(w->lb->seen[1].until_ms != 0);
	walk_jump(w, 3700000);
	walk_tick(w);
	walk_expect_eq(w->lb->seen[1].until_ms, 0);
	walk_destroy(w);
}

WALK(where_all_stand_no_watchdog_is_fed)
{
	struct walk *w = walk_create(&two);

	stand(w);
	mailbox_open(&w->lb->lcore[0]->mailbox);
	for (uint32_t i = 0; i < 120; i++) {
		walk_jump(w, 10);
		walk_tick(w);
	}
	walk_expect(lb_all_stand(w->lb));
	mailbox_close(&w->lb->lcore[0]->mailbox);
	go_on(w);
	walk_expect(!lb_all_stand(w->lb));
	walk_destroy(w);
}

/* A virtual machine that was stopped: all its CPUs were. */
WALK(when_all_stood_still_no_lcore_did)
{
	struct walk *w = walk_create(&two);

	stand(w);
	pass(w, 100);
	walk_jump(w, 60000);
	walk_tick(w);
	walk_expect_eq(lb_lcore_stands_ms(w->lb, 1), 0);
	go_on(w);
	walk_destroy(w);
}

WALK(pick_tables_that_it_may_look_at_are_freed_when_it_goes_on)
{
	struct walk *w = walk_create(&two);
	struct walk_worker *v = walk_worker(w, NULL);
	const struct pick_table *seen;
	unsigned int n;

	walk_expect_eq(w->lb->n_to_free, 0);
	seen = w->lb->pick[0];
	n = seen->n;
	stand(w);
	for (unsigned int i = 0; i < 3; i++) {
		walk_need(lb_settings_drain(w->lb, v->name, true, w->error, sizeof(w->error)) == 0);
		walk_expect_eq(w->lb->pick[0]->n, 0);
		walk_need(lb_settings_drain(w->lb, v->name, false, w->error, sizeof(w->error)) ==
			  0);
		walk_expect_eq(w->lb->pick[0]->n, 1);
		pass(w, 20);
	}
	walk_expect(w->lb->n_to_free >= 12, "%u", w->lb->n_to_free);
	walk_expect_eq(seen->n, n); /* the address sanitizer looks, too */
	go_on(w);
	walk_expect_eq(w->lb->n_to_free, 0);
	walk_settle(w);
	expect_served(w, 8000);
	walk_destroy(w);
}

WALK(commands_are_refused_when_too_much_waits_for_it)
{
	struct walk *w = walk_create(&two);
	struct walk_worker *v = walk_worker(w, NULL);
	unsigned int n = 0;
	uint32_t id;

	stand(w);
	pass(w, 1200);
	while (n < 1000 &&
	       lb_settings_drain(w->lb, v->name, n % 2 == 0, w->error, sizeof(w->error)) == 0)
		n++;
	walk_expect(n > 20 && n < 200, "after %u", n);
	walk_expect(strncmp(w->error, "lcore 1 (CPU ", 13) == 0 &&
			    strstr(w->error, " has stood still for 1") != NULL,
		    "%s", w->error);
	walk_expect(reload(w, ECHO MORE) != 0);
	walk_expect(strncmp(w->error, "lcore 1 (CPU ", 13) == 0, "%s", w->error);
	walk_expect(lb_trace_start(w->lb, &(struct trace_flow){.client_port = 1}, &id, w->error,
				   sizeof(w->error)) == -EBUSY);
	/* The load balancer's own changes are put off. */
	n = w->lb->n_to_free;
	for (unsigned int i = 0; i < 1000; i++)
		registry_publish(w->lb, "echo");
	walk_expect(w->lb->n_to_free < n + 200, "%u wait", w->lb->n_to_free);
	walk_expect(w->lb->publish_due);
	go_on(w);
	walk_expect_eq(w->lb->n_to_free, 0);
	walk_expect(!w->lb->publish_due);
	walk_need(lb_settings_drain(w->lb, v->name, false, w->error, sizeof(w->error)) == 0, "%s",
		  w->error);
	expect_served(w, 8000);
	walk_destroy(w);
}

/* The tables of the lcore that goes on name it until new ones can be published. */
WALK(a_worker_that_goes_while_too_much_waits_is_asked_no_more)
{
	static const char *const policies[] = {", policy: maglev, deadline_ms: 50",
					       ", policy: earliest-finish, deadline_ms: 50",
					       ", policy: round-robin, affinity: sticky"};

	for (unsigned int k = 0; k < RTE_DIM(policies); k++) {
		char services[256];
		struct walk *w;
		struct walk_worker *v;

		walk_context("%s", policies[k]);
		snprintf(services, sizeof(services), WALK_SERVICE("echo", 8000, "echo", "%s"),
			 policies[k]);
		w = walk_create(&(struct walk_params){.services = services, .lcores = 2});
		v = walk_worker(w, NULL);
		expect_served(w, 8000);
		stand(w);
		pass(w, 100);
		while (!w->lb->publish_due)
			registry_publish(w->lb, "echo");
		lb_worker_remove(w->lb, walk_worker_of(v), "gone");
		walk_expect_eq(w->lb->pick[0]->n, 1);
		for (uint16_t i = 0; i < 64; i++) {
			struct packet p = {.family = 4, .payload = 20, .source_port = 3000 + i};

			walk_send_on(w, 0, 0, &p);
			walk_turn_lcore(w, 0);
			walk_wire(w);
		}
		walk_expect(walk_worker_register(w, NULL) == NULL);
		walk_expect(strncmp(w->error, "lcore 1 (CPU ", 13) == 0, "%s", w->error);
		go_on(w);
		walk_expect_eq(w->lb->pick[0]->n, 0);
		walk_pass(w, 2000);
		walk_forget(w, 0);
		walk_worker(w, NULL);
		expect_served(w, 8000);
		walk_destroy(w);
	}
}

WALK(many_services_get_their_workers)
{
	static char services[LB_SERVICES_MAX * 128];
	struct walk *w;
	size_t at = 0;

	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		at += (size_t)snprintf(services + at, sizeof(services) - at,
				       "  - {name: s%u, address: " PACKET_DESTINATION4
				       ", port: %u, model: echo, queue: 8}\n",
				       i, 8000 + i);
	w = walk_create(&(struct walk_params){.services = services, .lcores = 2, .packets = 4096});
	walk_worker(w, NULL);
	expect_served(w, 8000 + LB_SERVICES_MAX - 1);
	walk_destroy(w);
}

WALK(a_worker_that_went_and_one_that_came_are_taken_over_in_their_order)
{
	struct walk *w = walk_create(&two);
	struct walk_worker *old = walk_worker(w, NULL), *fresh;
	uint16_t number = walk_worker_of(old)->number;
	struct link *before = w->lb->lcore[1]->link[number];

	stand(w);
	lb_worker_remove(w->lb, walk_worker_of(old), "gone");
	fresh = walk_worker_register(w, NULL);
	walk_need(fresh != NULL, "%s", w->error);
	walk_expect_eq(walk_worker_of(fresh)->number, number);
	pass(w, 100);
	walk_expect(w->lb->lcore[1]->link[number] == before);
	walk_expect(w->lb->lcore[0]->link[number] != before);
	walk_expect(w->lb->detached == before && before->next_to_free == NULL, "the first is free");
	lb_worker_remove(w->lb, walk_worker_of(fresh), "gone, too");
	fresh = walk_worker_register(w, NULL);
	walk_need(fresh != NULL, "%s", w->error);
	go_on(w);
	walk_pass(w, 20);
	walk_expect(w->lb->detached == NULL);
	walk_expect(w->lb->lcore[1]->link[number] == w->lb->link[1][number]);
	walk_need(walk_worker_start(fresh));
	expect_served(w, 8000);
	walk_destroy(w);
}

WALK(no_worker_registers_that_could_not_become_active)
{
	struct walk *w = walk_create(&two);

	stand(w);
	pass(w, 1200);
	walk_expect(walk_worker_register(w, NULL) == NULL);
	walk_expect(strncmp(w->error, "lcore 1 (CPU ", 13) == 0, "%s", w->error);
	go_on(w);
	walk_worker(w, NULL);
	expect_served(w, 8000);
	walk_destroy(w);
}

WALK(what_it_has_not_heard_is_no_fault_of_a_worker)
{
	struct walk *w = walk_create(&two);
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.heartbeat_ms = 100});

	stand(w);
	pass(w, 15000);
	walk_expect_eq(walk_worker_of(v)->state, WORKER_ACTIVE);
	go_on(w);
	walk_settle(w);
	walk_pass(w, 200);
	walk_need(walk_worker_of(v) != NULL);
	walk_expect_eq(walk_worker_of(v)->state, WORKER_ACTIVE);
	expect_served(w, 8000);
	walk_destroy(w);
}

WALK(it_takes_a_configuration_over_when_it_goes_on)
{
	struct walk *w = walk_create(&two);

	walk_worker(w, NULL);
	stand(w);
	pass(w, 100);
	walk_need(reload(w, ECHO MORE) == 0, "%s", w->error);
	walk_need(reload(w, ECHO WALK_SERVICE("more", 8001, "echo", ", queue: 7")) == 0, "%s",
		  w->error);
	walk_need(reload(w, ECHO MORE) == 0, "%s", w->error);
	walk_need(reload(w, ECHO) == 0, "%s", w->error);
	walk_expect(reload(w, ECHO MORE) != 0, "more than four wait");
	walk_expect(strncmp(w->error, "lcore 1 (CPU ", 13) == 0, "%s", w->error);
	walk_expect(w->lb->lcore[0]->services == w->lb->services);
	walk_expect(w->lb->lcore[1]->services->n == 1);
	go_on(w);
	walk_expect(w->lb->lcore[1]->services == w->lb->services);
	walk_expect_eq(w->lb->n_changes, 0);
	walk_pass(w, 600); /* the service that was taken out is gone then */
	walk_need(reload(w, ECHO MORE) == 0, "%s", w->error);
	expect_served(w, 8000);
	expect_served(w, 8001);
	walk_destroy(w);
}

/* Connections look at the configuration of their turn until its end: edge_begin_turn(). */
WALK(what_it_had_when_a_turn_began_is_kept_until_the_turn_ends)
{
	struct walk *w = walk_create(&two);

	stand(w);
	walk_need(reload(w, ECHO MORE) == 0, "%s", w->error);
	/* It ends its turn, and makes the call in the middle of the next one. */
	rte_rcu_qsbr_quiescent(w->lb->qsbr, 1);
	mailbox_run(&w->lb->lcore[1]->mailbox);
	walk_tick(w);
	walk_expect_eq(w->lb->n_changes, 1);
	walk_expect(w->lb->n_to_free > 0, "it may look at the old services");
	rte_rcu_qsbr_quiescent(w->lb->qsbr, 1);
	walk_tick(w);
	walk_expect_eq(w->lb->n_changes, 0);
	walk_expect_eq(w->lb->n_to_free, 0);
	go_on(w);
	walk_destroy(w);
}

WALK(addresses_are_not_asked_for_while_no_lcore_can_ask)
{
	struct walk *w = walk_create(&(struct walk_params){.services = ECHO});
	struct walk_worker *v = walk_worker(w, NULL);
	struct mailbox *mailbox = &w->lb->lcore[0]->mailbox;

	mailbox_open(mailbox); /* the only lcore stands still */
	w->lb->neighbour[walk_worker_of(v)->number].doubtful = true;
	for (unsigned int i = 0; i < 1000; i++) {
		walk_jump(w, 10);
		walk_tick(w);
	}
	walk_need(walk_worker_of(v) != NULL);
	walk_expect(mailbox_waiting(mailbox) < 8, "%u wait", mailbox_waiting(mailbox));
	mailbox_close(mailbox);
	walk_settle(w);
	walk_pass(w, 600);
	walk_expect(!w->lb->neighbour[walk_worker_of(v)->number].doubtful);
	walk_destroy(w);
}

WALK(a_trace_begins_and_ends_without_it)
{
	struct walk *w = walk_create(&two);
	struct trace_event event[4];
	uint64_t lost;
	uint32_t id;

	stand(w);
	for (unsigned int i = 0; i < 3; i++) {
		struct trace_flow flow = {.client_port = 1000};

		walk_need(lb_trace_start(w->lb, &flow, &id, w->error, sizeof(w->error)) == 0);
		walk_expect_eq(lb_trace_read(w->lb, id, event, 4, &lost), 0);
	}
	lb_trace_stop(w->lb, id);
	walk_expect(w->lb->lcore[0]->trace == NULL);
	go_on(w);
	walk_expect(w->lb->lcore[1]->trace == NULL);
	walk_expect_eq(w->lb->n_to_free, 0);
	walk_destroy(w);
}

static void no_call(void *lcore, void *argument)
{
}

/* So many calls wait for it that there is no room for another. */
static void fill(struct walk *w)
{
	while (lcores_post(w->lb, 1, no_call, NULL, 0))
		;
}

WALK(a_trace_stays_where_its_end_has_no_room)
{
	struct trace_flow flow = {.client_port = 1000};
	struct walk *w = walk_create(&two);
	uint32_t id;

	stand(w);
	walk_need(lb_trace_start(w->lb, &flow, &id, w->error, sizeof(w->error)) == 0);
	fill(w);
	lb_trace_stop(w->lb, id);
	walk_expect(w->lb->tracing);
	walk_expect_eq(w->lb->n_to_free, 0);
	go_on(w);
	walk_expect(w->lb->lcore[1]->trace == w->lb->trace[1]);
	pass(w, LB_TRACE_IDLE_MS + 20);
	walk_expect(!w->lb->tracing);
	walk_expect(w->lb->lcore[1]->trace == NULL);
	walk_destroy(w);
}

WALK(a_link_that_it_could_not_be_told_to_let_go_of_is_let_go_of_first)
{
	struct walk *w = walk_create(&two);
	struct walk_worker *v = walk_worker(w, NULL);

	stand(w);
	fill(w);
	lb_worker_remove(w->lb, walk_worker_of(v), "gone");
	mailbox_close(&w->lb->lcore[1]->mailbox);
	walk_expect(walk_worker_register(w, NULL) == NULL);
	walk_expect(strncmp(w->error, "lcore ", 6) == 0, "%s", w->error);
	go_on(w);
	walk_pass(w, 2000);
	walk_forget(w, 0);
	walk_worker(w, NULL);
	expect_served(w, 8000);
	walk_destroy(w);
}

/* Also where silence is death before an lcore is said to stand still. */
WALK(nor_is_what_it_has_not_heard_for_less_than_a_second)
{
	struct walk *w = walk_create(
		&(struct walk_params){.services = ECHO,
				      .lcores = 2,
				      .more = "workers: {timeout_ms: 20, suspect_ms: 0}\n"});
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.heartbeat_ms = 10});

	walk_pass(w, 100);
	stand(w);
	pass(w, 900);
	walk_need(walk_worker_of(v) != NULL);
	walk_expect_eq(walk_worker_of(v)->state, WORKER_ACTIVE);
	go_on(w);
	walk_destroy(w);
}

WALK(a_capture_ends_without_it)
{
	struct walk *w = walk_create(&two);
	struct capture_params params = {
		.port = "clients0", .directions = CAPTURE_IN | CAPTURE_OUT, .snaplen = 128};
	struct capture_status status = {0};
	char file[4096];
	uint32_t id;
	int ends[2];

	for (unsigned int i = 0; i < 2; i++) {
		stand(w);
		walk_need(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
		walk_need(lb_capture_start(w->lb, &params, &id, w->error, sizeof(w->error)) == 0,
			  "%s", w->error);
		walk_need(lb_capture_begin(w->lb, id, ends[1]) == 0);
		walk_send(w, 0, &(struct packet){.family = 4, .payload = 20});
		walk_turn_lcore(w, 0);
		lb_capture_stop(w->lb, id);
		for (unsigned int k = 0; k < 500 && !status.done; k++) {
			usleep(2000);
			walk_tick(w);
			walk_need(lb_capture_read(w->lb, id, &status) == 0);
		}
		walk_expect(status.done);
		walk_expect_eq(status.captured, 2); /* and its notice */
		walk_expect(w->lb->n_to_free > 0, "its callbacks may run");
		/* The lcore that stands in a callback ends it. */
		walk_turn_lcore(w, 1);
		go_on(w);
		walk_expect_eq(w->lb->n_to_free, 0);
		walk_expect(read(ends[0], file, sizeof(file)) > 0);
		close(ends[0]);
		close(ends[1]);
		status.done = false;
		walk_forget(w, 0);
	}
	walk_destroy(w);
}

WALK(the_load_balancer_stops_in_its_time_without_it)
{
	struct walk *w = walk_create(&two);

	walk_worker(w, NULL);
	stand(w);
	lb_stop_begin(w->lb);
	pass(w, 10500);
	walk_expect(!lb_stop_over(w->lb));
	pass(w, 1000);
	walk_expect(lb_stop_over(w->lb));
	go_on(w);
	walk_destroy(w);
}
