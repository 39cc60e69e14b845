/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of the segments under way, in order of numbers, in chunks of a pool. Pure. */
#ifndef LB_TCP_SENT_H
#define LB_TCP_SENT_H

#include "tcp/connection.h"

/* Is anything under way? */
static inline bool tcp_sent_any(const struct tcp_connection *c)
{
	return c->lone || (c->active != NULL && c->active->n_sent > 0);
}

/* Makes the connection's active part, with a record of a lone segment, which is none any more. NULL
 * without memory: counted. */
struct tcp_active *tcp_active_make(struct tcp_stack *stack, struct tcp_connection *c);

/* The same if there is none yet. */
static inline struct tcp_active *tcp_active_get(struct tcp_stack *stack, struct tcp_connection *c)
{
	return c->active != NULL ? c->active : tcp_active_make(stack, c);
}

/* Gives the active part back if it is empty. */
void tcp_active_tidy(struct tcp_stack *stack, struct tcp_connection *c);

static inline void tcp_chunk_free(struct tcp_stack *stack, struct tcp_chunk *chunk)
{
	chunk->next = stack->chunks;
	stack->chunks = chunk;
	stack->n_chunks++;
}

static inline void tcp_active_free(struct tcp_stack *stack, struct tcp_active *a)
{
	a->next = stack->actives;
	stack->actives = a;
	stack->n_aside += a->last != NULL;
}

/*
 * Room for records behind the last. NULL without memory: counted. The first chunk is set aside with
 * the active part; of the others a connection may have as many as are left, so that one client's
 * smallest segments do not take all.
 */
struct tcp_chunk *tcp_sent_add_chunk(struct tcp_stack *stack, struct tcp_active *a);

/* Adds a record at the end, for the caller to fill. NULL: there are TCP_SENT_MAX, or no memory,
 * which is counted. */
static inline struct tcp_sent *tcp_sent_append(struct tcp_stack *stack, struct tcp_active *a)
{
	if (a->n_sent == 0 && a->last != NULL) {
		/* The one chunk that is left is empty: from its start again. */
		a->first = a->lost = (struct tcp_cursor){.chunk = a->last};
		a->last_n = 0;
	}
	if (a->n_sent == TCP_SENT_MAX)
		return NULL;
	if ((a->last == NULL || a->last_n == TCP_CHUNK_SENT) &&
	    tcp_sent_add_chunk(stack, a) == NULL)
		return NULL;
	a->n_sent++;
	return &a->last->sent[a->last_n++];
}
void tcp_sent_remove_first(struct tcp_stack *stack, struct tcp_active *a);
/* All records of the first chunk, each of which was sent once and is neither lost nor SACKed. */
void tcp_sent_remove_first_chunk(struct tcp_stack *stack, struct tcp_active *a);

/* The record at <cursor>, or NULL behind the last. */
static inline struct tcp_sent *tcp_sent_at(const struct tcp_active *a, struct tcp_cursor cursor)
{
	if (cursor.chunk == NULL || (cursor.chunk == a->last && cursor.index >= a->last_n))
		return NULL;
	return &cursor.chunk->sent[cursor.index];
}

static inline void tcp_sent_next(const struct tcp_active *a, struct tcp_cursor *cursor)
{
	if (++cursor->index == TCP_CHUNK_SENT && cursor->chunk != a->last)
		*cursor = (struct tcp_cursor){.chunk = cursor->chunk->next};
}

static inline struct tcp_sent *tcp_sent_last(const struct tcp_active *a)
{
	return a->n_sent == 0 ? NULL : &a->last->sent[a->last_n - 1];
}

/* One past the record's last number. */
static inline uint32_t tcp_sent_end(const struct tcp_sent *s)
{
	return s->seq + s->length + !!(s->flags & TCP_SENT_FIN);
}

/* Whether its bytes count as under way. */
static inline bool tcp_sent_in_pipe(const struct tcp_sent *s)
{
	return !(s->flags & TCP_SENT_SACKED) &&
	       (!(s->flags & TCP_SENT_LOST) || s->flags & TCP_SENT_AGAIN);
}

/* Whether it has to be sent again. */
static inline bool tcp_sent_is_due(const struct tcp_sent *s)
{
	return (s->flags & (TCP_SENT_SACKED | TCP_SENT_LOST | TCP_SENT_AGAIN)) == TCP_SENT_LOST;
}

/* Counts a record of <chunk> as what it is. <n>: 1, or -1 before it changes. */
static inline void tcp_sent_count(struct tcp_active *a, struct tcp_chunk *chunk,
				  const struct tcp_sent *s, int n)
{
	if (s->flags & TCP_SENT_SACKED) {
		a->n_sacked += n;
		chunk->n_sacked += n;
	} else if (tcp_sent_is_due(s)) {
		a->n_lost += n;
		chunk->n_lost += n;
	} else if (s->sends == 2) {
		a->n_twice += n;
		chunk->n_twice += n;
	} else if (s->sends > 2) {
		a->n_often += n;
		chunk->n_often += n;
		if (n > 0 && (chunk->n_often == 1 || sequence_before(s->time_us, chunk->often_us)))
			chunk->often_us = s->time_us;
	}
}

static inline void tcp_sent_set_flags(struct tcp_active *a, struct tcp_chunk *chunk,
				      struct tcp_sent *s, uint8_t flags)
{
	tcp_sent_count(a, chunk, s, -1);
	s->flags = flags;
	tcp_sent_count(a, chunk, s, 1);
}

/* The first record of <chunk>, and one past its last. */
static inline uint32_t tcp_chunk_from(const struct tcp_active *a, const struct tcp_chunk *chunk)
{
	return chunk == a->first.chunk ? a->first.index : 0;
}

static inline uint32_t tcp_chunk_to(const struct tcp_active *a, const struct tcp_chunk *chunk)
{
	return chunk == a->last ? a->last_n : TCP_CHUNK_SENT;
}

#endif
