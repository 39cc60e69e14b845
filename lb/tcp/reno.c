/* SPDX-License-Identifier: BSD-3-Clause */
/* NewReno (RFC 5681, 6582). */
#include "tcp/congestion.h"

static void reno_open(struct tcp_connection *c)
{
}

/* Grow by a segment per window: by the share that <bytes> are of it, rounded up to a byte. */
static void reno_acked(const struct tcp_stack *stack, struct tcp_connection *c, uint32_t bytes)
{
	bytes = tcp_slow_start(c, bytes);
	if (bytes > 0)
		c->cwnd += ((uint64_t)bytes * c->mss + c->cwnd - 1) / c->cwnd;
}

static uint32_t reno_reduce(const struct tcp_stack *stack, struct tcp_connection *c)
{
	uint32_t half = c->cwnd / 2;

	return half > TCP_WINDOW_MIN(c) ? half : TCP_WINDOW_MIN(c);
}

static void reno_restart(struct tcp_connection *c)
{
}

const struct tcp_congestion tcp_reno = {
	.name = "reno",
	.open = reno_open,
	.acked = reno_acked,
	.reduce = reno_reduce,
	.restart = reno_restart,
};
