/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP services: connections end here, requests go to workers, replies come back in order. */
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "edge/edge.h"
#include "edge/edge_private.h"
#include "edge/view.h"

#include "lb.h"
#include "packet/notice.h"
#include "lb.h"
#include "membership/operator_settings.h"
#include "observe/flow_trace.h"
#include "stop.h"
#include "stream_client.h"
#include "walk/loop.h"
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

/* Requests that take many segments, and a worker's room for few of them at a time. */
#define LARGE_SERVICE                                                                              \
	"  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4                            \
	", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB%s}\n"                     \
	"  - {name: echo6, protocol: tcp, address: \"" PACKET_DESTINATION6                         \
	"\", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB%s}\n"

static const struct walk_worker_params roomy = {
	.max_request = 65536, .max_reply = 65536, .room = 262144};

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
	struct walk *w = walk_create(&small);

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

/* --- what the stages' cycles are divided by ----------------------------------------------------
 */

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
	struct walk *w = walk_create(&small);

	walk_worker(w, NULL);
	run_on(w, &(struct stream_net){0}, 4, 20, 1400, 8);
	expect_stages(w);
	walk_destroy(w);
}

/* --- requests larger than a packet ------------------------------------------------------------ */

static struct walk *create_large(const char *more, const char *buffer)
{
	static char services[1024], tcp[256];
	struct walk_params params = {.services = services, .more = tcp};

	snprintf(services, sizeof(services), LARGE_SERVICE, more, more);
	snprintf(tcp, sizeof(tcp), "tcp: {connections: 256, %s}\n", buffer);
	return walk_create(&params);
}

static void expect_room(const struct walk *w)
{
	const struct lcore *lc = w->lb->lcore[0];

	for (unsigned int i = 0; i < lc->n_links; i++) {
		walk_expect_eq(lc->links[i]->n_free, lc->links[i]->slots);
		walk_expect_eq(lc->links[i]->room.free, lc->links[i]->room.pages);
	}
}

static void run_large(const char *more, const struct stream_net *net, unsigned int clients,
		      unsigned int requests, uint64_t seed)
{
	struct walk *w = create_large(more, "buffer_mb: 16, window: 256KiB");

	walk_worker(w, &roomy);
	walk_worker(w, &roomy);
	run_on(w, net, clients, requests, 65536, seed);
	expect_room(w);
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
	struct walk *w = create_large("", "buffer_mb: 16, window: 256KiB");

	walk_worker(w, &roomy);
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
	struct walk *w = create_large(", queue_timeout_ms: 20000", "buffer_mb: 3, window: 256KiB");

	walk_worker(w, &roomy);
	walk_worker(w, &roomy);
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

/* --- segment by segment -------------------------------------------------------------------------
 */

/* A client that sends what a row says. */
struct raw {
	struct walk *w;
	uint16_t port;
	uint8_t station;   /* of its router */
	unsigned int on;   /* port of the load balancer */
	uint32_t seq, ack; /* next to send, next expected */
	bool fin;          /* the load balancer has closed */
	uint8_t sent_to;   /* last byte of the MAC address of its last segment */
	uint16_t service;  /* its port; 0: 8000 */
	const char *source; /* address; NULL: one for all */
	enum packet_sum sum; /* of its segments */
};

/* The load balancer's next segment for the client: false: there is none. */
static bool raw_take(struct raw *r, struct tcp_header *h, uint8_t *payload)
{
	static struct walk_frame f;

	while (walk_take(r->w, r->on, &f)) {
		const uint8_t *tcp = f.bytes + 34;

		if (f.bytes[23] != IPPROTO_TCP || (tcp[2] << 8 | tcp[3]) != r->port)
			continue;
		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, h) == 0);
		memcpy(payload, tcp + h->size, h->length);
		r->fin |= h->flags & TCP_BIT_FIN;
		r->sent_to = f.destination_mac[5];
		return true;
	}
	return false;
}

/* The load balancer has not looked at it yet. */
static void raw_put(struct raw *r, uint8_t flags, const void *bytes, uint32_t n)
{
	struct tcp_header h = {
		.seq = r->seq,
		.ack = flags & TCP_BIT_ACK ? r->ack : 0,
		.flags = flags,
		.window = 65535,
		.length = n,
		.scale = TCP_SCALE_NONE,
	};
	uint8_t tcp[PACKET_MAX], frame[PACKET_MAX];
	uint32_t size = tcp_header_write(&h, htons(r->port), htons(r->service != 0 ? r->service : 8000), tcp);
	struct packet p = {
		.family = 4,
		.tcp = true,
		.source = r->source,
		.source_port = r->port,
		.destination_port = r->service,
		.station = r->station,
		.l4_sum = r->sum,
		.bytes = tcp + 4,
		.n_bytes = size - 4 + n,
	};

	if (bytes != NULL)
		memcpy(tcp + size, bytes, n);
	walk_send_frame(r->w, r->on, 0, frame, packet_build(&p, frame));
	r->seq += tcp_header_span(&h);
}

static void raw_send(struct raw *r, uint8_t flags, const void *bytes, uint32_t n)
{
	raw_put(r, flags, bytes, n);
	walk_turn(r->w);
}

/* The handshake. */
static void raw_connect(struct raw *r)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	raw_send(r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(r, &h, payload), "no SYN-ACK");
	walk_expect_eq(h.flags, TCP_BIT_SYN | TCP_BIT_ACK);
	walk_expect_eq(h.ack, r->seq);
	r->ack = h.seq + 1;
	raw_send(r, TCP_BIT_ACK, NULL, 0);
}

static void raw_open_on(struct raw *r, struct walk *w, uint16_t port, unsigned int on)
{
	*r = (struct raw){.w = w, .port = port, .on = on, .seq = port * 1000};
	raw_connect(r);
}

static void raw_open(struct raw *r, struct walk *w, uint16_t port)
{
	raw_open_on(r, w, port, 0);
}

/* Sends a request of framing length with <n> bytes in it, saying <said>. */
static void raw_ask(struct raw *r, uint32_t said, uint32_t n)
{
	uint8_t bytes[1460] = {0};

	memcpy(bytes, &said, 4);
	memset(bytes + 4, 0x61, n);
	raw_send(r, TCP_BIT_ACK | TCP_BIT_PSH, bytes, 4 + n);
}

/* Expects the head of an answer, and <length> bytes. */
static void raw_expect_answer(struct raw *r, uint32_t status, uint32_t length)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;
	uint32_t head[2];

	walk_pass(r->w, 20);
	do
		walk_need(raw_take(r, &h, payload), "no answer");
	while (h.length == 0);
	memcpy(head, payload, 8);
	walk_expect_eq(head[0], length);
	walk_expect_eq(head[1], status);
	walk_expect_eq(h.length, 8 + length);
	walk_expect_eq(h.seq, r->ack);
	r->ack = h.seq + tcp_header_span(&h);
	raw_send(r, TCP_BIT_ACK, NULL, 0);
}

/* Expects <n> bytes in order, in any number of segments, and acknowledges them. */
static void raw_expect_bytes(struct raw *r, uint32_t n)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_pass(r->w, 20);
	for (uint32_t got = 0; got < n; got += h.length) {
		walk_need(raw_take(r, &h, payload), "%u of %u bytes", got, n);
		r->ack = h.seq + tcp_header_span(&h);
	}
	raw_send(r, TCP_BIT_ACK, NULL, 0);
}

static void raw_expect_fin(struct raw *r)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_pass(r->w, 20);
	while (!r->fin) {
		walk_need(raw_take(r, &h, payload), "no FIN");
		r->ack = h.seq + tcp_header_span(&h);
	}
}

static void raw_expect_reset(struct raw *r)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_need(raw_take(r, &h, payload), "no reset");
	walk_expect(h.flags & TCP_BIT_RST, "flags 0x%x", h.flags);
}

/* Passes until the load balancer has forgotten all connections. */
static void expect_none_left(struct walk *w, uint32_t ms)
{
	for (uint32_t i = 0; i < ms && conntrack_count(w->lb->lcore[0]->ct) > 0; i++)
		walk_pass(w, 1);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
}

WALK(segments_of_no_connection_get_a_reset)
{
	struct walk *w = walk_create(&small);
	struct raw r = {.w = w, .port = 3000, .seq = 5, .ack = 9};

	raw_send(&r, TCP_BIT_ACK, "data", 4);
	raw_expect_reset(&r);
	walk_expect_drops(w, {LB_DROP_TCP_UNKNOWN, 1});
	/* A reset gets no answer. */
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_expect_silence(w, 0);
	walk_expect_drops(w, {LB_DROP_TCP_UNKNOWN, 1});
	walk_destroy(w);
}

WALK(answers_that_no_worker_wrote)
{
	struct walk *w = walk_create(&small);
	struct raw r;

	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5); /* there is no worker */
	raw_expect_answer(&r, LB_NOTICE_BUSY, 0);
	walk_worker(w, NULL);
	raw_ask(&r, 0, 0);
	raw_expect_answer(&r, LB_NOTICE_MALFORMED, 0);
	raw_ask(&r, 1401, 1401);
	raw_expect_answer(&r, LB_NOTICE_TOO_LARGE, 0);
	raw_ask(&r, 7, 7);
	raw_expect_answer(&r, 0, 7);
	walk_destroy(w);
}

WALK(a_reset_cancels_what_the_worker_has)
{
	struct walk *w = walk_create(&small);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	walk_turn(w);
	walk_expect_eq(v->n_requests, 1);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	expect_none_left(w, 1);
	walk_pass(w, 100);
	walk_expect(v->n_requests == 1 && v->request[0].cancelled, "the worker was not told");
	walk_destroy(w);
}

WALK(a_client_that_closes_gets_its_replies_and_no_more)
{
	struct walk *w = walk_create(&small);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	raw_send(&r, TCP_BIT_ACK, "\x08\0\0\0half", 8); /* a request that never comes whole */
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	raw_expect_answer(&r, 0, 5);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	expect_none_left(w, 1);
	walk_destroy(w);
}

WALK(a_client_that_is_gone_is_noticed)
{
	struct walk *w = walk_create(&small);
	struct raw r;

	raw_open(&r, w, 3000);
	/* keepalive_ms, and three probes */
	walk_jump(w, 59000);
	walk_turn(w);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 1);
	expect_none_left(w, 45000);
	walk_destroy(w);
}

WALK(a_flood_of_SYNs)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 64, buffer_mb: 4, backlog: 8}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw before, after, flood;

	walk_worker(w, NULL);
	raw_open(&before, w, 3000);
	for (uint16_t i = 0; i < 500; i++) {
		flood = (struct raw){.w = w, .port = 10000 + i, .seq = i};
		raw_send(&flood, TCP_BIT_SYN, NULL, 0);
	}
	walk_forget(w, 0);
	/* eight half-open ones, and what was there */
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 9);
	raw_ask(&before, 5, 5);
	raw_expect_answer(&before, 0, 5);
	raw_open(&after, w, 3001); /* by a cookie */
	raw_ask(&after, 6, 6);
	raw_expect_answer(&after, 0, 6);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_out, 493);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_in, 1);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(a_handshake_with_a_wrong_number_gets_a_reset_and_goes_on)
{
	static const struct walk_params params = {.services = SERVICES};
	struct walk *w = walk_create(&params);
	struct raw r = {.w = w, .port = 3002, .seq = 1000};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no SYN-ACK");
	r.ack = h.seq + 1000; /* of a stranger, or of a connection that was here before */
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	raw_expect_reset(&r);
	r.ack = h.seq + 1;
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	walk_expect_eq(w->lb->lcore[0]->stats.drop[LB_DROP_TCP_REFUSED], 1);
	walk_destroy(w);
}

WALK(as_many_connections_as_may_be)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, connections_percent: 100}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r[16], more = {.w = w, .port = 4000, .seq = 1};

	walk_worker(w, NULL);
	for (unsigned int i = 0; i < 16; i++)
		raw_open(&r[i], w, 3000 + i);
	raw_send(&more, TCP_BIT_SYN, NULL, 0);
	walk_expect_drops(w, {LB_DROP_TCP_FULL, 1});
	walk_expect_silence(w, 0);
	raw_send(&r[3], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	raw_open(&more, w, 4000);
	raw_ask(&more, 5, 5);
	raw_expect_answer(&more, 0, 5);
	walk_destroy(w);
}

static void reload_tcp(struct walk *w, const char *section)
{
	const struct walk_params params = {.more = section};
	char text[4096];

	walk_yaml(&params, SERVICES, text, sizeof(text));
	walk_need(walk_reload(w, text) == 0, "%s", w->error);
}

/* Sends a SYN, and expects nothing but a drop: its client has as many connections as it may. */
static void raw_expect_full(struct walk *w, uint16_t port, const char *source)
{
	struct raw r = {.w = w, .port = port, .seq = 1, .source = source};
	uint64_t before = walk_stats(w).drop[LB_DROP_TCP_CLIENT_FULL];

	walk_forget(w, 0);
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_expect_silence(w, 0);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_CLIENT_FULL], before + 1);
}

WALK(a_client_has_a_share_of_the_connections)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, connections_percent: 50}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r[8], more, other = {.w = w, .port = 5000, .source = "192.0.2.21"};

	walk_worker(w, NULL);
	for (unsigned int i = 0; i < 8; i++)
		raw_open(&r[i], w, 3000 + i);
	raw_expect_full(w, 4000, NULL);
	raw_connect(&other);
	raw_ask(&other, 5, 5);
	raw_expect_answer(&other, 0, 5);
	/* One of them ends: there is room for another one, and no more. */
	raw_send(&r[3], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	raw_open(&more, w, 4001);
	raw_ask(&more, 6, 6);
	raw_expect_answer(&more, 0, 6);
	raw_expect_full(w, 4002, NULL);
	/* Those that are open stay, however small the share becomes. */
	reload_tcp(w, "tcp: {connections: 16, buffer_mb: 4, connections_percent: 1}\n");
	raw_ask(&r[0], 7, 7);
	raw_expect_answer(&r[0], 0, 7);
	raw_expect_full(w, 4003, NULL);
	raw_expect_full(w, 5001, "192.0.2.21");
	reload_tcp(w, "tcp: {connections: 16, buffer_mb: 4, connections_percent: 100}\n");
	for (unsigned int i = 0; i < 7; i++)
		raw_open(&more, w, 4010 + i);
	raw_send(&(struct raw){.w = w, .port = 4020}, TCP_BIT_SYN, NULL, 0);
	walk_expect_drops(w, {LB_DROP_TCP_CLIENT_FULL, 4}, {LB_DROP_TCP_FULL, 1});
	walk_destroy(w);
}

