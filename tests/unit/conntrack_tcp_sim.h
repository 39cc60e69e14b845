/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two well-behaved ends, a network that loses, delays, reorders and duplicates on both sides of the
 * tracker, and the tracker in between. One seed makes one whole connection. The ends are RFC 9293's
 * as far as a tracker can tell: windows and scaling, go-back-N and single retransmissions, segments
 * out of order, probes, keepalives, closes and aborts.
 */
#ifndef CONNTRACK_TCP_SIM_H
#define CONNTRACK_TCP_SIM_H

#include <stdlib.h>
#include <string.h>

#include "tcp.h"

#define SIM_QUEUE 4096
#define SIM_HELD  8
#define SIM_TICKS 400000u

enum sim_state { SIM_LISTEN, SIM_SYN_SENT, SIM_SYN_RECEIVED, SIM_OPEN, SIM_GONE };

struct sim_end {
	enum sim_state state;
	bool simultaneous;            /* opens by itself */
	uint32_t iss, una, nxt, top;  /* <top>: one past the last number ever sent */
	uint32_t fin;                 /* number of our FIN: all data lie before it */
	uint32_t wnd, wl1, wl2, wmax; /* what the other end offers */
	uint32_t irs, rcv, buffer, unread;
	uint32_t held[SIM_HELD][2]; /* out of order: from, to */
	unsigned int n_held;
	bool fin_known, ack_due, offers_scale, peer_offers;
	uint32_t peer_fin;
	uint8_t scale, peer_scale;
};

struct sim_packet {
	uint32_t at;
	enum tcp_direction from;
	bool past; /* the tracker: on its way to the other end */
	struct tcp_segment s;
};

struct sim_counts {
	uint64_t segments, duplicates, challenges, retransmissions, probes, keepalives, resets,
		simultaneous, aborts, scaled, forged, forged_passed;
};

struct sim {
	uint64_t random;
	uint32_t now;
	unsigned int loss, copies, jitter; /* per thousand, per thousand, ticks */
	bool aborts, aborted;
	struct sim_end end[2];
	struct sim_packet queue[SIM_QUEUE];
	unsigned int n;
	struct tcp_track track;
	struct sim_counts counts;
	/* the first segment that was refused */
	struct tcp_segment bad;
	struct tcp_outcome outcome;
	enum tcp_direction bad_from;
	bool failed;
};

#define SIM_HOP 40 /* ticks from an end to the tracker; jitter is less, so RTTs stay longer */

static inline uint32_t sim_random(struct sim *sim, uint32_t below)
{
	sim->random ^= sim->random << 13;
	sim->random ^= sim->random >> 7;
	sim->random ^= sim->random << 17;
	return (uint32_t)((sim->random >> 20) % below);
}

static inline bool sim_chance(struct sim *sim, unsigned int thousandths)
{
	return sim_random(sim, 1000) < thousandths;
}

static inline bool sim_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static inline uint32_t sim_segment_end(const struct tcp_segment *s)
{
	return s->seq + s->length + !!(s->flags & TCP_BIT_SYN) + !!(s->flags & TCP_BIT_FIN);
}

static void sim_queue(struct sim *sim, const struct tcp_segment *s, enum tcp_direction from,
		      bool past)
{
	unsigned int copies = 1 + sim_chance(sim, sim->copies);

	while (copies-- > 0 && sim->n < SIM_QUEUE)
		if (!sim_chance(sim, sim->loss))
			sim->queue[sim->n++] = (struct sim_packet){
				.at = sim->now + SIM_HOP + sim_random(sim, sim->jitter + 1),
				.from = from,
				.past = past,
				.s = *s,
			};
}

/* Sending */

static uint16_t sim_window(const struct sim_end *e, bool syn)
{
	uint32_t window = e->buffer - e->unread;

	if (!syn && e->offers_scale && e->peer_offers)
		window >>= e->scale;
	return window < UINT16_MAX ? (uint16_t)window : UINT16_MAX;
}

static void sim_send(struct sim *sim, enum tcp_direction from, uint32_t seq, uint32_t length,
		     uint8_t flags)
{
	struct sim_end *e = &sim->end[from];
	struct tcp_segment s = {
		.seq = seq,
		.ack = flags & TCP_BIT_ACK ? e->rcv : 0,
		.length = length,
		.window = sim_window(e, flags & TCP_BIT_SYN),
		.flags = flags,
		.scale = flags & TCP_BIT_SYN && e->offers_scale ? e->scale : TCP_SCALE_NONE,
	};

	if (!(flags & TCP_BIT_RST) && sim_after(sim_segment_end(&s), e->top))
		e->top = sim_segment_end(&s);
	e->ack_due = false;
	sim_queue(sim, &s, from, false);
}

