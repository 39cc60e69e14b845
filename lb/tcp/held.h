/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of the client that came, in order and not; SACK blocks (RFC 2018, 2883). Pure. */
#ifndef LB_TCP_HELD_H
#define LB_TCP_HELD_H

#include "tcp/connection.h"

/* As tcp_held_take(), for bytes that may be out of order or beyond the window. */
bool tcp_held_take_any(struct tcp_stack *stack, struct tcp_connection *c, uint32_t from,
		       uint32_t to, struct tcp_received *out);

/*
 * Takes [from, to), a segment's payload, cut to what may come: fills out->new, which is empty, and
 * moves rcv_nxt. False: nothing was taken for want of memory (counted).
 */
static inline bool tcp_held_take(struct tcp_stack *stack, struct tcp_connection *c, uint32_t from,
				 uint32_t to, struct tcp_received *out)
{
	if (from != c->rcv_nxt || (c->active != NULL && c->active->held != NULL) ||
	    sequence_after(to, c->rcv_limit) || !sequence_before(from, to))
		return tcp_held_take_any(stack, c, from, to, out);
	out->new[0] = (struct tcp_new){.offset = 0, .length = to - from, .seq = from};
	out->n_new = 1;
	out->advanced = to - from;
	c->rcv_nxt = to;
	return true;
}

/* The client sends nothing more: forget bytes behind the end. */
void tcp_held_forget(struct tcp_stack *stack, struct tcp_connection *c);

/* Report [from, to) as a duplicate in the next acknowledgement. */
void tcp_held_duplicate(struct tcp_stack *stack, struct tcp_connection *c, uint32_t from,
			uint32_t to);

/* Is there anything that only SACK blocks tell the client? */
static inline bool tcp_held_has_blocks(const struct tcp_connection *c)
{
	const struct tcp_active *a = c->active;

	return c->sack && a != NULL && (a->held != NULL || a->dsack.from != a->dsack.to);
}

/* Writes the SACK blocks that are due, at most <max>, to <h>. */
void tcp_held_write(const struct tcp_connection *c, unsigned int max, struct tcp_header *h);

/* After blocks were sent: the duplicate is reported once. */
void tcp_held_reported(struct tcp_stack *stack, struct tcp_connection *c);

#endif