WALK(cookies_give_a_client_no_more_than_its_share)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 8, buffer_mb: 4, connections_percent: 50, backlog: 1}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw half = {.w = w, .port = 4000, .source = "192.0.2.21"}, r[5];
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	raw_send(&half, TCP_BIT_SYN, NULL, 0);
	walk_forget(w, 0);
	for (unsigned int i = 0; i < 5; i++) {
		r[i] = (struct raw){.w = w, .port = 3000 + i};
		raw_send(&r[i], TCP_BIT_SYN, NULL, 0);
		walk_need(raw_take(&r[i], &h, payload), "no cookie");
		r[i].ack = h.seq + 1;
	}
	for (unsigned int i = 0; i < 5; i++)
		raw_send(&r[i], TCP_BIT_ACK, NULL, 0);
	walk_expect_drops(w, {LB_DROP_TCP_CLIENT_FULL, 1});
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 5);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_in, 4);
	raw_expect_full(w, 3010, NULL);
	/* Its acknowledgement comes again, with a request, when one of the others has ended. */
	raw_send(&r[0], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	raw_ask(&r[4], 5, 5);
	raw_expect_answer(&r[4], 0, 5);
	walk_destroy(w);
}

WALK(SYNs_with_the_address_of_a_client_do_not_shut_it_out)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, connections_percent: 25}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw forged, late = {.w = w, .port = 4000}, r[4];
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	raw_send(&late, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&late, &h, payload), "no SYN-ACK");
	late.ack = h.seq + 1;
	for (unsigned int i = 1; i < 6; i++) {
		forged = (struct raw){.w = w, .port = 4000 + i, .seq = i};
		raw_send(&forged, TCP_BIT_SYN, NULL, 0);
	}
	walk_forget(w, 0);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 4);
	for (unsigned int i = 0; i < 4; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_ask(&r[i], 5, 5);
		raw_expect_answer(&r[i], 0, 5);
	}
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_in, 4);
	walk_expect_no_drops(w);
	raw_expect_full(w, 5000, NULL);
	/* One that was half-open then is its own, and has its turn when another has ended. */
	raw_send(&late, TCP_BIT_ACK, NULL, 0);
	walk_expect_drops(w, {LB_DROP_TCP_CLIENT_FULL, 2});
	raw_send(&r[0], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	raw_ask(&late, 5, 5);
	raw_expect_answer(&late, 0, 5);
	raw_expect_full(w, 5001, NULL);
	walk_destroy(w);
}

/* A reload after which the service of IPv4 is gone. */
static void take_service_away(struct walk *w, const struct walk_params *params)
{
	char text[4096];

	walk_yaml(params,
		  "  - {name: echo6, protocol: tcp, address: \"" PACKET_DESTINATION6
		  "\", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n",
		  text, sizeof(text));
	walk_expect_eq(walk_reload(w, text), 0);
}

WALK(a_service_that_a_reload_takes_away)
{
	struct walk *w = walk_create(&small);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw r;

	raw_open(&r, w, 3000);
	v->answers = false;
	raw_ask(&r, 5, 5);
	take_service_away(w, &small);
	walk_pass(w, 20);
	v->answers = true;
	walk_answer_all(v);
	raw_expect_answer(&r, 0, 5); /* what was asked is answered, then the connection closes */
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_pass(w, 70000 / 10);
	expect_none_left(w, 70000);
	walk_destroy(w);
}

WALK(a_chunk_for_a_connection_in_TIME_WAIT)
{
	struct walk *w = walk_create(&small);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	/* The worker says that the request failed, and that chunks follow. */
	walk_answer(v, 0, &(struct walk_reply){.status = RING_ERROR, .more = true});
	raw_expect_answer(&r, LB_NOTICE_MODEL_ERROR, 0);
	take_service_away(w, &small);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_forget(w, 0);
	walk_answer(v, 0, &(struct walk_reply){.more = true});
	walk_pass(w, 20);
	walk_answer(v, 0, &(struct walk_reply){.status = RING_ERROR});
	walk_pass(w, 20);
	walk_expect_silence(w, 0);
	walk_destroy(w);
}

WALK(a_request_without_memory_for_its_bytes)
{
	struct walk *w = walk_create(&small);
	struct lcore *lc = w->lb->lcore[0];
	struct rte_mbuf *taken[65536];
	unsigned int n = 0;
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	while (n < RTE_DIM(taken) && (taken[n] = rte_pktmbuf_alloc(lc->packets)) != NULL)
		n++;
	/* One packet is left to receive the segment, none for the request. */
	rte_pktmbuf_free(taken[--n]);
	raw_ask(&r, 100, 50);
	raw_expect_answer(&r, LB_NOTICE_BUSY, 0);
	while (n > 0)
		rte_pktmbuf_free(taken[--n]);
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	expect_none_left(w, 1);
	walk_destroy(w);
}

WALK(idle_connections_let_the_lcore_sleep)
{
	struct walk *w = walk_create(&small);
	struct lcore *lc = w->lb->lcore[0];
	struct raw r;

	raw_open(&r, w, 3000);
	walk_pass(w, 1000);
	/* The next timer is the keepalive's. */
	walk_expect(edge_deadline(lc) >= lc->now + 40 * w->lb->tsc_per_ms, "%lu ms",
		    (edge_deadline(lc) - lc->now) / w->lb->tsc_per_ms);
	walk_jump(w, 60000 - 1020);
	walk_turn(w);
	walk_expect(edge_deadline(lc) <= lc->now + 21 * w->lb->tsc_per_ms, "%lu ms",
		    (edge_deadline(lc) - lc->now) / w->lb->tsc_per_ms);
	walk_destroy(w);
}

/* Both ends close: the load balancer's first, so that it is in TIME-WAIT. */
static void raw_into_time_wait(struct raw *r)
{
	raw_expect_fin(r);
	raw_send(r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
}

WALK(a_client_that_repeats_its_FIN_takes_one_place)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r[4];

	for (unsigned int i = 0; i < 4; i++)
		raw_open(&r[i], w, 3000 + i);
	take_service_away(w, &params);
	for (unsigned int i = 0; i < 4; i++)
		raw_into_time_wait(&r[i]);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 4);
	for (unsigned int i = 0; i < 100; i++) {
		r[3].seq--;
		raw_send(&r[3], TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
		walk_jump(w, 1);
	}
	walk_forget(w, 0);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 4);
	/* Its minute began anew, that of the others did not. */
	walk_jump(w, 59960);
	walk_turn(w);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 1);
	walk_jump(w, 50);
	walk_turn(w);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
	walk_destroy(w);
}

/* Sends <n> requests of a byte each. */
static void raw_ask_many(struct raw *r, unsigned int n)
{
	uint8_t bytes[1400];

	for (unsigned int at = 0; n > 0; at = 0) {
		for (; n > 0 && at + 5 <= sizeof(bytes); n--, at += 5)
			memcpy(bytes + at, "\x01\0\0\0a", 5);
		raw_send(r, TCP_BIT_ACK, bytes, at);
	}
}

/* There is no memory for more requests, and the first client has many more. */
/* Acknowledges what comes to <r>; returns whether something came to <other>. */
static bool raw_read(struct raw *r, const struct raw *other)
{
	struct tcp_header h;
	struct walk_frame f;
	bool found = false;

	while (walk_take(r->w, r->on, &f)) {
		const uint8_t *tcp = f.bytes + 34;
		uint16_t port = tcp[2] << 8 | tcp[3];

		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		found |= port == other->port && h.length > 0;
		if (port == r->port)
			r->ack = h.seq + h.length;
	}
	raw_send(r, TCP_BIT_ACK, NULL, 0);
	return found;
}

/* Takes what comes to each: their next segments acknowledge it. */
static void raw_note_acks(struct raw *r, unsigned int n)
{
	struct tcp_header h;
	struct walk_frame f;

	while (walk_take(r->w, r->on, &f)) {
		const uint8_t *tcp = f.bytes + 34;

		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		for (unsigned int i = 0; i < n; i++)
			if ((tcp[2] << 8 | tcp[3]) == r[i].port)
				r[i].ack = h.seq + h.length;
	}
}

/* Acknowledges what comes to each. */
static void raw_read_each(struct raw *r, unsigned int n)
{
	raw_note_acks(r, n);
	for (unsigned int i = 0; i < n; i++)
		raw_send(&r[i], TCP_BIT_ACK, NULL, 0);
}

WALK(connections_that_wait_have_their_turns)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"pipeline: 65536}\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw many, one;
	bool answered = false;

	v->answers = false;
	raw_open(&many, w, 3000);
	raw_open(&one, w, 3001);
	raw_ask_many(&many, 2000);
	raw_ask(&one, 7, 7);
	walk_forget(w, 0);
	v->answers = true;
	walk_answer_all(v);
	for (unsigned int i = 0; i < 200 && !answered; i++)
		answered = raw_read(&many, &one);
	walk_expect(answered, "no answer");
	walk_expect(walk_stats(w).requests < 2000, "it came last");
	raw_send(&many, TCP_BIT_RST, NULL, 0);
	raw_send(&one, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Bytes 0 to <n> of a request, one per segment; the first <skip> come last. */
static void raw_ask_by_byte(struct raw *r, const uint8_t *bytes, uint32_t n, uint32_t skip)
{
	uint32_t first = r->seq;

	for (uint32_t i = 0; i < n; i++) {
		r->seq = first + (skip + i) % n;
		raw_send(r, TCP_BIT_ACK, bytes + (skip + i) % n, 1);
	}
	r->seq = first + n;
}

/* A client that sends byte by byte, of which none can be read yet, does not hold a packet for each.
 */
WALK(small_pieces_share_packets)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, pipeline: 1}\n",
	};
	enum { SIZE = 500, ORDERS = 2 };

	for (unsigned int order = 0; order < ORDERS; order++) {
		struct walk *w = walk_create(&params);
		struct walk_worker *v = walk_worker(w, NULL);
		uint8_t request[4 + SIZE], payload[PACKET_MAX];
		uint32_t length = SIZE;
		struct tcp_header h = {0};
		struct raw r;

		walk_context("the first %u bytes last", order * 100);
		memcpy(request, &length, 4);
		for (unsigned int i = 0; i < SIZE; i++)
			request[4 + i] = i * 7;
		v->answers = false;
		raw_open(&r, w, 3000);
		raw_ask(&r, 5, 5);
		raw_ask_by_byte(&r, request, sizeof(request), order * 100);
		walk_forget(w, 0);
		walk_expect(edge_held_packets(w->lb->lcore[0]) <= 4, "%u packets are held",
			    edge_held_packets(w->lb->lcore[0]));
		v->answers = true;
		walk_answer_all(v);
		raw_expect_answer(&r, 0, 5);
		do
			walk_need(raw_take(&r, &h, payload), "no answer");
		while (h.length == 0);
		walk_expect_eq(h.length, 8 + SIZE);
		walk_expect_eq(memcmp(payload + 8, request + 4, SIZE), 0);
		r.ack = h.seq + h.length;
		raw_send(&r, TCP_BIT_ACK, NULL, 0);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
		walk_expect_no_drops(w);
		walk_destroy(w);
	}
}

/* Each reason counts once when it begins, not once per turn that it lasts. */
WALK(reasons_to_read_no_more_are_counted)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"pipeline: 4}\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	const struct tcp_counters *t = edge_counters(w->lb->lcore[0]);
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	for (unsigned int i = 0; i < 4; i++)
		raw_ask(&r, 1, 1);
	walk_expect_eq(t->pipeline_full, 0);
	raw_ask(&r, 1, 1);
	raw_ask(&r, 1, 1);
	walk_pass(w, 20);
	walk_expect_eq(t->pipeline_full, 1);
	walk_expect_eq(t->windows_closed, 0);
	walk_forget(w, 0);
	v->answers = true;
	walk_answer_all(v);
	for (unsigned int i = 0; i < 20; i++)
		raw_read(&r, &r);
	walk_expect_eq(walk_stats(w).replies, 6);
	v->answers = false;
	for (unsigned int i = 0; i < 5; i++)
		raw_ask(&r, 1, 1);
	walk_pass(w, 20);
	walk_expect_eq(t->pipeline_full, 2);
	walk_expect_eq(t->replies_full, 0);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Requests that are yet to be read fill the memory: only to read them makes room. */
WALK(requests_that_fill_the_memory_are_read)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"pipeline: 65536}\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw r[4];

	v->answers = false;
	/* Smaller ones would share packets. */
	for (unsigned int i = 0; i < 4; i++)
		raw_open(&r[i], w, 3000 + i);
	for (unsigned int i = 0; i < 4 * 150; i++)
		raw_ask(&r[i % 4], 256, 256);
	walk_forget(w, 0);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_MEMORY] > 0, "it is not full");
	walk_expect_eq(edge_counters(w->lb->lcore[0])->replies_full, 4);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->pipeline_full, 0);
	v->answers = true;
	walk_answer_all(v);
	for (unsigned int i = 0; i < 400; i++)
		raw_read_each(r, 4);
	walk_pass(w, 20);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	for (unsigned int i = 0; i < 4; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

static uint16_t take_nothing(void *queue, struct rte_mbuf **packet, uint16_t n)
{
	return 0;
}

WALK(a_port_that_takes_nothing_holds_up_no_other)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\n",
		.client_ports = 2,
	};
	struct walk *w = walk_create(&params);
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[w->nic[0].port];
	eth_tx_burst_t was = ops->tx_pkt_burst;
	struct raw r[2], stranger = {.w = w, .port = 4000, .seq = 1};

	walk_worker(w, NULL);
	raw_open_on(&r[0], w, 3000, 0);
	raw_open_on(&r[1], w, 3001, 1);
	ops->tx_pkt_burst = take_nothing;
	for (unsigned int i = 0; i < TXQ_SIZE; i++)
		raw_send(&stranger, TCP_BIT_ACK, NULL, 0);
	walk_expect_eq(txq_room(&w->lb->lcore[0]->tx[0]), 0);
	raw_ask(&r[0], 5, 5);
	walk_turn(w);
	raw_ask(&r[1], 6, 6);
	raw_expect_answer(&r[1], 0, 6);
	ops->tx_pkt_burst = was;
	walk_turn(w);
	walk_forget(w, 0);
	raw_expect_answer(&r[0], 0, 5);
	walk_destroy(w);
}

/* Resets the connection that began with number <first>, whatever of its bytes was taken. */
static void raw_abort(struct raw *r, uint32_t first)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_forget(r->w, 0);
	r->seq = first;
	raw_send(r, TCP_BIT_ACK, NULL, 0); /* an old number: the answer says which is next */
	while (raw_take(r, &h, payload))
		r->seq = h.ack;
	raw_send(r, TCP_BIT_RST, NULL, 0);
}

