/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of the client that came, in order and not; SACK blocks (RFC 2018, 2883). Pure. */
#ifndef LB_TCP_HELD_H
#define LB_TCP_HELD_H

#include "tcp/connection.h"

/*
 * Takes [from, to) of a payload whose byte <from> is at <offset>, cut to what may come: fills
 * out->new, and moves rcv_nxt. False: nothing was taken for want of memory (counted).
 */
bool tcp_held_take(struct tcp_stack *stack, struct tcp_connection *c, uint32_t from, uint32_t to,
		   uint32_t offset, struct tcp_received *out);

/* The client sends nothing more: forget bytes behind the end. */
void tcp_held_forget(struct tcp_stack *stack, struct tcp_connection *c);

/* Report [from, to) as a duplicate in the next acknowledgement. */
void tcp_held_duplicate(struct tcp_stack *stack, struct tcp_connection *c, uint32_t from,
			uint32_t to);

/* Writes the SACK blocks that are due, at most <max>, to <h>. */
void tcp_held_write(const struct tcp_connection *c, unsigned int max, struct tcp_header *h);

/* After blocks were sent: the duplicate is reported once. */
void tcp_held_reported(struct tcp_stack *stack, struct tcp_connection *c);

#endif
