/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP connection seen from the middle. Sections are RFC 9293's unless another RFC is named.
 *
 * Windows: what an end may do next follows from what the other has told it, and all of that has
 * passed here before. So what is kept of an end lags behind the end itself, and never behind what
 * the other end knows of it: bounds made of it are at least as wide as the ends' own.
 */
#include "tcp_internal.h"

/*
 * Segments that come late are judged by windows no smaller than this: an end with a tiny window
 * would else have its reordered ACKs refused.
 */
#define REACH_MIN 65535u

/* All numbers are modulo 2^32 (3.4); no two that are compared lie 2^31 apart. */
static inline bool seq_later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static inline bool seq_between(uint32_t low, uint32_t x, uint32_t high)
{
	return x - low <= high - low;
}

static inline void seq_raise_to(uint32_t *number, uint32_t value)
{
	if (seq_later(value, *number))
		*number = value;
}

static inline uint32_t side_reach(const struct tcp_side *side)
{
	return side->window_max > REACH_MIN ? side->window_max : REACH_MIN;
}

/*
 * One past the last number that the other end may send. A sender may take its window from one
 * segment and the start of it from a later one that has repeated an older number (3.10.7.4, fifth:
 * SND.WL1), so only the largest window holds.
 */
static inline uint32_t side_edge(const struct tcp_side *side)
{
	return side->ack + side->window_max;
}

static inline struct tcp_outcome outcome(enum tcp_verdict v, enum tcp_reason reason)
{
	return (struct tcp_outcome){v, reason};
}

static inline struct tcp_outcome outcome_accept(void)
{
	return outcome(TCP_VERDICT_ACCEPT, TCP_REASON_NONE);
}

static inline struct tcp_outcome outcome_challenge(enum tcp_reason reason)
{
	return outcome(TCP_VERDICT_CHALLENGE, reason);
}

static inline struct tcp_outcome outcome_invalid(enum tcp_reason reason)
{
	return outcome(TCP_VERDICT_INVALID, reason);
}

static inline enum tcp_direction other_end(enum tcp_direction from)
{
	return from == TCP_FROM_CLIENT ? TCP_TO_CLIENT : TCP_FROM_CLIENT;
}

/* False if the table says nothing. */
static bool track_event(struct tcp_track *t, enum tcp_event event, enum tcp_direction from)
{
	uint8_t next = tcp_transition[t->state][event][from];

	if (next == TCP_STATE_NONE)
		return false;
	t->state = next;
	return true;
}

/* One past the last number that the segment takes. */
static inline uint32_t segment_end(const struct tcp_segment *s)
{
	return s->seq + s->length + !!(s->flags & TCP_BIT_SYN) + !!(s->flags & TCP_BIT_FIN);
}

/* A SYN's own window is never scaled, later ones only if both SYNs said so (RFC 7323, 2.2). */
static uint32_t segment_window(const struct tcp_track *t, const struct tcp_segment *s,
			       enum tcp_direction from)
{
	if (s->flags & TCP_BIT_SYN || !t->bits[0].scales || !t->bits[1].scales)
		return s->window;
	return (uint32_t)s->window << t->bits[from].scale;
}

/* An acceptable acknowledgment: what it permits, and what it says of SYN and FIN. */
static void track_acked(struct tcp_track *t, const struct tcp_segment *s, enum tcp_direction from)
{
	struct tcp_side *mine = &t->side[from];
	struct tcp_side_bits *bits = &t->bits[other_end(from)];
	uint32_t window = segment_window(t, s, from);

	seq_raise_to(&mine->ack, s->ack);
	if (mine->window_max < window)
		mine->window_max = window;
	if (!bits->syn_acked) {
		bits->syn_acked = 1;
		track_event(t, TCP_EVENT_SYN_ACKED, from);
	}
	if (bits->fin && !bits->fin_acked && s->ack == t->side[other_end(from)].end) {
		bits->fin_acked = 1;
		track_event(t, TCP_EVENT_FIN_ACKED, from);
	}
}

/* Opening */

