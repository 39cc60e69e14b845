/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/recovery.h"

#include "tcp/congestion.h"
#include "tcp/sent.h"
#include "tcp/timers.h"

#define RECOVERY_DUPLICATES    3  /* RFC 5681, 3.2 */
#define RECOVERY_ACK_DELAY     60 /* ms that a client may keep an acknowledgement: Linux 40 */
#define RECOVERY_PROBE_MIN     2  /* ms: timers are no finer */
#define RECOVERY_REORDER_MAX   255
#define RECOVERY_REORDER_KEEPS 16 /* recoveries (RFC 8985, 6.2) */

/* The effect of one acknowledgement. */
struct recovery_ack {
	uint32_t acked;     /* bytes in order */
	uint32_t delivered; /* bytes, also out of order */
	uint32_t lost;      /* bytes that were found to be lost */
	uint32_t pipe;      /* before it */
	uint32_t rtt_us;    /* 0: no sample */
	bool duplicate;     /* a client without SACK got something out of order */
	bool dsack;
};

/* --- round trips --------------------------------------------------------------------------------
 */

/* Take an RTT sample (RFC 6298, 2); the variance is at least a timer's tick. */
static void recovery_sample(const struct tcp_stack *stack, struct tcp_connection *c, uint32_t rtt)
{
	uint32_t off, rto;

	if (c->srtt_us == 0) {
		c->srtt_us = rtt;
		c->rttvar_us = rtt / 2;
	} else {
		off = rtt > c->srtt_us ? rtt - c->srtt_us : c->srtt_us - rtt;
		c->rttvar_us += ((int32_t)off - (int32_t)c->rttvar_us) / 4;
		c->srtt_us += ((int32_t)rtt - (int32_t)c->srtt_us) / 8;
	}
	if (c->srtt_us == 0)
		c->srtt_us = 1;
	rto = (c->srtt_us + (4 * c->rttvar_us > 1000 ? 4 * c->rttvar_us : 1000)) / 1000 + 1;
	rto = rto > stack->settings->rto_min_ms ? rto : stack->settings->rto_min_ms;
	c->rto_ms = rto < stack->settings->rto_max_ms ? rto : stack->settings->rto_max_ms;
	c->backoff = 0;
}

/* The smallest RTT, which slowly forgets: a route may have become longer. */
static void recovery_sample_min(struct tcp_connection *c, uint32_t rtt)
{
	if (c->rtt_min_us == 0 || rtt < c->rtt_min_us)
		c->rtt_min_us = rtt;
	else
		c->rtt_min_us += (rtt - c->rtt_min_us) >> 8;
}

static void recovery_measure(const struct tcp_stack *stack, struct tcp_connection *c,
			     const struct tcp_header *h, const struct recovery_ack *ack)
{
	if (ack->rtt_us != 0) {
		recovery_sample_min(c, ack->rtt_us);
		recovery_sample(stack, c, ack->rtt_us);
	} else if (ack->acked > 0 && c->timestamps && h->has_timestamp) {
		/* Only retransmissions were acknowledged: the timestamp says which one (RFC 7323,
		 * 4). */
		uint32_t ms = stack->now_ms + c->ts_offset - h->ts_echo;

		if (ms < stack->settings->rto_max_ms)
			recovery_sample(stack, c, ms * 1000 + 500);
	}
}

/* --- delivery -----------------------------------------------------------------------------------
 */

static bool recovery_sent_after(uint32_t time_a, uint32_t end_a, uint32_t time_b, uint32_t end_b)
{
	return time_a == time_b ? sequence_after(end_a, end_b) : sequence_after(time_a, time_b);
}

/* Note that a segment was delivered (RFC 8985, 6.2, steps 1 to 3). */
static void recovery_deliver(const struct tcp_stack *stack, struct tcp_connection *c,
			     const struct tcp_header *h, const struct tcp_sent *s,
			     struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;
	uint32_t end = tcp_sent_end(s), rtt = stack->now_us - s->time_us;

	if (tcp_sent_in_pipe(s))
		c->pipe -= s->length;
	ack->delivered += s->length;
	if (rtt == 0)
		rtt = 1;
	if (s->sends == 1) {
		if (ack->rtt_us == 0 || rtt < ack->rtt_us)
			ack->rtt_us = rtt;
		c->reordered |= sequence_before(end, a->highest);
	} else if (rtt < c->rtt_min_us ||
		   (c->timestamps && h->has_timestamp &&
		    sequence_before(h->ts_echo + 1, stack->now_ms + c->ts_offset - rtt / 1000))) {
		/* It was the first transmission that arrived, not this one. */
		a->highest = sequence_max(a->highest, end);
		return;
	}
	a->highest = sequence_max(a->highest, end);
	if (a->rack_rtt_us == 0 || recovery_sent_after(s->time_us, end, a->rack_us, a->rack_end)) {
		a->rack_us = s->time_us;
		a->rack_end = end;
		a->rack_rtt_us = rtt;
	}
}

