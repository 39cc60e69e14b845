/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/sent.h"

#include <string.h>

/* The pool's next object is taken soon, and is seldom in the cache. */
static inline void sent_prefetch_next(const void *next, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 64)
		__builtin_prefetch((const uint8_t *)next + i, 1);
}

/* May the connection have another chunk? */
static bool sent_may_add(const struct tcp_stack *stack, const struct tcp_active *a)
{
	if (a->last == NULL)
		return stack->chunks != NULL;
	return stack->n_chunks > stack->n_aside &&
	       stack->n_chunks - stack->n_aside >= a->n_sent / TCP_CHUNK_SENT;
}

struct tcp_chunk *tcp_sent_add_chunk(struct tcp_stack *stack, struct tcp_active *a)
{
	struct tcp_chunk *chunk = stack->chunks;

	if (!sent_may_add(stack, a)) {
		stack->counters.no_memory++;
		return NULL;
	}
	stack->chunks = chunk->next;
	stack->n_chunks--;
	stack->n_aside -= a->last == NULL;
	sent_prefetch_next(stack->chunks, 64); /* most have one record */
	chunk->next = NULL;
	chunk->n_sacked = chunk->n_lost = chunk->n_twice = chunk->n_often = 0;
	if (a->last != NULL)
		a->last->next = chunk;
	else
		a->first = (struct tcp_cursor){.chunk = chunk};
	/* A cursor that stood behind the last record stands on the first of the new chunk. */
	if (a->last == NULL || (a->lost.chunk == a->last && a->lost.index == TCP_CHUNK_SENT))
		a->lost = (struct tcp_cursor){.chunk = chunk};
	if (a->first.chunk == a->last && a->first.index == TCP_CHUNK_SENT)
		a->first = (struct tcp_cursor){.chunk = chunk};
	a->last = chunk;
	a->last_n = 0;
	return chunk;
}

/* False: no memory. */
static bool sent_record_lone(struct tcp_stack *stack, struct tcp_connection *c,
			     struct tcp_active *a)
{
	struct tcp_sent *s = tcp_sent_append(stack, a);

	if (s == NULL)
		return false;
	*s = (struct tcp_sent){
		.seq = c->snd_una,
		.time_us = c->lone_us,
		.length = c->snd_nxt - c->snd_una,
		.sends = 1,
	};
	c->lone = false;
	return true;
}

struct tcp_active *tcp_active_make(struct tcp_stack *stack, struct tcp_connection *c)
{
	struct tcp_active *a = stack->actives, *next;

	if (a == NULL) {
		stack->counters.no_memory++;
		return NULL;
	}
	next = a->next;
	*a = (struct tcp_active){
		.highest = c->snd_una, .rack_end = c->snd_una, .dsack_round = c->snd_una};
	if (c->lone && !sent_record_lone(stack, c, a)) {
		a->next = next;
		return NULL;
	}
	stack->actives = next;
	sent_prefetch_next(next, sizeof(*a));
	c->active = a;
	return a;
}

void tcp_active_tidy(struct tcp_stack *stack, struct tcp_connection *c)
{
	struct tcp_active *a = c->active;

	if (a == NULL || a->n_sent > 0 || a->held != NULL || a->dsack.from != a->dsack.to ||
	    (a->undo && c->state != TCP_CLOSED))
		return;
	if (a->last != NULL)
		tcp_chunk_free(stack, a->last);
	tcp_active_free(stack, a);
	c->active = NULL;
	c->tlp = false;
}

/* Records up to <last>, which is in the first chunk, are no more; the cursors go on. */
static void sent_drop(struct tcp_stack *stack, struct tcp_active *a, uint32_t last)
{
	struct tcp_chunk *chunk = a->first.chunk;

	a->n_sent -= last + 1 - a->first.index;
	a->first.index = last;
	tcp_sent_next(a, &a->first);
	if (a->lost.chunk == chunk && a->lost.index <= last) {
		a->lost = a->first;
		a->lost_offset = 0;
	}
	if (a->first.chunk != chunk)
		tcp_chunk_free(stack, chunk);
}

void tcp_sent_remove_first(struct tcp_stack *stack, struct tcp_active *a)
{
	tcp_sent_count(a, a->first.chunk, tcp_sent_at(a, a->first), -1);
	sent_drop(stack, a, a->first.index);
}

void tcp_sent_remove_first_chunk(struct tcp_stack *stack, struct tcp_active *a)
{
	sent_drop(stack, a, tcp_chunk_to(a, a->first.chunk) - 1);
}
