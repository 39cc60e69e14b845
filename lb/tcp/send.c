/* SPDX-License-Identifier: BSD-3-Clause */
/* The segment that a connection has to send next (RFC 9293, 3.8.6; 9937; 8985, 7.3). */
#include "tcp/congestion.h"
#include "tcp/connection.h"
#include "tcp/held.h"
#include "tcp/recovery.h"
#include "tcp/sent.h"
#include "tcp/timers.h"

/*
 * A window that was closed is told again when nothing comes: the segment that told of it may be
 * lost, and a client asks less and less often (RFC 9293, 3.8.6.1). First every 200 ms, then every
 * second.
 */
#define SEND_REOPENED         7
#define SEND_REOPENED_SLOWLY  3
#define SEND_REOPENED_MS      200
#define SEND_REOPENED_SLOW_MS 1000

/* The window to offer: the granted bytes, raised only in steps that are worth a segment. */
static uint16_t send_window(struct tcp_connection *c, uint8_t scale)
{
	uint32_t edge = sequence_max(c->rcv_limit, c->rcv_edge), units;
	uint32_t granted = edge - c->rcv_nxt;
	bool closed = c->rcv_edge - c->rcv_nxt < c->mss;

	if (edge - c->rcv_edge < (c->mss < granted / 2 ? c->mss : granted / 2))
		edge = c->rcv_edge;
	granted = edge - c->rcv_nxt;
	units = granted >> scale;
	/* Never offer less than before (RFC 7323, 2.4): round up where rounding down would take
	 * some back.
	 */
	if (sequence_before(c->rcv_nxt + (units << scale), c->rcv_edge))
		units = (granted + (1u << scale) - 1) >> scale;
	if (units > UINT16_MAX)
		units = UINT16_MAX;
	c->rcv_edge = sequence_max(c->rcv_edge, c->rcv_nxt + (units << scale));
	if (closed && c->rcv_edge - c->rcv_nxt >= c->mss && tcp_is_synchronized(c) &&
	    !c->fin_received)
		c->reopened = SEND_REOPENED;
	return units;
}

static void send_fill(const struct tcp_stack *stack, struct tcp_connection *c,
		      struct tcp_header *out)
{
	out->ack = c->rcv_nxt;
	out->flags |= TCP_BIT_ACK;
	if (c->timestamps) {
		out->has_timestamp = true;
		out->ts_value = stack->now_ms + c->ts_offset;
		out->ts_echo = c->ts_recent;
	}
	if (c->ece && !(out->flags & TCP_BIT_SYN))
		out->flags |= TCP_BIT_ECE;
	out->window = send_window(c, out->flags & TCP_BIT_SYN ? 0 : c->rcv_scale);
}

/* Note that a segment was sent, which carries an acknowledgement. */
static void send_done(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	/* Only blocks tell of bytes out of order, and a full segment has no room for them. */
	bool told = out->n_sacks > 0 || !tcp_held_has_blocks(c);

	c->rcv_acked = c->rcv_nxt;
	c->sent_ms = stack->now_ms;
	stack->counters.segments_out++;
	if (!told)
		return;
	c->ack_now = false;
	c->ack_segments = 0;
	tcp_timer_clear(c, TCP_TIMER_ACK);
	if (c->reopened > 0)
		tcp_timer_set(c, TCP_TIMER_ACK,
			      stack->now_ms + (c->reopened > SEND_REOPENED_SLOWLY
						       ? SEND_REOPENED_MS
						       : SEND_REOPENED_SLOW_MS));
	if (out->n_sacks > 0)
		tcp_held_reported(stack, c);
}

static bool send_syn(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	if (!c->syn_now)
		return false;
	c->syn_now = false;
	out->seq = c->snd_una;
	out->flags = TCP_BIT_SYN | (c->ecn ? TCP_BIT_ECE : 0);
	out->mss = stack->settings->mss;
	if (c->scales)
		out->scale = c->rcv_scale;
	out->sack_permitted = c->sack;
	send_fill(stack, c, out);
	if (!tcp_timer_runs(c, TCP_TIMER_RTO))
		tcp_timer_set(c, TCP_TIMER_RTO, stack->now_ms + tcp_timer_rto_ms(stack, c));
	send_done(stack, c, out);
	return true;
}

static bool send_reset(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	if (!c->rst_now)
		return false;
	c->rst_now = false;
	out->seq = c->snd_nxt;
	out->flags = TCP_BIT_RST;
	if (tcp_is_synchronized(c) || c->state == TCP_CLOSED) {
		out->flags |= TCP_BIT_ACK;
		out->ack = c->rcv_nxt;
	}
	c->state = TCP_CLOSED;
	c->timers = 0;
	stack->counters.segments_out++;
	return true;
}

