/* SPDX-License-Identifier: BSD-3-Clause */
/* A segment arrives: RFC 9293, 3.10.7.4, in its order, with 7323 and 5961. */
#include "tcp/congestion.h"
#include "tcp/connection.h"
#include "tcp/held.h"
#include "tcp/recovery.h"
#include "tcp/sent.h"
#include "tcp/timers.h"

#define RECEIVE_CHALLENGE_MS   500              /* between answers to segments that prove nothing */
#define RECEIVE_PAWS_MS        (24 * 86400000u) /* RFC 7323, 5.5: a timestamp this old says nothing */
#define RECEIVE_ACK_EVERY      2                /* full segments: RFC 9293, 3.8.6.3 */
#define RECEIVE_RTO_AFTER_LOSS 3000             /* ms, RFC 6298, 5.7: the SYN-ACK had to go again */

/* Answers with an acknowledgement, not too often: the sender may have lost its place, or be an
 * attacker, who must learn nothing (RFC 5961, 7). */
static void receive_challenge(struct tcp_stack *stack, struct tcp_connection *c)
{
	if (stack->now_ms - c->challenge_ms < RECEIVE_CHALLENGE_MS)
		return;
	c->challenge_ms = stack->now_ms;
	c->reset_challenged = false;
	c->ack_now = true;
	stack->counters.challenges++;
}

/*
 * The same for a reset that is not exact. Its client may be gone, and sends no other: that it
 * probed a window just before must not leave the connection to its keepalive.
 */
static void receive_challenge_reset(struct tcp_stack *stack, struct tcp_connection *c)
{
	if (!c->reset_challenged)
		c->challenge_ms = stack->now_ms - RECEIVE_CHALLENGE_MS;
	receive_challenge(stack, c);
	c->reset_challenged = true;
}

/* Refuse a segment whose timestamp is too old (RFC 7323, 5.3, R1). */
static enum tcp_refusal receive_check_timestamp(struct tcp_stack *stack, struct tcp_connection *c,
						const struct tcp_header *h)
{
	if (!c->timestamps || h->flags & TCP_BIT_RST)
		return TCP_REFUSAL_NONE;
	if (!h->has_timestamp)
		return TCP_REFUSAL_TIMESTAMP;
	if (!sequence_before(h->ts_value, c->ts_recent) ||
	    stack->now_ms - c->ts_recent_ms > RECEIVE_PAWS_MS)
		return TCP_REFUSAL_NONE;
	if (h->length > 0 || h->flags & TCP_BIT_FIN)
		c->ack_now = true;
	else
		receive_challenge(stack, c);
	return TCP_REFUSAL_PAWS;
}

/*
 * First step: is any byte of the segment expected? A window of 0 takes a segment at its edge,
 * because the acknowledgement in it counts.
 */
static enum tcp_refusal receive_check_sequence(struct tcp_stack *stack, struct tcp_connection *c,
					       const struct tcp_header *h)
{
	uint32_t end = h->seq + tcp_header_span(h);
	uint32_t edge = sequence_max(c->rcv_limit, c->rcv_edge);

	if (!sequence_before(end, c->rcv_nxt) && !sequence_after(h->seq, edge) &&
	    (end != c->rcv_nxt || h->seq == end))
		return TCP_REFUSAL_NONE;
	if (h->flags & TCP_BIT_RST)
		return TCP_REFUSAL_RST;
	if (c->state == TCP_SYN_RECEIVED && h->flags & TCP_BIT_SYN && h->seq == c->irs) {
		c->syn_now = true; /* our answer was lost */
		return TCP_REFUSAL_BEFORE;
	}
	if (sequence_after(h->seq, edge)) {
		receive_challenge(stack, c);
		return TCP_REFUSAL_AFTER;
	}
	stack->counters.duplicates_in++;
	if (h->length > 0) {
		tcp_held_duplicate(stack, c, h->seq, h->seq + h->length);
		c->ack_now = true;
	} else if (h->flags & TCP_BIT_FIN) {
		c->ack_now = true;
	} else {
		receive_challenge(stack, c); /* a keepalive */
	}
	return TCP_REFUSAL_BEFORE;
}

