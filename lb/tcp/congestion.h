/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control, an algorithm per file: how the window grows, and how far it shrinks. Pure. */
#ifndef LB_TCP_CONGESTION_H
#define LB_TCP_CONGESTION_H

#include "tcp/connection.h"

struct tcp_congestion {
	const char *name;
	bool marks; /* every mark counts, as in DCTCP (RFC 8257); ECN is negotiated for that */
	void (*open)(struct tcp_connection *c);
	/* <bytes> were acknowledged while the window was full, and nothing is being recovered. */
	void (*acked)(const struct tcp_stack *stack, struct tcp_connection *c, uint32_t bytes);
	/* A loss, or a mark: returns the new ssthresh. */
	uint32_t (*reduce)(const struct tcp_stack *stack, struct tcp_connection *c);
	/* Measurements no longer count: after reduce() of a retransmission timeout, or a pause. */
	void (*restart)(struct tcp_connection *c);
	/* <bytes> were acknowledged, <marked> of them by an acknowledgement with ECE. May be NULL.
	 */
	void (*marked)(struct tcp_connection *c, uint32_t bytes, uint32_t marked);
};

extern const struct tcp_congestion tcp_reno, tcp_cubic, tcp_dctcp;

/* The algorithm of that name, or NULL. */
const struct tcp_congestion *tcp_congestion_find(const char *name);

/* Slow start (RFC 5681, 3.1). Returns what of <bytes> is left when the window has reached ssthresh.
 */
uint32_t tcp_slow_start(struct tcp_connection *c, uint32_t bytes);

#define TCP_WINDOW_MIN(c) (2u * (c)->mss)

#endif
