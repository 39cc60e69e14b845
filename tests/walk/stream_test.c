/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP services: connections end here, requests go to workers, replies come back in order. */
#include <stdlib.h>
#include <string.h>

#include "lb.h"
#include "raw.h"
#include "stream_client.h"
#include "walk/loop.h"
#include "worker.h"

/* 1 to <most>: small ones as often as large ones. */
static uint32_t size_of(struct stream_clients *all, uint32_t most)
{
	uint32_t bits = 1 + client_random(&all->random, 32 - __builtin_clz(most));
	uint32_t size = 1 + client_random(&all->random, 1u << bits);

	return RTE_MIN(size, most);
}

/* Streams of <n> requests of 1 to <most> bytes for each client, and the echoes. */
static void echoes(struct stream_clients *all, unsigned int n, uint32_t most)
{
	for (unsigned int i = 0; i < all->n; i++) {
		uint8_t *stream = malloc((size_t)n * (most + 4));
		uint8_t *expected = malloc((size_t)n * (most + 8)), *bytes = malloc(most);
		uint32_t n_stream = 0, n_expected = 0;

		for (unsigned int k = 0; k < n; k++) {
			uint32_t size = size_of(all, most);

			for (uint32_t at = 0; at < size; at++)
				bytes[at] = client_random(&all->random, 256);
			stream_add_echo(stream, &n_stream, expected, &n_expected, bytes, size);
		}
		stream_client_open(all, i, stream, n_stream, expected, n_expected);
		free(bytes);
	}
}

static void forget(struct stream_clients *all)
{
	for (unsigned int i = 0; i < all->n; i++) {
		free((void *)all->client[i].stream);
		free((void *)all->client[i].tcp.expected);
	}
	stream_clients_free(all);
}

/* The clients' streams, and the end of their connections. */
static void run_on(struct walk *w, const struct stream_net *net, unsigned int clients,
		   unsigned int requests, uint32_t most, uint64_t seed)
{
	struct stream_client client[64];
	struct stream_clients all = {
		.w = w, .net = net, .random = seed, .client = client, .n = clients};

	all.segment = most > 4096 ? 400 : 0;
	echoes(&all, requests, most);
	stream_clients_run(&all, 30000);
	walk_expect_eq(walk_stats(w).replies, (uint64_t)clients * requests);
	/* Connections end soon after the last acknowledgement. */
	for (unsigned int i = 0; i < 70000 && conntrack_count(w->lb->lcore[0]->ct) > 0; i++)
		stream_clients_pass(&all);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
	forget(&all);
}

static void run(const struct stream_net *net, unsigned int clients, unsigned int requests,
		uint32_t most, uint64_t seed)
{
	struct walk *w = walk_create(&raw_small);

	walk_worker(w, NULL);
	walk_worker(w, NULL);
	run_on(w, net, clients, requests, most, seed);
	walk_destroy(w);
}

WALK(one_request_and_its_reply)
{
	run(&(struct stream_net){0}, 1, 1, 100, 7);
}

WALK(requests_one_behind_the_other)
{
	run(&(struct stream_net){0}, 1, 30, 1400, 8);
}

WALK(connections_side_by_side)
{
	run(&(struct stream_net){0}, 64, 20, 1400, 9);
}

WALK(a_network_that_loses_and_reorders)
{
	static const struct stream_net bad = {.lose = 30, .copy = 20, .delay = 200, .delay_ms = 20};

	for (uint64_t seed = 1; seed <= 20; seed++) {
		walk_context("seed %lu", seed);
		run(&bad, 1 + seed % 16, 20, 1400, seed * 1000003);
	}
	walk_context("%s", "");
}

static uint64_t all_cycles(const struct lb_lcore_stats *s)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < LB_STAGES; i++)
		sum += s->stage_cycles[i];
	return sum;
}

