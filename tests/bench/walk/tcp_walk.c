/* SPDX-License-Identifier: BSD-3-Clause */
#include "walk/tcp_walk.h"

#include <stdlib.h>

#include "edge/edge.h"
#include "lb.h"
#include "tcp/connection.h"

/* Bytes of the answer to a large request. */
#define LARGE_REPLY 64
/* Turns that a burst may take: only so much text is read and written in one. */
#define WALK_MORE_TURNS 64

void tcp_walk_start(struct tcp_walk *t, struct rig_options *options, uint32_t connections,
		    uint64_t *clock, uint32_t start_ms)
{
	struct bench *w = &t->walk;

	options->connections = connections + TCP_WALK_KSERVE + RIG_BATCH;
	if (rig_create(&w->rig, options) < 0)
		exit(EXIT_FAILURE);
	/* Half a millisecond off, so that no rounding matters. */
	*clock =
		w->rig.lb->tsc_start + start_ms * w->rig.lb->tsc_per_ms + w->rig.lb->tsc_per_ms / 2;
	w->rig.lb->clock = clock;
	clients_init(&w->clients, &w->rig);
	peer_join(&w->peer, &w->rig, &w->clients);
	tcp_speech_init(&t->small_length, TCP_LENGTH, TCP_WALK_PAYLOAD);
	tcp_speech_init(&t->small_kserve, TCP_KSERVE, TCP_WALK_PAYLOAD);
	tcp_speech_init(&t->small_grpc, TCP_GRPC, TCP_WALK_PAYLOAD);
	tcp_clients_init(&t->length, &t->small_length, &w->rig, &w->clients, connections);
	tcp_clients_init(&t->kserve, &t->small_kserve, &w->rig, &w->clients,
			 TCP_WALK_KSERVE + RIG_BATCH);
	t->kserve.http2_first = TCP_WALK_KSERVE;
	tcp_large_init(&t->large, &w->peer);
	t->clients = &t->length;
	t->batch = RIG_BATCH;
}

void tcp_walk_speak(struct tcp_walk *t, enum tcp_framing framing)
{
	t->clients = framing == TCP_LENGTH ? &t->length : &t->kserve;
	t->batch = framing == TCP_LENGTH   ? RIG_BATCH
		   : framing == TCP_KSERVE ? TCP_WALK_ASKED
					   : TCP_WALK_CALLERS;
	t->kserve.speech = framing == TCP_GRPC ? &t->small_grpc : &t->small_kserve;
	t->kserve.http2 = framing == TCP_GRPC ? t->frames : NULL;
}

void tcp_walk_fini(struct tcp_walk *t)
{
	tcp_clients_fini(&t->length);
	tcp_clients_fini(&t->kserve);
	rig_destroy(&t->walk.rig);
}

void tcp_walk_turn(struct tcp_walk *t, struct turns *turns)
{
	if (turns->n == TURNS_MAX)
		turns->n = 0; /* nobody wants these */
	t->walk.between(&t->walk.rig);
	turns_turn(turns, t->walk.rig.lc);
}