static void sim_ack(struct sim *sim, enum tcp_direction from)
{
	sim_send(sim, from, sim->end[from].nxt, 0, TCP_BIT_ACK);
}

static void sim_send_syn(struct sim *sim, enum tcp_direction from)
{
	struct sim_end *e = &sim->end[from];

	sim_send(sim, from, e->iss, 0,
		 e->state == SIM_SYN_RECEIVED ? TCP_BIT_SYN | TCP_BIT_ACK : TCP_BIT_SYN);
	e->nxt = e->iss + 1;
}

static void sim_reset(struct sim *sim, enum tcp_direction from, const struct tcp_segment *s)
{
	struct tcp_segment rst = {.flags = TCP_BIT_RST, .scale = TCP_SCALE_NONE};

	if (s->flags & TCP_BIT_ACK) {
		rst.seq = s->ack;
	} else {
		rst.flags |= TCP_BIT_ACK;
		rst.ack = sim_segment_end(s);
	}
	sim->counts.resets++;
	sim_queue(sim, &rst, from, false);
}

/* Sends up to <room> sequence numbers from <seq> on, the FIN included. */
static uint32_t sim_send_data(struct sim *sim, enum tcp_direction from, uint32_t seq, uint32_t room)
{
	struct sim_end *e = &sim->end[from];
	uint32_t length = 1 + sim_random(sim, 1460), left = e->fin - seq;
	uint8_t flags = TCP_BIT_ACK | (sim_chance(sim, 300) ? TCP_BIT_PSH : 0);

	if (sim_after(seq, e->fin))
		return 0;
	length = length < left ? length : left;
	length = length < room ? length : room;
	if (length == left && room > length)
		flags |= TCP_BIT_FIN;
	if (length == 0 && !(flags & TCP_BIT_FIN))
		return 0;
	sim_send(sim, from, seq, length, flags);
	return length + !!(flags & TCP_BIT_FIN);
}

static void sim_act_open(struct sim *sim, enum tcp_direction from)
{
	struct sim_end *e = &sim->end[from];
	uint32_t room = e->una + e->wnd - e->nxt;

	if (e->unread > 0 && sim_chance(sim, 60)) {
		bool was_shut = sim_window(e, false) == 0;

		e->unread -= 1 + sim_random(sim, e->unread);
		e->ack_due |= was_shut || sim_chance(sim, 300);
	}
	if (sim_after(e->una + e->wnd, e->nxt) && sim_chance(sim, 300))
		e->nxt += sim_send_data(sim, from, e->nxt, room);
	if (e->una != e->top && sim_chance(sim, 8)) {
		uint32_t sent = e->top - e->una, allowed = e->wnd > 0 ? e->wnd : 1;

		sim->counts.retransmissions++;
		sim_send_data(sim, from, e->una, sent < allowed ? sent : allowed);
		if (sim_chance(sim, 300))
			e->nxt = e->una;
	}
	if (e->wnd == 0 && !sim_after(e->una, e->fin) && sim_chance(sim, 10)) {
		sim->counts.probes++;
		sim_send_data(sim, from, e->una, 1);
	}
	if (e->una == e->top && e->nxt == e->top && sim_chance(sim, 1)) {
		sim->counts.keepalives++;
		sim_send(sim, from, e->nxt - 1,
			 sim_chance(sim, 500) && e->nxt - 1 != e->fin && e->nxt - 1 != e->iss,
			 TCP_BIT_ACK);
	}
	if (e->ack_due && sim_chance(sim, 200))
		sim_ack(sim, from);
	if (sim->aborts && !sim->aborted && sim_chance(sim, 1)) {
		sim->aborted = true;
		sim->counts.aborts++;
		sim_send(sim, from, e->top, 0, TCP_BIT_RST | TCP_BIT_ACK);
		e->state = SIM_GONE;
	}
}

