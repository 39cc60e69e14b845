/* SPDX-License-Identifier: BSD-3-Clause */
/* Services, links and clients cannot take the resources that others need. */
#include <stdio.h>
#include <sys/mman.h>

#include "worker.h"

#define HEALTHY_PORT 8000
#define BUSY_PORT    8100 /* the first of the busy services' ports */

/* The healthy service, and <n> busy ones that share the model `busy`. */
static struct walk *create(unsigned int n, const struct walk_params *params, const char *more)
{
	static char services[8192];
	struct walk_params p = *params;
	int length =
		snprintf(services, sizeof(services), "%s",
			 p.packets == 0 ? WALK_SERVICE("healthy", 8000, "healthy", "")
					: WALK_SERVICE("healthy", 8000, "healthy", ", queue: 0"));

	for (unsigned int i = 0; i < n; i++)
		length += snprintf(services + length, sizeof(services) - length,
				   "  - {name: busy%u, address: " PACKET_DESTINATION4
				   ", port: %u, model: busy%s}\n",
				   i, BUSY_PORT + i, more);
	p.services = services;
	if (p.packets == 0)
		p.packets = 8192;
	return walk_create(&p);
}

/* Sends <n> requests to a service, from several client ports, 32 per turn; forgets the answers. */
static void flood(struct walk *w, uint16_t port, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct packet p = {.family = 4,
				   .payload = 100,
				   .source_port = 20000 + i % 64,
				   .destination_port = port};

		walk_send(w, 0, &p);
		if (i % 32 != 31)
			continue;
		walk_turn(w);
		walk_forget(w, 0);
	}
	walk_settle(w);
	walk_forget(w, 0);
}

/* Returns how many of <n> requests to the healthy service its worker answered. */
static unsigned int answered(struct walk *w, unsigned int n)
{
	unsigned int right = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct packet p = {.family = 4,
				   .payload = 64,
				   .source_port = 30000 + i % 16,
				   .destination_port = HEALTHY_PORT};
		struct walk_frame frame;

		walk_send(w, 0, &p);
		walk_settle(w);
		if (walk_take(w, 0, &frame))
			right += frame.kind == WALK_UDP && !frame.notice;
		walk_forget(w, 0);
	}
	return right;
}

static void saturate(struct walk *w, unsigned int n)
{
	struct walk_worker *busy =
		walk_worker(w, &(struct walk_worker_params){.model = "busy", .slots = 16});

	busy->answers = false;
	for (unsigned int i = 0; i < n; i++)
		flood(w, BUSY_PORT + i, 1200 * w->config.n_lcores);
	for (unsigned int i = 0; i < n; i++)
		walk_expect_eq(walk_service_stats(w, 1 + i).queued,
			       walk_service_stats(w, 1 + i).queue_places);
}

WALK(eight_saturated_services_leave_a_ninth_alone)
{
	struct walk *w = create(8, &(struct walk_params){0}, "");

	walk_worker(w, &(struct walk_worker_params){.model = "healthy"});
	saturate(w, 8);
	walk_expect_eq(answered(w, 500), 500);
	walk_destroy(w);
}

WALK(a_service_with_a_long_queue_leaves_others_alone)
{
	struct walk *w = create(1, &(struct walk_params){0}, ", queue: 7168");

	walk_worker(w, &(struct walk_worker_params){.model = "healthy", .slots = 1024});
	saturate(w, 0);
	flood(w, BUSY_PORT, 9000);
	walk_expect_eq(walk_service_stats(w, 1).queued, 7168);
	walk_expect_eq(answered(w, 500), 500);
	walk_destroy(w);
}

WALK(lcores_that_share_a_queue_share_its_packets_by_service)
{
	struct walk *w = create(4, &(struct walk_params){.lcores = 2, .queues = 1}, "");

	walk_worker(w, &(struct walk_worker_params){.model = "healthy"});
	saturate(w, 4);
	/* 1,024 each, half of them on each lcore */
	for (unsigned int i = 0; i < 4; i++)
		walk_expect_eq(walk_service_stats(w, 1 + i).queued, 1024);
	walk_expect_eq(answered(w, 200), 200);
	walk_destroy(w);
}

WALK(a_rack_that_is_unreachable_leaves_other_links_their_part)
{
	enum { RACK = 20 };
	struct walk *w = create(1, &(struct walk_params){0}, "");
	struct walk_worker *gone[RACK];

	walk_worker(w, &(struct walk_worker_params){.model = "healthy"});
	for (unsigned int i = 0; i < RACK; i++)
		gone[i] = walk_worker(w,
				      &(struct walk_worker_params){.model = "busy", .slots = 1024});
	for (unsigned int i = 0; i < RACK; i++)
		gone[i]->gone = true;
	flood(w, BUSY_PORT, 12000);
	walk_expect(walk_stats(w).window_held <= walk_stats(w).window_packets);
	walk_expect(walk_stats(w).window_held > walk_stats(w).window_packets / 2);
	walk_expect_eq(answered(w, 500), 500);
	walk_destroy(w);
}