WALK(a_cookie_comes_back_with_bytes_for_which_there_is_no_memory)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 256, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"backlog: 1}\n",
	};
	struct walk *w = walk_create(&params);
	static char source[16][16];
	struct raw hole[16], half = {.w = w, .port = 4000, .seq = 1}, r = {.w = w, .port = 3001};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	/* One client leaves some for others. */
	for (unsigned int k = 0; k < 16; k++) {
		snprintf(source[k], sizeof(source[k]), "192.0.2.%u", 20 + k);
		hole[k] = (struct raw){.w = w, .port = 3010 + k, .seq = k, .source = source[k]};
		raw_connect(&hole[k]);
		hole[k].seq++;
		/* Backwards, so that they share no packets. */
		for (unsigned int i = 600; i > 0; i--) {
			hole[k].seq = k + 1 + i;
			raw_send(&hole[k], TCP_BIT_ACK, "a", 1);
		}
	}
	raw_send(&half, TCP_BIT_SYN, NULL, 0);
	walk_forget(w, 0);
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no SYN-ACK");
	r.ack = h.seq + 1;
	raw_ask(&r, 5, 5);
	/* Nothing is left of it: a connection that is not established has no timer. */
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 17);
	raw_send(&hole[0], TCP_BIT_RST, NULL, 0); /* not at the next number: no effect */
	hole[0].seq = 1;
	raw_send(&hole[0], TCP_BIT_RST, NULL, 0);
	r.seq -= 9;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	for (unsigned int k = 1; k < 16; k++) {
		hole[k].seq = k + 1;
		raw_send(&hole[k], TCP_BIT_RST, NULL, 0);
	}
	walk_destroy(w);
}

/* Two segments of a request come in the wrong order, and nothing came in front of them. */
WALK(a_later_segment_overtakes_the_first_of_a_cookie)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, backlog: 1}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw half = {.w = w, .port = 4000}, r = {.w = w, .port = 3001};
	struct raw stray = {.w = w, .port = 2999, .ack = 77}, other = {.w = w, .port = 3002};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_worker(w, NULL);
	raw_send(&stray, TCP_BIT_ACK, "a", 1);
	walk_need(raw_take(&stray, &h, payload), "no reset");
	raw_send(&half, TCP_BIT_SYN, NULL, 0);
	walk_forget(w, 0);
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no cookie");
	r.ack = h.seq + 1;
	r.seq += 4;
	raw_send(&r, TCP_BIT_ACK, "aaaaa", 5);
	walk_need(!raw_take(&r, &h, payload), "an answer to a segment that came early");
	r.seq -= 9;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->cookies_in, 1);
	/* A number that is no young cookie gets its reset. */
	raw_send(&other, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&other, &h, payload), "no cookie");
	other.ack = h.seq + 1 + (3u << 24);
	other.seq += 4;
	raw_send(&other, TCP_BIT_ACK, "a", 1);
	walk_need(raw_take(&other, &h, payload), "no reset");
	walk_expect_eq(h.flags & TCP_BIT_RST, TCP_BIT_RST);
	walk_expect_drops(w, {LB_DROP_TCP_EARLY, 1}, {LB_DROP_TCP_UNKNOWN, 2});
	walk_destroy(w);
}

WALK(a_handshake_that_ends_with_bytes_out_of_order)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 1, client_percent: 100, window: 64KiB, "
			"backlog: 1}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw hole[3], r = {.w = w, .port = 4000}, next = {.w = w, .port = 4001};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	/* There is no memory to remember more bytes out of order. */
	for (unsigned int i = 0; i < 3; i++) {
		raw_open(&hole[i], w, 3000 + i);
		hole[i].seq++;
		raw_send(&hole[i], TCP_BIT_ACK, "a", 1);
	}
	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no SYN-ACK");
	r.ack = h.seq + 1;
	r.seq++;
	raw_send(&r, TCP_BIT_ACK, "a", 1);
	walk_expect_drops(w, {LB_DROP_TCP_REFUSED, 1});
	/* The connection is open: the backlog has room for the next one. */
	raw_send(&next, TCP_BIT_SYN, NULL, 0);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 5);
	for (unsigned int i = 0; i < 3; i++) {
		hole[i].seq -= 2;
		raw_send(&hole[i], TCP_BIT_RST, NULL, 0);
	}
	walk_destroy(w);
}

WALK(a_connection_that_is_idle_for_an_hour)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4, keepalive_ms: 7200000}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	for (unsigned int i = 0; i < 3600; i++) {
		walk_jump(w, 1000);
		walk_turn_lcore(w, 0);
	}
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 1);
	walk_destroy(w);
}

WALK(a_client_whose_router_changes)
{
	struct walk *w = walk_create(&small);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	walk_expect_eq(r.sent_to, packet_their_mac[5]);
	r.station = 77;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	walk_expect_eq(r.sent_to, 77);
	/* A segment that is refused proves nothing. */
	r.station = 78;
	r.seq -= 9;
	raw_send(&r, TCP_BIT_ACK, "again", 5);
	r.seq += 4;
	r.station = 77;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	walk_expect_eq(r.sent_to, 77);
	walk_destroy(w);
}

/* --- the load balancer, a service, a worker goes -----------------------------------------------
 */

/* A SYN of a new client gets a reset. */
static void expect_refused(struct walk *w, uint16_t port)
{
	struct raw r = {.w = w, .port = port, .seq = port};
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	raw_send(&r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(&r, &h, payload), "no reset");
	walk_expect_eq(h.flags, TCP_BIT_RST | TCP_BIT_ACK);
	walk_expect_eq(h.ack, r.seq);
}

/* Expects a reset at the number that the client waits for. */
static void raw_expect_end(struct raw *r)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	do
		walk_need(raw_take(r, &h, payload), "no reset");
	while (!(h.flags & TCP_BIT_RST));
	walk_expect_eq(h.seq, r->ack);
}

WALK(it_stops_after_the_replies_and_the_closes)
{
	struct walk *w = walk_create(&small);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw idle, asking;

	v->answers = false;
	raw_open(&idle, w, 3000);
	raw_open(&asking, w, 3001);
	raw_ask(&asking, 5, 5);
	lb_stop_begin(w->lb);
	walk_turn(w);
	raw_expect_fin(&idle);
	walk_expect(!asking.fin);
	expect_refused(w, 3002);
	walk_expect_drops(w, {LB_DROP_STOPPING, 1});
	raw_send(&idle, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	/* As long as a request is open: a client that has its FIN is not hurried. */
	walk_pass(w, 3000);
	walk_expect(!lb_stop_over(w->lb));
	v->answers = true;
	walk_answer_all(v);
	raw_expect_answer(&asking, 0, 5);
	raw_expect_fin(&asking);
	raw_send(&asking, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_tick(w);
	walk_expect(lb_stop_over(w->lb));
	walk_expect_no_drops(w);
	walk_destroy(w);
}

WALK(it_resets_clients_that_do_not_close_when_it_stops)
{
	struct walk *w = walk_create(&small);
	struct raw r, half = {.w = w, .port = 3001, .seq = 7};

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	raw_send(&half, TCP_BIT_SYN, NULL, 0);
	raw_send(&r, TCP_BIT_ACK, "\x08\0\0\0half", 8); /* of a request */
	lb_stop_begin(w->lb);
	walk_turn(w);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	walk_pass(w, 900);
	walk_expect(!lb_stop_over(w->lb));
	walk_pass(w, 200);
	raw_expect_end(&r);
	walk_expect(lb_stop_over(w->lb));
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
	walk_destroy(w);
}

WALK(what_is_left_at_the_end_of_a_stop_is_told_and_reset)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\nstop_timeout_ms: 50\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = walk_worker(w, NULL);
	struct raw asking, silent;

	v->answers = false;
	raw_open(&asking, w, 3000);
	raw_open(&silent, w, 3001); /* it acknowledges nothing any more */
	raw_ask(&asking, 5, 5);
	raw_ask(&silent, 6, 6);
	lb_stop_begin(w->lb);
	walk_pass(w, 40);
	walk_expect(!asking.fin);
	walk_pass(w, 20);
	raw_expect_answer(&asking, LB_NOTICE_TIMEOUT, 0);
	raw_expect_fin(&asking);
	raw_send(&asking, TCP_BIT_ACK, NULL, 0);
	walk_expect_drops(w, {LB_DROP_STOP_TIMEOUT, 2});
	walk_pass(w, 900);
	walk_expect(!lb_stop_over(w->lb), "the second client has its notice not acknowledged");
	walk_pass(w, 200);
	raw_expect_end(&asking);
	walk_expect(lb_stop_over(w->lb));
	walk_destroy(w);
}

WALK(a_service_leaves_when_its_replies_have_arrived)
{
	struct walk *w = walk_create(&small);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	take_service_away(w, &small);
	expect_refused(w, 3001);
	walk_turns(w, 5);
	walk_expect_eq(walk_stats(w).replies, 1);
	walk_forget(w, 0); /* the reply is lost on its way */
	walk_pass(w, 1000);
	raw_expect_answer(&r, 0, 5);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_pass(w, 1000);
	/* It does not wait for those in TIME-WAIT. */
	walk_expect(!lb_service_used(&w->lb->config.service[0]), "it has not left");
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
	walk_destroy(w);
}

WALK(clients_that_do_not_close_do_not_keep_a_service)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\nstop_timeout_ms: 5000\n",
	};
	struct walk *w = walk_create(&params);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	take_service_away(w, &params);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	walk_pass(w, 4900);
	walk_expect_silence(w, 0);
	walk_pass(w, 1000);
	raw_expect_end(&r);
	walk_expect(!lb_service_used(&w->lb->config.service[0]), "it has not left");
	walk_destroy(w);
}

WALK(a_drained_worker_answers_and_the_connection_stays)
{
	struct walk *w = walk_create(&small);
	struct walk_worker *a = walk_worker(w, &(struct walk_worker_params){.name = "a"});
	struct walk_worker *b;
	struct raw r;

	a->answers = false;
	raw_open(&r, w, 3000);
	raw_ask(&r, 5, 5);
	walk_turn(w);
	walk_expect_eq(a->n_requests, 1);
	b = walk_worker(w, &(struct walk_worker_params){.name = "b"});
	walk_need(lb_settings_drain(w->lb, "a", true, w->error, sizeof(w->error)) == 0, "%s",
		  w->error);
	walk_pass(w, 20);
	raw_ask(&r, 6, 6);
	walk_pass(w, 20);
	walk_expect_eq(b->answered, 1);
	a->answers = true;
	walk_answer_all(a);
	raw_expect_bytes(&r, 8 + 5 + 8 + 6); /* the second reply has waited for the first */
	walk_pass(w, 1000);
	walk_expect(!r.fin);
	raw_ask(&r, 7, 7);
	raw_expect_answer(&r, 0, 7);
	walk_destroy(w);
}

WALK(replies_that_are_not_acknowledged_keep_no_packets_of_the_control_pool)
{
	struct walk *w = walk_create(&small);
	struct rte_mempool *control = w->lb->lcore[0]->control;
	unsigned int left[8];
	struct raw r[8];

	walk_worker(w, NULL);
	for (unsigned int i = 0; i < 8; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_ask(&r[i], 500, 500);
		walk_pass(w, 20);
		walk_forget(w, 0);
		left[i] = rte_mempool_avail_count(control);
	}
	walk_expect_eq(left[7], left[0]);
	for (unsigned int i = 0; i < 8; i++) {
		r[i].ack += 8 + 500;
		raw_send(&r[i], TCP_BIT_ACK, NULL, 0);
	}
	walk_destroy(w);
}

/* --- what operators see ------------------------------------------------------------------------
 */

static uint64_t raw_handle(const struct raw *r)
{
	struct flow_info flow[16];
	uint32_t cursor = 0;
	unsigned int n = conntrack_dump(r->w->lb->lcore[0]->ct, &cursor, flow, RTE_DIM(flow));

	while (n > 0 && flow[n - 1].key.src_port != htons(r->port))
		n--;
	walk_need(n > 0, "no flow");
	return flow[n - 1].handle;
}

static struct lb_connection raw_view(const struct raw *r)
{
	struct lb_connection c;

	walk_need(lb_connection_read(r->w->lb, 0, raw_handle(r), &c), "no connection");
	return c;
}

WALK(a_connection_says_what_it_holds)
{
	struct walk *w = walk_create(&small);
	struct walk_worker *v = walk_worker(w, NULL);
	uint8_t rest[300] = {0};
	struct lb_connection c;
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	c = raw_view(&r);
	walk_expect_eq(c.state, TCP_ESTABLISHED);
	walk_expect_eq(c.mss, 536);
	walk_expect_eq(c.cwnd, 10 * 536);
	walk_expect_eq(c.requests, 0);
	raw_ask(&r, 5, 5);
	raw_ask(&r, 400, 100); /* of which 300 bytes are missing */
	c = raw_view(&r);
	walk_expect_eq(c.requests, 2);
	walk_expect_eq(c.held_bytes, 100);
	walk_expect_eq(c.send_bytes, 0);
	walk_expect_eq(c.client_window, 65535);
	v->answers = true;
	walk_answer_all(v);
	walk_turns(w, 3);
	c = raw_view(&r);
	walk_expect_eq(c.requests, 1);
	walk_expect_eq(c.send_bytes, 13);
	walk_expect_eq(c.in_flight, 13);
	walk_expect_eq(c.retransmits, 0);
	walk_forget(w, 0);
	walk_pass(w, 2000);
	c = raw_view(&r);
	walk_expect(c.retransmits > 0, "%u", c.retransmits);
	walk_expect_eq(c.phase, TCP_PHASE_TIMEOUT);
	raw_expect_answer(&r, 0, 5);
	v->answers = false;
	raw_send(&r, TCP_BIT_ACK, rest, sizeof(rest)); /* the rest of the second request */
	v->answers = true;
	walk_answer_all(v);
	walk_turns(w, 3);
	walk_pass(w, 7); /* that long is the reply on its way */
	raw_expect_answer(&r, 0, 400);
	c = raw_view(&r);
	walk_expect(c.srtt_us >= 7000 && c.rtt_min_us <= 30000, "%u %u", c.srtt_us, c.rtt_min_us);
	walk_destroy(w);
}

WALK(a_connection_in_TIME_WAIT_says_so)
{
	struct walk *w = walk_create(&small);
	struct lb_tcp_stats s;
	struct raw r;

	raw_open(&r, w, 3000);
	walk_expect(lb_tcp_stats_read(w->lb, 0, &s));
	walk_expect_eq(s.connections, 1);
	walk_expect_eq(s.connections_max, 256);
	take_service_away(w, &small);
	raw_into_time_wait(&r);
	walk_expect_eq(raw_view(&r).state, TCP_TIME_WAIT);
	lb_tcp_stats_read(w->lb, 0, &s);
	walk_expect_eq(s.connections, 0);
	walk_expect_eq(s.time_wait, 1);
	walk_destroy(w);
}

/* The names of the steps that the trace has had since the last call, with a blank behind each. */
static const char *steps_of(struct walk *w, uint32_t id)
{
	static char text[4096];
	struct trace_event event[256];
	uint64_t lost;
	int n = lb_trace_read(w->lb, id, event, RTE_DIM(event), &lost);
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s ",
				       lb_trace_step_name(event[i].step));
	return text;
}