static void sim_act(struct sim *sim, enum tcp_direction from)
{
	struct sim_end *e = &sim->end[from];

	switch (e->state) {
	case SIM_LISTEN:
		/* the tracker takes no server's SYN before the client's: that is a rule of ours */
		if (e->simultaneous && sim->track.state == TCP_STATE_SYN_SENT &&
		    sim_chance(sim, 30)) {
			e->state = SIM_SYN_SENT;
			sim_send_syn(sim, from);
		}
		return;
	case SIM_SYN_SENT:
	case SIM_SYN_RECEIVED:
		if (sim_chance(sim, 5))
			sim_send_syn(sim, from);
		return;
	case SIM_OPEN:
		sim_act_open(sim, from);
		return;
	case SIM_GONE:
		return;
	}
}

/* Receiving */

/* Takes the next bytes of the stream in order; holds others back while there is room. */
static void sim_hold(struct sim_end *e, uint32_t from, uint32_t to)
{
	if (!sim_after(to, e->rcv))
		return;
	if (!sim_after(from, e->rcv)) {
		e->unread += to - e->rcv;
		e->rcv = to;
	} else if (e->n_held < SIM_HELD) {
		e->held[e->n_held][0] = from;
		e->held[e->n_held++][1] = to;
	}
}

/* Takes all held segments that the next number has reached. */
static void sim_absorb(struct sim_end *e)
{
	uint32_t before = e->rcv;

	for (unsigned int i = 0; i < e->n_held;) {
		if (sim_after(e->held[i][0], e->rcv)) {
			i++;
			continue;
		}
		if (sim_after(e->held[i][1], e->rcv))
			e->rcv = e->held[i][1];
		memcpy(e->held[i], e->held[--e->n_held], sizeof(e->held[i]));
		i = 0;
	}
	e->unread += e->rcv - before;
	if (e->fin_known && e->rcv == e->peer_fin)
		e->rcv++;
}

static void sim_receive_data(struct sim *sim, enum tcp_direction to, const struct tcp_segment *s)
{
	struct sim_end *e = &sim->end[to];
	uint32_t begin = s->seq, end = s->seq + s->length;
	uint32_t edge = e->rcv + e->buffer - e->unread;

	if (s->flags & TCP_BIT_FIN && !sim_after(end + 1, edge)) {
		e->fin_known = true;
		e->peer_fin = end;
	}
	if (sim_after(end, edge))
		end = edge;
	if (e->fin_known && sim_after(e->rcv, e->peer_fin))
		end = begin; /* a keepalive's byte may be anything */
	sim_hold(e, begin, end);
	sim_absorb(e);
	e->ack_due |= s->length > 0 || s->flags & TCP_BIT_FIN;
	if (e->ack_due && sim_chance(sim, 400))
		sim_ack(sim, to);
}

/* RFC 9293, 3.10.7.4, first */
static bool sim_acceptable(const struct sim_end *e, const struct tcp_segment *s)
{
	uint32_t window = e->buffer - e->unread, length = sim_segment_end(s) - s->seq;

	if (window == 0)
		return length == 0 && s->seq == e->rcv;
	return s->seq - e->rcv < window || (length > 0 && s->seq + length - 1 - e->rcv < window);
}

static void sim_take_window(struct sim_end *e, const struct tcp_segment *s)
{
	uint32_t shift =
		e->offers_scale && e->peer_offers && !(s->flags & TCP_BIT_SYN) ? e->peer_scale : 0;

	if (!sim_after(s->seq, e->wl1) && !(s->seq == e->wl1 && !sim_after(e->wl2, s->ack)))
		return;
	e->wnd = (uint32_t)s->window << shift;
	e->wl1 = s->seq;
	e->wl2 = s->ack;
	e->wmax = e->wnd > e->wmax ? e->wnd : e->wmax;
}

/* Returns false if the segment was answered or dropped. */
static bool sim_take_ack(struct sim *sim, enum tcp_direction to, const struct tcp_segment *s)
{
	struct sim_end *e = &sim->end[to];

	if (!(s->flags & TCP_BIT_ACK))
		return false;
	if (e->state == SIM_SYN_RECEIVED) {
		if (!sim_after(s->ack, e->una) || sim_after(s->ack, e->top)) {
			sim_reset(sim, to, s);
			return false;
		}
		e->state = SIM_OPEN;
		e->wl1 = s->seq - 1;
	}
	if (sim_after(s->ack, e->top) || sim_after(e->una - e->wmax, s->ack)) {
		sim_ack(sim, to);
		return false;
	}
	if (sim_after(s->ack, e->una))
		e->una = s->ack;
	if (sim_after(e->una, e->nxt))
		e->nxt = e->una;
	if (!sim_after(e->una, s->ack))
		sim_take_window(e, s);
	return true;
}