/* Blocks go where the segment has room for them. */
static inline void send_blocks(const struct tcp_connection *c, struct tcp_header *out)
{
	uint32_t room = c->mss - out->length, max = c->timestamps ? 3 : TCP_SACKS_MAX;

	if (!tcp_held_has_blocks(c))
		return;
	room = room < 4 ? 0 : (room - 4) / 8;
	tcp_held_write(c, out->length == 0 ? max : room < max ? room : max, out);
}

/* Make a segment of data: <length> bytes from number <seq> on, and the FIN if <fin>. */
static inline __attribute__((always_inline)) void send_data(struct tcp_stack *stack,
							    struct tcp_connection *c, uint32_t seq,
							    uint32_t length, bool fin,
							    struct tcp_header *out)
{
	out->seq = seq;
	out->length = length;
	if (fin)
		out->flags |= TCP_BIT_FIN;
	if (length > 0 && out->seq + length == c->snd_end)
		out->flags |= TCP_BIT_PSH;
	send_blocks(c, out);
	send_fill(stack, c, out);
	send_done(stack, c, out);
}

/* Send again what is lost, from the lowest number on. */
static bool send_again(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	struct tcp_active *a = c->active;
	struct tcp_sent *s;
	uint32_t offset, length;

	if (a == NULL || a->n_lost == 0)
		return false;
	while (!tcp_sent_is_due(s = tcp_sent_at(a, a->lost))) {
		if (a->lost.chunk->n_lost == 0)
			a->lost.index = TCP_CHUNK_SENT - 1; /* there is none in it */
		tcp_sent_next(a, &a->lost);
		a->lost_offset = 0;
	}
	if (c->pipe + s->length > c->cwnd && c->pipe > 0 && a->lost_offset == 0)
		return false;
	offset = a->lost_offset;
	length = s->length - offset;
	if (length > c->mss) {
		length = c->mss;
		a->lost_offset += length; /* the path takes less than it did */
	} else {
		a->lost_offset = 0;
		tcp_recovery_sent(stack, c, a->lost.chunk, s);
	}
	stack->counters.retransmits++;
	c->retransmits++;
	send_data(stack, c, s->seq + offset, length,
		  s->flags & TCP_SENT_FIN && offset + length == s->length, out);
	return true;
}

/* The bytes of new data that may go now. */
static uint32_t send_allowed(struct tcp_stack *stack, struct tcp_connection *c)
{
	uint32_t queued = c->snd_end - c->snd_nxt, window = c->snd_una + c->snd_wnd - c->snd_nxt;
	uint32_t length;

	if (c->fin_sent || queued == 0)
		return 0;
	if ((int32_t)window < 0)
		window = 0;
	length = queued < c->mss ? queued : c->mss;
	if (length > window) {
		/* RFC 9293, 3.8.6.2.1: a small piece of a large window is not worth a segment. */
		if (window == 0 || (window < c->snd_wnd_max / 2 && !c->push_now))
			return 0;
		length = window;
	}
	return c->pipe + length <= c->cwnd || c->pipe == 0 || c->tail_now ? length : 0;
}

/* Shrink the window after an idle time (RFC 5681, 4.1), which is no time of growth (RFC 9438, 5.8).
 */
static void send_after_idle(const struct tcp_stack *stack, struct tcp_connection *c)
{
	uint32_t initial = (uint32_t)stack->settings->initial_segments * c->mss;

	if (c->snd_una != c->snd_nxt || stack->now_ms - c->sent_ms <= c->rto_ms)
		return;
	if (c->cwnd > initial)
		c->cwnd = initial;
	stack->settings->congestion->restart(c);
}

/* Does a segment that is sent now need no record? Nothing else is under way, nothing was amiss, and
 * a mark does not begin a phase while it is. */
static bool send_is_lone(const struct tcp_connection *c, bool fin)
{
	return c->snd_una == c->snd_nxt && c->active == NULL && !fin && !c->tail_now && !c->ecn &&
	       c->phase == TCP_PHASE_OPEN;
}

/* A record for what is sent next. NULL: there are too many, or no memory. */
static struct tcp_sent *send_record(struct tcp_stack *stack, struct tcp_connection *c,
				    uint32_t length, bool fin)
{
	struct tcp_active *a = tcp_active_get(stack, c);
	struct tcp_sent *s = a == NULL ? NULL : tcp_sent_append(stack, a);

	if (s != NULL)
		*s = (struct tcp_sent){
			.seq = c->snd_nxt, .length = length, .flags = fin ? TCP_SENT_FIN : 0};
	return s;
}