static void expect_steps(struct walk *w, uint32_t id, const char *expected)
{
	const char *steps = steps_of(w, id);

	walk_expect(strcmp(steps, expected) == 0, "%s", steps);
}

static uint32_t trace_client(struct walk *w, uint16_t port, uint8_t protocol)
{
	struct trace_flow flow = {.client_port = port, .protocol = protocol};
	uint32_t id;

	walk_need(lb_address_parse(PACKET_SOURCE4, &flow.client) == 0);
	walk_need(lb_trace_start(w->lb, &flow, &id) == 0);
	return id;
}

WALK(a_trace_of_a_connection)
{
	struct walk *w = walk_create(&small);
	struct raw r, other;
	uint32_t id;

	walk_worker(w, NULL);
	id = trace_client(w, 3000, IPPROTO_TCP);
	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	expect_steps(w, id, "segment segment opened ");
	raw_ask(&other, 5, 5);
	raw_expect_answer(&other, 0, 5);
	expect_steps(w, id, "");
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	expect_steps(w, id,
		     "segment read request chosen sent acked reply times answered segment "
		     "received ");
	/* A segment that comes again is not taken. */
	r.seq -= 9;
	raw_send(&r, TCP_BIT_ACK, "again", 5);
	r.seq += 4;
	expect_steps(w, id, "segment ignored ");
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	expect_steps(w, id, "segment segment closed ");
	raw_open(&r, w, 3000);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_turn(w);
	expect_steps(w, id, "segment segment opened segment reset closed ");
	lb_trace_stop(w->lb, id);
	walk_destroy(w);
}

WALK(a_trace_that_begins_later_and_one_of_another_protocol)
{
	struct walk *w = walk_create(&small);
	struct raw r;
	uint32_t id;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	id = trace_client(w, 3000, IPPROTO_UDP);
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	expect_steps(w, id, "");
	id = trace_client(w, 3000, 0);
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	expect_steps(w, id,
		     "segment read request chosen sent acked reply times answered segment "
		     "received ");
	/* The load balancer resets the connection. */
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_turn(w);
	expect_steps(w, id, "reset closed ");
	lb_trace_stop(w->lb, id);
	walk_destroy(w);
}

/* A wrong bit makes a checksum the pseudo header's sum once in 65,536 times: that counts only where
 * the SYN had such a one. */
