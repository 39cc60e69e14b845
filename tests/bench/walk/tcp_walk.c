/* SPDX-License-Identifier: BSD-3-Clause */
#include "walk/tcp_walk.h"

#include <stdlib.h>

#include "edge/edge.h"
#include "lb.h"
#include "tcp/connection.h"

/* Bytes of the answer to a large request. */
#define LARGE_REPLY 64

void tcp_walk_start(struct tcp_walk *t, const struct rig_options *options, uint32_t connections,
		    uint64_t *clock, uint32_t start_ms)
{
	struct bench *w = &t->walk;

	if (rig_create(&w->rig, options) < 0)
		exit(EXIT_FAILURE);
	/* Half a millisecond off, so that no rounding matters. */
	*clock =
		w->rig.lb->tsc_start + start_ms * w->rig.lb->tsc_per_ms + w->rig.lb->tsc_per_ms / 2;
	w->rig.lb->clock = clock;
	clients_init(&w->clients, &w->rig);
	peer_join(&w->peer, &w->rig, &w->clients);
	tcp_clients_init(&t->clients, &w->rig, &w->clients, connections);
	tcp_large_init(&t->large, &t->clients, &w->peer);
}

void tcp_walk_fini(struct tcp_walk *t)
{
	tcp_clients_fini(&t->clients);
	rig_destroy(&t->walk.rig);
}

void tcp_walk_turn(struct tcp_walk *t, struct turns *turns)
{
	if (turns->n == TURNS_MAX)
		turns->n = 0; /* nobody wants these */
	t->walk.between(&t->walk.rig);
	turns_turn(turns, t->walk.rig.lc);
}

static void walk_settle(struct tcp_walk *t)
{
	struct bench *w = &t->walk;

	while (peer_owes_acks(&w->peer)) {
		peer_acknowledge(&w->peer);
		tcp_walk_turn(t, &t->untimed);
		peer_receive(&w->peer);
	}
}

/* Sends a segment for each of <flow>, and takes what comes of it. */
static struct tcp_taken walk_segments(struct tcp_walk *t, enum tcp_segment kind,
				      const uint32_t flow[RIG_BATCH], struct turns *turns)
{
	struct bench *w = &t->walk;
	struct tcp_taken taken = {0};

	tcp_clients_prepare(&t->clients, kind, flow, TCP_WALK_PAYLOAD);
	peer_expect(&w->peer);
	for (unsigned int i = 0; i < RIG_BATCH; i += LB_BURST) {
		nic_deliver(&w->rig.clients, w->clients.packet + i, LB_BURST);
		peer_acknowledge(&w->peer);
		tcp_walk_turn(t, turns);
		peer_receive(&w->peer);
		tcp_clients_take(&t->clients, NULL, TCP_WALK_PAYLOAD, &taken);
	}
	walk_settle(t);
	return taken;
}

static void walk_expect(const char *what, unsigned int got, unsigned int expected)
{
	if (got != expected)
		rig_die("%u %s, expected %u", got, what, expected);
}

void tcp_walk_requests(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *turns)
{
	walk_segments(t, TCP_SEGMENT_REQUEST, flow, turns);
	walk_expect("requests reached the workers", t->walk.peer.n_requests, RIG_BATCH);
}

void tcp_walk_replies(struct tcp_walk *t, struct turns *turns)
{
	const struct load load = {.payload = TCP_WALK_PAYLOAD};
	struct bench *w = &t->walk;
	struct tcp_taken taken = {0};

	peer_prepare_replies(&w->peer, &load);
	for (unsigned int i = 0; i < RIG_BATCH; i += LB_BURST) {
		nic_deliver(&w->rig.fabric, w->peer.reply + i, LB_BURST);
		tcp_walk_turn(t, turns);
		peer_receive(&w->peer);
		tcp_clients_take(&t->clients, w->peer.reply_at + i, TCP_WALK_PAYLOAD, &taken);
	}
	walk_expect("replies reached the clients", taken.replies, RIG_BATCH);
	walk_expect("segments came with them", taken.packets, RIG_BATCH);
	if (!peer_all_acked(&w->peer))
		rig_die("replies were not acknowledged");
}

void tcp_walk_open(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *syn,
		   struct turns *ack)
{
	struct tcp_taken taken = walk_segments(t, TCP_SEGMENT_SYN, flow, syn);