static void side_start(struct tcp_track *t, const struct tcp_segment *s, enum tcp_direction from)
{
	bool scales = s->scale != TCP_SCALE_NONE;

	t->side[from].first = s->seq + 1;
	t->side[from].end = segment_end(s);
	t->side[from].window_max = s->window;
	t->bits[from] = (struct tcp_side_bits){.scales = scales, .scale = scales ? s->scale : 0};
}

/*
 * Until the server's SYN is seen, its <ack> is that of its last stray; to begin with, the SYN's own
 * number, which the client would not reset.
 */
static void client_start(struct tcp_track *t, const struct tcp_segment *s)
{
	*t = (struct tcp_track){.state = TCP_STATE_SYN_SENT};
	side_start(t, s, TCP_FROM_CLIENT);
	t->side[TCP_TO_CLIENT].ack = s->seq;
}

static void server_start(struct tcp_track *t, const struct tcp_segment *s)
{
	struct tcp_side *client = &t->side[TCP_FROM_CLIENT], *server = &t->side[TCP_TO_CLIENT];

	side_start(t, s, TCP_TO_CLIENT);
	server->ack = client->first;
	client->ack = server->first;
	track_event(t, TCP_EVENT_SYN, TCP_TO_CLIENT);
}

static bool syn_seen(const struct tcp_track *t, enum tcp_direction from)
{
	return from == TCP_FROM_CLIENT || t->state != TCP_STATE_SYN_SENT;
}

static bool acks_syn(const struct tcp_track *t, const struct tcp_segment *s,
		     enum tcp_direction from)
{
	const struct tcp_side *peer = &t->side[other_end(from)];

	return s->flags & TCP_BIT_ACK && syn_seen(t, other_end(from)) &&
	       seq_between(peer->first, s->ack, peer->end);
}

static bool repeats_syn(const struct tcp_track *t, const struct tcp_segment *s,
			enum tcp_direction from)
{
	return syn_seen(t, from) && s->seq + 1 == t->side[from].first;
}

static struct tcp_outcome track_handshake(struct tcp_track *t, const struct tcp_segment *s,
					  enum tcp_direction from);

/* The server took the client's SYN that we could not judge: both agree on a new connection. */
static struct tcp_outcome reopen_with_saved_syn(struct tcp_track *t, const struct tcp_segment *s)
{
	const struct tcp_segment syn = {
		.seq = t->syn_seq,
		.length = t->syn_length,
		.window = t->syn_window,
		.flags = TCP_BIT_SYN,
		.scale = t->syn_scale,
	};

	client_start(t, &syn);
	track_handshake(t, s, TCP_TO_CLIENT);
	return outcome(TCP_VERDICT_REOPEN, TCP_REASON_NONE);
}

/* The server's own answer, SYN or RST, to that SYN. */
static bool answers_saved_syn(const struct tcp_track *t, const struct tcp_segment *s,
			      enum tcp_direction from)
{
	return from == TCP_TO_CLIENT && t->syn_saved && s->flags & TCP_BIT_ACK &&
	       seq_between(t->syn_seq + 1, s->ack, t->syn_seq + 1 + t->syn_length);
}

static void save_syn(struct tcp_track *t, const struct tcp_segment *s)
{
	t->syn_saved = 1;
	t->syn_seq = s->seq;
	t->syn_length = s->length <= UINT16_MAX ? (uint16_t)s->length : UINT16_MAX;
	t->syn_window = s->window;
	t->syn_scale = s->scale;
}

/* Something of the server that is not for this SYN: the client will reset it (3.10.7.3, first). */
static struct tcp_outcome stray_ack(struct tcp_track *t, const struct tcp_segment *s)
{
	t->side[TCP_TO_CLIENT].ack = s->ack;
	return outcome_challenge(TCP_REASON_OTHER_SYN);
}

/*
 * A SYN where none is due. The end that gets it answers with a challenge ACK whatever its number
 * (RFC 5961, 4.2), or, having forgotten the connection, takes it.
 */