WALK(checksums_are_left_to_hardware_always_or_never)
{
	struct walk *w = create_large("", "buffer_mb: 8");
	struct raw whole, left = {.w = w, .port = 3001, .sum = SUM_PARTIAL};

	w->lb->port[0].local_senders = true;
	walk_worker(w, &roomy);
	raw_open(&whole, w, 3000);
	raw_connect(&left);
	raw_ask(&left, 10, 10);
	raw_expect_answer(&left, 0, 10);
	whole.sum = SUM_PARTIAL;
	raw_ask(&whole, 10, 10);
	walk_expect_drops(w, {LB_DROP_TCP_CHECKSUM, 1});
	whole.sum = SUM_RIGHT;
	whole.seq -= 14;
	raw_ask(&whole, 10, 10);
	raw_expect_answer(&whole, 0, 10);
	raw_send(&left, TCP_BIT_RST, NULL, 0);
	raw_send(&whole, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	walk_destroy(w);
}

/* --- large requests, segment by segment --------------------------------------------------------
 */

/* Sends a part of a request of <size> bytes: from <from> up to <to>, its header in front of byte 0.
 */
static void raw_part(struct raw *r, uint32_t size, uint32_t from, uint32_t to)
{
	uint8_t bytes[1004];

	while (from < to) {
		uint32_t n = RTE_MIN(to - from, 1000u), head = from == 0 ? 4 : 0;

		memcpy(bytes, &size, 4);
		for (uint32_t i = 0; i < n; i++)
			bytes[head + i] = (from + i) * 7;
		raw_send(r, TCP_BIT_ACK, bytes, head + n);
		from += n;
	}
}

static void expect_request(const struct walk_worker *v, unsigned int i, uint32_t size)
{
	walk_need(v->n_requests > i, "%s has %u requests", v->name, v->n_requests);
	walk_expect_eq(v->request[i].length, size);
	for (uint32_t k = 0; k < size; k++)
		if (!walk_expect_eq(v->request[i].bytes[k], (uint8_t)(k * 7)))
			break;
}

static void answer_shortly(struct walk_worker *v)
{
	while (v->n_requests > 0)
		walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
}

/* Two workers; <has> gets the first part of a request. */
static void two_and_a_part(struct raw *r, struct walk *w, struct walk_worker **has,
			   struct walk_worker **other)
{
	struct walk_worker *v[2] = {walk_worker(w, &roomy), walk_worker(w, &roomy)};
	struct lcore *lc = w->lb->lcore[0];
	unsigned int at;

	v[0]->answers = v[1]->answers = false;
	raw_open(r, w, 3000);
	raw_part(r, 30000, 0, 20000);
	at = link_outstanding(lc->link[walk_worker_of(v[0])->number]) == 1 ? 0 : 1;
	*has = v[at];
	*other = v[1 - at];
	walk_expect_eq(link_outstanding(lc->link[walk_worker_of(*has)->number]), 1);
	walk_expect_eq(link_outstanding(lc->link[walk_worker_of(*other)->number]), 0);
}

static void take_worker(struct walk *w, struct walk_worker *v)
{
	walk_settle(w);
	v->gone = true;
	lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
	walk_pass(w, 3);
}

static void raw_end(struct raw *r)
{
	raw_send(r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	raw_expect_fin(r);
	raw_send(r, TCP_BIT_ACK, NULL, 0);
	walk_settle(r->w);
	expect_room(r->w);
	walk_destroy(r->w);
}

WALK(a_stop_ends_large_requests_that_are_not_complete)
{
	struct walk *w = create_large("", "buffer_mb: 8");
	struct walk_worker *v = walk_worker(w, &roomy);
	struct raw half, whole;

	v->answers = false;
	raw_open(&half, w, 3000);
	raw_open(&whole, w, 3001);
	raw_part(&half, 30000, 0, 20000);
	raw_part(&whole, 30000, 0, 30000);
	walk_expect_eq(link_outstanding(w->lb->lcore[0]->link[walk_worker_of(v)->number]), 2);
	lb_stop_begin(w->lb);
	raw_expect_fin(&half);
	raw_send(&half, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_expect(!whole.fin && !lb_stop_over(w->lb));
	answer_shortly(v);
	raw_expect_answer(&whole, 0, 2);
	raw_expect_fin(&whole);
	raw_send(&whole, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	walk_pass(w, 50);
	walk_expect(lb_stop_over(w->lb));
	expect_room(w);
	walk_destroy(w);
}

WALK(a_trace_of_a_large_request)
{
	struct walk *w = create_large("", "buffer_mb: 8");
	struct walk_worker *v = walk_worker(w, &roomy);
	struct raw r;
	uint32_t id;

	v->answers = false;
	raw_open(&r, w, 3000);
	id = trace_client(w, 3000, IPPROTO_TCP);
	raw_part(&r, 3000, 0, 1000);
	expect_steps(w, id, "segment chosen ");
	raw_part(&r, 3000, 1000, 3000);
	expect_steps(w, id, "segment segment read sent ");
	answer_shortly(v);
	raw_expect_answer(&r, 0, 2);
	expect_steps(w, id, "acked reply times answered segment received ");
	lb_trace_stop(w->lb, id);
	raw_end(&r);
}

WALK(a_large_request_whose_worker_is_lost_half_way_gets_a_notice_and_the_connection_lives)
{
	struct walk *w = create_large("", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	two_and_a_part(&r, w, &has, &other);
	take_worker(w, has);
	raw_expect_answer(&r, LB_NOTICE_WORKER_LOST, 0);
	raw_part(&r, 30000, 20000, 30000);
	walk_expect_eq(other->n_requests, 0);
	raw_part(&r, 9000, 0, 9000);
	expect_request(other, 0, 9000);
	answer_shortly(other);
	raw_expect_answer(&r, 0, 2);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	raw_end(&r);
}

WALK(a_large_request_that_is_kept_moves_half_way)
{
	struct walk *w = create_large(", replay: 1", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	two_and_a_part(&r, w, &has, &other);
	take_worker(w, has);
	raw_part(&r, 30000, 20000, 30000);
	walk_settle(w);
	expect_request(other, 0, 30000);
	answer_shortly(other);
	raw_expect_answer(&r, 0, 2);
	walk_expect_no_drops(w);
	raw_end(&r);
}

WALK(a_large_request_that_is_kept_is_sent_again)
{
	struct walk *w = create_large(", replay: 1", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	two_and_a_part(&r, w, &has, &other);
	raw_part(&r, 30000, 20000, 30000);
	expect_request(has, 0, 30000);
	take_worker(w, has);
	walk_pass(w, 2);
	expect_request(other, 0, 30000);
	walk_expect_eq(walk_service_stats(w, 0).replays, 1);
	/* And no more than once. */
	take_worker(w, other);
	raw_expect_answer(&r, LB_NOTICE_WORKER_LOST, 0);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	raw_end(&r);
}

WALK(a_suspect_worker_s_large_request_moves)
{
	struct walk *w = create_large(", replay: 1", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	two_and_a_part(&r, w, &has, &other);
	raw_part(&r, 30000, 20000, 30000);
	has->beats = false;
	walk_pass(w, 100);
	walk_expect_eq(walk_worker_of(has)->state, WORKER_SUSPECT);
	expect_request(other, 0, 30000);
	answer_shortly(has);
	walk_settle(w);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_REPLY_STALE], 1);
	answer_shortly(other);
	walk_settle(w);
	walk_expect_eq(walk_stats(w).replies, 1);
	raw_expect_answer(&r, 0, 2);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 1}, {LB_DROP_CANCEL_UNSENT, 1});
	raw_end(&r);
}

WALK(a_client_that_resets_half_way_gives_the_place_back)
{
	struct walk *w = create_large("", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	two_and_a_part(&r, w, &has, &other);
	raw_send(&r, TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_settle(w);
	expect_room(w);
	walk_destroy(w);
}

WALK(a_large_request_whose_last_segment_has_the_FIN_is_answered)
{
	struct walk *w = create_large("", "buffer_mb: 8");
	struct walk_worker *has, *other;
	uint8_t bytes[1000];
	struct raw r;

	two_and_a_part(&r, w, &has, &other);
	raw_part(&r, 30000, 20000, 29000);
	for (uint32_t i = 0; i < 1000; i++)
		bytes[i] = (29000 + i) * 7;
	raw_send(&r, TCP_BIT_ACK | TCP_BIT_FIN, bytes, 1000);
	expect_request(has, 0, 30000);
	answer_shortly(has);
	raw_expect_answer(&r, 0, 2);
	raw_expect_fin(&r);
	raw_send(&r, TCP_BIT_ACK, NULL, 0);
	expect_room(w);
	walk_destroy(w);
}

WALK(large_requests_wait_for_room)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 128KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw r[3];

	v->answers = false;
	for (unsigned int i = 0; i < 3; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 60000, 0, 60000);
		walk_pass(w, 1);
	}
	/* One fits the room; the third's client has waited no longer than the second's. */
	for (unsigned int i = 0; i < 3; i++) {
		expect_request(v, 0, 60000);
		walk_expect_eq(v->n_requests, 1);
		answer_shortly(v);
		raw_expect_answer(&r[i], 0, 2);
		walk_pass(w, 2);
	}
	walk_expect_no_drops(w);
	for (unsigned int i = 1; i < 3; i++)
		raw_send(&r[i], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	raw_end(&r[0]);
}

WALK(a_large_request_that_finds_no_room_in_time)
{
	struct walk *w = create_large(", queue_timeout_ms: 50", "buffer_mb: 8, window: 128KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw r[2];

	v->answers = false;
	for (unsigned int i = 0; i < 2; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 60000, 0, 60000);
	}
	walk_pass(w, 60);
	raw_expect_answer(&r[1], LB_NOTICE_BUSY, 0);
	walk_expect_drops(w, {LB_DROP_QUEUE_TIMEOUT, 1});
	answer_shortly(v);
	raw_expect_answer(&r[0], 0, 2);
	raw_send(&r[1], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	raw_end(&r[0]);
}

WALK(small_requests_do_not_go_before_an_older_large_one)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 128KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 2,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 131072,
					       });
	struct raw r[4];

	v->answers = false;
	for (unsigned int i = 0; i < 4; i++)
		raw_open(&r[i], w, 3000 + i);
	raw_ask(&r[0], 10, 10);
	raw_ask(&r[1], 10, 10);
	walk_pass(w, 1);
	walk_expect_eq(v->n_requests, 2);
	raw_part(&r[2], 30000, 0, 30000);
	walk_pass(w, 1);
	raw_ask(&r[3], 10, 10);
	walk_pass(w, 1);
	walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
	walk_pass(w, 2);
	walk_expect_eq(v->n_requests, 2);
	walk_expect_eq(v->request[1].length, 30000);
	answer_shortly(v);
	walk_pass(w, 2);
	walk_expect_eq(v->n_requests, 1);
	walk_expect_eq(v->request[0].length, 10);
	answer_shortly(v);
	for (unsigned int i = 0; i < 4; i++)
		raw_send(&r[i], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_settle(w);
	expect_room(w);
	walk_destroy(w);
}

WALK(a_stop_ends_large_requests)
{
	struct walk *w = create_large("", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	two_and_a_part(&r, w, &has, &other);
	w->lb->lcore[0]->stop = STOP_NOTIFYING;
	raw_expect_answer(&r, LB_NOTICE_BUSY, 0);
	walk_expect_drops(w, {LB_DROP_STOPPING, 1});
	w->lb->lcore[0]->stop = STOP_NOT;
	raw_end(&r);
}

/* --- shares of slots and memory -----------------------------------------------------------------
 */

static struct walk_worker *silent(struct walk *w)
{
	struct walk_worker *v = walk_worker(w, &roomy);

	v->answers = false;
	return v;
}

WALK(a_large_request_that_drips_loses_its_place)
{
	struct walk *w = create_large("", "buffer_mb: 8, min_rate: 4KiB");
	struct walk_worker *v = silent(w);
	struct lcore *lc = w->lb->lcore[0];
	struct raw r;

	raw_open(&r, w, 3000);
	/* At twice the rate it keeps the place, below it not. */
	raw_part(&r, 30000, 0, 1000);
	for (uint32_t at = 1000; at < 20000; at += 1000) {
		walk_pass(w, 125);
		raw_part(&r, 30000, at, at + 1000);
	}
	walk_expect_no_drops(w);
	walk_expect_eq(link_outstanding(lc->links[0]), 1);
	for (uint32_t at = 20000; at < 20022; at++) {
		walk_pass(w, 500);
		raw_part(&r, 30000, at, at + 1);
	}
	walk_expect_drops(w, {LB_DROP_TCP_SLOW, 1});
	walk_expect_eq(link_outstanding(lc->links[0]), 0);
	raw_expect_answer(&r, LB_NOTICE_TIMEOUT, 0);
	walk_forget(w, 0);
	raw_part(&r, 30000, 20022, 30000);
	raw_part(&r, 20000, 0, 20000);
	walk_settle(w);
	expect_request(v, 0, 20000);
	answer_shortly(v);
	raw_expect_answer(&r, 0, 2);
	raw_end(&r);
}

/* --- places and the worker's ring ---------------------------------------------------------------
 */

/* A worker of 16 slots that is known to take <ms> for each of its requests. */
static struct walk_worker *known_worker(struct walk *w, struct raw *r, uint32_t ms)
{
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 16,
						       .max_batch = 1,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 1 << 20,
					       });

	v->delay_ms = ms;
	v->run_ns = ms * 1000000;
	for (unsigned int i = 0; i < 24; i++) {
		raw_ask(r, 10, 10);
		walk_pass(w, ms + 2);
	}
	walk_pass(w, 100);
	return v;
}

/* Its client holds a place for long, and other requests come seldom: each is answered at once, and
 * the worker is as fast as it was. */
WALK(a_place_that_is_not_filled_is_no_work_of_its_worker)
{
	struct walk *w = create_large("", "buffer_mb: 8, min_rate: 0");
	struct raw drip, other;
	struct walk_worker *v;

	raw_open(&drip, w, 3000);
	raw_open(&other, w, 3001);
	v = known_worker(w, &other, 2);
	raw_part(&drip, 60000, 0, 1000);
	for (unsigned int i = 0; i < 40; i++) {
		raw_ask(&other, 10, 10);
		walk_pass(w, 60);
	}
	walk_expect_eq(v->n_requests, 0);
	v->answers = false;
	for (unsigned int i = 0; i < 8; i++)
		raw_ask(&other, 10, 10);
	walk_settle(w);
	walk_expect_eq(v->n_requests, 8);
	walk_expect_no_drops(w);
	raw_send(&drip, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	answer_shortly(v);
	walk_settle(w);
	expect_room(w);
	walk_destroy(w);
}

/* Large requests are complete, and small ones come: the slow worker gets few at a time, small ones
 * first, and a large one after as many bytes. Those that waited for longer than they may go behind
 * what is there. */
WALK(large_requests_wait_for_a_slow_worker_and_have_their_turns)
{
	struct walk *w = create_large(", queue_timeout_ms: 3000", "buffer_mb: 8");
	unsigned int n_large = 0, n_small = 0, before;
	struct walk_worker *v;
	struct raw r[6], other;

	raw_open(&other, w, 3100);
	v = known_worker(w, &other, 20);
	v->answers = false;
	for (unsigned int i = 0; i < 6; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 20000, 0, 10000);
	}
	for (unsigned int i = 0; i < 6; i++)
		raw_part(&r[i], 20000, 10000, 20000);
	walk_settle(w);
	before = v->n_requests;
	walk_expect(before >= 2 && before <= 4, "%u", before);
	for (unsigned int i = 0; i < 40; i++)
		raw_ask(&other, 1000, 1000);
	for (unsigned int i = 0; i < 30; i++) {
		walk_need(v->n_requests > 0);
		n_large += v->request[0].length == 20000;
		n_small += v->request[0].length == 1000;
		walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
		walk_settle(w);
		walk_expect(v->n_requests <= 4, "%u", v->n_requests);
	}
	walk_expect(n_large > before && n_large <= before + 2, "%u large of %u, %u small", n_large,
		    before, n_small);
	walk_expect_no_drops(w);
	walk_pass(w, 3100);
	walk_expect_eq(v->n_requests, 46 - n_large - n_small);
	walk_expect_no_drops(w);
	answer_shortly(v);
	for (unsigned int i = 0; i < 6; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	expect_room(w);
	walk_destroy(w);
}

/* The worker has enough of large requests, which run for long, beside small ones: those go on while
 * another large one waits. */
WALK(small_requests_go_on_while_large_ones_wait_for_each_other)
{
	struct walk *w = create_large(", queue_timeout_ms: 3000", "buffer_mb: 8");
	uint8_t payload[PACKET_MAX];
	struct tcp_header h = {0};
	struct walk_worker *v;
	struct raw r[4], other;

	raw_open(&other, w, 3100);
	v = known_worker(w, &other, 2);
	for (unsigned int i = 0; i < 4; i++)
		raw_open(&r[i], w, 3000 + i);
	raw_part(&r[0], 20000, 0, 20000);
	walk_pass(w, 100);
	v->answers = false;
	for (unsigned int i = 1; i < 4; i++)
		raw_part(&r[i], 20000, 0, 20000);
	walk_settle(w);
	walk_expect_eq(v->n_requests, 2);
	for (unsigned int i = 0; i < 60; i++) {
		while (raw_take(&other, &h, payload))
			other.ack = h.seq + tcp_header_span(&h);
		raw_ask(&other, 1000, 1000);
		walk_settle(w);
		walk_need(v->n_requests == 3, "%u of %u", v->n_requests, i);
		walk_answer(v, 2, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
		walk_settle(w);
	}
	/* One of them is answered: its turn has come before the next small one. */
	walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
	walk_settle(w);
	raw_ask(&other, 1000, 1000);
	walk_settle(w);
	walk_expect_eq(v->request[1].length, 20000);
	walk_expect_no_drops(w);
	for (unsigned int i = 0; i < 4; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	answer_shortly(v);
	walk_settle(w);
	expect_room(w);
	walk_destroy(w);
}

static struct flow *flow_of(const struct raw *r)
{
	struct packet p = {.family = 4, .tcp = true, .source_port = r->port, .payload = 20};
	struct conntrack *ct = r->w->lb->lcore[0]->ct;
	uint8_t frame[PACKET_MAX];
	struct flow_key key;
	struct flow *flow;
	uint32_t hash;
	uint16_t vlan;

	walk_need(parse_flow(frame, packet_build(&p, frame), &key, &vlan));
	hash = conntrack_hash(ct, &key);
	conntrack_lookup_burst(ct, &key, &hash, 1, &flow);
	return flow;
}

/* The flow of the request whose turn is next has ended: its connection does, and those behind it
 * go on. */
WALK(a_flow_that_ended_holds_up_no_request_behind_its_own)
{
	struct walk *w = create_large(", queue_timeout_ms: 3000", "buffer_mb: 8");
	struct walk_worker *v;
	struct raw r[6], other;
	unsigned int n;

	raw_open(&other, w, 3100);
	v = known_worker(w, &other, 20);
	v->answers = false;
	for (unsigned int i = 0; i < 6; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 20000 + i, 0, 10000);
	}
	for (unsigned int i = 0; i < 6; i++)
		raw_part(&r[i], 20000 + i, 10000, 20000 + i);
	walk_settle(w);
	n = v->n_requests;
	walk_need(n < 4, "%u", n);
	conntrack_flow_remove(w->lb->lcore[0]->ct, flow_of(&r[n]));
	walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
	walk_settle(w);
	walk_expect(v->n_requests == n && v->request[n - 1].length == 20001 + n, "%u of %u",
		    v->n_requests, n);
	walk_expect_no_drops(w);
	for (unsigned int i = 0; i < 6; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	answer_shortly(v);
	walk_settle(w);
	expect_room(w);
	walk_destroy(w);
}

#define PLACES 500

/* The time of many requests with a place is over at once: a ms ends some of them, and the next ones
 * the others. */
WALK(many_places_are_looked_at_in_turn)
{
	static const struct walk_params params = {
		.services = "  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB, "
			    "deadline_ms: 2000}\n",
		.more = "tcp: {connections: 1024, connections_percent: 100, buffer_mb: 64, "
			"unfinished: 4096, min_rate: 0}\n",
	};
	static struct raw r[PLACES];
	struct walk *w = walk_create(&params);
	struct lcore *lc = w->lb->lcore[0];

	walk_worker(w, &(struct walk_worker_params){
			       .slots = 1024,
			       .max_request = 65536,
			       .max_reply = 65536,
			       .room = PLACES * 32768,
		       });
	for (unsigned int i = 0; i < PLACES; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 30000, 0, 10);
		walk_forget(w, 0);
	}
	walk_pass(w, 1999);
	walk_expect_eq(link_outstanding(lc->links[0]), PLACES);
	walk_pass(w, 3);
	walk_expect(walk_stats(w).drop[LB_DROP_DEADLINE] >= 100 &&
			    walk_stats(w).drop[LB_DROP_DEADLINE] < PLACES,
		    "%lu", walk_stats(w).drop[LB_DROP_DEADLINE]);
	walk_pass(w, 3);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_DEADLINE], PLACES);
	expect_room(w);
	edge_reset(lc, EDGE_ALL_SERVICES);
	walk_pass(w, 20);
	walk_destroy(w);
}

#define LONG_REPLIES 24u
#define LONG_SIZE    30000u
#define FIRST_PORT   3000

/* Takes all that was sent, to the clients <r>; how many segments? */
static unsigned int take_long(struct walk *w, struct raw *r)
{
	static struct walk_frame f;
	unsigned int n = 0;

	while (walk_take(w, 0, &f)) {
		const uint8_t *tcp = f.bytes + 34;
		uint32_t i = (uint32_t)(tcp[2] << 8 | tcp[3]) - FIRST_PORT;
		struct tcp_header h;

		walk_need(f.bytes[23] == IPPROTO_TCP && i <= LONG_REPLIES &&
			  tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		walk_expect_eq(h.seq, r[i].ack);
		r[i].ack = h.seq + tcp_header_span(&h);
		n++;
	}
	return n;
}

/* Acknowledgements that come at once open the windows of many long replies. */
WALK(long_replies_share_a_part_of_each_turn)
{
	struct walk *w = create_large("", "buffer_mb: 16, window: 256KiB");
	struct raw r[LONG_REPLIES + 1], *quick = &r[LONG_REPLIES];
	uint32_t first[LONG_REPLIES], answer;
	unsigned int n, turns = 0, left;

	walk_worker(w, &(struct walk_worker_params){.slots = 64,
						    .max_request = 65536,
						    .max_reply = 65536,
						    .room = (LONG_REPLIES + 1) * 32768});
	for (unsigned int i = 0; i <= LONG_REPLIES; i++)
		raw_open(&r[i], w, FIRST_PORT + i);
	walk_forget(w, 0);
	for (unsigned int i = 0; i < LONG_REPLIES; i++) {
		first[i] = r[i].ack;
		raw_part(&r[i], LONG_SIZE, 0, LONG_SIZE);
		walk_pass(w, 5);
		take_long(w, r);
		walk_expect(r[i].ack - first[i] > 1000 && r[i].ack - first[i] < LONG_SIZE / 2);
	}
	for (unsigned int i = 0; i < LONG_REPLIES; i++)
		raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	n = take_long(w, r);
	/* The first ones had their part of the turn, and the others two each. */
	walk_expect(n > 32 && n < 48 + 2 * LONG_REPLIES, "%u segments", n);
	answer = quick->ack;
	raw_ask(quick, 5, 5);
	do {
		n = take_long(w, r);
		walk_expect(n <= 48 + 2, "%u segments in a turn", n);
		walk_need(turns++ < 8, "the long replies are in front of a short one");
		walk_turn(w);
	} while (quick->ack == answer);
	walk_turn(w);
	n = take_long(w, r);
	walk_expect(n > 0, "the long replies were over before");
	/* All of them come. */
	do {
		left = 0;
		for (unsigned int i = 0; i <= LONG_REPLIES; i++) {
			left += i < LONG_REPLIES && r[i].ack - first[i] != LONG_SIZE + 8;
			raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
		}
		walk_pass(w, 5);
		take_long(w, r);
		walk_need(turns++ < 100, "%u are not over", left);
	} while (left > 0);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

/* Long replies have begun, and their clients have not acknowledged what came. */
static struct walk *begin_long_replies(struct raw *r, unsigned int n)
{
	struct walk *w = create_large("", "buffer_mb: 16, window: 256KiB");

	walk_worker(w, &(struct walk_worker_params){
			       .slots = 64,
			       .max_request = 65536,
			       .max_reply = 65536,
			       .room = (n + 1) * 32768,
		       });
	for (unsigned int i = 0; i < n; i++)
		raw_open(&r[i], w, FIRST_PORT + i);
	walk_forget(w, 0);
	for (unsigned int i = 0; i < n; i++) {
		raw_part(&r[i], LONG_SIZE, 0, LONG_SIZE);
		walk_pass(w, 5);
		take_long(w, r);
	}
	return w;
}

/* Replies of many go on, two in a turn: what a client sends meanwhile is acknowledged at once, and
 * it is offered as much again. */
WALK(acknowledgements_do_not_wait_behind_long_replies)
{
	struct raw r[LONG_REPLIES + 1], *last = &r[LONG_REPLIES - 1];
	struct walk *w = begin_long_replies(r, LONG_REPLIES);
	const struct edge *e = w->lb->lcore[0]->edge;
	uint8_t payload[PACKET_MAX];
	unsigned int waiting = 0, acks = 0;
	struct edge_connection *c;
	uint32_t acked = 0;
	struct tcp_header h;

	for (unsigned int i = 0; i < LONG_REPLIES; i++)
		raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
	take_long(w, r);
	STAILQ_FOREACH (c, &e->due_more, due)
		waiting++;
	walk_expect(waiting > 12, "%u wait", waiting);
	raw_part(last, 10000, 0, 2000);
	while (raw_take(last, &h, payload)) {
		walk_expect_eq(h.length, 0);
		acked = h.ack;
		acks++;
	}
	/* One for each turn: both bring bytes of a request whose reply is far away. */
	walk_expect_eq(acks, 2);
	walk_expect_eq(acked, last->seq);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_pass(w, 20);
	walk_destroy(w);
}

static struct edge_connection *connection_of(const struct walk *w, const struct raw *r)
{
	struct edge *e = w->lb->lcore[0]->edge;

	for (uint32_t i = 1; i <= e->connections; i++)
		if (e->connection[i].handle != 0 &&
		    edge_flow(e, &e->connection[i])->client_port == htons(r->port))
			return &e->connection[i];
	walk_need(false, "no connection");
	return NULL;
}

/* It owes an acknowledgement, too, which does not follow its reset. It is gone, and has no part in
 * later turns. */
WALK(a_connection_that_is_reset_behind_long_replies_is_gone)
{
	struct raw r[LONG_REPLIES + 1];
	struct walk *w = begin_long_replies(r, 6);
	struct edge *e = w->lb->lcore[0]->edge;
	uint32_t half = 1000;

	for (unsigned int i = 0; i < 5; i++)
		raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
	raw_put(&r[5], TCP_BIT_ACK | TCP_BIT_PSH, &half, 4);
	tcp_abort(&connection_of(w, &r[5])->tcp);
	walk_turn(w);
	while (take_long(w, r) > 0) {
		for (unsigned int i = 0; i < 5; i++)
			raw_put(&r[i], TCP_BIT_ACK, NULL, 0);
		walk_pass(w, 5);
	}
	walk_expect_eq(e->n_open, 5);
	walk_expect_eq(e->n_open + e->n_free, e->connections);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* All requests are of one client. Those of a slow worker that are complete, and wait for it, keep
 * it from a place there, but not at a worker of another service. */
WALK(complete_requests_of_a_slow_worker_leave_their_client_places_elsewhere)
{
	static const struct walk_params params = {
		.services = "  - {name: slow, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8000, model: other, max_request: 64KiB, max_reply: 64KiB}\n"
			    "  - {name: one, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8001, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
		.more = "tcp: {connections: 256, buffer_mb: 8, unfinished: 2}\n",
	};
	struct walk *w = walk_create(&params);
	struct walk_worker *slow, *v = silent(w);
	struct raw r[5], first, one = {.w = w, .port = 2000, .service = 8001, .seq = 5};

	slow = walk_worker(w, &(struct walk_worker_params){.model = "other",
							   .max_batch = 1,
							   .max_request = 65536,
							   .max_reply = 65536,
							   .room = 262144});
	slow->delay_ms = 20;
	slow->run_ns = 20000000;
	raw_open(&first, w, 2999);
	raw_part(&first, 20000, 0, 20000);
	walk_pass(w, 30);
	slow->answers = false;
	for (unsigned int i = 0; i < 5; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 20000, 0, 20000);
	}
	walk_settle(w);
	walk_expect_eq(slow->n_requests, 2);
	/* Two are placed beside them, and the fifth is not. */
	walk_expect_eq(link_outstanding(w->lb->lcore[0]->link[walk_worker_of(slow)->number]), 4);
	raw_connect(&one);
	raw_part(&one, 30000, 0, 30000);
	walk_settle(w);
	walk_expect_eq(v->n_requests, 1);
	slow->answers = true;
	walk_pass(w, 200);
	walk_expect_eq(walk_stats(w).replies, 6);
	answer_shortly(v);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_pass(w, 20);
	expect_room(w);
	walk_destroy(w);
}

#define FAR 200

/* Clients send the rest of their request 30 ms after it has its place. The worker takes a ms for
 * each, and does not run dry. */
WALK(a_worker_does_not_run_dry_while_clients_far_away_fill_their_places)
{
	static const struct walk_params params = {
		.services = "  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB, "
			    "queue_timeout_ms: 10000}\n",
		.more = "tcp: {connections: 512, connections_percent: 100, buffer_mb: 64, "
			"unfinished: 4096}\n",
	};
	struct walk *w = walk_create(&params);
	struct lcore *lc = w->lb->lcore[0];
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 64,
						       .max_batch = 1,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 64 * 32768,
					       });
	unsigned int placed = 0, answered = 0;
	static struct raw r[FAR], first;
	unsigned int at[FAR];

	v->run_ns = 1000000;
	v->answers = false;
	raw_open(&first, w, 2999);
	for (unsigned int i = 0; i < 10; i++) {
		raw_part(&first, 20000, 0, 20000);
		walk_pass(w, 1);
		walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
		walk_settle(w);
	}
	for (unsigned int i = 0; i < FAR; i++)
		raw_open(&r[i], w, 3000 + i);
	for (unsigned int i = 0; i < FAR; i++)
		raw_part(&r[i], 20000, 0, 10000);
	for (unsigned int ms = 0; ms < 200; ms++) {
		for (; placed < answered + link_outstanding(lc->links[0]); placed++)
			at[placed] = ms;
		for (unsigned int i = 0; i < placed; i++)
			if (at[i] + 30 == ms)
				raw_part(&r[i], 20000, 10000, 20000);
		if (v->n_requests > 0)
			walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
		answered = walk_stats(w).replies - 10;
		walk_pass(w, 1);
		walk_forget(w, 0);
	}
	walk_expect(answered > 140, "%u", answered);
	edge_reset(lc, EDGE_ALL_SERVICES);
	walk_pass(w, 20);
	walk_destroy(w);
}

/* A client goes, and then the worker, while requests are complete and wait for it. */
WALK(complete_requests_of_a_slow_worker_that_goes_are_ended)
{
	struct walk *w = create_large(", queue_timeout_ms: 3000", "buffer_mb: 8");
	struct walk_worker *v;
	struct raw r[6], other;

	raw_open(&other, w, 3100);
	v = known_worker(w, &other, 20);
	v->answers = false;
	for (unsigned int i = 0; i < 6; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 20000, 0, 10000);
	}
	for (unsigned int i = 0; i < 6; i++)
		raw_part(&r[i], 20000, 10000, 20000);
	walk_settle(w);
	walk_expect(v->n_requests <= 4, "%u", v->n_requests);
	raw_send(&r[5], TCP_BIT_RST, NULL, 0);
	take_worker(w, v);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 5});
	for (unsigned int i = 0; i < 5; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	expect_room(w);
	walk_destroy(w);
}

/* Bytes come in the same ms in which the worker goes: nothing is written to it any more, or counted
 * for the worker that gets its number. */
WALK(bytes_that_come_when_their_worker_has_gone_are_not_written)
{
	struct walk *w = create_large("", "buffer_mb: 8");
	struct walk_worker *v = silent(w);
	struct lcore *lc = w->lb->lcore[0];
	uint16_t number = walk_worker_of(v)->number;
	struct raw r;

	raw_open(&r, w, 3000);
	raw_part(&r, 30000, 0, 10000);
	walk_settle(w);
	walk_expect_eq(lc->load.placed[number], 1);
	lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
	raw_part(&r, 30000, 10000, 30000);
	walk_settle(w);
	walk_expect_eq(lc->load.placed[number], 0);
	walk_expect_eq(lc->n_active, 0);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	raw_expect_answer(&r, LB_NOTICE_WORKER_LOST, 0);
	raw_end(&r);
}

/* The worker has room for one of them. The first is given four seconds less than if it were alone.
 */
WALK(a_drip_loses_its_place_sooner_when_another_request_waits)
{
	struct walk *w = create_large(", queue_timeout_ms: 5000", "buffer_mb: 8, min_rate: 4KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 2,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw drip, other;

	v->answers = false;
	raw_open(&drip, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&drip, 60000, 0, 2000);
	walk_pass(w, 2000);
	walk_expect_no_drops(w);
	raw_part(&other, 60000, 0, 60000);
	walk_pass(w, 5);
	walk_expect_no_drops(w);
	walk_pass(w, 50);
	walk_expect_drops(w, {LB_DROP_TCP_SLOW, 1});
	raw_part(&other, 60000, 0, 60000);
	expect_request(v, 0, 60000);
	raw_send(&drip, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	walk_destroy(w);
}

/* Replies have their own half of a client's share: those that its other connection does not read
 * keep no segment of a request out. */
WALK(unread_replies_refuse_no_segments)
{
	struct walk *w = create_large(
		"", "buffer_mb: 8, window: 64KiB, client_percent: 1, min_rate: 4KiB");
	struct walk_worker *v = silent(w);
	static uint8_t bytes[30000];
	struct raw r, other;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 4000);
	raw_ask(&other, 10, 10);
	raw_ask(&other, 10, 10);
	walk_settle(w);
	walk_need(v->n_requests == 2);
	walk_answer(v, 1, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_answer(v, 0, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_settle(w);
	/* 1 % of 8 MiB are 35 packets. */
	walk_expect(edge_held_packets(w->lb->lcore[0]) > 35, "the replies are not held");
	for (unsigned int i = 4; i < 9; i++) {
		raw_part(&r, 14000, 1000 * i, 1000 * (i + 1));
		other.ack += 2000;
		raw_send(&other, TCP_BIT_ACK, NULL, 0);
		walk_pass(w, 100);
	}
	/* The beginning of the next request, which has no place, and a hole before it. */
	r.seq += 5000;
	raw_part(&r, 20000, 0, 1000);
	r.seq -= 6004;
	raw_part(&r, 14000, 9000, 14000);
	walk_expect_no_drops(w);
	walk_pass(w, 2);
	expect_request(v, 0, 14000);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	r.seq += 1004;
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* While a request waits for its place the window is closed, and the client's TCP asks for it less and less often. */
WALK(a_request_that_waited_for_its_place_has_as_long_again)
{
	struct walk *w = create_large(", queue_timeout_ms: 5000, request_timeout_ms: 8000",
				      "buffer_mb: 8, window: 128KiB, min_rate: 4KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 2,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw r[2];

	v->answers = false;
	raw_open(&r[0], w, 3000);
	raw_open(&r[1], w, 3001);
	raw_part(&r[0], 60000, 0, 60000);
	walk_settle(w);
	walk_need(v->n_requests == 1);
	raw_part(&r[1], 60000, 0, 2000);
	walk_pass(w, 3000);
	raw_send(&r[1], TCP_BIT_ACK, NULL, 0);
	answer_shortly(v);
	walk_pass(w, 7000);
	walk_expect_no_drops(w);
	walk_pass(w, 3000);
	walk_expect_drops(w, {LB_DROP_TCP_SLOW, 1});
	for (unsigned int i = 0; i < 2; i++)
		raw_send(&r[i], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_settle(w);
	walk_destroy(w);
}

/* Bytes of its other connection that nothing explains yet fill the client's share; returns the
 * number of the one that is missing. */
static uint32_t raw_fill_share(struct raw *other)
{
	uint64_t *refused = &other->w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT];
	uint32_t seq = other->seq;
	uint8_t bytes[300] = {0}; /* smaller ones would share packets */

	other->seq += 1000;
	for (unsigned int i = 0; i < 40; i++)
		raw_send(other, TCP_BIT_ACK, bytes, sizeof(bytes));
	walk_expect(*refused > 0, "the share is not used up");
	return seq;
}

/* A segment was refused, so the client's TCP tries again later and later, also when there is memory by then. But
 * one that stays away is not waited for. */
WALK(a_request_is_not_slow_because_its_client_was_refused)
{
	struct walk *w = create_large(
		"", "buffer_mb: 8, window: 64KiB, client_percent: 1, min_rate: 4KiB");
	uint64_t *refused = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT], before;
	struct raw r, other;
	uint32_t seq;

	silent(w);
	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 2000);
	walk_settle(w);
	other.seq = raw_fill_share(&other);
	before = *refused;
	seq = r.seq;
	r.seq += 12000; /* of the next request, which has no place */
	raw_part(&r, 30000, 0, 500);
	walk_expect_eq(*refused, before + 1);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	walk_pass(w, 3000);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
	r.seq = seq;
	raw_part(&r, 14000, 2000, 3000);
	walk_pass(w, 3000);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
	walk_pass(w, 9000);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 1);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Its segments were refused for six seconds, so its timer is at six more, and twelve if the next
 * one is lost. */
WALK(a_client_that_was_refused_for_long_comes_back_late)
{
	for (unsigned int later = 0; later < 2; later++) {
		struct walk *w = create_large(
			"", "buffer_mb: 8, window: 64KiB, client_percent: 1, min_rate: 4KiB");
		struct raw r, other;
		uint32_t seq;

		walk_context("%u ms later", later);
		silent(w);
		raw_open(&r, w, 3000);
		raw_open(&other, w, 3001);
		raw_part(&r, 14000, 0, 2000);
		walk_settle(w);
		other.seq = raw_fill_share(&other);
		walk_pass(w, later);
		seq = r.seq + 12000;
		for (unsigned int ms = 200; ms <= 6400; ms *= 2) {
			for (unsigned int k = 0; k < 3; k++) {
				r.seq = seq;
				raw_part(&r, 30000, 0, 500);
			}
			walk_pass(w, ms < 6400 ? ms : 0);
		}
		raw_send(&other, TCP_BIT_RST, NULL, 0);
		walk_pass(w, 19000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
		walk_pass(w, 13000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 1);
		r.seq = seq - 12000;
		raw_send(&r, TCP_BIT_RST, NULL, 0);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

/* The memory of the client is full of bytes that nothing explains yet. Those that have their place in a
 * worker's memory are not held: they are taken, in order or not. */
WALK(bytes_with_a_place_are_taken_when_the_client_has_no_memory)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = silent(w);
	uint64_t *refused = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT], before;
	struct raw r, other;
	uint32_t seq, other_seq;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 4000);
	walk_settle(w);
	other_seq = raw_fill_share(&other);
	before = *refused;
	seq = r.seq;
	r.seq += 1000;
	raw_part(&r, 14000, 5000, 14000);
	walk_expect_eq(*refused, before);
	r.seq = seq;
	raw_part(&r, 14000, 4000, 5000);
	walk_pass(w, 2);
	expect_request(v, 0, 14000);
	/* Bytes behind the request have none. */
	r.seq = seq + 11000;
	raw_part(&r, 14000, 1000, 2000);
	walk_expect_eq(*refused, before + 1);
	r.seq = seq + 10000;
	other.seq = other_seq;
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* A client sends again from the last number that it knows to have come, and its last segment of a
 * request may have the beginning of the next one: both have bytes with a place in them. */
WALK(segments_with_some_bytes_that_have_a_place_are_taken)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	uint64_t *refused = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT], before;
	struct walk_worker *v = silent(w);
	struct raw r, other;
	uint8_t bytes[520] = {[501] = 64}; /* the next request says that it has 16,384 */

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 4000);
	walk_settle(w);
	other.seq = raw_fill_share(&other);
	before = *refused;
	r.seq -= 500;
	raw_part(&r, 14000, 3500, 13500);
	raw_send(&r, TCP_BIT_ACK, bytes, 520);
	walk_expect_eq(*refused, before);
	walk_pass(w, 2);
	walk_expect_eq(v->n_requests, 1);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Its acknowledgement counts, and its sender is told at once that the bytes did not come. */
WALK(a_segment_without_memory_for_its_bytes_is_answered)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	uint64_t *refused = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_CLIENT], before;
	struct walk_worker *v = silent(w);
	static uint8_t payload[PACKET_MAX], bytes[500];
	struct tcp_header h;
	struct raw r, other;
	uint32_t held;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_ask(&r, 10, 10);
	walk_settle(w);
	walk_answer(v, 0, &(struct walk_reply){.bytes = payload, .n_bytes = 1000});
	walk_settle(w);
	other.seq = raw_fill_share(&other);
	held = edge_held_packets(w->lb->lcore[0]);
	before = *refused;
	while (raw_take(&r, &h, payload))
		r.ack = h.seq + tcp_header_span(&h);
	r.seq += 1000; /* a hole before it */
	raw_send(&r, TCP_BIT_ACK, bytes, sizeof(bytes));
	r.seq -= 1500;
	walk_expect_eq(*refused, before + 1);
	walk_expect(edge_held_packets(w->lb->lcore[0]) < held, "the reply is still held");
	walk_need(raw_take(&r, &h, payload), "no acknowledgement");
	walk_expect_eq(h.ack, r.seq);
	walk_expect_eq(h.length, 0);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Nothing comes on such a connection, so the memory that another gives back must be told. */
WALK(a_window_that_closed_for_want_of_memory_opens_again)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	uint8_t payload[PACKET_MAX];
	struct tcp_header h = {.window = UINT16_MAX};
	struct raw r, other;
	uint32_t other_seq;

	silent(w);
	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 65300, 0, 10000);
	walk_settle(w);
	other_seq = raw_fill_share(&other);
	for (uint32_t at = 10000; at < 65000; at += 500) {
		raw_part(&r, 65300, at, at + 500);
		walk_pass(w, 5);
		while (raw_take(&r, &h, payload))
			;
	}
	walk_expect(h.window < 536, "a window of %u", h.window);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->windows_closed, 1);
	walk_pass(w, 5000);
	walk_expect_eq(edge_counters(w->lb->lcore[0])->windows_closed, 1);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
	other.seq = other_seq;
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_pass(w, 5);
	walk_expect(raw_take(&r, &h, payload), "no news of the window");
	walk_expect(h.window > 5000, "a window of %u", h.window);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_pass(w, 5);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* Numbers beyond the window prove nothing, with bytes or without, whether or not there is memory.
 */
