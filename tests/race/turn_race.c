/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control thread does all of its work while lcores serve: it ticks, reads counters and
 * histograms, dumps flows, reloads services, and assigns, weights and drains workers.
 * ThreadSanitizer reports data that the threads read or change without synchronisation.
 */
#include <stdio.h>

#include "reload/reload.h"
#include "seen.h"
#include "worker.h"
#include "lb.h"

#define LCORES   2
#define ROUNDS   1500
#define WORKERS  3
#define PER_TURN 6
#define END_MS   60000

static const char *const services[] = {
	WALK_SERVICE("a", 8000, "echo", ", queue: 64") //
	WALK_SERVICE("b", 8001, "echo", ", policy: power-of-two"),
	WALK_SERVICE("a", 8000, "echo", ", queue: 8, affinity: sticky") //
	WALK_SERVICE("c", 8002, "echo", ", policy: maglev"),
};

static void ask(struct walk *w, unsigned int round)
{
	struct packet p = {.family = 4, .payload = 300};

	for (unsigned int i = 0; i < PER_TURN; i++) {
		p.source_port = 2000 + (round * PER_TURN + i) % 97;
		p.destination_port = 8000 + i % 3;
		walk_send_on(w, 0, i % LCORES, &p);
	}
}

static uint64_t dump(struct walk *w)
{
	struct flow_info row[64];
	uint64_t n = 0;

	for (unsigned int i = 0; i < LCORES; i++) {
		uint32_t cursor = 0;

		while (cursor != CONNTRACK_DUMP_END)
			n += conntrack_dump(lb_conntrack(w->lb, i), &cursor, row, 64);
	}
	return n;
}

/* Reads what a scrape of the metrics reads. */
static void read_all(struct walk *w)
{
	struct lb_lcore_stats lcore;
	struct lb_service_stats service;
	struct lb_link_stats link;
	struct conntrack_stats flows;
	struct latency latency;

	for (unsigned int i = 0; i < LCORES; i++) {
		lb_lcore_stats_read(w->lb, i, &lcore);
		conntrack_stats_read(lb_conntrack(w->lb, i), &flows);
	}
	for (unsigned int i = 0; i < lb_config_get(w->lb)->n_services; i++) {
		lb_service_stats_read(w->lb, i, &service);
		lb_service_latency_read(w->lb, i, &latency);
	}
	for (unsigned int i = 0; i < w->n_workers; i++) {
		struct worker *worker = walk_worker_of(w->worker[i]);

		if (worker == NULL)
			continue;
		lb_worker_stats_read(w->lb, worker, &link);
		lb_worker_latency_read(w->lb, worker, &latency);
	}
}

static void reload(struct walk *w, const struct walk_params *params, unsigned int n)
{
	char text[4096];

	walk_yaml(params, services[n % RTE_DIM(services)], text, sizeof(text));
	walk_need(walk_reload(w, text) == 0, "%s", w->error);
}

/*
 * Changes a worker as an operator does: drains it, gives it another weight, assigns it to a
 * service, releases it, and then resets it to what its agent registered.
 */
static void set(struct walk *w, unsigned int n)
{
	struct worker *worker = walk_worker_of(w->worker[n / 5 % WORKERS]);
	unsigned int service = 0;
	int ret;

	walk_need(worker != NULL, "a worker was lost");
	switch (n % 5) {
	case 0:
		ret = lb_settings_drain(w->lb, worker->spec.name, true, w->error,
					sizeof(w->error));
		break;
	case 1:
		ret = lb_settings_weight(w->lb, worker->spec.name, 1 + n % 7, w->error,
					 sizeof(w->error));
		break;
	case 2:
		ret = lb_worker_assign(w->lb, worker, &service, 1, w->error, sizeof(w->error));
		break;
	case 3:
		ret = lb_worker_release(w->lb, worker, &service, 1, w->error, sizeof(w->error));
		break;
	default:
		ret = lb_settings_forget(w->lb, worker->spec.name, w->error, sizeof(w->error));
	}
	walk_need(ret == 0, "change %u: %s", n, w->error);
}

static void round_of(struct walk *w)
{
	walk_wire(w);
	walk_forget(w, 0);
	walk_tick(w);
}

static void finish(struct walk *w)
{
	uint64_t until = rte_rdtsc() + END_MS * w->lb->tsc_per_ms;

	walk_remove_workers(w);
	while (w->lb->detached != NULL && rte_rdtsc() < until)
		round_of(w);
	walk_need(w->lb->detached == NULL, "a link is never reaped");
}

int main(void)
{
	const struct walk_params params = {
		.lcores = LCORES,
		.threads = true,
		.services = services[0],
		/* A halt by a machine that is busy with other tests is not a worker's fault. */
		.more = "workers: {timeout_ms: 10000, suspect_ms: 5000}\n"};
	struct lb_lcore_stats stats;
	uint64_t flows = 0;
	struct walk *w;

	seen_pools();
	w = walk_create(&params);
	seen_ports(w);
	seen_start(w);
	for (unsigned int i = 0; i < WORKERS; i++) {
		struct walk_worker *v = walk_worker_register(w, NULL);

		walk_need(v != NULL, "%s", w->error);
		lb_worker_ready(w->lb, walk_worker_of(v));
		v->beat_at = 0;
	}
	for (unsigned int i = 0; i < ROUNDS; i++) {
		ask(w, i);
		round_of(w);
		if (i % 10 == 0)
			read_all(w);
		if (i % 50 == 0)
			flows += dump(w);
		if (i % 15 == 0)
			set(w, i / 15);
		if (i % 100 == 50)
			reload(w, &params, i / 100);
	}
	finish(w);
	seen_stop(w);
	stats = walk_stats(w);
	printf("%lu requests, %lu replies, %lu flows dumped\n", stats.requests, stats.replies,
	       flows);
	walk_need(stats.replies > 0 && flows > 0);
	walk_destroy(w);
	return walk_failures() > 0;
}