static struct tcp_outcome stray_syn(struct tcp_track *t, const struct tcp_segment *s,
				    enum tcp_direction from)
{
	if (answers_saved_syn(t, s, from))
		return reopen_with_saved_syn(t, s);
	if (t->state == TCP_STATE_SYN_SENT && s->flags & TCP_BIT_ACK)
		return from == TCP_TO_CLIENT ? stray_ack(t, s)
					     : outcome_invalid(TCP_REASON_HANDSHAKE);
	if (repeats_syn(t, s, from) && (acks_syn(t, s, from) || !(s->flags & TCP_BIT_ACK)))
		return outcome(TCP_VERDICT_DUPLICATE, TCP_REASON_OLD);
	if (from == TCP_FROM_CLIENT && !(s->flags & TCP_BIT_ACK))
		save_syn(t, s);
	return outcome_challenge(TCP_REASON_SYN_AGAIN);
}

/*
 * A SYN while the connection opens. The server's numbers count only once the client has confirmed
 * them: it may have sent two cookies (RFC 4987, 3.6), or somebody else a SYN in its name. One that
 * acknowledges nothing must not reach the client, which might take it (figure 7).
 */
static struct tcp_outcome track_handshake(struct tcp_track *t, const struct tcp_segment *s,
					  enum tcp_direction from)
{
	bool acks = acks_syn(t, s, from);

	if (s->flags & TCP_BIT_ACK && !acks)
		return stray_syn(t, s, from);
	if (!repeats_syn(t, s, from)) {
		if (from == TCP_FROM_CLIENT || t->bits[from].syn_acked)
			return stray_syn(t, s, from);
		if (syn_seen(t, from) && !acks)
			return outcome_invalid(TCP_REASON_HANDSHAKE);
		server_start(t, s);
	}
	if (acks)
		track_acked(t, s, from);
	return outcome_accept();
}

/*
 * Does it come after all that the last connection has sent (3.10.7.4)? By timestamps a server may
 * take a lower one as well (RFC 6191, 2); then its SYN,ACK tells. After a reset any number will do,
 * but for a late copy of the SYN that began it.
 */
static bool may_reopen(const struct tcp_track *t, const struct tcp_segment *s)
{
	if (t->state == TCP_STATE_TIME_WAIT)
		return !seq_later(t->side[TCP_FROM_CLIENT].end, s->seq);
	return !t->bits[TCP_TO_CLIENT].syn_acked || !repeats_syn(t, s, TCP_FROM_CLIENT);
}

/* A SYN where no connection lives. */
static struct tcp_outcome open_syn(struct tcp_track *t, const struct tcp_segment *s,
				   enum tcp_direction from)
{
	bool fresh = t->state == TCP_STATE_NONE;

	if (s->flags & TCP_BIT_ACK)
		return fresh ? outcome_invalid(TCP_REASON_NOT_OPEN) : stray_syn(t, s, from);
	if (!fresh && from == TCP_FROM_CLIENT && !may_reopen(t, s))
		return stray_syn(t, s, from);
	if (!track_event(t, TCP_EVENT_SYN, from))
		return outcome_invalid(TCP_REASON_SIDE);
	client_start(t, s);
	return fresh ? outcome_accept() : outcome(TCP_VERDICT_REOPEN, TCP_REASON_NONE);
}

static struct tcp_outcome track_syn(struct tcp_track *t, const struct tcp_segment *s,
				    enum tcp_direction from)
{
	switch (t->state) {
	case TCP_STATE_NONE:
	case TCP_STATE_TIME_WAIT:
	case TCP_STATE_CLOSE:
		return open_syn(t, s, from);
	case TCP_STATE_SYN_SENT:
	case TCP_STATE_SYN_SENT2:
	case TCP_STATE_SYN_RECV:
		return track_handshake(t, s, from);
	default:
		return stray_syn(t, s, from);
	}
}

/* Resets */