/* Second and fourth step, as RFC 5961, 3 and 4, define them. True: the segment is done with. */
static bool receive_reset_or_syn(struct tcp_stack *stack, struct tcp_connection *c,
				 const struct tcp_header *h, struct tcp_received *out)
{
	if (h->flags & TCP_BIT_RST) {
		if (h->seq != c->rcv_nxt) {
			out->refusal = TCP_REFUSAL_RST;
			receive_challenge_reset(stack, c);
			return true;
		}
		c->state = TCP_CLOSED;
		c->timers = 0;
		c->rst_now = false; /* a reset gets no answer */
		out->reset = out->closed = true;
		return true;
	}
	if (!(h->flags & TCP_BIT_SYN))
		return false;
	out->refusal = TCP_REFUSAL_SYN;
	receive_challenge(stack, c);
	return true;
}

/* Fifth step: check the acknowledgement. False: the segment is refused for it. */
static bool receive_check_ack(struct tcp_stack *stack, struct tcp_connection *c,
			      const struct tcp_header *h, struct tcp_received *out)
{
	if (!(h->flags & TCP_BIT_ACK)) {
		out->refusal = TCP_REFUSAL_NO_ACK;
		return false;
	}
	if (c->state == TCP_SYN_RECEIVED) {
		if (h->ack == c->snd_nxt)
			return true;
		out->refusal = TCP_REFUSAL_HANDSHAKE;
		return false;
	}
	/* RFC 5961, 5.2 */
	if (!sequence_after(h->ack, c->snd_nxt) &&
	    !sequence_before(h->ack, c->snd_una - c->snd_wnd_max))
		return true;
	out->refusal = TCP_REFUSAL_ACK;
	receive_challenge(stack, c);
	return false;
}

static void receive_establish(struct tcp_stack *stack, struct tcp_connection *c,
			      const struct tcp_header *h, struct tcp_received *out)
{
	c->state = TCP_ESTABLISHED;
	c->snd_una = h->ack;
	c->snd_wl1 = h->seq - 1; /* this segment's window counts */
	if (c->backoff > 0)
		c->rto_ms = RECEIVE_RTO_AFTER_LOSS;
	c->backoff = 0;
	c->syn_now = false;
	tcp_timer_clear(c, TCP_TIMER_RTO);
	tcp_timer_set(c, TCP_TIMER_LIFE, stack->now_ms + stack->settings->keepalive_ms);
	out->established = true;
}

/*
 * The window of an acknowledgement that is not older than the last. The order of RFC
 * 9293, 3.10.7.4, by SEG.SEQ first, is wrong for clients that go back: a window counts from its
 * acknowledgement, so one that advances brings its window with it.
 */
static void receive_window(struct tcp_connection *c, const struct tcp_header *h, uint32_t acked)
{
	uint32_t window = (uint32_t)h->window << c->snd_scale;

	if (h->ack != c->snd_una || (acked == 0 && !sequence_after(h->seq, c->snd_wl1) &&
				     window <= c->snd_wnd && window != 0))
		return;
	c->snd_wnd = window;
	c->snd_wl1 = h->seq;
	if (window > c->snd_wnd_max)
		c->snd_wnd_max = window;
	if (window > 0 && tcp_timer_runs(c, TCP_TIMER_PERSIST)) {
		tcp_timer_clear(c, TCP_TIMER_PERSIST);
		c->backoff = 0;
	}
}

static void receive_mark(struct tcp_stack *stack, struct tcp_connection *c,
			 const struct tcp_header *h)
{
	if (!c->ecn || !(h->flags & TCP_BIT_ECE) || c->phase != TCP_PHASE_OPEN)
		return;
	c->phase = TCP_PHASE_REDUCED;
	c->recover = c->snd_nxt;
	c->ssthresh = stack->settings->congestion->reduce(stack, c);
	c->cwnd = c->ssthresh;
	c->cwr_now = true;
}

/* Our FIN was acknowledged. */
static void receive_fin_acknowledged(struct tcp_stack *stack, struct tcp_connection *c,
				     struct tcp_received *out)
{
	switch (c->state) {
	case TCP_FIN_WAIT_1:
		c->state = TCP_FIN_WAIT_2;
		tcp_timer_set(c, TCP_TIMER_LIFE, stack->now_ms + stack->settings->fin_wait_ms);
		break;
	case TCP_CLOSING:
		c->state = TCP_TIME_WAIT;
		out->closed = true;
		break;
	case TCP_LAST_ACK:
		c->state = TCP_CLOSED;
		c->timers = 0;
		out->closed = true;
		break;
	}
}

