/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers that say that they run requests by their deadlines, and give up what would be late. */
#include <inttypes.h>

#include "ring.h"
#include "worker.h"
#include "lb.h"

static const struct packet ask = {.family = 4, .payload = 100};

static struct walk *walk_with(const char *more)
{
	char services[512];

	snprintf(services, sizeof(services),
		 "  - {name: a, address: " PACKET_DESTINATION4
		 ", port: 8000, model: echo, policy: earliest-finish%s}\n",
		 more);
	return walk_create(&(struct walk_params){.services = services});
}

/* A worker that runs batches of at most 4 in <ms>, and has run one. */
static struct walk_worker *measured(struct walk *w, uint32_t ms, bool by_deadline)
{
	struct walk_worker *v =
		walk_worker(w, &(struct walk_worker_params){.max_batch = 4, .slots = 64});

	v->run_ns = ms * UINT64_C(1000000);
	v->by_deadline = by_deadline;
	walk_beat(v);
	walk_settle(w);
	v->delay_ms = ms;
	walk_send(w, 0, &ask);
	walk_pass(w, ms + 2);
	walk_forget(w, 0);
	v->answers = false;
	walk_need(v->answered == 1);
	return v;
}

/* It says that <n> wait. */
static void tell(struct walk_worker *v, uint32_t n)
{
	v->backlog = n;
	walk_beat(v);
	walk_settle(v->walk);
}

static void send_n(struct walk *w, unsigned int n)
{
	while (n-- > 0) {
		walk_send(w, 0, &ask);
		walk_settle(w);
	}
}

/* Two workers that run by deadline, have nothing to do, and answer nothing. */
static void idle_pair(struct walk *w, struct walk_worker *v[2])
{
	for (int i = 0; i < 2; i++) {
		v[i] = walk_worker(w, &(struct walk_worker_params){.max_batch = 4, .slots = 64});
		v[i]->answers = false;
		v[i]->by_deadline = true;
		tell(v[i], 0);
	}
}

WALK(requests_gather_where_a_batch_has_begun)
{
	struct walk *w = walk_with(", deadline_ms: 1000");
	struct walk_worker *v[2];

	idle_pair(w, v);
	/* Each runs one at once. What comes then gathers at one of them, until the batch is full.
	 */
	send_n(w, 2);
	walk_expect_eq(v[0]->n_requests, 1);
	walk_expect_eq(v[1]->n_requests, 1);
	tell(v[0], 0);
	tell(v[1], 0);
	send_n(w, 4);
	walk_expect(v[0]->n_requests == 5 || v[1]->n_requests == 5, "%u and %u", v[0]->n_requests,
		    v[1]->n_requests);
	send_n(w, 4);
	walk_expect_eq(v[0]->n_requests, 5);
	walk_expect_eq(v[1]->n_requests, 5);
	/* One begins its run, and three are left over at the other. */
	tell(v[0], 0);
	tell(v[1], 3);
	send_n(w, 1);
	walk_expect_eq(v[1]->n_requests, 6);
	send_n(w, 1);
	walk_expect_eq(v[0]->n_requests, 6);
	walk_destroy(w);
}

WALK(without_deadlines_requests_do_not_gather)
{
	struct walk *w = walk_with("");
	struct walk_worker *v[2];

	idle_pair(w, v);
	send_n(w, 4);
	walk_expect_eq(v[0]->n_requests, 2);
	walk_expect_eq(v[1]->n_requests, 2);
	walk_destroy(w);
}

/* It decides by itself which of them are in time: others may be late there, or have no deadline. */
WALK(a_worker_that_runs_by_deadline_gets_what_could_be_in_time)
{
	struct walk *w = walk_with(", deadline_ms: 50");
	struct walk_worker *v = measured(w, 20, true);

	/* Two batches of 20 ms: the eighth could be in time; a third batch would end after 60. */
	send_n(w, 8);
	walk_expect_eq(v->n_requests, 8);
	walk_expect_silence(w, 0);
	send_n(w, 1);
	walk_expect_notice(w, 0, &ask, LB_NOTICE_DEADLINE);
	walk_expect_eq(v->n_requests, 8);
	/* It has given some up, or they run. */
	tell(v, 3);
	send_n(w, 5);
	walk_expect_eq(v->n_requests, 13);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_DEADLINE, 1});
	walk_destroy(w);
}

WALK(a_worker_that_runs_in_order_gets_what_will_be_in_time)
{
	struct walk *w = walk_with(", deadline_ms: 50");
	struct walk_worker *v = measured(w, 20, false);

	/* The first runs now; a batch of those that follow ends after 40 ms, and an eighth more is
	 * 45; a second batch would be late. */
	send_n(w, 8);
	walk_expect(v->n_requests < 8, "it got all");
	walk_expect_notice(w, 0, &ask, LB_NOTICE_DEADLINE);
	walk_forget(w, 0);
	walk_destroy(w);
}

/* One reply that tells of a run that cannot have been: the others are still answered. */
WALK(a_run_that_took_longer_than_its_request_says_nothing)
{
	static const uint64_t lies[] = {UINT64_C(600000000000), INT64_MAX, UINT64_MAX - 5};

	for (size_t i = 0; i < 2 * RTE_DIM(lies); i++) {
		struct walk *w = walk_with(", deadline_ms: 50");
		struct walk_worker *v = measured(w, 20, i % 2 != 0);

		walk_context("%" PRIu64 " ns", lies[i / 2]);
		v->answers = true;
		v->run_ns = lies[i / 2];
		walk_send(w, 0, &ask);
		walk_pass(w, 22);
		walk_expect_echo(w, 0, &ask);
		walk_send(w, 0, &ask);
		walk_pass(w, 22);
		walk_expect_echo(w, 0, &ask);
		walk_destroy(w);
	}
	walk_context("%s", "");
}