/* Another turn for what the one before left, until <done> things of <all> were seen. */
static bool walk_goes_on(struct tcp_walk *t, struct turns *turns, unsigned int *more,
			 unsigned int done, unsigned int all)
{
	if (done >= all || (*more)++ == WALK_MORE_TURNS)
		return false;
	tcp_walk_turn(t, turns);
	peer_receive(&t->walk.peer);
	return true;
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
	unsigned int requests = kind == TCP_SEGMENT_REQUEST ? LB_BURST : 0;

	tcp_clients_prepare(t->clients, kind, flow, t->batch, TCP_WALK_PAYLOAD);
	peer_expect(&w->peer);
	for (unsigned int i = 0; i < t->batch; i += LB_BURST) {
		unsigned int more = 0, first;

		nic_deliver(&w->rig.clients, w->clients.packet + i, LB_BURST);
		peer_acknowledge(&w->peer);
		tcp_walk_turn(t, turns);
		first = turns->n - 1;
		peer_receive(&w->peer);
		while (walk_goes_on(t, turns, &more, w->peer.n_requests - requests * (i / LB_BURST),
				    requests))
			;
		turns_join(turns, first);
		tcp_clients_take(t->clients, NULL, TCP_WALK_PAYLOAD, &taken);
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
	walk_expect("requests reached the workers", t->walk.peer.n_requests, t->batch);
}

void tcp_walk_replies(struct tcp_walk *t, struct turns *turns)
{
	const struct load load = {.payload = TCP_WALK_PAYLOAD};
	struct bench *w = &t->walk;
	struct tcp_taken taken = {0};

	peer_prepare_replies(&w->peer, &load);
	for (unsigned int i = 0; i < t->batch; i += LB_BURST) {
		unsigned int more = 0, first;

		nic_deliver(&w->rig.fabric, w->peer.reply + i, LB_BURST);
		tcp_walk_turn(t, turns);
		first = turns->n - 1;
		peer_receive(&w->peer);
		do
			tcp_clients_take(t->clients, w->peer.reply_at + i, TCP_WALK_PAYLOAD,
					 &taken);
		while (walk_goes_on(t, turns, &more, taken.replies, i + LB_BURST));
		turns_join(turns, first);
	}
	walk_expect("replies reached the clients", taken.replies, t->batch);
	walk_expect("segments came with them", taken.packets, t->batch);
	if (!peer_all_acked(&w->peer))
		rig_die("replies were not acknowledged");
}

void tcp_walk_open(struct tcp_walk *t, const uint32_t flow[RIG_BATCH], struct turns *syn,
		   struct turns *ack)
{
	struct tcp_taken taken = walk_segments(t, TCP_SEGMENT_SYN, flow, syn);

	walk_expect("SYNs were answered", taken.syns, t->batch);
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

	walk_expect("connections were closed", taken.fins, t->batch);
	taken = walk_segments(t, TCP_SEGMENT_ACK, flow, end);
	walk_expect("segments answer an acknowledgement", taken.packets, 0);
}

void tcp_walk_checksums(struct tcp_walk *t, bool by_nic)
{
	t->length.sums = t->kserve.sums = !by_nic;
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
	unsigned int more = 0;

	peer_prepare_replies(&w->peer, &load);
	nic_deliver(&w->rig.fabric, w->peer.reply, LARGE_CLIENTS);
	tcp_walk_turn(t, &t->untimed);
	peer_receive(&w->peer);
	do
		tcp_clients_take(t->clients, w->peer.reply_at, LARGE_REPLY, &taken);
	while (walk_goes_on(t, &t->untimed, &more, taken.replies, LARGE_CLIENTS));
	walk_expect("replies to large requests reached the clients", taken.replies, LARGE_CLIENTS);
	rig_alloc(&w->rig, ack, LARGE_CLIENTS);
	for (unsigned int i = 0; i < LARGE_CLIENTS; i++)
		tcp_clients_write(t->clients, TCP_SEGMENT_ACK, t->large.flow[i], 0, ack[i]);
	nic_deliver(&w->rig.clients, ack, LARGE_CLIENTS);
	tcp_walk_turn(t, &t->untimed);
	walk_settle(t);
	t->clients->speech = t->spoke;
	tcp_walk_speak(t, TCP_LENGTH);
}

/* Those of <framing> are whose steps the next ones are. */
static void walk_speak_large(struct tcp_walk *t, enum tcp_framing framing, uint32_t size)
{
	tcp_walk_speak(t, framing);
	t->spoke = t->clients->speech;
	t->clients->speech = &t->speech_large;
	tcp_speech_init(&t->speech_large, framing, size);
}

/* Connections of <framing> for a request each. */
static void walk_choose_large(struct tcp_walk *t, enum tcp_framing framing, uint32_t among,
			      uint32_t flow[RIG_BATCH])
{
	if (framing == TCP_LENGTH)
		return tcp_clients_draw(t->clients, among, flow);
	for (unsigned int k = 0; k < LARGE_CLIENTS; k++)
		flow[k] = TCP_WALK_KSERVE + (framing == TCP_GRPC ? 0 : TCP_WALK_CALLERS) + k;
}

void tcp_walk_large(struct tcp_walk *t, enum tcp_framing framing, uint32_t size, uint32_t among,
		    bool late, struct turns *turns)
{
	static uint32_t flow[RIG_BATCH];
	const uint64_t *out_of_order = &edge_counters(t->walk.rig.lc)->out_of_order;
	uint64_t before = *out_of_order;
	struct bench *w = &t->walk;
	struct tcp_taken taken = {0};
	unsigned int more = 0;

	walk_speak_large(t, framing, size);
	walk_choose_large(t, framing, among, flow);
	t->clients->ahead = true;
	tcp_large_prepare(&t->large, t->clients, size, flow);
	peer_expect(&w->peer);
	for (unsigned int i = 0; i < tcp_large_turns(&t->large, late); i++) {
		unsigned int n = tcp_large_deliver(&t->large, i, late);

		peer_acknowledge(&w->peer);
		tcp_walk_turn(t, n == LARGE_TURN ? turns : &t->untimed);
		peer_receive(&w->peer);
		tcp_clients_take(t->clients, NULL, 0, &taken);
	}
	while (walk_goes_on(t, &t->untimed, &more, w->peer.n_requests, LARGE_CLIENTS))
		;
	walk_settle(t);
	tcp_clients_take(t->clients, NULL, 0, &taken);
	t->clients->ahead = false;
	tcp_large_check(&t->large);
	walk_expect("segments came out of order", (unsigned int)(*out_of_order - before),
		    t->large.late);
}

/* --- all of them --------------------------------------------------------------------------------
 */

/* Each caller sends what <put> writes, and takes what comes of it. */
static void walk_greet(struct tcp_walk *t, uint32_t (*put)(uint8_t *at))
{
	struct bench *w = &t->walk;
	struct rte_mbuf *packet[TCP_WALK_CALLERS];
	struct tcp_taken taken = {0};

	rig_alloc(&w->rig, packet, TCP_WALK_CALLERS);
	for (unsigned int k = 0; k < TCP_WALK_CALLERS; k++) {
		uint32_t n = put(rte_pktmbuf_mtod_offset(packet[k], uint8_t *, TCP_CLIENT_HEADERS));

		tcp_clients_write(t->clients, TCP_SEGMENT_REQUEST, TCP_WALK_KSERVE + k, n,
				  packet[k]);
	}
	nic_deliver(&w->rig.clients, packet, TCP_WALK_CALLERS);
	tcp_walk_turn(t, &t->untimed);
	tcp_clients_take(t->clients, NULL, 0, &taken);
}

/* Opens connections from <first> on. */
static void walk_open_some(struct tcp_walk *t, uint32_t first)
{
	uint32_t flow[RIG_BATCH];

	for (unsigned int i = 0; i < RIG_BATCH; i++)
		flow[i] = first + i;
	tcp_walk_open(t, flow, &t->untimed, &t->untimed);
}

void tcp_walk_open_length(struct tcp_walk *t, uint32_t connections)
{
	tcp_walk_checksums(t, true);
	for (uint32_t opened = 0; opened < connections; opened += RIG_BATCH)
		walk_open_some(t, opened);
}

void tcp_walk_open_kserve(struct tcp_walk *t)
{
	tcp_walk_checksums(t, true);
	t->clients = &t->kserve;
	for (uint32_t opened = 0; opened < TCP_WALK_KSERVE; opened += RIG_BATCH)
		walk_open_some(t, opened);
	walk_open_some(t, TCP_WALK_KSERVE);
	tcp_walk_speak(t, TCP_GRPC);
	walk_greet(t, tcp_speech_greet);
	walk_greet(t, tcp_speech_accept);
	tcp_walk_speak(t, TCP_LENGTH);
}