/* Each stage that took time has handled something; requests and replies by TCP are some of it. */
static void expect_stages(struct walk *w)
{
	const struct lb_lcore_stats s = walk_stats(w);
	struct lb_lcore_stats idle;

	for (unsigned int i = 0; i < LB_STAGES; i++)
		walk_expect((s.stage_cycles[i] == 0) == (s.stage_items[i] == 0),
			    "stage %u: %lu cycles for %lu items", i, s.stage_cycles[i],
			    s.stage_items[i]);
	walk_expect(s.requests > 0);
	walk_expect(s.stage_items[LB_STAGE_ASSIGN] >= s.requests, "assigned: %lu of %lu",
		    s.stage_items[LB_STAGE_ASSIGN], s.requests);
	walk_expect(s.stage_items[LB_STAGE_SEND] >= s.requests, "sent: %lu of %lu",
		    s.stage_items[LB_STAGE_SEND], s.requests);
	/* The replies, and the segments in which they left. */
	walk_expect(s.stage_items[LB_STAGE_EGRESS] > s.replies, "answered: %lu of %lu",
		    s.stage_items[LB_STAGE_EGRESS], s.replies);
	/* An iteration that finds nothing takes no stage's time: the clock stands still. */
	for (unsigned int i = 0; i < 100; i++)
		lb_poll(w->lb->lcore[0]);
	idle = walk_stats(w);
	walk_expect_eq(idle.polls - s.polls, 100);
	walk_expect_eq(all_cycles(&idle), all_cycles(&s));
}

WALK(stages_count_what_came_by_tcp)
{
	struct walk *w = walk_create(&raw_small);

	walk_worker(w, NULL);
	run_on(w, &(struct stream_net){0}, 4, 20, 1400, 8);
	expect_stages(w);
	walk_destroy(w);
}

static void run_large(const char *more, const struct stream_net *net, unsigned int clients,
		      unsigned int requests, uint64_t seed)
{
	struct walk *w = large_create(more, "buffer_mb: 16, window: 256KiB");

	walk_worker(w, &large_roomy);
	walk_worker(w, &large_roomy);
	run_on(w, net, clients, requests, 65536, seed);
	large_expect_room(w);
	walk_expect_eq(walk_stats(w).payload_copies, 0);
	walk_destroy(w);
}

WALK(large_requests)
{
	run_large("", &(struct stream_net){0}, 1, 10, 3);
	run_large(", payload_crc: true", &(struct stream_net){0}, 8, 10, 4);
}

WALK(stages_count_large_requests)
{
	struct walk *w = large_create("", "buffer_mb: 16, window: 256KiB");

	walk_worker(w, &large_roomy);
	run_on(w, &(struct stream_net){0}, 4, 10, 65536, 3);
	expect_stages(w);
	walk_destroy(w);
}

WALK(large_requests_out_of_order)
{
	static const struct stream_net bad = {.lose = 20, .copy = 20, .delay = 200, .delay_ms = 20};

	for (uint64_t seed = 1; seed <= 6; seed++) {
		walk_context("seed %lu", seed);
		run_large(", payload_crc: true", &bad, 1 + seed * 3, 8, seed * 1000003);
	}
	walk_context("%s", "");
}

/* Their connections' bytes fill the client's share while only some requests have a place: these go
 * on, so that the others get theirs. */
WALK(large_requests_of_many_connections_in_little_memory)
{
	struct walk *w = large_create(", queue_timeout_ms: 20000", "buffer_mb: 3, window: 256KiB");

	walk_worker(w, &large_roomy);
	walk_worker(w, &large_roomy);
	run_on(w, &(struct stream_net){0}, 64, 8, 65536, 5);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_CLIENT] > 0, "there was enough");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_QUEUE_TIMEOUT], 0);
	walk_destroy(w);
}

WALK(large_requests_that_are_kept_for_a_replay)
{
	static const struct stream_net bad = {.lose = 10, .copy = 20, .delay = 200, .delay_ms = 20};

	run_large(", replay: 1", &bad, 4, 8, 77);
}
