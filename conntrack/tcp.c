/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A TCP connection seen from the middle. Sections are RFC 9293's unless another RFC is named.
 *
 * Windows: an end may send what the other end has permitted, and every such permission passed here
 * first. So our copy of an end's state may lag behind the end itself, but never behind what the
 * other end knows of it: bounds computed from the copy are at least as wide as the ends' own.
 */
#include "tcp_state.h"

/*
 * Bytes. Late segments are checked against windows of at least this size, so that the reordered
 * ACKs of an end with a tiny window are not refused.
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
 * segment and the window's start from a later one that repeats an older number (3.10.7.4, fifth:
 * SND.WL1), so only the largest window is a safe bound.
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

/* Apply an event to the state. False if the table has no transition for it. */
static bool track_event(struct tcp_track *t, enum tcp_event event, enum tcp_direction from)
{
	uint8_t next = tcp_transition[t->state][event][from];

	if (next == TCP_STATE_NONE)
		return false;
	t->state = next;
	return true;
}

/* One past the last sequence number that the segment uses. */
static inline uint32_t segment_end(const struct tcp_segment *s)
{
	return s->seq + s->length + !!(s->flags & TCP_BIT_SYN) + !!(s->flags & TCP_BIT_FIN);
}

/*
 * A SYN's own window is never scaled, later ones only if both SYNs had the option (RFC 7323, 2.2).
 */
static uint32_t segment_window(const struct tcp_track *t, const struct tcp_segment *s,
			       enum tcp_direction from)
{
	if (s->flags & TCP_BIT_SYN || !t->bits[0].scales || !t->bits[1].scales)
		return s->window;
	return (uint32_t)s->window << t->bits[from].scale;
}

/* Apply an acceptable acknowledgment: its number and window, and the SYN or FIN that it covers. */
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
 * Start the client's side. Until the server's SYN is seen, the server side's <ack> is the
 * acknowledgment number of the server's last stray segment. It starts as the number of the client's
 * SYN, for which the client would send no reset.
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

/* The server accepted the client's challenged SYN: both ends agree on a new connection. */
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

/* True when the segment is the server's answer, SYN or RST, to the saved SYN. */
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

/* A segment of the server that does not answer this SYN: the client will reset it (3.10.7.3,
 * first). */
static struct tcp_outcome stray_ack(struct tcp_track *t, const struct tcp_segment *s)
{
	t->side[TCP_TO_CLIENT].ack = s->ack;
	return outcome_challenge(TCP_REASON_OTHER_SYN);
}

/*
 * A SYN in a state that expects none. The end that gets it answers with a challenge ACK, at any
 * sequence number (RFC 5961, 4.2), or accepts it when it has forgotten the connection.
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
 * A SYN while the connection opens. The server's numbers count only after the client has confirmed
 * them: the server may have sent two cookies (RFC 4987, 3.6), or a third party may have sent a SYN
 * in its name. A SYN that acknowledges nothing must not reach the client, which might accept it
 * (figure 7).
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
 * True when a client's SYN may open a new connection: in TIME_WAIT its number must be above all
 * that the last connection sent (3.10.7.4). A server may accept a lower one by timestamps (RFC
 * 6191, 2); its SYN,ACK shows that. After a reset a SYN with any number opens a connection, unless
 * it is a late copy of the first SYN.
 */
static bool may_reopen(const struct tcp_track *t, const struct tcp_segment *s)
{
	if (t->state == TCP_STATE_TIME_WAIT)
		return !seq_later(t->side[TCP_FROM_CLIENT].end, s->seq);
	return !t->bits[TCP_TO_CLIENT].syn_acked || !repeats_syn(t, s, TCP_FROM_CLIENT);
}

/* Process a SYN when there is no live connection. */
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
	/* The client's reset answers a stray segment; a client withdraws its own SYN silently. */
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
 * RFC 5961, 3.2: only the exact next number resets. That is the number that the other end
 * acknowledged last (an end without the connection copies it, 3.5.2), or one past all that was sent
 * (ABORT, 3.10.5). While the other end may still be in SYN-SENT, an acceptable ACK also resets
 * (3.10.7.3). A server that refuses the client's next SYN has no connection left.
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
	/* An end that has forgotten the connection builds its reset from the late segment's
	 * numbers. */
	if ((t->state == TCP_STATE_CLOSE || t->state == TCP_STATE_TIME_WAIT) &&
	    seq_between(peer->ack - side_reach(peer), s->seq, side_edge(peer) + 1))
		return outcome(TCP_VERDICT_DUPLICATE, TCP_REASON_OLD);
	if (seq_between(peer->ack, s->seq, side_edge(peer) + 1))
		return outcome_challenge(TCP_REASON_RST_INEXACT);
	return outcome_invalid(TCP_REASON_RST_SEQ);
}

/* Everything else */

/*
 * Checks a segment's sequence numbers. The upper bound is one past the edge, for a probe of a
 * closed window (3.8.6.1) and what follows it. The lower bound is two windows back: no end repeats
 * older data.
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
 * Checks an acknowledgment number (RFC 5961, 5.2): from the largest window before the last
 * acknowledgment to all that the other end has sent. While the other end's SYN is unacknowledged,
 * the lower bound is that SYN. After a pickup the other end may have sent more than we saw.
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

/* False when data follows a FIN, or a repeated FIN has another number. */
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
	/*
	 * The window that the sender knows starts no earlier; a keepalive is one before it (3.8.4).
	 */
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

/* Take the connection for established. Neither end's window or scale is known. */
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
	/* URG, PSH, ECE and CWR do not affect the connection's state. */
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