/* The acknowledgement itself, and the window that comes with it. */
static inline void receive_delivery(struct tcp_stack *stack, struct tcp_connection *c,
				    const struct tcp_header *h, struct tcp_received *out)
{
	if (!sequence_before(h->ack, c->snd_una)) {
		out->acked = tcp_recovery_acknowledged(stack, c, h);
		if (out->acked > 0 || c->snd_una == c->snd_nxt)
			c->progress_ms = stack->now_ms;
	}
	receive_window(c, h, out->acked);
}

static void receive_acknowledgement(struct tcp_stack *stack, struct tcp_connection *c,
				    const struct tcp_header *h, struct tcp_received *out)
{
	bool was = c->fin_acked;

	receive_mark(stack, c, h);
	receive_delivery(stack, c, h, out);
	if (c->fin_acked && !was) {
		out->acked--; /* the FIN is no byte */
		receive_fin_acknowledged(stack, c, out);
	}
}

/* Eighth step: take the client's FIN, once everything before it has arrived. */
static void receive_fin(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_received *out)
{
	if (!c->fin_known || c->fin_received || c->rcv_nxt != c->fin_seq)
		return;
	c->fin_received = true;
	c->rcv_nxt++;
	tcp_held_forget(stack, c); /* a client sends nothing behind its FIN */
	c->reopened = 0;
	c->rcv_limit = sequence_max(c->rcv_limit, c->rcv_nxt);
	out->finished = true;
	switch (c->state) {
	case TCP_ESTABLISHED:
		c->state = TCP_CLOSE_WAIT;
		break;
	case TCP_FIN_WAIT_1:
		c->state = TCP_CLOSING;
		break;
	case TCP_FIN_WAIT_2:
		c->state = TCP_TIME_WAIT;
		out->closed = true;
		break;
	}
}

static void receive_congestion(struct tcp_connection *c, const struct tcp_header *h, bool marked)
{
	if (!c->ecn)
		return;
	if (h->flags & TCP_BIT_CWR)
		c->ece = false;
	if (marked)
		c->ece = true;
}

/* Every second full segment is acknowledged at once; others wait for a reply. */
static inline void receive_delay_ack(const struct tcp_stack *stack, struct tcp_connection *c,
				     const struct tcp_header *h)
{
	if (h->length >= c->mss / 2 && ++c->ack_segments >= RECEIVE_ACK_EVERY)
		c->ack_now = true;
	if (!c->ack_now && !tcp_timer_runs(c, TCP_TIMER_ACK))
		tcp_timer_set(c, TCP_TIMER_ACK, stack->now_ms + stack->settings->ack_delay_ms);
}

static void receive_plan_ack(const struct tcp_stack *stack, struct tcp_connection *c,
			     const struct tcp_header *h, const struct tcp_received *out)
{
	if (h->length == 0)
		return;
	if (c->reopened > 0) { /* the client knows of its window */
		c->reopened = 0;
		tcp_timer_clear(c, TCP_TIMER_ACK);
	}
	if (c->active != NULL && c->active->held != NULL)
		c->ack_now = true; /* RFC 5681, 4.2: a hole; and the segment that fills one */
	if (out->advanced != h->length)
		c->ack_now = true;
	receive_delay_ack(stack, c, h);
}

static void receive_payload(struct tcp_stack *stack, struct tcp_connection *c,
			    const struct tcp_header *h, struct tcp_received *out)
{
	uint32_t end = h->seq + h->length, edge = sequence_max(c->rcv_limit, c->rcv_edge);

	if (c->fin_received)
		return;
	if (c->fin_known)
		end = sequence_min(end, c->fin_seq);
	if (h->length > 0) {
		if (sequence_after(h->seq, c->rcv_nxt))
			stack->counters.out_of_order++;
		if (!tcp_held_take(stack, c, h->seq, end, out)) {
			out->refusal = TCP_REFUSAL_ROOM;
			stack->counters.refused[TCP_REFUSAL_ROOM]++;
			c->ack_now = true;
			return;
		}
		if (out->n_new == 0 && sequence_before(h->seq, edge))
			tcp_held_duplicate(stack, c, h->seq, sequence_min(end, edge));
	}
	if (h->flags & TCP_BIT_FIN && !c->fin_known && !sequence_after(end, edge) &&
	    !sequence_before(end, c->rcv_nxt)) {
		c->fin_known = true;
		c->fin_seq = end;
	}
	if (h->flags & TCP_BIT_FIN)
		c->ack_now = true; /* in order or not, the client waits for it */
	receive_plan_ack(stack, c, h, out);
	receive_fin(stack, c, out);
}