/* All records of <chunk> are under way, and were sent once: the last one was sent last. */
static bool recovery_is_plain(const struct tcp_chunk *chunk)
{
	return (chunk->n_sacked | chunk->n_lost | chunk->n_twice | chunk->n_often) == 0;
}

/* Such records from <from> to <to> were all delivered: the last one says what each would. */
static void recovery_deliver_chunk(const struct tcp_stack *stack, struct tcp_connection *c,
				   const struct tcp_header *h, struct recovery_ack *ack,
				   const struct tcp_chunk *chunk, uint32_t from, uint32_t to)
{
	const struct tcp_sent *first = &chunk->sent[from], *last = &chunk->sent[to - 1];
	uint32_t bytes = last->seq - first->seq;

	c->reordered |= sequence_before(tcp_sent_end(first), c->active->highest);
	c->pipe -= bytes;
	ack->delivered += bytes;
	recovery_deliver(stack, c, h, last, ack);
}

/* Takes the records of the first chunk at once, if all are acknowledged and none was lost. */
static bool recovery_cumulative_chunk(struct tcp_stack *stack, struct tcp_connection *c,
				      const struct tcp_header *h, struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;
	const struct tcp_chunk *chunk = a->first.chunk;

	if (chunk == NULL || chunk == a->last || !recovery_is_plain(chunk) ||
	    a->first.index == TCP_CHUNK_SENT ||
	    sequence_after(tcp_sent_end(&chunk->sent[TCP_CHUNK_SENT - 1]), h->ack))
		return false;
	recovery_deliver_chunk(stack, c, h, ack, chunk, a->first.index, TCP_CHUNK_SENT);
	tcp_sent_remove_first_chunk(stack, a);
	return true;
}

static void recovery_cumulative(struct tcp_stack *stack, struct tcp_connection *c,
				const struct tcp_header *h, struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;
	struct tcp_sent *s;
	bool again = false;

	while (recovery_cumulative_chunk(stack, c, h, ack))
		;
	while ((s = tcp_sent_at(a, a->first)) != NULL && !sequence_after(tcp_sent_end(s), h->ack)) {
		again |= s->sends > 1;
		if (!(s->flags & TCP_SENT_SACKED))
			recovery_deliver(stack, c, h, s, ack);
		if (s->flags & TCP_SENT_FIN)
			c->fin_acked = true;
		tcp_sent_remove_first(stack, a);
	}
	/* Segments behind a hole are acknowledged when it is filled, not when they come. */
	if (again)
		ack->rtt_us = 0;
	if (s == NULL || !sequence_after(h->ack, s->seq))
		return;
	/* Part of a segment: what is left of it is a shorter one. */
	if (tcp_sent_in_pipe(s))
		c->pipe -= h->ack - s->seq;
	ack->delivered += h->ack - s->seq;
	s->length -= h->ack - s->seq;
	s->seq = h->ack;
	if (a->lost.chunk == a->first.chunk && a->lost.index == a->first.index)
		a->lost_offset = 0;
}

/*
 * Does the first block report a duplicate? It does below the cumulative acknowledgement, or inside
 * the second block (RFC 2883, 4).
 */
static bool recovery_is_dsack(const struct tcp_header *h)
{
	const struct tcp_range *first = &h->sack[0], *second = &h->sack[1];

	if (h->n_sacks == 0)
		return false;
	if (!sequence_after(first->to, h->ack))
		return true;
	return h->n_sacks > 1 && !sequence_before(first->from, second->from) &&
	       !sequence_after(first->to, second->to);
}

/* Blocks of an acknowledgement that say something of what is under way. */
struct recovery_blocks {
	unsigned int n;
	struct tcp_range block[TCP_SACKS_MAX];
	uint32_t low, top; /* of all of them */
};

/* Others cannot be true. They are passed over here: a search for them in all records takes long. */
static void recovery_read_blocks(const struct tcp_connection *c, const struct tcp_header *h,
				 const struct recovery_ack *ack, struct recovery_blocks *out)
{
	*out = (struct recovery_blocks){.low = c->snd_nxt, .top = c->snd_una};
	for (unsigned int i = ack->dsack; i < h->n_sacks; i++) {
		const struct tcp_range *block = &h->sack[i];

		if (!sequence_after(block->from, c->snd_una) ||
		    !sequence_before(block->from, block->to) ||
		    sequence_after(block->to, c->snd_nxt))
			continue;
		out->block[out->n++] = *block;
		out->low = sequence_min(out->low, block->from);
		out->top = sequence_max(out->top, block->to);
	}
}