/* The load balancer holds no packets of workers that are certainly dead. */
WALK(windows_of_dead_workers_are_free_at_once)
{
	struct walk *w =
		create(1, &(struct walk_params){.more = "workers: {timeout_ms: 50}\n"}, "");
	struct walk_worker *gone =
		walk_worker(w, &(struct walk_worker_params){.model = "busy", .slots = 1024});

	gone->gone = true;
	flood(w, BUSY_PORT, 500);
	walk_expect(walk_stats(w).window_held > 400);
	for (unsigned int i = 0; i < 200 && walk_worker_of(gone) != NULL; i++) {
		walk_pass(w, 1);
		walk_forget(w, 0);
	}
	walk_need(walk_worker_of(gone) == NULL);
	walk_expect_eq(walk_stats(w).window_held, 0);
	for (unsigned int i = 0; i < 20; i++) {
		walk_pass(w, 1);
		walk_forget(w, 0);
	}
	walk_destroy(w);
}

WALK(cancels_for_dead_workers_leave_memory_for_acks_and_notices)
{
	enum { DEAD = 12 };
	struct walk *w = create(1, &(struct walk_params){.more = "workers: {suspect_ms: 0}\n"},
				", request_timeout_ms: 5, queue: 7168");
	struct walk_worker *healthy =
		walk_worker(w, &(struct walk_worker_params){.model = "healthy"});
	struct walk_worker *dead[DEAD];
	struct walk_frame frame;
	const struct lcore *lc = w->lb->lcore[0];
	uint64_t acks, told = 0, due = 0;

	for (unsigned int i = 0; i < DEAD; i++)
		dead[i] =
			walk_worker(w, &(struct walk_worker_params){.model = "busy", .slots = 512});
	for (unsigned int i = 0; i < DEAD; i++)
		dead[i]->gone = true;
	flood(w, BUSY_PORT, DEAD * 512);
	for (unsigned int i = 0; i < 60; i++) {
		walk_pass(w, 1);
		while (walk_take(w, 0, &frame))
			told += frame.notice && frame.code == LB_NOTICE_TIMEOUT;
	}
	walk_expect(walk_stats(w).drop[LB_DROP_REQUEST_TIMEOUT] > 0);
	walk_expect_eq(told, walk_stats(w).drop[LB_DROP_REQUEST_TIMEOUT]);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_NO_MBUF], 0);
	for (unsigned int i = 0; i < lc->n_links; i++)
		due += lc->links[i]->cancel_due.oldest != SLOT_NONE;
	walk_expect_eq(due, DEAD);
	acks = healthy->link[0].acks;
	walk_expect_eq(answered(w, 100), 100);
	walk_expect(healthy->link[0].acks >= acks + 100, "%lu acknowledged",
		    healthy->link[0].acks - acks);
	walk_destroy(w);
}

/* Visiting one of these links would end the program. */
WALK(an_idle_lcore_looks_at_no_link)
{
	struct walk *w = walk_create(NULL);
	struct lcore *lc = w->lb->lcore[0];
	struct link *forbidden =
		mmap(NULL, sizeof(*forbidden), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint16_t n;

	walk_need(forbidden != MAP_FAILED);
	walk_worker(w, NULL);
	walk_pass(w, 5);
	n = lc->n_links;
	while (lc->n_links < WORKERS_MAX)
		lc->links[lc->n_links++] = forbidden;
	for (unsigned int i = 0; i < 5; i++) {
		walk_jump(w, 1);
		walk_turn_lcore(w, 0);
	}
	lc->n_links = n;
	munmap(forbidden, sizeof(*forbidden));
	walk_destroy(w);
}

/* Shares are rounded up where lcores share a queue, and so must be the queue that they divide. */
WALK(short_queues_that_lcores_share_have_their_places)
{
	struct walk *w = create(
		50, &(struct walk_params){.lcores = 4, .queues = 1, .flows = 16384, .packets = 256},
		", queue: 5");
	struct walk_worker *busy =
		walk_worker(w, &(struct walk_worker_params){.model = "busy", .slots = 2});

	busy->answers = false;
	for (unsigned int i = 0; i < 50; i++) {
		flood(w, BUSY_PORT + i, 64);
		walk_context("service %u", i);
		walk_expect_eq(walk_service_stats(w, 1 + i).queued,
			       walk_service_stats(w, 1 + i).queue_places);
	}
	walk_context("%s", "");
	walk_destroy(w);
}
