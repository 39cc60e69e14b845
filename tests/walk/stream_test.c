/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP services: connections end here, requests go to workers, replies come back in order. */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "stream_client.h"
#include "worker.h"

#define SERVICES                                                                                   \
	"  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4                            \
	", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n"                         \
	"  - {name: echo6, protocol: tcp, address: \"" PACKET_DESTINATION6                         \
	"\", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n"

static const struct walk_params small = {
	.services = SERVICES,
	.more = "tcp: {connections: 256, buffer_mb: 8}\n",
};

#define STREAM_MAX 65536

/* Streams of <n> requests of 1 to <most> bytes for each client, and the echoes. */
static void echoes(struct stream_clients *all, unsigned int n, uint32_t most)
{
	for (unsigned int i = 0; i < all->n; i++) {
		uint8_t *stream = malloc(STREAM_MAX), *expected = malloc(STREAM_MAX), bytes[2048];
		uint32_t n_stream = 0, n_expected = 0;

		for (unsigned int k = 0; k < n; k++) {
			uint32_t size = 1 + client_random(&all->random, most);

			for (uint32_t at = 0; at < size; at++)
				bytes[at] = client_random(&all->random, 256);
			stream_add_echo(stream, &n_stream, expected, &n_expected, bytes, size);
		}
		stream_client_open(all, i, stream, n_stream, expected, n_expected);
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

static void run(const struct stream_net *net, unsigned int clients, unsigned int requests,
		uint32_t most, uint64_t seed)
{
	struct walk *w = walk_create(&small);
	struct stream_client client[64];
	struct stream_clients all = {
		.w = w, .net = net, .random = seed, .client = client, .n = clients};

	walk_worker(w, NULL);
	walk_worker(w, NULL);
	echoes(&all, requests, most);
	stream_clients_run(&all, 300000);
	walk_expect_eq(walk_stats(w).replies, (uint64_t)clients * requests);
	/* Connections end soon after the last acknowledgement. */
	for (unsigned int i = 0; i < 70000 && conntrack_count(w->lb->lcore[0]->ct) > 0; i++)
		stream_clients_pass(&all);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
	forget(&all);
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