/* The first record of <chunk> from <from> to <to> that begins at <seq> or behind it; <to>: none. */
static uint32_t recovery_first_at(const struct tcp_chunk *chunk, uint32_t from, uint32_t to,
				  uint32_t seq)
{
	while (from < to) {
		uint32_t middle = (from + to) / 2;

		if (sequence_before(chunk->sent[middle].seq, seq))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* The records of <chunk> from <from> to <to> were delivered; of some that was known. */
static void recovery_select(struct tcp_stack *stack, struct tcp_connection *c,
			    const struct tcp_header *h, struct recovery_ack *ack,
			    struct tcp_chunk *chunk, uint32_t from, uint32_t to)
{
	for (struct tcp_sent *s = &chunk->sent[from]; s < &chunk->sent[to]; s++) {
		if (s->flags & TCP_SENT_SACKED)
			continue;
		recovery_deliver(stack, c, h, s, ack);
		tcp_sent_set_flags(c->active, chunk, s,
				   (s->flags & TCP_SENT_FIN) | TCP_SENT_SACKED);
	}
}

/* The same of all records of the chunk, none of which was SACKed or lost. */
static void recovery_select_all(struct tcp_stack *stack, struct tcp_connection *c,
				const struct tcp_header *h, struct recovery_ack *ack,
				struct tcp_chunk *chunk, uint32_t from, uint32_t to)
{
	recovery_deliver_chunk(stack, c, h, ack, chunk, from, to);
	for (uint32_t i = from; i < to; i++)
		chunk->sent[i].flags = (chunk->sent[i].flags & TCP_SENT_FIN) | TCP_SENT_SACKED;
	chunk->n_sacked = to - from;
	c->active->n_sacked += to - from;
}

/* Takes what a block says of the records of a chunk, <from> to <to>: those that are in it whole. */
static void recovery_take_block(struct tcp_stack *stack, struct tcp_connection *c,
				const struct tcp_header *h, struct recovery_ack *ack,
				struct tcp_chunk *chunk, const struct tcp_range *block)
{
	uint32_t from = tcp_chunk_from(c->active, chunk), to = tcp_chunk_to(c->active, chunk);
	uint32_t first, last;

	if (!sequence_before(chunk->sent[from].seq, block->to) ||
	    !sequence_after(tcp_sent_end(&chunk->sent[to - 1]), block->from))
		return;
	first = recovery_first_at(chunk, from, to, block->from);
	last = recovery_first_at(chunk, first, to, block->to);
	if (last > first && sequence_after(tcp_sent_end(&chunk->sent[last - 1]), block->to))
		last--;
	if (first == from && last == to && recovery_is_plain(chunk))
		recovery_select_all(stack, c, h, ack, chunk, from, to);
	else
		recovery_select(stack, c, h, ack, chunk, first, last);
}

static void recovery_selective(struct tcp_stack *stack, struct tcp_connection *c,
			       const struct tcp_header *h, struct recovery_ack *ack)
{
	const struct tcp_active *a = c->active;
	struct recovery_blocks blocks;

	recovery_read_blocks(c, h, ack, &blocks);
	if (blocks.n == 0)
		return;
	for (struct tcp_chunk *chunk = a->first.chunk; chunk != NULL; chunk = chunk->next) {
		uint32_t from = tcp_chunk_from(a, chunk), to = tcp_chunk_to(a, chunk);

		if (chunk->n_sacked == TCP_CHUNK_SENT ||
		    (chunk != a->last && !sequence_after(chunk->next->sent[0].seq, blocks.low)))
			continue;
		if (from == to || !sequence_before(chunk->sent[from].seq, blocks.top))
			return;
		for (unsigned int i = 0; i < blocks.n && chunk->n_sacked < to - from; i++)
			recovery_take_block(stack, c, h, ack, chunk, &blocks.block[i]);
	}
}

/* --- loss ---------------------------------------------------------------------------------------
 */

/* The record at <at>, which is under way, is lost. */
static void recovery_mark_lost(struct tcp_connection *c, struct tcp_cursor at,
			       struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;
	struct tcp_sent *s = &at.chunk->sent[at.index], *first = tcp_sent_at(a, a->lost);

	c->pipe -= s->length;
	tcp_sent_set_flags(a, at.chunk, s, (s->flags & TCP_SENT_FIN) | TCP_SENT_LOST);
	ack->lost += s->length;
	if (first == NULL || !sequence_after(s->seq, first->seq)) {
		a->lost = at;
		a->lost_offset = 0;
	}
}

/* The same of all records of <chunk>, each of which is under way. */
static void recovery_mark_chunk(struct tcp_connection *c, struct tcp_chunk *chunk,
				struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;
	uint32_t from = tcp_chunk_from(a, chunk), to = tcp_chunk_to(a, chunk), bytes = 0;

	recovery_mark_lost(c, (struct tcp_cursor){chunk, from}, ack);
	for (uint32_t i = from + 1; i < to; i++) {
		struct tcp_sent *s = &chunk->sent[i];

		bytes += s->length;
		s->flags = (s->flags & TCP_SENT_FIN) | TCP_SENT_LOST;
	}
	c->pipe -= bytes;
	ack->lost += bytes;
	a->n_lost += to - from - 1;
	a->n_twice -= chunk->n_twice;
	a->n_often -= chunk->n_often;
	chunk->n_lost = to - from;
	chunk->n_twice = chunk->n_often = 0;
}

/* us by which a segment may be later than one sent after it (RFC 8985, 6.2, step 4). */
static uint32_t recovery_reorder_window(const struct tcp_connection *c)
{
	uint64_t window;

	if (!c->reordered &&
	    (c->phase >= TCP_PHASE_RECOVERY || c->active->n_sacked >= RECOVERY_DUPLICATES))
		return 0;
	window = (uint64_t)(c->reorder + 1) * c->rtt_min_us / 4;
	return window < c->srtt_us ? window : c->srtt_us;
}

/* A look for what is late. */
struct recovery_look {
	uint32_t limit; /* us after which a segment is late */
	uint32_t wait;  /* the most us until one that is not, will be; 0: there is none */
	/* Of those sent once, twice, one was not late, or sent after the one delivered: so is all
	 * behind it. Of those sent more often the chunk knows when the oldest was. */
	bool once, twice;
};

/* Records of <n>, of which <twice> were sent twice and <often> more often, that may be late. */
static uint32_t recovery_count_suspects(const struct recovery_look *look, uint32_t n,
					uint32_t twice, uint32_t often)
{
	return (look->once ? 0 : n - twice - often) + (look->twice ? 0 : twice) + often;
}

/* <often>: may one of those sent more than twice be late? */
static bool recovery_suspects_chunk(const struct tcp_active *a, const struct tcp_chunk *chunk,
				    const struct recovery_look *look, bool often)
{
	uint32_t n = tcp_chunk_to(a, chunk) - tcp_chunk_from(a, chunk);

	n -= chunk->n_sacked + chunk->n_lost + chunk->n_often;
	return recovery_count_suspects(look, n, chunk->n_twice, 0) > 0 ||
	       (often && chunk->n_often > 0);
}

/*
 * Those that were sent more than twice are in no order of time. A chunk's are looked at when the
 * oldest of them may be late: then it is, or a younger one is the oldest.
 */
static bool recovery_suspects_often(const struct tcp_stack *stack, const struct tcp_active *a,
				    const struct tcp_chunk *chunk, struct recovery_look *look)
{
	uint32_t late = stack->now_us - chunk->often_us;

	if (chunk->n_often == 0 || sequence_after(chunk->often_us, a->rack_us))
		return false;
	if (late >= look->limit)
		return true;
	if (look->limit - late > look->wait)
		look->wait = look->limit - late;
	return false;
}

/* Are all records of the chunk lost, as the last one is, which was sent last? */
static bool recovery_is_late(const struct tcp_stack *stack, const struct tcp_active *a,
			     const struct tcp_chunk *chunk, const struct recovery_look *look)
{
	const struct tcp_sent *last = &chunk->sent[tcp_chunk_to(a, chunk) - 1];

	return recovery_is_plain(chunk) && stack->now_us - last->time_us >= look->limit &&
	       recovery_sent_after(a->rack_us, a->rack_end, last->time_us, tcp_sent_end(last));
}

/* A record that is not late, or was sent after the one delivered last (<before> is false). */
static void recovery_clear(struct recovery_look *look, const struct tcp_sent *s, bool before,
			   uint32_t late)
{
	if (before && look->limit - late > look->wait)
		look->wait = look->limit - late;
	look->once |= s->sends == 1;
	look->twice |= s->sends == 2;
}

static void recovery_detect_chunk(const struct tcp_stack *stack, struct tcp_connection *c,
				  struct recovery_ack *ack, struct tcp_chunk *chunk,
				  struct recovery_look *look, bool often)
{
	const struct tcp_active *a = c->active;
	uint32_t to = tcp_chunk_to(a, chunk), oldest = stack->now_us;

	for (uint32_t i = tcp_chunk_from(a, chunk); i < to; i++) {
		const struct tcp_sent *s = &chunk->sent[i];
		uint32_t late = stack->now_us - s->time_us;
		bool before =
			recovery_sent_after(a->rack_us, a->rack_end, s->time_us, tcp_sent_end(s));

		if (s->flags & TCP_SENT_SACKED || tcp_sent_is_due(s))
			continue;
		if (before && late >= look->limit) {
			recovery_mark_lost(c, (struct tcp_cursor){chunk, i}, ack);
			continue;
		}
		recovery_clear(look, s, before, late);
		if (s->sends > 2)
			oldest = sequence_min(oldest, s->time_us);
		if (!recovery_suspects_chunk(a, chunk, look, often))
			return;
	}
	if (often)
		chunk->often_us = oldest;
}

/*
 * Step 5: segments that were sent before the one delivered last, and are late, are lost. Those that
 * were sent once were sent in their order, and so were those sent twice: behind the first of them
 * that is not late no other is. A probe of the tail may be, or what was sent again after a recovery
 * was undone: it is found when that first one is delivered or late.
 */
static void recovery_detect(const struct tcp_stack *stack, struct tcp_connection *c,
			    struct recovery_ack *ack)
{
	const struct tcp_active *a = c->active;
	struct recovery_look look = {.limit = a->rack_rtt_us + recovery_reorder_window(c)};

	tcp_timer_clear(c, TCP_TIMER_REORDER);
	if (a->rack_rtt_us == 0)
		return;
	for (struct tcp_chunk *chunk = a->first.chunk; chunk != NULL; chunk = chunk->next) {
		bool often;

		if (chunk->n_sacked + chunk->n_lost == TCP_CHUNK_SENT)
			continue;
		often = recovery_suspects_often(stack, a, chunk, &look);
		if (!recovery_suspects_chunk(a, chunk, &look, often))
			continue;
		if (recovery_is_late(stack, a, chunk, &look))
			recovery_mark_chunk(c, chunk, ack);
		else
			recovery_detect_chunk(stack, c, ack, chunk, &look, often);
		if (recovery_count_suspects(&look, a->n_sent - a->n_sacked - a->n_lost, a->n_twice,
					    a->n_often) == 0)
			break;
	}
	if (look.wait > 0)
		tcp_timer_set(c, TCP_TIMER_REORDER, stack->now_ms + look.wait / 1000 + 1);
}

static void recovery_mark_first(struct tcp_connection *c, struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;

	if (!tcp_sent_is_due(tcp_sent_at(a, a->first)))
		recovery_mark_lost(c, a->first, ack);
}

/* Clients without SACK (RFC 6582): three duplicates, then a hole per partial acknowledgement. */
static void recovery_detect_plain(struct tcp_connection *c, struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;

	if (ack->acked > 0) {
		c->duplicates = 0;
		if (c->phase == TCP_PHASE_RECOVERY && sequence_before(c->snd_una, c->recover) &&
		    a->n_sent > 0)
			recovery_mark_first(c, ack);
	} else if (ack->duplicate) {
		ack->delivered += c->mss; /* something left the network */
		c->duplicates += c->duplicates < UINT8_MAX;
		if (c->duplicates == RECOVERY_DUPLICATES && c->phase < TCP_PHASE_RECOVERY)
			recovery_mark_first(c, ack);
	}
}

/* --- phases -------------------------------------------------------------------------------------
 */

static void recovery_enter(struct tcp_stack *stack, struct tcp_connection *c, enum tcp_phase phase)
{
	struct tcp_active *a = c->active;
	bool reduced = c->phase >= TCP_PHASE_RECOVERY;

	c->phase = phase;
	c->recover = c->snd_nxt;
	c->tlp = false;
	if (reduced)
		return;
	a->undo = true;
	a->undo_cwnd = c->cwnd;
	a->undo_ssthresh = c->ssthresh;
	a->undo_from = c->snd_una;
	a->undo_sends = a->undo_ts = 0;
	c->ssthresh = stack->settings->congestion->reduce(stack, c);
	a->prr_delivered = a->prr_out = 0;
	a->prr_flight = c->snd_nxt - c->snd_una;
	if (c->reorder_left > 0 && --c->reorder_left == 0)
		c->reorder = 0;
}

static void recovery_enter_after_loss(struct tcp_stack *stack, struct tcp_connection *c)
{
	if (c->active->n_lost == 0 || c->phase >= TCP_PHASE_RECOVERY)
		return;
	recovery_enter(stack, c, TCP_PHASE_RECOVERY);
	stack->counters.recoveries++;
}

/* Undo the reduction: nothing was lost after all. */
static void recovery_undo(struct tcp_stack *stack, struct tcp_connection *c)
{
	struct tcp_active *a = c->active;
	struct tcp_cursor at = a->first;
	struct tcp_sent *s;

	for (; a->n_lost > 0 && (s = tcp_sent_at(a, at)) != NULL; tcp_sent_next(a, &at)) {
		if (!tcp_sent_is_due(s))
			continue;
		tcp_sent_set_flags(a, at.chunk, s, s->flags & ~TCP_SENT_LOST);
		c->pipe += s->length;
	}
	if (c->cwnd < a->undo_cwnd)
		c->cwnd = a->undo_cwnd;
	if (c->ssthresh < a->undo_ssthresh)
		c->ssthresh = a->undo_ssthresh;
	c->phase = TCP_PHASE_OPEN;
	a->undo = false;
	stack->counters.undone++;
}

/*
 * Was the original acknowledged? Then the echo is older than the first retransmission (RFC 3522).
 */
static bool recovery_was_original(const struct tcp_connection *c, const struct tcp_header *h,
				  const struct recovery_ack *ack)
{
	const struct tcp_active *a = c->active;

	return a->undo_ts != 0 && ack->acked > 0 && c->timestamps && h->has_timestamp &&
	       sequence_before(h->ts_echo, a->undo_ts);
}

/*
 * Take a reported duplicate: widen the reordering window (RFC 8985, 6.2, step 4), and undo a
 * reduction if all its retransmissions were duplicates.
 */
static void recovery_take_dsack(struct tcp_stack *stack, struct tcp_connection *c,
				const struct tcp_header *h)
{
	struct tcp_active *a = c->active;

	stack->counters.dsacks_in++;
	if (c->tlp && c->tlp_again && h->sack[0].to == a->tlp_end)
		c->tlp = false; /* the probe and the original both came */
	if (!sequence_before(c->snd_una, a->dsack_round)) {
		c->reorder += c->reorder < RECOVERY_REORDER_MAX;
		c->reorder_left = RECOVERY_REORDER_KEEPS;
		a->dsack_round = c->snd_nxt;
	}
	if (a->undo && a->undo_sends > 0 && !sequence_before(h->sack[0].from, a->undo_from) &&
	    --a->undo_sends == 0 && a->n_lost == 0)
		recovery_undo(stack, c);
}

/* Has the tail loss probe repaired a loss (RFC 8985, 7.4)? */
static void recovery_take_probe(struct tcp_stack *stack, struct tcp_connection *c,
				const struct recovery_ack *ack)
{
	if (!c->tlp || sequence_before(c->snd_una, c->active->tlp_end))
		return;
	if (c->tlp_again && ack->acked > 0 && sequence_after(c->snd_una, c->active->tlp_end)) {
		c->ssthresh = stack->settings->congestion->reduce(stack, c);
		c->cwnd = c->ssthresh < c->cwnd ? c->ssthresh : c->cwnd;
	} else if (c->tlp_again && ack->acked > 0) {
		return; /* the probe or the original came; a later ACK tells if both did */
	}
	c->tlp = false;
}

/* Set the window for this acknowledgement of a recovery (RFC 9937, 6.2). */
static void recovery_reduce_rate(struct tcp_connection *c, const struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;
	/* The first retransmission goes at once; so does each of a client without SACK (RFC 6582).
	 */
	uint32_t least = a->prr_out == 0 || (!c->sack && ack->lost > 0) ? c->mss : 0;
	uint64_t part;
	int64_t send;

	a->prr_delivered += ack->delivered;
	if (c->pipe > c->ssthresh) {
		part = (uint64_t)a->prr_delivered * c->ssthresh;
		send = (int64_t)((part + a->prr_flight - 1) / a->prr_flight) - a->prr_out;
	} else {
		send = (int64_t)a->prr_delivered - a->prr_out;
		send = send > ack->delivered ? send : ack->delivered;
		if (ack->acked > 0 && ack->lost == 0)
			send += c->mss;
		if (send > c->ssthresh - c->pipe)
			send = c->ssthresh - c->pipe;
	}
	if (send < least)
		send = least;
	c->cwnd = c->pipe + (uint32_t)send;
}

static void recovery_change_phase(struct tcp_stack *stack, struct tcp_connection *c,
				  const struct tcp_header *h, struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;

	if (a->undo && c->phase == TCP_PHASE_TIMEOUT && recovery_was_original(c, h, ack))
		recovery_undo(stack, c);
	if (c->phase != TCP_PHASE_OPEN && !sequence_before(c->snd_una, c->recover)) {
		if (c->phase == TCP_PHASE_RECOVERY) {
			c->cwnd = c->ssthresh;
			if (a->undo && recovery_was_original(c, h, ack))
				recovery_undo(stack, c);
		}
		c->phase = TCP_PHASE_OPEN;
	}
	recovery_enter_after_loss(stack, c);
}

/* Was the window full with <pipe> bytes? One that was not used has proved nothing (RFC 7661). */
static inline bool recovery_was_full(const struct tcp_connection *c, uint32_t pipe)
{
	return c->cwnd < c->ssthresh ? c->cwnd < 2 * pipe : pipe + c->mss > c->cwnd;
}

/* Is the lone segment acknowledged, or does the client say nothing of it? Then there is nothing to
 * judge, and it needs no record. */
static inline bool recovery_is_simple(const struct tcp_connection *c, const struct tcp_header *h)
{
	return h->n_sacks == 0 && (h->ack == c->snd_nxt || (h->ack == c->snd_una && c->sack));
}

/* Some of its bytes may be left, for want of memory for its record. The phase is the usual one. */
uint32_t tcp_recovery_judge_lone(struct tcp_stack *stack, struct tcp_connection *c,
				 const struct tcp_header *h)
{
	const struct tcp_congestion *congestion = stack->settings->congestion;
	uint32_t acked = h->ack - c->snd_una, pipe = c->pipe, rtt = stack->now_us - c->lone_us;

	if (acked == 0)
		return 0;
	c->snd_una = h->ack;
	c->pipe -= acked;
	c->duplicates = 0;
	if (c->snd_una == c->snd_nxt) {
		c->lone = false;
		rtt = rtt == 0 ? 1 : rtt;
		recovery_sample_min(c, rtt);
		recovery_sample(stack, c, rtt);
	}
	if (congestion->marked != NULL)
		congestion->marked(c, acked, h->flags & TCP_BIT_ECE ? acked : 0);
	if (recovery_was_full(c, pipe))
		congestion->acked(stack, c, acked);
	tcp_recovery_timers(stack, c, true);
	return acked;
}

/* Deliveries, round trips, losses, and the phase that follows from them. */
static void recovery_judge(struct tcp_stack *stack, struct tcp_connection *c,
			   const struct tcp_header *h, struct recovery_ack *ack)
{
	ack->dsack = c->sack && recovery_is_dsack(h);
	ack->duplicate = !c->sack && ack->acked == 0 && h->length == 0 && c->active->n_sent > 0 &&
			 !(h->flags & (TCP_BIT_FIN | TCP_BIT_SYN)) &&
			 (uint32_t)h->window << c->snd_scale == c->snd_wnd;
	recovery_cumulative(stack, c, h, ack);
	if (c->sack && h->n_sacks > ack->dsack)
		recovery_selective(stack, c, h, ack);
	recovery_measure(stack, c, h, ack);
	if (ack->dsack)
		recovery_take_dsack(stack, c, h);
	if (c->sack)
		recovery_detect(stack, c, ack);
	else
		recovery_detect_plain(c, ack);
	recovery_take_probe(stack, c, ack);
	recovery_change_phase(stack, c, h, ack);
}

uint32_t tcp_recovery_judge(struct tcp_stack *stack, struct tcp_connection *c,
			    const struct tcp_header *h)
{
	const struct tcp_congestion *congestion = stack->settings->congestion;
	struct recovery_ack ack = {.acked = h->ack - c->snd_una, .pipe = c->pipe};
	uint8_t phase = c->phase;

	if (c->lone && (recovery_is_simple(c, h) || tcp_active_get(stack, c) == NULL))
		return tcp_recovery_judge_lone(stack, c, h);
	c->snd_una = h->ack;
	recovery_judge(stack, c, h, &ack);
	if (congestion->marked != NULL)
		congestion->marked(c, ack.acked, h->flags & TCP_BIT_ECE ? ack.acked : 0);
	if (c->phase == TCP_PHASE_RECOVERY)
		recovery_reduce_rate(c, &ack);
	else if (phase != TCP_PHASE_RECOVERY && c->phase != TCP_PHASE_REDUCED && ack.acked > 0 &&
		 recovery_was_full(c, ack.pipe))
		congestion->acked(stack, c, ack.acked);
	tcp_recovery_timers(stack, c, ack.acked > 0);
	if (c->active != NULL)
		tcp_active_tidy(stack, c);
	return ack.acked;
}

void tcp_recovery_sent_lone(struct tcp_stack *stack, struct tcp_connection *c, uint32_t length)
{
	c->lone = true;
	c->lone_us = stack->now_us;
	c->pipe += length;
	tcp_recovery_timers(stack, c, true);
}

/* A record that was sent before. */
static void recovery_sent_again(const struct tcp_stack *stack, struct tcp_connection *c,
				struct tcp_chunk *chunk, struct tcp_sent *s)
{
	struct tcp_active *a = c->active;

	tcp_sent_count(a, chunk, s, -1);
	if (tcp_sent_is_due(s)) {
		s->flags |= TCP_SENT_AGAIN;
		a->undo_sends++;
		if (a->undo_ts == 0)
			a->undo_ts = stack->now_ms + c->ts_offset;
	}
	s->sends += s->sends < UINT8_MAX;
	tcp_sent_count(a, chunk, s, 1);
}

void tcp_recovery_sent(struct tcp_stack *stack, struct tcp_connection *c, struct tcp_chunk *chunk,
		       struct tcp_sent *s)
{
	struct tcp_active *a = c->active;
	bool head = s == tcp_sent_at(a, a->first);

	s->time_us = stack->now_us;
	c->pipe += s->length;
	if (s->sends > 0)
		recovery_sent_again(stack, c, chunk, s);
	else
		s->sends = 1;
	a->prr_out += s->length;
	tcp_recovery_timers(stack, c, head);
}

/* All of <chunk> that is under way is lost; <reneged>: also what was SACKed. */
static void recovery_mark_unsacked(struct tcp_connection *c, struct tcp_chunk *chunk, bool reneged,
				   struct recovery_ack *ack)
{
	struct tcp_active *a = c->active;

	for (uint32_t i = tcp_chunk_from(a, chunk); i < tcp_chunk_to(a, chunk); i++) {
		struct tcp_sent *s = &chunk->sent[i];

		if (reneged && s->flags & TCP_SENT_SACKED) {
			tcp_sent_set_flags(a, chunk, s, s->flags & ~TCP_SENT_SACKED);
			c->pipe += s->length;
		}
		if (tcp_sent_in_pipe(s))
			recovery_mark_lost(c, (struct tcp_cursor){chunk, i}, ack);
	}
}

void tcp_recovery_timeout(struct tcp_stack *stack, struct tcp_connection *c)
{
	struct tcp_active *a = c->active;
	struct recovery_ack ack = {0};
	/* RFC 2018, 8: the client forgot it */
	bool reneged = tcp_sent_at(a, a->first)->flags & TCP_SENT_SACKED;

	for (struct tcp_chunk *chunk = a->first.chunk; chunk != NULL; chunk = chunk->next) {
		if (chunk->n_sacked == 0 && chunk->n_lost == 0 &&
		    tcp_chunk_from(a, chunk) < tcp_chunk_to(a, chunk))
			recovery_mark_chunk(c, chunk, &ack);
		else
			recovery_mark_unsacked(c, chunk, reneged, &ack);
	}
	recovery_enter(stack, c, TCP_PHASE_TIMEOUT);
	stack->settings->congestion->restart(c);
	c->cwnd = c->mss;
	c->duplicates = 0;
	c->backoff += c->backoff < 16;
	stack->counters.timeouts++;
	tcp_recovery_timers(stack, c, true);
}

void tcp_recovery_reordered(struct tcp_stack *stack, struct tcp_connection *c)
{
	struct recovery_ack ack = {.pipe = c->pipe};

	recovery_detect(stack, c, &ack);
	recovery_enter_after_loss(stack, c);
	if (c->phase == TCP_PHASE_RECOVERY)
		recovery_reduce_rate(c, &ack);
}

/* Start the timer of the tail loss probe, where one may be needed (RFC 8985, 7.2). */
static void recovery_set_probe(const struct tcp_stack *stack, struct tcp_connection *c)
{
	const struct tcp_active *a = c->active;
	uint32_t ms;

	tcp_timer_clear(c, TCP_TIMER_PROBE);
	if (!c->sack || c->tlp || c->phase != TCP_PHASE_OPEN || c->srtt_us == 0 ||
	    (a != NULL && (a->n_lost > 0 || a->n_sacked > 0)))
		return;
	ms = 2 * c->srtt_us / 1000 + 1 + (a == NULL || a->n_sent == 1 ? RECOVERY_ACK_DELAY : 0);
	ms = stack->now_ms + (ms > RECOVERY_PROBE_MIN ? ms : RECOVERY_PROBE_MIN);
	if (sequence_before(ms, c->timer_ms[TCP_TIMER_RTO]))
		tcp_timer_set(c, TCP_TIMER_PROBE, ms);
}

void tcp_recovery_timers(struct tcp_stack *stack, struct tcp_connection *c, bool restart)
{
	if (!tcp_sent_any(c)) {
		c->timers &= ~(1 << TCP_TIMER_RTO | 1 << TCP_TIMER_PROBE | 1 << TCP_TIMER_REORDER);
		return;
	}
	if (restart || !tcp_timer_runs(c, TCP_TIMER_RTO))
		tcp_timer_set(c, TCP_TIMER_RTO, stack->now_ms + tcp_timer_rto_ms(stack, c));
	recovery_set_probe(stack, c);
}