WALK(a_stranger_s_segments_without_memory_are_seldom_answered)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1, min_rate: 4KiB");
	uint8_t payload[PACKET_MAX], bytes[500] = {0};
	struct raw r, other, stranger;
	unsigned int answers = 0;
	struct tcp_header h;

	silent(w);
	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_part(&r, 14000, 0, 2000);
	walk_settle(w);
	other.seq = raw_fill_share(&other);
	walk_pass(w, 50);
	walk_forget(w, 0);
	stranger = r;
	for (unsigned int i = 0; i < 20; i++) {
		stranger.seq = r.seq + (1 << 20);
		raw_send(&stranger, TCP_BIT_ACK, bytes, sizeof(bytes));
		while (raw_take(&r, &h, payload))
			answers++;
	}
	walk_expect(answers <= 1, "%u answers", answers);
	/* Nor do they excuse the client, who is silent. */
	for (unsigned int i = 0; i < 60; i++) {
		stranger.seq = r.seq + (1 << 20);
		raw_send(&stranger, TCP_BIT_ACK, bytes, sizeof(bytes));
		walk_pass(w, 100);
	}
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 1);
	walk_pass(w, 600);
	walk_forget(w, 0);
	raw_send(&r, TCP_BIT_RST, bytes, sizeof(bytes));
	walk_expect_silence(w, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Their windows closed while all of them were busy, and each one's part of the share is less than
 * two segments: when nothing is held any more, they open. */
WALK(windows_of_more_connections_than_the_share_has_segments_open_again)
{
	enum { CONNECTIONS = 16 };
	struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = silent(w);
	struct raw r[CONNECTIONS];

	for (unsigned int i = 0; i < CONNECTIONS; i++)
		raw_open(&r[i], w, 3000 + i);
	for (unsigned int k = 0; k < 40; k++) {
		/* With the acknowledgement of the last reply: all of them are always busy. */
		for (unsigned int i = 0; i < CONNECTIONS; i++)
			raw_ask(&r[i], 800, 800);
		for (unsigned int i = 0; i < 5; i++) {
			walk_pass(w, 2);
			answer_shortly(v);
			walk_pass(w, 2);
			raw_note_acks(r, CONNECTIONS);
		}
		walk_expect_eq(walk_stats(w).replies, (k + 1) * CONNECTIONS);
	}
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		raw_send(&r[i], TCP_BIT_ACK, NULL, 0);
	walk_pass(w, 5);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* The packet in which a request is gathered is its place, as a worker's memory is that of a large one.
 */
WALK(a_small_request_that_has_begun_can_end_when_the_client_has_no_memory)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = silent(w);
	struct tcp_header h = {.window = 0};
	struct raw r, other;
	uint8_t payload[PACKET_MAX], rest[500] = {0};
	uint32_t other_seq;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	/* More than half of its share: no window grows. */
	other_seq = other.seq;
	other.seq += 100;
	for (unsigned int i = 0; i < 20; i++)
		raw_send(&other, TCP_BIT_ACK, rest, sizeof(rest));
	for (unsigned int k = 0; k < 20; k++) {
		raw_ask(&r, 800, 800);
		walk_pass(w, 2);
		answer_shortly(v);
		walk_pass(w, 2);
		while (raw_take(&r, &h, payload))
			r.ack = h.seq + h.length;
	}
	raw_ask(&r, 800, 300); /* what is left of the first window */
	walk_pass(w, 5);
	while (raw_take(&r, &h, payload))
		;
	walk_expect(h.window >= sizeof(rest), "a window of %u", h.window);
	raw_fill_share(&other);
	raw_send(&r, TCP_BIT_ACK, rest, sizeof(rest));
	walk_pass(w, 2);
	walk_expect_eq(v->n_requests, 1);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	other.seq = other_seq;
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Time for which it waited counts once, and no place is kept for more than a minute without bytes.
 */
WALK(a_silent_client_keeps_its_place_for_a_minute)
{
	struct walk *w = create_large(", queue_timeout_ms: 60000, request_timeout_ms: 70000",
				      "buffer_mb: 8, window: 128KiB, min_rate: 4KiB");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 2,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	struct raw r[2];

	v->answers = false;
	raw_open(&r[0], w, 3000);
	raw_open(&r[1], w, 3001);
	raw_part(&r[0], 60000, 0, 60000);
	walk_settle(w);
	raw_part(&r[1], 60000, 0, 2000);
	walk_pass(w, 50000);
	answer_shortly(v);
	walk_pass(w, 5);
	for (unsigned int s = 0; s < 70; s++) {
		raw_send(&r[1], TCP_BIT_ACK, NULL, 0);
		walk_pass(w, 1000);
	}
	walk_expect_drops(w, {LB_DROP_TCP_SLOW, 1});
	for (unsigned int i = 0; i < 2; i++)
		raw_send(&r[i], TCP_BIT_RST | TCP_BIT_ACK, NULL, 0);
	walk_settle(w);
	walk_destroy(w);
}

/* Clients that hold little each, but all of it together, and send nothing that lets go of it: others
 * have their turn when these have not come on for long. */
WALK(holes_of_many_addresses_leave_memory_for_others)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 256, buffer_mb: 1, client_percent: 100, window: 64KiB}\n",
	};
	struct walk *w = walk_create(&params);
	static char source[16][16];
	struct raw hole[16], r, begun = {.w = w, .port = 4000, .source = "192.0.2.50"};
	struct raw last = {.w = w, .port = 4001, .source = "192.0.2.51"};
	uint8_t rest[95] = {0};

	walk_worker(w, NULL);
	raw_connect(&begun);
	raw_ask(&begun, 100, 5);
	for (unsigned int k = 0; k < 16; k++) {
		snprintf(source[k], sizeof(source[k]), "192.0.2.%u", 20 + k);
		hole[k] = (struct raw){.w = w, .port = 3010 + k, .seq = k, .source = source[k]};
		raw_connect(&hole[k]);
		for (unsigned int i = 600; i > 0; i--) {
			hole[k].seq = k + 1 + i;
			raw_send(&hole[k], TCP_BIT_ACK, "a", 1);
		}
		hole[k].seq = k + 1;
	}
	/* Bytes that have their place are taken, whatever is used up. */
	walk_forget(w, 0);
	raw_send(&begun, TCP_BIT_ACK, rest, sizeof(rest));
	raw_expect_answer(&begun, 0, 100);
	raw_connect(&last);
	for (unsigned int i = 0; i < 3; i++, last.seq++)
		raw_send(&last, TCP_BIT_ACK | TCP_BIT_PSH, "a", i > 0);
	raw_open(&r, w, 3001);
	raw_ask(&r, 5, 5);
	walk_expect_eq(walk_stats(w).replies, 1);
	/* They live: each answers whatever it is asked. */
	for (unsigned int s = 0; s < 10; s++) {
		for (unsigned int k = 0; k < 16; k++)
			raw_send(&hole[k], TCP_BIT_ACK, NULL, 0);
		walk_pass(w, 1000);
	}
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_SLOW] > 0, "none was reset");
	walk_forget(w, 0);
	r.seq -= 9;
	raw_ask(&r, 5, 5);
	raw_expect_answer(&r, 0, 5);
	last.seq = 1;
	raw_send(&last, TCP_BIT_RST, NULL, 0);
	for (unsigned int k = 0; k < 16; k++)
		raw_send(&hole[k], TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Sends a byte of a header on each of <n> connections. */
static void raw_byte_on_each(struct raw *r, unsigned int n, struct walk *w)
{
	for (unsigned int i = 0; i < n; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_send(&r[i], TCP_BIT_ACK, "\5", 1);
	}
	walk_forget(w, 0);
}

/* It keeps a connection busy, of which there are fewer than connections: a client has a share of
 * these, too. */
WALK(a_byte_on_each_connection_keeps_no_other_client_out)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 1024, buffer_mb: 1, window: 64KiB}\n",
	};
	struct walk *w = walk_create(&params);
	static struct raw r[500];
	struct raw other = {.w = w, .port = 9000, .source = "192.0.2.50"};

	walk_worker(w, NULL);
	raw_connect(&other);
	raw_byte_on_each(r, 500, w);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_CLIENT] > 0, "it has no share");
	raw_ask(&other, 5, 5);
	raw_expect_answer(&other, 0, 5);
	/* One whose first byte was taken goes on. */
	raw_send(&r[0], TCP_BIT_ACK, "\0\0\0hello", 8);
	raw_expect_answer(&r[0], 0, 5);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_turn(w);
	walk_destroy(w);
}