	walk_expect("SYNs were answered", taken.syns, RIG_BATCH);
	taken = walk_segments(t, TCP_SEGMENT_ACK, flow, ack);
	walk_expect("segments answer an acknowledgement", taken.packets, 0);
}

void tcp_walk_acknowledge(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *turns)
{
	walk_expect("segments answer an acknowledgement",
		    walk_segments(t, TCP_SEGMENT_ACK, flow, turns).packets, 0);
}

void tcp_walk_close(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *fin,
		    struct turns *end)
{
	struct tcp_taken taken = walk_segments(t, TCP_SEGMENT_FIN, flow, fin);

	walk_expect("connections were closed", taken.fins, RIG_BATCH);
	taken = walk_segments(t, TCP_SEGMENT_ACK, flow, end);
	walk_expect("segments answer an acknowledgement", taken.packets, 0);
}

void tcp_walk_checksums(struct tcp_walk *t, bool by_nic)
{
	t->clients.sums = !by_nic;
	t->walk.rig.clients.ol_flags =
		by_nic ? RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD : 0;
}

void tcp_walk_check(const struct tcp_walk *t)
{
	const struct lb_lcore_stats *s = &t->walk.rig.lc->stats;
	const struct tcp_counters *c = edge_counters(t->walk.rig.lc);

	for (unsigned int i = 0; i < LB_DROPS; i++)
		if (s->drop[i] != 0)
			rig_die("%lu packets were dropped: %s", s->drop[i], lb_drop_name(i));
	if (s->payload_copies != 0 || s->notices != 0 || s->requests != s->replies)
		rig_die("%lu payloads were copied, %lu notices sent; %lu requests, %lu replies",
			s->payload_copies, s->notices, s->requests, s->replies);
	if (c->retransmits != 0 || c->duplicates_in != 0 || c->no_memory != 0 || c->challenges != 0)
		rig_die("%lu segments were sent again, %lu came again, %lu had no memory",
			c->retransmits, c->duplicates_in, c->no_memory);
}

/* Small answers to the large requests, and their acknowledgements. */
void tcp_walk_answer_large(struct tcp_walk *t)
{
	const struct load load = {.reply = LARGE_REPLY};
	struct bench *w = &t->walk;
	struct tcp_taken taken = {0};
	struct rte_mbuf *ack[LARGE_CLIENTS];

	peer_prepare_replies(&w->peer, &load);
	nic_deliver(&w->rig.fabric, w->peer.reply, LARGE_CLIENTS);
	tcp_walk_turn(t, &t->untimed);
	peer_receive(&w->peer);
	tcp_clients_take(&t->clients, w->peer.reply_at, LARGE_REPLY, &taken);
	walk_expect("replies to large requests reached the clients", taken.replies, LARGE_CLIENTS);
	rig_alloc(&w->rig, ack, LARGE_CLIENTS);
	for (unsigned int i = 0; i < LARGE_CLIENTS; i++)
		tcp_clients_write(&t->clients, TCP_SEGMENT_ACK, t->large.flow[i], 0, ack[i]);
	nic_deliver(&w->rig.clients, ack, LARGE_CLIENTS);
	tcp_walk_turn(t, &t->untimed);
	walk_settle(t);
}

void tcp_walk_large(struct tcp_walk *t, uint32_t among, bool late, struct turns *turns)
{
	static uint32_t flow[RIG_BATCH];
	const uint64_t *out_of_order = &edge_counters(t->walk.rig.lc)->out_of_order;
	uint64_t before = *out_of_order;
	struct bench *w = &t->walk;
	struct tcp_taken taken = {0};

	tcp_clients_draw(&t->clients, among, flow);
	t->clients.ahead = true;
	tcp_large_prepare(&t->large, flow);
	peer_expect(&w->peer);
	for (unsigned int i = 0; i < LARGE_TURNS + late; i++) {
		unsigned int n = tcp_large_deliver(&t->large, i, late);

		peer_acknowledge(&w->peer);
		tcp_walk_turn(t, n == LARGE_TURN ? turns : &t->untimed);
		peer_receive(&w->peer);
		tcp_clients_take(&t->clients, NULL, 0, &taken);
	}
	walk_settle(t);
	t->clients.ahead = false;
	tcp_large_check(&t->large);
	walk_expect("segments came out of order", (unsigned int)(*out_of_order - before),
		    late ? (LARGE_TURNS - 1) * (LARGE_TURN - LARGE_CLIENTS) : 0);
}
