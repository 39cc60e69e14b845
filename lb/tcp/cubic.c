/* SPDX-License-Identifier: BSD-3-Clause */
/* CUBIC (RFC 9438). Windows in segments, times in seconds, as the RFC writes them. */
#include <math.h>

#include "tcp/congestion.h"

#define CUBIC_C    0.4f
#define CUBIC_BETA 0.7f
/* 4.3: as fast as Reno with CUBIC's smaller reduction */
#define CUBIC_ALPHA (3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA))

static void cubic_open(struct tcp_connection *c)
{
	c->control = (union tcp_control){0};
}

static float cubic_segments(const struct tcp_connection *c)
{
	return (float)c->cwnd / c->mss;
}

/* 4.2: congestion avoidance begins, after a reduction or without one. */
static void cubic_begin_epoch(const struct tcp_stack *stack, struct tcp_connection *c)
{
	float w = cubic_segments(c);

	c->control.cubic.epoch_us = stack->now_us | 1; /* 0 means none */
	c->control.cubic.w_est = w;
	if (c->control.cubic.w_max < w)
		c->control.cubic.w_max = w;
	c->control.cubic.k = cbrtf((c->control.cubic.w_max - w) / CUBIC_C);
}

static void cubic_acked(const struct tcp_stack *stack, struct tcp_connection *c, uint32_t bytes)
{
	float w, t, target, offset, alpha = CUBIC_ALPHA;

	bytes = tcp_slow_start(c, bytes);
	if (bytes == 0)
		return;
	if (c->control.cubic.epoch_us == 0)
		cubic_begin_epoch(stack, c);
	w = cubic_segments(c);
	/* One RTT ahead: the window that this acknowledgement's bytes are sent under. */
	t = (float)(stack->now_us - c->control.cubic.epoch_us + c->srtt_us) * 1e-6f;
	offset = t - c->control.cubic.k;
	target = CUBIC_C * offset * offset * offset + c->control.cubic.w_max;
	target = target < w ? w : target > 1.5f * w ? 1.5f * w : target;
	if (c->control.cubic.w_est >= c->control.cubic.w_max)
		alpha = 1;
	c->control.cubic.w_est += alpha * bytes / c->cwnd;
	if (c->control.cubic.w_est > w && c->control.cubic.w_est > target)
		target = c->control.cubic.w_est;
	c->cwnd += (uint32_t)((target - w) / w * bytes + 0.5f);
}

/* 4.6 and 4.7: fast convergence gives room to newcomers. */
static uint32_t cubic_reduce(const struct tcp_stack *stack, struct tcp_connection *c)
{
	float w = cubic_segments(c);
	uint32_t left = (uint32_t)(c->cwnd * CUBIC_BETA);

	c->control.cubic.w_max = w < c->control.cubic.w_max ? w * (1 + CUBIC_BETA) / 2 : w;
	c->control.cubic.epoch_us = 0;
	return left > TCP_WINDOW_MIN(c) ? left : TCP_WINDOW_MIN(c);
}

static void cubic_restart(struct tcp_connection *c)
{
	c->control.cubic.epoch_us = 0;
}

const struct tcp_congestion tcp_cubic = {
	.name = "cubic",
	.open = cubic_open,
	.acked = cubic_acked,
	.reduce = cubic_reduce,
	.restart = cubic_restart,
};