/* If there is no share, or many clients use up theirs, they have to go on. */
WALK(bytes_of_headers_that_never_come_whole_keep_others_out_for_seconds)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 1024, buffer_mb: 1, window: 64KiB, client_percent: "
			"100}\n",
	};
	struct walk *w = walk_create(&params);
	static struct raw r[500];
	struct raw other = {.w = w, .port = 9000, .source = "192.0.2.50"};

	walk_worker(w, NULL);
	raw_connect(&other);
	raw_byte_on_each(r, 500, w);
	raw_ask(&other, 5, 5);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_MEMORY] > 0, "there is memory");
	walk_expect_eq(walk_stats(w).replies, 0);
	walk_pass(w, 10000);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_SLOW] > 0, "none was reset");
	walk_forget(w, 0);
	other.seq -= 9;
	raw_ask(&other, 5, 5);
	raw_expect_answer(&other, 0, 5);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_turn(w);
	walk_destroy(w);
}

/* Few connections can have bytes out of order at once: those whose holes stay make room for others. */
WALK(holes_leave_room_for_the_holes_of_others)
{
	static const struct walk_params params = {
		.services = SERVICES,
		.more = "tcp: {connections: 16, buffer_mb: 4}\n",
	};
	struct walk *w = walk_create(&params);
	struct raw hole[3], r = {.w = w, .port = 4000, .source = "192.0.2.50"};
	uint32_t seq;

	walk_worker(w, NULL);
	raw_connect(&r);
	for (unsigned int i = 0; i < 3; i++) {
		raw_open(&hole[i], w, 3000 + i);
		hole[i].seq++;
		raw_send(&hole[i], TCP_BIT_ACK, "a", 1);
	}
	walk_pass(w, 9000);
	walk_expect_no_drops(w);
	seq = r.seq;
	for (unsigned int i = 0; i < 2; i++) {
		r.seq = seq + 4;
		raw_send(&r, TCP_BIT_ACK, "hello", 5);
		walk_pass(w, 9000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_REFUSED], 1);
	}
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 3);
	walk_forget(w, 0);
	r.seq = seq;
	raw_send(&r, TCP_BIT_ACK, "\5\0\0\0", 4);
	r.seq += 5;
	raw_expect_answer(&r, 0, 5);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* The same for other connections of one client, and its share. One that has none keeps what it has. */
WALK(a_hole_of_a_client_s_connection_leaves_memory_for_its_others)
{
	for (unsigned int others = 0; others < 2; others++) {
		struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
		struct raw r, other;

		walk_context("%u others", others);
		walk_worker(w, &roomy);
		raw_open(&other, w, 3001);
		if (others > 0) {
			raw_open(&r, w, 3000);
			raw_ask(&r, 100, 5);
		}
		raw_fill_share(&other);
		walk_pass(w, 7000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 0);
		if (others > 0) {
			raw_send(&r, TCP_BIT_ACK, (uint8_t[95]){0}, 95);
			raw_expect_answer(&r, 0, 100);
			raw_ask(&r, 100, 5);
		}
		walk_pass(w, 7000);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], others);
		walk_expect(others == 0 || edge_held_packets(w->lb->lcore[0]) == 1, "held");
		edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
		walk_turn(w);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

WALK(a_client_has_a_share_of_unfinished_requests)
{
	struct walk *w = create_large("", "buffer_mb: 8, unfinished: 2");
	struct lcore *lc = w->lb->lcore[0];
	struct walk_worker *v = silent(w);
	struct raw r[3];

	for (unsigned int i = 0; i < 3; i++) {
		raw_open(&r[i], w, 3000 + i);
		raw_part(&r[i], 30000, 0, 20000);
	}
	walk_expect_eq(link_outstanding(lc->links[0]), 2);
	raw_part(&r[0], 30000, 20000, 30000);
	walk_pass(w, 2);
	walk_expect_eq(link_outstanding(lc->links[0]), 3);
	raw_part(&r[2], 30000, 20000, 30000);
	raw_part(&r[1], 30000, 20000, 30000);
	walk_pass(w, 2);
	for (unsigned int i = 0; i < 3; i++)
		expect_request(v, i, 30000);
	walk_expect_no_drops(w);
	answer_shortly(v);
	for (unsigned int i = 0; i < 3; i++)
		raw_send(&r[i], TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	expect_room(w);
	walk_destroy(w);
}

/* A client asks for ever, and does not read: its other connection, and the memory, are none the
 * worse. */
WALK(a_reader_that_does_not_read)
{
	struct walk *w = create_large("", "buffer_mb: 8, client_percent: 25");
	struct raw slow, good;
	bool answered = false;
	uint32_t most = 0, seq;

	walk_worker(w, &roomy);
	raw_open(&slow, w, 3000);
	raw_open(&good, w, 3001);
	for (unsigned int i = 0; i < 40; i++) {
		raw_part(&slow, 30000, 0, 30000);
		walk_pass(w, 5);
		most = RTE_MAX(most, edge_held_packets(w->lb->lcore[0]));
	}
	/* A quarter of 8 MiB are 885 packets, half of them for replies, and the last one begins
	 * below that. */
	walk_expect(most > 400 && most < 600, "%u packets", most);
	seq = good.seq;
	raw_part(&good, 30000, 0, 30000);
	walk_forget(w, 0);
	walk_pass(w, 4000);
	/* Some segments were refused until the reader was reset. */
	good.seq = seq;
	raw_part(&good, 30000, 0, 30000);
	for (unsigned int ms = 0; ms < 200 && !answered; ms++) {
		walk_pass(w, 1);
		answered = raw_read(&good, &good);
	}
	walk_expect(answered, "no answer");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 1);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 1);
	raw_send(&good, TCP_BIT_RST, NULL, 0);
	walk_pass(w, 10);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* Readers that were reset ask again: each time their client has a smaller part of its share, and
 * all of it later. */