/* Inlined: most segments are made here. */
static inline __attribute__((always_inline)) bool
send_new(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	struct tcp_sent *s = NULL;
	uint32_t length, seq = c->snd_nxt;
	bool fin;

	send_after_idle(stack, c);
	length = send_allowed(stack, c);
	fin = c->fin_queued && !c->fin_sent && c->snd_nxt + length == c->snd_end;
	if (length == 0 && !fin)
		return false;
	if (!send_is_lone(c, fin) && (s = send_record(stack, c, length, fin)) == NULL)
		return false;
	if (c->snd_una == c->snd_nxt)
		c->progress_ms = stack->now_ms;
	if (fin) {
		c->fin_sent = true;
		c->state = c->state == TCP_CLOSE_WAIT ? TCP_LAST_ACK : TCP_FIN_WAIT_1;
	}
	c->snd_nxt += length + fin;
	if (c->tail_now) {
		c->tail_now = false;
		c->tlp = true;
		c->tlp_again = false;
		c->active->tlp_end = c->snd_nxt;
	}
	c->push_now = false;
	if (s == NULL)
		tcp_recovery_sent_lone(stack, c, length);
	else
		tcp_recovery_sent(stack, c, c->active->last, s);
	if (c->cwr_now && length > 0) {
		out->flags |= TCP_BIT_CWR;
		c->cwr_now = false;
	}
	send_data(stack, c, seq, length, fin, out);
	return true;
}

/* RFC 8985, 7.3: without new data the last segment goes again, so that its loss is seen. */
static bool send_tail(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	struct tcp_sent *s;

	if (!c->tail_now)
		return false;
	c->tail_now = false;
	if (c->lone)
		tcp_active_get(stack, c);
	s = c->active == NULL ? NULL : tcp_sent_last(c->active);
	if (s == NULL || !tcp_sent_in_pipe(s) || s->length > c->mss)
		return false;
	c->tlp = c->tlp_again = true;
	c->active->tlp_end = c->snd_nxt;
	c->pipe -= s->length;
	tcp_recovery_sent(stack, c, c->active->last, s);
	stack->counters.retransmits++;
	c->retransmits++;
	send_data(stack, c, s->seq, s->length, s->flags & TCP_SENT_FIN, out);
	return true;
}

/* A number that was acknowledged before makes the client answer. */
static bool send_probe(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	if (!c->probe_now)
		return false;
	c->probe_now = false;
	out->seq = c->snd_una - 1;
	send_fill(stack, c, out);
	send_done(stack, c, out);
	return true;
}

static inline __attribute__((always_inline)) bool
send_acknowledgement(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	if (!c->ack_now)
		return false;
	out->seq = c->snd_nxt;
	send_blocks(c, out);
	send_fill(stack, c, out);
	send_done(stack, c, out);
	c->ack_now = false;
	return true;
}

/*
 * Run the persist timer while something is queued and nothing is under way: the client's window
 * does not take it, or there was no memory for a record.
 */
static void send_watch_window(const struct tcp_stack *stack, struct tcp_connection *c)
{
	if ((c->snd_nxt == c->snd_end && !c->fin_queued) || c->fin_sent ||
	    c->snd_una != c->snd_nxt || !tcp_is_synchronized(c)) {
		tcp_timer_clear(c, TCP_TIMER_PERSIST);
	} else if (!tcp_timer_runs(c, TCP_TIMER_PERSIST)) {
		c->progress_ms = stack->now_ms;
		tcp_timer_set(c, TCP_TIMER_PERSIST, stack->now_ms + c->rto_ms);
	}
}

bool tcp_next(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	*out = (struct tcp_header){.scale = TCP_SCALE_NONE};
	if (send_reset(stack, c, out))
		return true;
	/* Nothing follows a reset, ours or the client's. */
	if (c->state == TCP_CLOSED)
		return false;
	if (c->state == TCP_SYN_RECEIVED)
		return send_syn(stack, c, out);
	if (send_again(stack, c, out) || send_new(stack, c, out) || send_tail(stack, c, out) ||
	    send_probe(stack, c, out) || send_acknowledgement(stack, c, out))
		return true;
	send_watch_window(stack, c);
	return false;
}

bool tcp_next_alone(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_header *out)
{
	*out = (struct tcp_header){.scale = TCP_SCALE_NONE};
	return tcp_is_synchronized(c) && !c->rst_now && send_acknowledgement(stack, c, out);
}

/* Does the client have to be told of bytes out of order? Each segment's blocks are its own. */
static bool send_tells_blocks(const struct tcp_connection *c)
{
	const struct tcp_active *a = c->active;

	return c->sack && (a->held != NULL || a->dsack.from != a->dsack.to);
}

void tcp_extend(struct tcp_stack *stack, struct tcp_connection *c, uint32_t most,
		struct tcp_header *out)
{
	struct tcp_header next;

	/* A segment that goes again stays alone, and CWR is for one (RFC 3168, 6.1.2). */
	if (!tcp_may_extend(c, out) || out->flags & TCP_BIT_CWR ||
	    tcp_active_get(stack, c) == NULL || tcp_sent_last(c->active)->sends > 1 ||
	    send_tells_blocks(c))
		return;
	do {
		uint32_t queued = c->snd_end - c->snd_nxt;

		next = (struct tcp_header){.scale = TCP_SCALE_NONE};
		if (queued == 0 || out->length + (queued < c->mss ? queued : c->mss) > most ||
		    !send_new(stack, c, &next))
			return;
		out->length += next.length;
		out->flags |= next.flags;
	} while (next.length == c->mss);
}
