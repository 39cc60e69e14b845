/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/held.h"

#include <string.h>

#include "tcp/sent.h"

/* The first range that ends at or behind <seq>. */
static uint32_t held_find(const struct tcp_held *held, uint32_t seq)
{
	uint32_t low = 0, high = held->n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (sequence_before(held->range[middle].to, seq))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Writes the gaps of [from, to) to <out>. Returns where it stopped, because <out> is limited. */
static uint32_t held_gaps(const struct tcp_held *held, uint32_t from, uint32_t to, uint32_t offset,
			  struct tcp_received *out)
{
	uint32_t at = from, n = held == NULL ? 0 : held->n;

	for (uint32_t i = held == NULL ? 0 : held_find(held, from); sequence_before(at, to); i++) {
		uint32_t end = i < n ? sequence_min(held->range[i].from, to) : to;

		if (sequence_before(at, end)) {
			if (out->n_new == TCP_NEW_MAX)
				return at;
			out->new[out->n_new++] = (struct tcp_new){
				.offset = offset + (at - from), .length = end - at, .seq = at};
			at = end;
		}
		if (i < n)
			at = sequence_max(at, held->range[i].to);
	}
	return sequence_min(at, to);
}

static void held_note_recent(struct tcp_held *held, const struct tcp_range *grown)
{
	uint32_t n = 1, old[TCP_SACKS_MAX];

	memcpy(old, held->recent, sizeof(old));
	held->recent[0] = grown->from;
	for (uint32_t i = 0; i < held->n_recent && n < TCP_SACKS_MAX; i++)
		if (sequence_before(old[i], grown->from) || !sequence_before(old[i], grown->to))
			held->recent[n++] = old[i];
	held->n_recent = n;
}

/* Adds [from, to), joined with the ranges that it touches. False: no place for another range. */
static bool held_insert(struct tcp_held *held, uint32_t from, uint32_t to)
{
	uint32_t first = held_find(held, from), behind = first;
	struct tcp_range grown = {from, to};

	while (behind < held->n && !sequence_after(held->range[behind].from, to))
		behind++;
	if (behind > first) {
		grown.from = sequence_min(from, held->range[first].from);
		grown.to = sequence_max(to, held->range[behind - 1].to);
	} else if (held->n == TCP_HOLES_MAX) {
		return false;
	}
	memmove(&held->range[first + 1], &held->range[behind],
		(held->n - behind) * sizeof(held->range[0]));
	held->range[first] = grown;
	held->n = held->n + 1 - (behind - first);
	held_note_recent(held, &grown);
	return true;
}

void tcp_held_forget(struct tcp_stack *stack, struct tcp_connection *c)
{
	struct tcp_held *held = c->active == NULL ? NULL : c->active->held;

	if (held == NULL)
		return;
	held->next = stack->helds;
	stack->helds = held;
	c->active->held = NULL;
}

/* Ranges that touch <rcv_nxt> are in order now. */
static void held_absorb(struct tcp_stack *stack, struct tcp_connection *c)
{
	struct tcp_held *held = c->active == NULL ? NULL : c->active->held;
	uint32_t n = 0;

	if (held == NULL)
		return;
	while (n < held->n && !sequence_after(held->range[n].from, c->rcv_nxt)) {
		c->rcv_nxt = sequence_max(c->rcv_nxt, held->range[n].to);
		n++;
	}
	if (n == 0)
		return;
	held->n -= n;
	memmove(held->range, held->range + n, held->n * sizeof(held->range[0]));
	if (held->n == 0)
		tcp_held_forget(stack, c);
}

static struct tcp_held *held_get(struct tcp_stack *stack, struct tcp_connection *c)
{
	struct tcp_active *a = tcp_active_get(stack, c);

	if (a == NULL || a->held != NULL)
		return a == NULL ? NULL : a->held;
	a->held = stack->helds;
	if (a->held == NULL) {
		stack->counters.no_memory++;
		return NULL;
	}
	stack->helds = a->held->next;
	a->held->n = a->held->n_recent = 0;
	return a->held;
}

bool tcp_held_take_any(struct tcp_stack *stack, struct tcp_connection *c, uint32_t from,
		       uint32_t to, struct tcp_received *out)
{
	uint32_t before = c->rcv_nxt, offset = 0;
	struct tcp_held *held;

	to = sequence_min(to, sequence_max(c->rcv_limit, c->rcv_edge));
	if (sequence_before(from, before)) {
		offset = before - from;
		from = before;
	}
	if (!sequence_before(from, to))
		return true;
	held = from == before ? (c->active == NULL ? NULL : c->active->held) : held_get(stack, c);
	if (from != before && held == NULL)
		return false;
	to = held_gaps(held, from, to, offset, out);
	if (from == before) {
		c->rcv_nxt = to;
		held_absorb(stack, c);
	} else if (out->n_new > 0 && !held_insert(held, from, to)) {
		stack->counters.no_memory++;
		out->n_new = 0;
		return false;
	}
	out->advanced = c->rcv_nxt - before;
	return true;
}

void tcp_held_duplicate(struct tcp_stack *stack, struct tcp_connection *c, uint32_t from,
			uint32_t to)
{
	struct tcp_active *a;

	if (!c->sack || !sequence_before(from, to))
		return;
	a = tcp_active_get(stack, c);
	if (a != NULL)
		a->dsack = (struct tcp_range){from, to};
}

void tcp_held_write(const struct tcp_connection *c, unsigned int max, struct tcp_header *h)
{
	const struct tcp_active *a = c->active;
	const struct tcp_held *held;

	if (!c->sack || a == NULL || max == 0)
		return;
	if (a->dsack.from != a->dsack.to)
		h->sack[h->n_sacks++] = a->dsack;
	held = a->held;
	for (uint32_t i = 0; held != NULL && i < held->n_recent && h->n_sacks < max; i++) {
		uint32_t at = held_find(held, held->recent[i] + 1);

		/* Skip a number that is in order by now, or that no longer leads its range. */
		if (at < held->n && !sequence_after(held->range[at].from, held->recent[i]))
			h->sack[h->n_sacks++] = held->range[at];
	}
}

void tcp_held_reported(struct tcp_stack *stack, struct tcp_connection *c)
{
	if (c->active == NULL)
		return;
	c->active->dsack = (struct tcp_range){0, 0};
	tcp_active_tidy(stack, c);
}