/* Keep the timestamp of the segment that covers the last acknowledgement sent (RFC 7323, 4.3). */
static void receive_note_timestamp(const struct tcp_stack *stack, struct tcp_connection *c,
				   const struct tcp_header *h)
{
	if (!c->timestamps || sequence_after(h->seq, c->rcv_acked) ||
	    sequence_before(h->ts_value, c->ts_recent))
		return;
	c->ts_recent = h->ts_value;
	c->ts_recent_ms = stack->now_ms;
}

/*
 * Is the segment what was expected: in order, and acknowledging what is under way or nothing new?
 * Then it passes all of the checks below. Nearly every segment is.
 */
static inline bool receive_is_expected(const struct tcp_connection *c, const struct tcp_header *h)
{
	return c->state == TCP_ESTABLISHED && (h->flags & ~TCP_BIT_PSH) == TCP_BIT_ACK &&
	       h->seq == c->rcv_nxt && h->ack - c->snd_una <= c->snd_nxt - c->snd_una &&
	       (!c->timestamps ||
		(h->has_timestamp && !sequence_before(h->ts_value, c->ts_recent)));
}

/*
 * Does nothing come or go but the segment's bytes and its acknowledgement? It was expected, nothing
 * is out of order and no record kept, no FIN has come, and nothing is said of marks or windows.
 */
static inline bool receive_is_plain(const struct tcp_connection *c, const struct tcp_header *h)
{
	return c->active == NULL && !c->ecn && !c->fin_known && c->reopened == 0 &&
	       !sequence_after(h->seq + h->length, c->rcv_limit);
}

/* Header prediction: what is left to do then. */
static void receive_plain(struct tcp_stack *stack, struct tcp_connection *c,
			  const struct tcp_header *h, struct tcp_received *out)
{
	receive_delivery(stack, c, h, out);
	if (h->length == 0)
		return;
	out->new[0] = (struct tcp_new){.offset = 0, .length = h->length, .seq = h->seq};
	out->n_new = 1;
	out->advanced = h->length;
	c->rcv_nxt += h->length;
	receive_delay_ack(stack, c, h);
}

/* The checks of RFC 9293, in its order. False: the segment is done with. */
static bool receive_check(struct tcp_stack *stack, struct tcp_connection *c,
			  const struct tcp_header *h, struct tcp_received *out)
{
	if (c->state == TCP_CLOSED)
		out->refusal = TCP_REFUSAL_ENDED;
	else
		out->refusal = receive_check_timestamp(stack, c, h);
	if (out->refusal == TCP_REFUSAL_NONE)
		out->refusal = receive_check_sequence(stack, c, h);
	if (out->refusal == TCP_REFUSAL_NONE && !receive_reset_or_syn(stack, c, h, out) &&
	    receive_check_ack(stack, c, h, out))
		return true;
	stack->counters.refused[out->refusal]++;
	return false;
}

void tcp_receive(struct tcp_stack *stack, struct tcp_connection *c, const struct tcp_header *h,
		 bool marked, struct tcp_received *out)
{
	bool expected;

	out->refusal = TCP_REFUSAL_NONE;
	out->n_new = 0;
	out->established = out->finished = out->reset = out->closed = false;
	out->acked = out->advanced = 0;
	stack->counters.segments_in++;
	expected = receive_is_expected(c, h);
	if (!expected && !receive_check(stack, c, h, out))
		return;
	receive_note_timestamp(stack, c, h);
	c->heard_ms = stack->now_ms;
	c->probes = 0;
	if (expected && receive_is_plain(c, h))
		return receive_plain(stack, c, h, out);
	if (c->state == TCP_SYN_RECEIVED)
		receive_establish(stack, c, h, out);
	receive_acknowledgement(stack, c, h, out);
	if (out->closed)
		return;
	receive_congestion(c, h, marked);
	receive_payload(stack, c, h, out);
}
