/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP services on several lcores: a connection has one, wherever its segments come in. */
#include <stdlib.h>

#include "stream_client.h"
#include "worker.h"

#define SERVICES                                                                                   \
	"  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4                            \
	", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n"                         \
	"  - {name: echo6, protocol: tcp, address: \"" PACKET_DESTINATION6                         \
	"\", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n"

#define TCP_MEMORY "tcp: {connections: 256, buffer_mb: 32}\n"
#define ZONE       "zones: [{name: both, ports: [clients0, clients1]}]\n"

#define CLIENTS  48
#define REQUESTS 10
#define SIZE     700 /* bytes of a request, at most */

struct shape {
	unsigned int lcores, queues, ports;
	bool wander; /* a connection's segments come by any queue and port */
};

static const struct shape shapes[] = {
	{2, 1, 1, false}, {2, 2, 1, false}, {2, 2, 1, true}, {3, 2, 1, false}, {3, 2, 1, true},
	{4, 1, 1, false}, {4, 4, 1, true},  {2, 2, 2, true}, {3, 1, 2, true},
};

static void open_clients(struct stream_clients *all, uint8_t *streams, uint8_t *echoes)
{
	const uint32_t most = REQUESTS * (8 + SIZE);

	for (unsigned int i = 0; i < all->n; i++) {
		uint8_t *stream = streams + i * most, *echo = echoes + i * most, bytes[SIZE];
		uint32_t n_stream = 0, n_echo = 0;

		for (unsigned int k = 0; k < REQUESTS; k++) {
			uint32_t size = 1 + client_random(&all->random, SIZE);

			for (uint32_t at = 0; at < size; at++)
				bytes[at] = client_random(&all->random, 256);
			stream_add_echo(stream, &n_stream, echo, &n_echo, bytes, size);
		}
		stream_client_open(all, i, stream, n_stream, echo, n_echo);
	}
}

static uint64_t flows(const struct walk *w)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		n += conntrack_count(w->lb->lcore[i]->ct);
	return n;
}

/* Every connection is served, each lcore has some, and none gets a reset. */
static void serve(struct walk *w, const struct stream_net *net, const struct shape *s)
{
	uint8_t *streams = malloc(CLIENTS * REQUESTS * (8 + SIZE));
	uint8_t *echoes = malloc(CLIENTS * REQUESTS * (8 + SIZE));
	struct stream_client client[CLIENTS];
	struct stream_clients all = {
		.w = w,
		.net = net,
		.random = 11,
		.wander = s->wander,
		.ports = s->ports,
		.client = client,
		.n = CLIENTS,
	};

	walk_need(streams != NULL && echoes != NULL, "no memory");
	walk_worker(w, NULL);
	open_clients(&all, streams, echoes);
	stream_clients_run(&all, 300000);
	walk_expect_eq(walk_stats(w).replies, CLIENTS * REQUESTS);
	for (unsigned int i = 0; i < w->lb->n_lcores; i++)
		walk_expect(w->lb->lcore[i]->stats.requests > 0, "lcore %u served none", i);
	/* Connections end soon after the last acknowledgement. */
	for (unsigned int i = 0; i < 70000 && flows(w) > 0; i++)
		stream_clients_pass(&all);
	walk_expect_eq(flows(w), 0);
	stream_clients_free(&all);
	free(streams);
	free(echoes);
}

WALK(a_connection_is_served_wherever_its_segments_come_in)
{
	static const struct stream_net good,
		bad = {.lose = 30, .copy = 20, .delay = 100, .delay_ms = 20};

	for (size_t i = 0; i < 2 * RTE_DIM(shapes); i++) {
		const struct shape *s = &shapes[i / 2];
		struct walk *w = walk_create(&(struct walk_params){
			.services = SERVICES,
			.more = s->ports == 2 ? TCP_MEMORY ZONE : TCP_MEMORY,
			.lcores = s->lcores,
			.queues = s->queues,
			.client_ports = s->ports,
		});

		walk_context("%u ports, %u lcores, %u queues%s%s", s->ports, s->lcores, s->queues,
			     s->wander ? ", wandering" : "", i % 2 != 0 ? ", a bad network" : "");
		/* As if the port were one of the kernel's. */
		if (s->ports == 1)
			w->lb->tcp_by_hash[0] |= s->wander;
		serve(w, i % 2 != 0 ? &bad : &good, s);
		walk_destroy(w);
	}
}
