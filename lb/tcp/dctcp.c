/* SPDX-License-Identifier: BSD-3-Clause */
/* DCTCP (RFC 8257): the window shrinks by the share of bytes that met congestion. */
#include "tcp/congestion.h"

#define DCTCP_GAIN (1.0f / 16) /* 4.2: g */

static void dctcp_open(struct tcp_connection *c)
{
	c->control = (union tcp_control){.dctcp = {.window_end = c->snd_nxt, .alpha = 1}};
}

static void dctcp_marked(struct tcp_connection *c, uint32_t bytes, uint32_t marked)
{
	c->control.dctcp.acked += bytes;
	c->control.dctcp.marked += marked;
	if (sequence_before(c->snd_una, c->control.dctcp.window_end))
		return;
	if (c->control.dctcp.acked > 0)
		c->control.dctcp.alpha +=
			DCTCP_GAIN * ((float)c->control.dctcp.marked / c->control.dctcp.acked -
				      c->control.dctcp.alpha);
	c->control.dctcp.acked = c->control.dctcp.marked = 0;
	c->control.dctcp.window_end = c->snd_nxt;
}

static void dctcp_acked(const struct tcp_stack *stack, struct tcp_connection *c, uint32_t bytes)
{
	tcp_reno.acked(stack, c, bytes);
}

static uint32_t dctcp_reduce(const struct tcp_stack *stack, struct tcp_connection *c)
{
	uint32_t left;

	if (c->phase == TCP_PHASE_RECOVERY || c->phase == TCP_PHASE_TIMEOUT)
		return tcp_reno.reduce(stack, c); /* a loss (3.5) */
	left = (uint32_t)(c->cwnd * (1 - c->control.dctcp.alpha / 2));
	return left > TCP_WINDOW_MIN(c) ? left : TCP_WINDOW_MIN(c);
}

static void dctcp_restart(struct tcp_connection *c)
{
}

const struct tcp_congestion tcp_dctcp = {
	.name = "dctcp",
	.marks = true,
	.open = dctcp_open,
	.acked = dctcp_acked,
	.reduce = dctcp_reduce,
	.restart = dctcp_restart,
	.marked = dctcp_marked,
};
