/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums of TCP segments: damaged ones reach no request, and ports may do the sums. */
#include <stdlib.h>
#include <string.h>

#include "stream_client.h"
#include "worker.h"

#define SERVICES                                                                                   \
	"  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4                            \
	", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n"                         \
	"  - {name: echo6, protocol: tcp, address: \"" PACKET_DESTINATION6                         \
	"\", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n"

static const struct walk_params params = {
	.services = SERVICES,
	.more = "tcp: {connections: 256, buffer_mb: 8}\n",
};

#define CLIENTS  16
#define REQUESTS 20
#define SIZE     1400 /* bytes of a request, at most */
#define STREAM   (REQUESTS * (8 + SIZE))

/* Serves <all>, whose fields say how, and expects every request to be echoed to the byte. */
static void serve(struct stream_clients *all)
{
	uint8_t *streams = malloc(CLIENTS * STREAM), *echoes = malloc(CLIENTS * STREAM);
	struct stream_client client[CLIENTS];
	uint8_t bytes[SIZE];

	walk_need(streams != NULL && echoes != NULL, "no memory");
	all->client = client;
	all->n = CLIENTS;
	walk_worker(all->w, NULL);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		uint32_t n_stream = 0, n_echo = 0;

		for (unsigned int k = 0; k < REQUESTS; k++) {
			uint32_t size = 1 + client_random(&all->random, SIZE);

			for (uint32_t at = 0; at < size; at++)
				bytes[at] = client_random(&all->random, 256);
			stream_add_echo(streams + i * STREAM, &n_stream, echoes + i * STREAM,
					&n_echo, bytes, size);
		}
		stream_client_open(all, i, streams + i * STREAM, n_stream, echoes + i * STREAM,
				   n_echo);
	}
	stream_clients_run(all, 600000);
	for (unsigned int i = 0; i < 70000 && conntrack_count(all->w->lb->lcore[0]->ct) > 0; i++)
		stream_clients_pass(all);
	walk_expect_eq(conntrack_count(all->w->lb->lcore[0]->ct), 0);
	stream_clients_free(all);
	free(streams);
	free(echoes);
}

/* The workers get nothing but what clients sent: their echoes are compared. */
WALK(damaged_segments_reach_no_request)
{
	static const struct stream_net net = {.lose = 5, .damage = 50};

	for (unsigned int local = 0; local < 2; local++) {
		struct walk *w = walk_create(&params);
		struct stream_clients all = {.w = w, .net = &net, .random = 3 + local};

		w->lb->port[0].local_senders = local;
		serve(&all);
		walk_expect(walk_stats(w).drop[LB_DROP_TCP_CHECKSUM] > 20);
		walk_expect_eq(walk_stats(w).requests, CLIENTS * REQUESTS);
		walk_destroy(w);
	}
}

WALK(segments_whose_checksum_was_left_to_hardware)
{
	static const struct stream_net net;
	struct walk *w = walk_create(&params);
	struct stream_clients all = {.w = w, .net = &net, .random = 5, .partial = true};

	w->lb->port[0].local_senders = true;
	serve(&all);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_CHECKSUM], 0);
	walk_destroy(w);
}

WALK(checksums_of_segments_that_are_the_ports_to_compute)
{
	static const struct stream_net net = {.lose = 20};
	struct walk *w = walk_create(&params);
	struct stream_clients all = {.w = w, .net = &net, .random = 6, .by_port = true};

	w->lb->port[0].tx_tcp_checksums[0] = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_TCP_CKSUM;
	w->lb->port[0].tx_tcp_checksums[1] = RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_TCP_CKSUM;
	serve(&all);
	walk_destroy(w);
}