static struct tcp_outcome track_rst_syn_sent(struct tcp_track *t, const struct tcp_segment *s,
					     enum tcp_direction from)
{
	/* the client's goes to whoever sent the stray; its own SYN it takes back silently */
	if (from == TCP_FROM_CLIENT)
		return s->seq == t->side[TCP_TO_CLIENT].ack
			       ? outcome_challenge(TCP_REASON_OTHER_SYN)
			       : outcome_invalid(TCP_REASON_RST_SEQ);
	if (!acks_syn(t, s, from) && !answers_saved_syn(t, s, from))
		return outcome_invalid(TCP_REASON_RST_ACK);
	track_event(t, TCP_EVENT_RST, from);
	return outcome_accept();
}

/*
 * RFC 5961, 3.2: only the very next number resets. That is what the other end acknowledged last (an
 * end without the connection takes it from there, 3.5.2), or one past all that was sent (ABORT,
 * 3.10.5). While the other end's SYN-SENT may last, an acceptable ACK does, too (3.10.7.3); and a
 * server that refuses the client's next SYN has no connection left.
 */
static struct tcp_outcome track_rst(struct tcp_track *t, const struct tcp_segment *s,
				    enum tcp_direction from)
{
	const struct tcp_side *mine = &t->side[from], *peer = &t->side[other_end(from)];
	bool opening = t->state == TCP_STATE_SYN_SENT2 || t->state == TCP_STATE_SYN_RECV;

	if (t->state == TCP_STATE_NONE)
		return outcome_invalid(TCP_REASON_NOT_OPEN);
	if (t->state == TCP_STATE_SYN_SENT)
		return track_rst_syn_sent(t, s, from);
	if (s->seq == peer->ack || s->seq == mine->end || (opening && acks_syn(t, s, from)) ||
	    answers_saved_syn(t, s, from)) {
		track_event(t, TCP_EVENT_RST, from);
		return outcome_accept();
	}
	/* an end that has forgotten the connection answers late segments by what they say */
	if ((t->state == TCP_STATE_CLOSE || t->state == TCP_STATE_TIME_WAIT) &&
	    seq_between(peer->ack - side_reach(peer), s->seq, side_edge(peer) + 1))
		return outcome(TCP_VERDICT_DUPLICATE, TCP_REASON_OLD);
	if (seq_between(peer->ack, s->seq, side_edge(peer) + 1))
		return outcome_challenge(TCP_REASON_RST_INEXACT);
	return outcome_invalid(TCP_REASON_RST_SEQ);
}

/* Everything else */

/*
 * May the sender use these numbers? One past the edge for a probe of a closed window (3.8.6.1), and
 * for what follows it. Below, two windows: what is older is nothing that an end repeats.
 */
static enum tcp_reason check_seq(const struct tcp_side *mine, const struct tcp_side *peer,
				 const struct tcp_segment *s)
{
	uint32_t low = mine->end - 2 * side_reach(peer), high = side_edge(peer) + 1;

	if (seq_between(low, s->seq, high) && seq_between(low, segment_end(s), high))
		return TCP_REASON_NONE;
	return seq_later(s->seq, mine->end) || seq_between(low, s->seq, high)
		       ? TCP_REASON_SEQ_AFTER
		       : TCP_REASON_SEQ_BEFORE;
}

/*
 * RFC 5961, 5.2: from the largest window before what it last acknowledged, to all that the other
 * end has sent; while the other's SYN waits for this, nothing less will do. After a pickup the
 * other may have sent more than we saw.
 */
static enum tcp_reason check_ack(const struct tcp_track *t, const struct tcp_segment *s,
				 enum tcp_direction from)
{
	const struct tcp_side *mine = &t->side[from], *peer = &t->side[other_end(from)];
	uint32_t low = peer->first, high = peer->end;

	if (t->bits[other_end(from)].syn_acked)
		low = mine->ack - side_reach(mine);
	if (t->picked_up)
		seq_raise_to(&high, side_edge(mine));
	if (seq_between(low, s->ack, high))
		return TCP_REASON_NONE;
	return seq_later(s->ack, high) ? TCP_REASON_ACK_AFTER : TCP_REASON_ACK_BEFORE;
}

