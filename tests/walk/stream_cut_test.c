/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of several segments, which the port of the clients cuts (TSO): cut.h is strict about
 * them. */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "lb.h"
#include "stream_client.h"
#include "tcp/connection.h"
#include "worker.h"

#define SERVICES                                                                                   \
	"  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4                            \
	", port: 8000, model: echo, max_request: 256KiB, max_reply: 256KiB}\n"                     \
	"  - {name: echo6, protocol: tcp, address: \"" PACKET_DESTINATION6                         \
	"\", port: 8000, model: echo, max_request: 256KiB, max_reply: 256KiB}\n"

static const struct walk_params params = {
	.services = SERVICES,
	.more = "tcp: {connections: 256, buffer_mb: 32, window: 1MiB}\n",
};

static const struct walk_worker_params roomy = {
	.max_request = 262144, .max_reply = 262144, .room = 4194304};

/* A row varies these. */
struct cutting {
	uint16_t tso_mbufs, segments_max; /* the port's limits */
	uint32_t path_mtu; /* to the worker, whose packets lie in an mbuf each; 0: 1024 */
	bool ip_sums;      /* it computes IPv4 checksums, too */
	unsigned int clients, requests; /* of each */
	uint32_t least, most;           /* bytes */
	uint16_t mss;                   /* of the clients; 0: each has another */
	struct stream_net net;
};

static void cutting_port(struct walk *w, const struct cutting *how)
{
	struct port *port = &w->lb->port[0];
	uint64_t ip = how->ip_sums ? RTE_MBUF_F_TX_IP_CKSUM : 0;

	port->tx_tcp_checksums[0] = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_TCP_CKSUM | ip;
	port->tx_tcp_checksums[1] = RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_TCP_CKSUM;
	port->segments_max = how->segments_max;
	port->tso_mbufs = how->tso_mbufs;
	w->lb->lcore[0]->tx[0].cuts = how->tso_mbufs > 0;
}

/* Streams of requests for client <i>, and their echoes. */
static void cutting_open(struct stream_clients *all, unsigned int i, const struct cutting *how)
{
	size_t size = (size_t)how->requests * (how->most + 8);
	uint8_t *stream = malloc(size), *echoes = malloc(size), *bytes = malloc(how->most);
	uint32_t n_stream = 0, n_echoes = 0, n;

	walk_need(stream != NULL && echoes != NULL && bytes != NULL);
	for (unsigned int k = 0; k < how->requests; k++) {
		n = how->least + client_random(&all->random, how->most - how->least + 1);
		for (uint32_t at = 0; at < n; at++)
			bytes[at] = client_random(&all->random, 256);
		stream_add_echo(stream, &n_stream, echoes, &n_echoes, bytes, n);
	}
	free(bytes);
	stream_client_open(all, i, stream, n_stream, echoes, n_echoes);
	if (how->mss != 0)
		all->client[i].manner.mss = how->mss;
}

static void cutting_end(struct stream_clients *all)
{
	const struct conntrack *ct = all->w->lb->lcore[0]->ct;

	for (unsigned int i = 0; i < 70000 && conntrack_count(ct) > 0; i++)
		stream_clients_pass(all);
	walk_expect_eq(conntrack_count(ct), 0);
	for (unsigned int i = 0; i < all->n; i++) {
		free((void *)all->client[i].stream);
		free((void *)all->client[i].tcp.expected);
	}
	stream_clients_free(all);
}

/* Serves clients, which compare every byte. <sent>, unless NULL: the packets that the port got. */
static struct tcp_counters cutting_run(const struct cutting *how, uint64_t seed, uint64_t *sent)
{
	struct walk *w = walk_create(&params);
	struct walk_worker_params worker = roomy;
	struct stream_client client[16];
	struct stream_clients all = {
		.w = w, .net = &how->net, .random = seed, .client = client, .n = how->clients};
	struct tcp_counters counters;

	worker.path_mtu = how->path_mtu;
	walk_worker(w, &worker);
	cutting_port(w, how);
	all.by_port = true;
	all.segment = 400;
	for (unsigned int i = 0; i < all.n; i++)
		cutting_open(&all, i, how);
	stream_clients_run(&all, 300000);
	cutting_end(&all);
	counters = *edge_counters(w->lb->lcore[0]);
	if (sent != NULL)
		*sent = w->lb->lcore[0]->tx[0].packets;
	walk_expect_eq(walk_stats(w).replies, (uint64_t)how->clients * how->requests);
	walk_destroy(w);
	return counters;
}

WALK(replies_leave_as_packets_of_several_segments)
{
	for (unsigned int i = 0; i < 4; i++) {
		const struct cutting how = {.tso_mbufs = 255,
					    .segments_max = 16,
					    .path_mtu = i & 1 ? 4096 : 1024,
					    .ip_sums = i & 2,
					    .clients = 4,
					    .requests = 4,
					    .least = 20000,
					    .most = 150000};
		struct tcp_counters counters;
		uint64_t sent;

		walk_context("path MTU %u, IPv4 checksums %u", how.path_mtu, how.ip_sums);
		counters = cutting_run(&how, 11 + i, &sent);
		walk_expect(counters.tso_out > 0);
		walk_expect(counters.segments_out > 2 * sent, "%lu packets of %lu segments", sent,
			    counters.segments_out);
		walk_expect_eq(counters.retransmits, 0);
	}
	walk_context("%s", "");
}

WALK(segments_of_a_packet_are_lost_one_by_one)
{
	struct cutting how = {.tso_mbufs = 255,
			      .segments_max = 16,
			      .requests = 4,
			      .least = 1,
			      .most = 100000,
			      .net = {.lose = 20, .copy = 20, .delay = 200, .delay_ms = 20}};

	for (uint64_t seed = 1; seed <= 6; seed++) {
		struct tcp_counters counters;

		walk_context("seed %lu", seed);
		how.clients = 1 + seed / 2;
		how.ip_sums = seed & 1;
		counters = cutting_run(&how, seed * 1000003, NULL);
		walk_expect(counters.tso_out > 0 && counters.retransmits > 0);
	}
	walk_context("%s", "");
}

WALK(a_packet_has_as_many_mbufs_as_the_port_takes)
{
	static const uint16_t limits[][2] = {{40, 40}, {8, 8}, {40, 4}, {5, 3}, {3, 2}};

	for (unsigned int i = 0; i < RTE_DIM(limits); i++) {
		struct cutting how = {.tso_mbufs = limits[i][0],
				      .segments_max = limits[i][1],
				      .clients = 2,
				      .requests = 3,
				      .least = 50000,
				      .most = 100000};

		walk_context("%u mbufs in all, %u of a segment", how.tso_mbufs, how.segments_max);
		walk_expect((cutting_run(&how, 3, NULL).tso_out > 0) ==
			    (how.segments_max > 3 || how.tso_mbufs > 3));
		how.least = 1;
		how.most = 300;
		how.requests = 100;
		cutting_run(&how, 4, NULL);
	}
	walk_context("%s", "");
}

WALK(segments_that_drivers_refuse_to_cut_leave_one_by_one)
{
	struct cutting how = {.tso_mbufs = 255,
			      .segments_max = 16,
			      .clients = 2,
			      .requests = 2,
			      .least = 20000,
			      .most = 30000,
			      .mss = 240};

	walk_expect_eq(cutting_run(&how, 5, NULL).tso_out, 0);
	how.mss = 300;
	walk_expect(cutting_run(&how, 5, NULL).tso_out > 0);
	how.tso_mbufs = 0;
	walk_expect_eq(cutting_run(&how, 5, NULL).tso_out, 0);
}