static void sim_take_syn(struct sim_end *e, const struct tcp_segment *s)
{
	e->irs = s->seq;
	e->rcv = s->seq + 1;
	e->peer_offers = s->scale != TCP_SCALE_NONE;
	e->peer_scale = s->scale;
	e->wl1 = s->seq - 1;
	e->wl2 = e->iss;
	e->wmax = 0;
	sim_take_window(e, s);
}

static void sim_receive_syn_sent(struct sim *sim, enum tcp_direction to,
				 const struct tcp_segment *s)
{
	struct sim_end *e = &sim->end[to];
	bool acks = s->flags & TCP_BIT_ACK;

	if (acks && s->ack != e->iss + 1) {
		if (!(s->flags & TCP_BIT_RST))
			sim_reset(sim, to, s);
		return;
	}
	if (s->flags & TCP_BIT_RST) {
		if (acks)
			e->state = SIM_GONE;
		return;
	}
	if (!(s->flags & TCP_BIT_SYN))
		return;
	sim_take_syn(e, s);
	if (acks) {
		e->una = s->ack;
		e->state = SIM_OPEN;
		sim_ack(sim, to);
	} else {
		e->state = SIM_SYN_RECEIVED;
		sim_send_syn(sim, to);
	}
}

/* Both ends have sent all they had: the end that need not wait forgets the connection. */
static void sim_maybe_forget(struct sim *sim, enum tcp_direction to)
{
	struct sim_end *e = &sim->end[to];
	bool both = e->una == e->fin + 1 && e->fin_known && e->rcv == e->peer_fin + 1;

	if (both && to == TCP_TO_CLIENT && sim_chance(sim, 30) &&
	    sim->end[TCP_FROM_CLIENT].una == sim->end[TCP_FROM_CLIENT].fin + 1)
		e->state = SIM_GONE;
}

static void sim_receive_open(struct sim *sim, enum tcp_direction to, const struct tcp_segment *s)
{
	struct sim_end *e = &sim->end[to];
	bool repeated = s->flags & TCP_BIT_SYN && s->seq == e->irs;

	/* a simultaneous open's SYN,ACK lies before the window, but its ACK counts (figure 7) */
	if (e->state == SIM_SYN_RECEIVED && repeated) {
		if (s->flags & TCP_BIT_ACK && sim_take_ack(sim, to, s))
			sim_ack(sim, to);
		return;
	}
	if (!sim_acceptable(e, s)) {
		if (!(s->flags & TCP_BIT_RST))
			sim_ack(sim, to);
		return;
	}
	if (s->flags & TCP_BIT_RST) {
		if (s->seq == e->rcv)
			e->state = SIM_GONE;
		else
			sim_ack(sim, to);
		return;
	}
	if (s->flags & TCP_BIT_SYN) {
		sim_ack(sim, to);
		return;
	}
	if (!sim_take_ack(sim, to, s))
		return;
	sim_receive_data(sim, to, s);
	sim_maybe_forget(sim, to);
}

static void sim_receive(struct sim *sim, enum tcp_direction to, const struct tcp_segment *s)
{
	struct sim_end *e = &sim->end[to];

	switch (e->state) {
	case SIM_LISTEN:
		if (s->flags & TCP_BIT_RST)
			return;
		if ((s->flags & (TCP_BIT_SYN | TCP_BIT_ACK)) != TCP_BIT_SYN) {
			if (s->flags & TCP_BIT_ACK)
				sim_reset(sim, to, s);
			return;
		}
		sim_take_syn(e, s);
		e->state = SIM_SYN_RECEIVED;
		sim_send_syn(sim, to);
		return;
	case SIM_SYN_SENT:
		sim_receive_syn_sent(sim, to, s);
		return;
	case SIM_SYN_RECEIVED:
	case SIM_OPEN:
		sim_receive_open(sim, to, s);
		return;
	case SIM_GONE:
		if (!(s->flags & TCP_BIT_RST))
			sim_reset(sim, to, s);
		return;
	}
}

/* The whole */

/*
 * True for a reset that the other end ignores. An end that forgot the connection, or was sent
 * forged segments, answers with numbers that are no longer, or never were, right.
 */