WALK(readers_that_are_reset_again_and_again_get_less)
{
	struct walk *w = create_large("", "buffer_mb: 8, client_percent: 25");
	uint64_t *resets = &w->lb->lcore[0]->stats.drop[LB_DROP_TCP_READER];
	uint32_t most[4] = {0}, held;
	struct raw slow, idle;

	walk_worker(w, &roomy);
	raw_open(&idle, w, 3000);
	for (unsigned int k = 0; k < 4; k++) {
		if (k == 3)
			walk_pass(w, 20000);
		raw_open(&slow, w, 3001 + k);
		for (unsigned int i = 0; i < 40; i++) {
			raw_part(&slow, 30000, 0, 30000);
			walk_pass(w, 5);
			held = edge_held_packets(w->lb->lcore[0]);
			most[k] = RTE_MAX(most[k], held);
		}
		raw_ask(&idle, 10, 10); /* has to wait */
		for (unsigned int ms = 0; ms < 5000 && *resets == k; ms++)
			walk_pass(w, 1);
		walk_expect_eq(*resets, k + 1);
		raw_expect_answer(&idle, 0, 10);
		walk_forget(w, 0);
	}
	walk_expect(most[1] < most[0] * 2 / 3, "%u and %u packets", most[0], most[1]);
	walk_expect(most[2] < most[0] * 2 / 3, "%u and %u packets", most[0], most[2]);
	walk_expect(most[3] > most[0] * 3 / 4, "%u and %u packets", most[0], most[3]);
	raw_send(&idle, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* Clients of many addresses hold all that requests may, while none gets a place. One that holds
 * little is offered whole segments all the same: else it would ask for the rest of each request by
 * its timer. */
WALK(clients_that_wait_for_places_leave_a_window_for_others)
{
	struct walk *w = create_large("", "buffer_mb: 4, window: 64KiB, min_rate: 0");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){
						       .slots = 4,
						       .max_request = 65536,
						       .max_reply = 65536,
						       .room = 65536,
					       });
	static struct raw waits[80];
	static char source[10][16];
	struct tcp_header h = {0};
	uint8_t payload[PACKET_MAX];
	struct raw good;

	walk_expect(v != NULL);
	for (unsigned int i = 0; i < 80; i++) {
		snprintf(source[i % 10], sizeof(source[0]), "192.0.2.%u", 20 + i % 10);
		waits[i] =
			(struct raw){.w = w, .port = 3000 + i, .seq = i, .source = source[i % 10]};
		raw_connect(&waits[i]);
	}
	for (unsigned int i = 0; i < 80; i++)
		raw_part(&waits[i], 60000, 0, 12000);
	/* 4 MiB are 1,770 packets, half of them for requests. */
	walk_expect(edge_held_packets(w->lb->lcore[0]) > 885, "there is memory");
	walk_forget(w, 0);
	raw_open(&good, w, 3200);
	for (unsigned int i = 0; i < 60; i++) {
		raw_ask(&good, 1000, 1000);
		walk_pass(w, 2);
		while (raw_take(&good, &h, payload))
			good.ack = h.seq + tcp_header_span(&h);
		walk_expect(h.ack == good.seq && h.window >= 2048, "window %u", h.window);
	}
	walk_expect_eq(walk_stats(w).replies, 60);
	for (unsigned int i = 0; i < 80; i++)
		raw_send(&waits[i], TCP_BIT_RST, NULL, 0);
	raw_send(&good, TCP_BIT_RST, NULL, 0);
	walk_settle(w);
	expect_room(w);
	walk_destroy(w);
}

/* Their shares together are twice the memory. */
WALK(readers_of_many_addresses_leave_memory_for_others)
{
	struct walk *w = create_large("", "buffer_mb: 8, client_percent: 25");
	static struct raw slow[8];
	static char source[8][16];
	struct raw good;
	bool answered = false;
	uint64_t before;

	walk_worker(w, &roomy);
	for (unsigned int i = 0; i < 8; i++) {
		snprintf(source[i], sizeof(source[i]), "192.0.2.%u", 20 + i);
		slow[i] = (struct raw){.w = w, .port = 3000 + i, .seq = i, .source = source[i]};
		raw_connect(&slow[i]);
	}
	for (unsigned int k = 0; k < 30; k++) {
		for (unsigned int i = 0; i < 8; i++)
			raw_part(&slow[i], 30000, 0, 30000);
		walk_pass(w, 5);
		walk_forget(w, 0);
	}
	before = walk_stats(w).drop[LB_DROP_TCP_MEMORY];
	raw_open(&good, w, 3100);
	raw_part(&good, 30000, 0, 30000);
	walk_forget(w, 0);
	for (unsigned int ms = 0; ms < 100 && !answered; ms++) {
		walk_pass(w, 1);
		answered = raw_read(&good, &good);
	}
	walk_expect(answered, "no answer");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_MEMORY], before);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 0);
	walk_pass(w, 600); /* until old numbers are answered again */
	for (unsigned int i = 0; i < 8; i++)
		raw_abort(&slow[i], i);
	raw_send(&good, TCP_BIT_RST, NULL, 0);
	walk_pass(w, 10);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

WALK(a_connection_that_is_idle_for_too_long)
{
	struct walk *w = create_large("", "buffer_mb: 8, idle_ms: 2000");
	struct raw r;

	walk_worker(w, &roomy);
	raw_open(&r, w, 3000);
	walk_pass(w, 1500);
	raw_ask(&r, 10, 10);
	raw_expect_answer(&r, 0, 10);
	walk_pass(w, 1500);
	walk_expect(!r.fin);
	walk_pass(w, 600);
	raw_expect_fin(&r);
	raw_end(&r);
}

WALK(a_reply_whose_chunks_are_too_many)
{
	struct walk *w = create_large("", "buffer_mb: 8");
	struct walk_worker *v = walk_worker(w, &(struct walk_worker_params){.max_request = 65536,
									    .max_reply = 65536,
									    .max_chunks = 16,
									    .room = 262144});
	static uint8_t bytes[40000];
	struct raw r;

	v->answers = false;
	raw_open(&r, w, 3000);
	raw_ask(&r, 10, 10);
	walk_settle(w);
	walk_answer(v, 0, &(struct walk_reply){.bytes = bytes, .n_bytes = 40000, .more = true});
	walk_answer(v, 0, &(struct walk_reply){.bytes = bytes, .n_bytes = 40000});
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_REPLY_TOO_LARGE, 1});
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* --- ICMP errors about segments -----------------------------------------------------------------
 */

/* A router says that the segment with number <seq> to port <port> was too big. */
static void too_big(struct walk *w, uint16_t port, uint32_t seq, uint16_t mtu)
{
	uint8_t quoted[28] = {0x45, 0,   5,  0xb0, 0, 0,   0x40, 0, 64, IPPROTO_TCP, 0,
			      0,    198, 51, 100,  1, 192, 0,    2, 7,  8000 >> 8,   8000 & 0xff};
	struct packet p = {
		.family = 4,
		.source = "192.0.2.99",
		.icmp = true,
		.icmp_type = 3,
		.icmp_code = 4,
		.icmp_mtu = mtu,
		.bytes = quoted,
		.n_bytes = sizeof(quoted),
	};
	uint32_t number = htonl(seq);

	quoted[22] = port >> 8;
	quoted[23] = port & 0xff;
	memcpy(quoted + 24, &number, sizeof(number));
	walk_send(w, 0, &p);
	walk_turn(w);
}

/* The largest payload of what comes within <ms>; acknowledges nothing. */
static uint32_t raw_longest(struct raw *r, uint32_t ms)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;
	uint32_t longest = 0;

	walk_pass(r->w, ms);
	while (raw_take(r, &h, payload))
		longest = RTE_MAX(longest, h.length);
	return longest;
}

WALK(a_segment_that_was_too_big_for_the_path)
{
	struct walk *w = walk_create(&small);
	struct raw r;

	walk_worker(w, NULL);
	raw_open(&r, w, 3000);
	raw_ask(&r, 1000, 1000);
	walk_expect_eq(raw_longest(&r, 20), 536); /* the client named no MSS */
	/* Forged ones name numbers that are not under way. */
	too_big(w, 3000, r.ack - 1, 552);
	too_big(w, 3000, r.ack + 1008, 552);
	too_big(w, 3000, r.ack + 0x80000000, 552);
	too_big(w, 3001, r.ack, 552);
	walk_expect_drops(w, {LB_DROP_ICMP_NO_FLOW, 4});
	walk_expect_eq(raw_longest(&r, 1000), 536);
	/* No path of IPv4 is narrower than is believed. */
	too_big(w, 3000, r.ack + 536, 100);
	walk_expect_drops(w, {LB_DROP_ICMP_TOO_BIG, 1});
	walk_expect_eq(raw_longest(&r, 5000), 512);
	too_big(w, 3000, r.ack, 1400);
	walk_expect_drops(w, {LB_DROP_ICMP_TOO_BIG, 1});
	walk_expect_eq(raw_longest(&r, 10000), 512);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	expect_none_left(w, 1);
	walk_destroy(w);
}

/* --- a configuration that changes while a request is half written -------------------------------
 */

/* <more>: of the service of IPv4; <other>: of that of IPv6. */
static void reload_large(struct walk *w, const char *more, const char *other, const char *buffer)
{
	char services[1024], tcp[256], text[4096];
	const struct walk_params params = {.services = services, .more = tcp};

	snprintf(services, sizeof(services), LARGE_SERVICE, more, other);
	snprintf(tcp, sizeof(tcp), "tcp: {connections: 256, %s}\n", buffer);
	walk_yaml(&params, NULL, text, sizeof(text));
	walk_need(walk_reload(w, text) == 0, "%s", w->error);
}

WALK(a_replay_that_is_allowed_half_way_does_not_send_half_a_request)
{
	struct walk *w = create_large(", replay: 1", "buffer_mb: 8");
	struct walk_worker *has, *other;
	struct raw r;

	/* Packets for replays are set aside only if a service replays at the start. */
	reload_large(w, "", ", replay: 1", "buffer_mb: 8");
	two_and_a_part(&r, w, &has, &other);
	reload_large(w, ", replay: 1", ", replay: 1", "buffer_mb: 8");
	raw_part(&r, 30000, 20000, 30000);
	expect_request(has, 0, 30000);
	take_worker(w, has);
	walk_pass(w, 5);
	walk_expect_eq(other->n_requests, 0);
	raw_expect_answer(&r, LB_NOTICE_WORKER_LOST, 0);
	walk_expect_drops(w, {LB_DROP_WORKER_LOST, 1});
	raw_end(&r);
}

WALK(a_checksum_that_is_asked_for_half_way_begins_with_the_next_request)
{
	static const char *const more[] = {"", ", payload_crc: true"};

	for (unsigned int i = 0; i < 2; i++) {
		struct walk *w = create_large(more[i], "buffer_mb: 8");
		struct walk_worker *has, *other;
		struct raw r;

		two_and_a_part(&r, w, &has, &other);
		reload_large(w, more[1 - i], "", "buffer_mb: 8");
		raw_part(&r, 30000, 20000, 30000); /* the worker compares the sum */
		expect_request(has, 0, 30000);
		answer_shortly(has);
		raw_expect_answer(&r, 0, 2);
		raw_end(&r);
	}
}

/* A reader that acknowledges nothing may have lost a segment and the one that replaced it. */
WALK(a_reader_whose_segments_were_lost_has_more_time)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = silent(w);
	static uint8_t bytes[30000];
	struct raw r, other;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_ask(&other, 10, 10);
	raw_ask(&r, 10, 10);
	raw_ask(&r, 20, 20);
	walk_settle(w);
	walk_need(v->n_requests == 3);
	walk_answer(v, 2, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_answer(v, 1, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_pass(w, 5);
	raw_ask(&other, 10, 10); /* which is not read, as a reply has no room */
	walk_pass(w, 2500);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 0);
	walk_pass(w, 1000);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 1);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* An answer waits for that of an older request longer than a reader may take for a packet. */
WALK(a_reader_is_not_slow_because_a_worker_is)
{
	struct walk *w = create_large("", "buffer_mb: 8, window: 64KiB, client_percent: 1");
	struct walk_worker *v = silent(w);
	static uint8_t bytes[30000];
	struct raw r, other;

	raw_open(&r, w, 3000);
	raw_open(&other, w, 3001);
	raw_ask(&other, 10, 10);
	raw_ask(&r, 10, 10);
	raw_ask(&r, 20, 20);
	walk_settle(w);
	walk_need(v->n_requests == 3);
	walk_answer(v, 2, &(struct walk_reply){.bytes = bytes, .n_bytes = 30000});
	walk_pass(w, 2000);
	walk_answer(v, 1, &(struct walk_reply){.bytes = bytes, .n_bytes = 10000});
	walk_pass(w, 20);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], 0);
	raw_send(&r, TCP_BIT_RST, NULL, 0);
	raw_send(&other, TCP_BIT_RST, NULL, 0);
	walk_destroy(w);
}

/* --- others behind a client with many requests ------------------------------------------------- */

#define CROWD 1400

/* All of one client but the last, whose service is another; its model has a worker. */
WALK(many_requests_that_wait_hold_up_no_other_service)
{
	static const struct walk_params params = {
		.services = "  - {name: crowd, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8000, model: other, max_request: 64KiB, max_reply: 64KiB, "
			    "queue_timeout_ms: 60000}\n"
			    "  - {name: one, protocol: tcp, address: " PACKET_DESTINATION4
			    ", port: 8001, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
		.more = "tcp: {connections: 2048, connections_percent: 100, buffer_mb: 64, unfinished: 4096}\n",
		.flows = 4096,
	};
	static struct raw crowd[CROWD];
	struct walk *w = walk_create(&params);
	struct walk_worker *v = silent(w);
	struct raw r;

	walk_worker(w, &(struct walk_worker_params){.model = "other",
						    .max_request = 65536,
						    .max_reply = 65536,
						    .room = 262144});
	for (unsigned int i = 0; i < CROWD; i++) {
		raw_open(&crowd[i], w, 3000 + i);
		raw_part(&crowd[i], 30000, 0, 10);
		walk_forget(w, 0);
	}
	r = (struct raw){.w = w, .port = 2000, .service = 8001, .seq = 5};
	raw_connect(&r);
	raw_part(&r, 30000, 0, 30000);
	walk_pass(w, 20);
	walk_expect_eq(v->n_requests, 1);
	edge_reset(w->lb->lcore[0], EDGE_ALL_SERVICES);
	walk_pass(w, 100);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}
