/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>

#include "tcp/sent.h"

struct check {
	char *why;
	size_t size;
	bool failed;
};

__attribute__((format(printf, 2, 3))) static void fail(struct check *check, const char *format, ...)
{
	va_list arguments;

	if (check->failed)
		return;
	check->failed = true;
	va_start(arguments, format);
	vsnprintf(check->why, check->size, format, arguments);
	va_end(arguments);
}

/* Counts again what chunks and the connection count. */
static void check_counts(struct check *check, const struct tcp_active *a)
{
	uint32_t twice = 0, often = 0;

	for (struct tcp_chunk *chunk = a->first.chunk; chunk != NULL; chunk = chunk->next) {
		uint32_t n[4] = {0};

		for (uint32_t i = tcp_chunk_from(a, chunk); i < tcp_chunk_to(a, chunk); i++) {
			const struct tcp_sent *s = &chunk->sent[i];
			bool due = tcp_sent_is_due(s), sacked = s->flags & TCP_SENT_SACKED;

			n[0] += sacked;
			n[1] += due;
			n[2] += !sacked && !due && s->sends == 2;
			n[3] += !sacked && !due && s->sends > 2;
			if (!sacked && !due && s->sends > 2 &&
			    sequence_before(s->time_us, chunk->often_us))
				fail(check, "a record is older than its chunk's oldest");
		}
		twice += n[2];
		often += n[3];
		if (n[0] != chunk->n_sacked || n[1] != chunk->n_lost || n[2] != chunk->n_twice ||
		    n[3] != chunk->n_often)
			fail(check,
			     "a chunk has %u sacked, %u lost, %u sent twice, %u more often; it "
			     "says %u, %u, %u, %u",
			     n[0], n[1], n[2], n[3], chunk->n_sacked, chunk->n_lost, chunk->n_twice,
			     chunk->n_often);
	}
	if (twice != a->n_twice || often != a->n_often)
		fail(check, "twice %u is %u, more often %u is %u", a->n_twice, twice, a->n_often,
		     often);
}

static void check_records(struct check *check, const struct tcp_connection *c)
{
	const struct tcp_active *a = c->active;
	uint32_t pipe = 0, lost = 0, sacked = 0, n = 0, next = c->snd_una;
	const struct tcp_sent *sent;
	bool before_cursor = true;

	for (struct tcp_cursor at = a->first; (sent = tcp_sent_at(a, at)) != NULL;
	     tcp_sent_next(a, &at)) {
		if (at.chunk == a->lost.chunk && at.index == a->lost.index)
			before_cursor = false;
		if (sent->seq != next)
			fail(check, "a record begins %d bytes off", (int)(sent->seq - next));
		next = tcp_sent_end(sent);
		pipe += tcp_sent_in_pipe(sent) ? sent->length : 0;
		lost += tcp_sent_is_due(sent);
		if (tcp_sent_is_due(sent) && before_cursor)
			fail(check, "a lost segment before the cursor");
		sacked += sent->flags & TCP_SENT_SACKED;
		n++;
	}
	if (n > 0 && next != c->snd_nxt)
		fail(check, "records end %d bytes off", (int)(next - c->snd_nxt));
	if (pipe != c->pipe || lost != a->n_lost || sacked != a->n_sacked || n != a->n_sent)
		fail(check, "pipe %u is %u, lost %u is %u, sacked %u is %u, sent %u is %u", c->pipe,
		     pipe, a->n_lost, lost, a->n_sacked, sacked, a->n_sent, n);
	check_counts(check, a);
}

static void check_held(struct check *check, const struct tcp_connection *c)
{
	const struct tcp_held *held = c->active->held;

	if (held == NULL)
		return;
	if (held->n == 0)
		fail(check, "memory for ranges, and none");
	for (uint32_t i = 0; i < held->n; i++) {
		uint32_t before = i == 0 ? c->rcv_nxt : held->range[i - 1].to;

		if (!sequence_before(before, held->range[i].from) ||
		    !sequence_before(held->range[i].from, held->range[i].to))
			fail(check, "ranges are out of order or touch");
	}
}

bool check_connection(const struct tcp_connection *c, char *why, size_t size)
{
	struct check check = {why, size, false};
	bool under_way = c->snd_una != c->snd_nxt && c->state >= TCP_ESTABLISHED;

	/* One that was reset is released as it is. */
	if (c->lone && c->state != TCP_CLOSED &&
	    (c->active != NULL || !under_way || c->pipe != c->snd_nxt - c->snd_una))
		fail(&check, "a lone segment of %u bytes, %u of them under way",
		     c->snd_nxt - c->snd_una, c->pipe);
	if (c->active == NULL && !c->lone && (c->pipe != 0 || under_way))
		fail(&check, "%u bytes under way without a record", c->snd_nxt - c->snd_una);
	if (c->active != NULL) {
		check_records(&check, c);
		check_held(&check, c);
		if (under_way && c->active->n_sent == 0)
			fail(&check, "bytes under way without a record");
	}
	/* While losses are repaired the window follows the bytes in flight, and may be empty. */
	if (under_way && c->phase != TCP_PHASE_RECOVERY && c->cwnd < c->mss)
		fail(&check, "a window of %u bytes for segments of %u", c->cwnd, c->mss);
	/* Without the timer it could wait for ever. */
	if (under_way && !(c->timers >> TCP_TIMER_RTO & 1))
		fail(&check, "bytes under way and no timer");
	return !check.failed;
}

/* All are free: do the counts say so? */
static bool check_free(const struct tcp_stack *stack, char *why, size_t size)
{
	uint32_t chunks = 0, actives = 0;

	for (const struct tcp_active *a = stack->actives; a != NULL; a = a->next)
		actives++;
	for (const struct tcp_chunk *c = stack->chunks; c != NULL; c = c->next)
		chunks++;
	if (stack->n_chunks == chunks && stack->n_aside == actives)
		return true;
	snprintf(why, size, "%u chunks are %u, %u set aside for %u", stack->n_chunks, chunks,
		 stack->n_aside, actives);
	return false;
}

bool check_pools(const struct tcp_stack *stack, uint32_t actives, uint32_t chunks, uint32_t helds,
		 char *why, size_t size)
{
	for (const struct tcp_active *a = stack->actives; a != NULL; a = a->next)
		actives--;
	for (const struct tcp_chunk *c = stack->chunks; c != NULL; c = c->next)
		chunks--;
	for (const struct tcp_held *h = stack->helds; h != NULL; h = h->next)
		helds--;
	if (actives == 0 && chunks == 0 && helds == 0)
		return check_free(stack, why, size);
	snprintf(why, size, "%d actives, %d chunks, %d ranges are missing", (int)actives,
		 (int)chunks, (int)helds);
	return false;
}