/* Nothing follows a FIN, and it stays where it is. */
static bool fin_fits(const struct tcp_side *mine, const struct tcp_side_bits *bits,
		     const struct tcp_segment *s)
{
	uint32_t end = segment_end(s);

	if (s->flags & TCP_BIT_FIN)
		return bits->fin ? end == mine->end : !seq_later(mine->end, end);
	return !bits->fin || !seq_later(end, mine->end);
}

static struct tcp_outcome track_ack(struct tcp_track *t, const struct tcp_segment *s,
				    enum tcp_direction from)
{
	struct tcp_side *mine = &t->side[from], *peer = &t->side[other_end(from)];
	struct tcp_side_bits *bits = &t->bits[from];
	enum tcp_reason reason = check_seq(mine, peer, s);

	if (reason == TCP_REASON_NONE)
		reason = check_ack(t, s, from);
	if (reason != TCP_REASON_NONE)
		return outcome_invalid(reason);
	/* The window that the sender knows begins no earlier, its keepalive one before (3.8.4). */
	if (seq_later(mine->end - peer->window_max - 1, s->seq) &&
	    !seq_later(segment_end(s), peer->ack))
		return outcome(TCP_VERDICT_DUPLICATE, TCP_REASON_OLD);
	if (!fin_fits(mine, bits, s))
		return outcome_invalid(TCP_REASON_FIN);
	seq_raise_to(&mine->end, segment_end(s));
	if (t->picked_up)
		seq_raise_to(&peer->end, s->ack);
	track_acked(t, s, from);
	if (s->flags & TCP_BIT_FIN && !bits->fin) {
		bits->fin = 1;
		track_event(t, TCP_EVENT_FIN, from);
	}
	return outcome_accept();
}

/* Believe it: neither end's window nor scale is known. */
static void pick_up(struct tcp_track *t, const struct tcp_segment *s, enum tcp_direction from)
{
	const uint32_t widest = (uint32_t)UINT16_MAX << TCP_SCALE_MAX;
	struct tcp_side *mine = &t->side[from], *peer = &t->side[other_end(from)];

	*t = (struct tcp_track){.picked_up = 1};
	t->bits[0] = t->bits[1] =
		(struct tcp_side_bits){.scale = TCP_SCALE_MAX, .scales = 1, .syn_acked = 1};
	mine->first = mine->end = peer->ack = s->seq;
	peer->first = peer->end = mine->ack = s->ack;
	mine->window_max = peer->window_max = widest;
	track_event(t, TCP_EVENT_PICKUP, from);
}

struct tcp_outcome conntrack_tcp_track(struct tcp_track *t, const struct tcp_segment *s,
				       enum tcp_direction from, bool pickup)
{
	/* URG and PSH say nothing about the connection, nor do ECE and CWR. */
	static const bool sensible[] = {
		[TCP_BIT_SYN] = true, [TCP_BIT_SYN | TCP_BIT_ACK] = true,
		[TCP_BIT_RST] = true, [TCP_BIT_RST | TCP_BIT_ACK] = true,
		[TCP_BIT_ACK] = true, [TCP_BIT_FIN | TCP_BIT_ACK] = true,
		[0x17] = false, /* all four: the last index */
	};

	if (!sensible[s->flags & (TCP_BIT_FIN | TCP_BIT_SYN | TCP_BIT_RST | TCP_BIT_ACK)])
		return outcome_invalid(TCP_REASON_FLAGS);
	if (s->flags & TCP_BIT_SYN)
		return track_syn(t, s, from);
	if (s->flags & TCP_BIT_RST)
		return track_rst(t, s, from);
	if (t->state == TCP_STATE_SYN_SENT)
		return from == TCP_TO_CLIENT ? stray_ack(t, s)
					     : outcome_invalid(TCP_REASON_HANDSHAKE);
	if (t->state == TCP_STATE_NONE) {
		if (!pickup)
			return outcome_invalid(TCP_REASON_NOT_OPEN);
		pick_up(t, s, from);
	}
	return track_ack(t, s, from);
}
