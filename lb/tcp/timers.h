/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's timers: a bit and a time in ms each. Pure. */
#ifndef LB_TCP_TIMERS_H
#define LB_TCP_TIMERS_H

#include "tcp/connection.h"

static inline void tcp_timer_set(struct tcp_connection *c, enum tcp_timer timer, uint32_t at_ms)
{
	c->timers |= 1 << timer;
	c->timer_ms[timer] = at_ms;
}

static inline void tcp_timer_clear(struct tcp_connection *c, enum tcp_timer timer)
{
	c->timers &= ~(1 << timer);
}

static inline bool tcp_timer_runs(const struct tcp_connection *c, enum tcp_timer timer)
{
	return c->timers >> timer & 1;
}

static inline bool tcp_timer_ended(const struct tcp_stack *stack, const struct tcp_connection *c,
				   enum tcp_timer timer)
{
	return tcp_timer_runs(c, timer) && (int32_t)(stack->now_ms - c->timer_ms[timer]) >= 0;
}

/* The retransmission timeout with its back-off, ms (RFC 6298, 5.5). */
static inline uint32_t tcp_timer_rto_ms(const struct tcp_stack *stack,
					const struct tcp_connection *c)
{
	uint64_t ms = (uint64_t)c->rto_ms << c->backoff;

	return ms < stack->settings->rto_max_ms ? (uint32_t)ms : stack->settings->rto_max_ms;
}

#endif