static bool sim_vain(const struct sim *sim, const struct sim_packet *p)
{
	const struct sim_end *to = &sim->end[!p->from];

	if (!(p->s.flags & TCP_BIT_RST))
		return false;
	if (to->state == SIM_SYN_SENT)
		return !(p->s.flags & TCP_BIT_ACK) || p->s.ack != to->iss + 1;
	return to->state == SIM_LISTEN || to->state == SIM_GONE || !sim_acceptable(to, &p->s);
}

static void sim_pass(struct sim *sim, const struct sim_packet *p)
{
	struct tcp_outcome outcome = conntrack_tcp_track(&sim->track, &p->s, p->from, false);

	sim->counts.segments++;
	sim->counts.duplicates += outcome.verdict == TCP_VERDICT_DUPLICATE;
	sim->counts.challenges += outcome.verdict == TCP_VERDICT_CHALLENGE;
	if (outcome.verdict == TCP_VERDICT_INVALID && !sim->failed && !sim_vain(sim, p)) {
		sim->failed = true;
		sim->outcome = outcome;
		sim->bad = p->s;
		sim->bad_from = p->from;
	}
	sim_queue(sim, &p->s, p->from, true);
}

static void sim_deliver(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->n;) {
		struct sim_packet p = sim->queue[i];

		if (p.at > sim->now) {
			i++;
			continue;
		}
		sim->queue[i] = sim->queue[--sim->n];
		if (!p.past)
			sim_pass(sim, &p);
		else
			sim_receive(sim,
				    p.from == TCP_FROM_CLIENT ? TCP_TO_CLIENT : TCP_FROM_CLIENT,
				    &p.s);
	}
}

static bool sim_over(const struct sim *sim)
{
	const struct sim_end *a = &sim->end[0], *b = &sim->end[1];

	if (sim->n > 0)
		return false;
	if (a->state == SIM_GONE && b->state == SIM_GONE)
		return true;
	return !sim->aborted && a->state >= SIM_OPEN && b->state >= SIM_OPEN &&
	       a->una == a->fin + 1 && b->una == b->fin + 1;
}

static void sim_end_init(struct sim *sim, struct sim_end *e, uint32_t buffer_max)
{
	static const uint32_t odd[] = {0, UINT32_MAX - 3, UINT32_MAX - 3000, INT32_MAX - 3000u};

	e->iss = sim_chance(sim, 500) ? odd[sim_random(sim, 4)] : sim_random(sim, UINT32_MAX);
	e->una = e->nxt = e->top = e->iss;
	e->fin = e->iss + 1 +
		 (sim_chance(sim, 200) ? 0 : sim_random(sim, 1u << sim_random(sim, 19)));
	e->offers_scale = sim_chance(sim, 700);
	e->buffer = 200 + sim_random(sim, 1u << (8 + sim_random(sim, 14)));
	if (e->buffer > buffer_max)
		e->buffer = buffer_max;
	while (e->scale < TCP_SCALE_MAX && (4u << e->scale) < e->buffer && !sim_chance(sim, 80))
		e->scale++;
}

/* No segment of an end is larger than the other's buffer keeps moving. */
static void sim_init(struct sim *sim, uint64_t seed, uint32_t buffer_max)
{
	memset(sim, 0, sizeof(*sim));
	sim->random = (seed + 1) * 0x9e3779b97f4a7c15;
	for (unsigned int i = 0; i < 8; i++)
		sim_random(sim, 2);
	sim->loss = sim_random(sim, 4) * 50;
	sim->copies = sim_random(sim, 3) * 50;
	sim->jitter = sim_chance(sim, 300) ? 0 : sim_random(sim, SIM_HOP);
	sim->aborts = sim_chance(sim, 150);
	for (unsigned int i = 0; i < 2; i++)
		sim_end_init(sim, &sim->end[i], buffer_max);
	sim->counts.scaled = sim->end[0].offers_scale && sim->end[1].offers_scale;
	sim->end[1].simultaneous = sim_chance(sim, 150);
	sim->end[0].state = SIM_SYN_SENT;
	sim_send_syn(sim, TCP_FROM_CLIENT);
}

/* True while there is more to come. */
static bool sim_tick(struct sim *sim)
{
	sim->now++;
	sim_act(sim, TCP_FROM_CLIENT);
	sim_act(sim, TCP_TO_CLIENT);
	sim_deliver(sim);
	if (sim->track.state == TCP_STATE_SYN_SENT2)
		sim->counts.simultaneous = 1;
	return !sim->failed && !sim_over(sim) && sim->now < SIM_TICKS;
}

#endif
