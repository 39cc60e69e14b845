/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers come, go and die while lcores serve: a whole load balancer whose lcores are threads, with
 * this thread as its control thread, its clients and its workers. ThreadSanitizer
 * reports data of an lcore that the control thread touches; at the end no packet may be held or
 * missing.
 */
#include <stdio.h>

#include "seen.h"
#include "worker.h"
#include "lb.h"

#define LCORES   2
#define ROUNDS   4000
#define WORKERS  6  /* at a time */
#define CHANGE   40 /* rounds between two changes */
#define PER_TURN 4  /* requests of a round */
#define END_MS   60000

static void ask(struct walk *w, unsigned int round)
{
	struct packet p = {.family = 4, .payload = 300};

	for (unsigned int i = 0; i < PER_TURN; i++) {
		p.source_port = 2000 + (round * PER_TURN + i) % 97;
		walk_send_on(w, 0, i % LCORES, &p);
	}
}

/* One turn of the control thread, the clients and the workers. */
static void round_of(struct walk *w)
{
	walk_wire(w);
	walk_forget(w, 0);
	walk_tick(w);
}

static struct walk_worker *pick(struct walk *w, unsigned int n)
{
	for (unsigned int i = 0; i < w->n_workers; i++) {
		struct walk_worker *v = w->worker[(n + i) % w->n_workers];

		if (!v->gone && walk_worker_of(v) != NULL)
			return v;
	}
	return NULL;
}

static unsigned int serving(struct walk *w)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < w->n_workers; i++)
		n += !w->worker[i]->gone && walk_worker_of(w->worker[i]) != NULL;
	return n;
}

static void join(struct walk *w)
{
	struct walk_worker *v = walk_worker_register(w, NULL);

	walk_need(v != NULL, "%s", w->error);
	lb_worker_ready(w->lb, walk_worker_of(v));
	v->beat_at = 0;
}

/* A worker leaves, dies with requests in hand, or breaks the rules. */
static void end(struct walk *w, unsigned int n)
{
	struct walk_worker *v = pick(w, n * 7);

	if (v == NULL)
		return;
	switch (n % 4) {
	case 0:
		lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
		v->gone = true;
		break;
	case 1:
		v->gone = true;
		break;
	case 2:
		v->nak = ROCE_NAK_REMOTE_ACCESS;
		break;
	default:
		v->answers = false;
		lb_worker_drain(w->lb, walk_worker_of(v));
		break;
	}
}

/* Requests of lost workers wait for another one, queue_timeout_ms at most. */
static bool any_waits(struct walk *w)
{
	struct lb_service_stats stats;

	lb_service_stats_read(w->lb, 0, &stats);
	return stats.queued > 0;
}

static void finish(struct walk *w)
{
	uint64_t until = rte_rdtsc() + END_MS * w->lb->tsc_per_ms;

	walk_remove_workers(w);
	while ((w->lb->detached != NULL || any_waits(w)) && rte_rdtsc() < until)
		round_of(w);
	walk_need(w->lb->detached == NULL, "a link is never reaped");
	walk_need(!any_waits(w), "requests wait for ever");
}

int main(void)
{
	struct lb_lcore_stats stats;
	struct walk *w;

	seen_pools();
	w = walk_create(&(struct walk_params){
		.lcores = LCORES,
		.threads = true,
		.services =
			WALK_SERVICE("echo", 8000, "echo",
				     ", replay: 1, request_timeout_ms: 200, queue_timeout_ms: 100"),
		.more = "workers: {timeout_ms: 100, suspect_ms: 30}\n"});
	seen_ports(w);
	seen_start(w);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		ask(w, i);
		round_of(w);
		if (i % CHANGE == 0 && serving(w) < WORKERS && w->n_workers < WALK_WORKERS_MAX)
			join(w);
		if (i % CHANGE == CHANGE / 2 && serving(w) > 1)
			end(w, i / CHANGE);
	}
	finish(w);
	seen_stop(w);
	stats = walk_stats(w);
	printf("%u workers, %lu requests, %lu replies, %lu notices\n", w->n_workers, stats.requests,
	       stats.replies, stats.notices);
	walk_need(stats.replies > 0 && stats.notices > 0);
	walk_destroy(w);
	return walk_failures() > 0;
}
