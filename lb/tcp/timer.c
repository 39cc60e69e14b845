/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers that have ended. */
#include "tcp/connection.h"
#include "tcp/recovery.h"
#include "tcp/sent.h"
#include "tcp/timers.h"

#define TIMER_BACKOFF_MAX 8

/* End the connection. Returns true. <reset>: the client may still be there and gets a reset. */
static bool timer_end(struct tcp_stack *stack, struct tcp_connection *c, bool reset)
{
	c->state = TCP_CLOSED;
	c->timers = 0;
	c->rst_now = reset;
	stack->counters.gave_up++;
	return true;
}

static bool timer_rto(struct tcp_stack *stack, struct tcp_connection *c)
{
	if (c->state == TCP_SYN_RECEIVED) {
		tcp_timer_clear(c, TCP_TIMER_RTO);
		if (c->backoff >= stack->settings->syn_retries)
			return timer_end(stack, c, false);
		c->backoff++;
		c->syn_now = true;
		return false;
	}
	if (stack->now_ms - c->progress_ms >= stack->settings->give_up_ms)
		return timer_end(stack, c, true);
	if (c->lone && tcp_active_get(stack, c) == NULL) {
		/* No memory for its record: it waits once more. */
		c->backoff += c->backoff < TIMER_BACKOFF_MAX;
		tcp_timer_set(c, TCP_TIMER_RTO, stack->now_ms + tcp_timer_rto_ms(stack, c));
		return false;
	}
	if (c->active != NULL && c->active->n_sent > 0)
		tcp_recovery_timeout(stack, c);
	else
		tcp_timer_clear(c, TCP_TIMER_RTO);
	return false;
}

static bool timer_persist(struct tcp_stack *stack, struct tcp_connection *c)
{
	/* As long as the client answers it may keep its window closed (RFC 9293, 3.8.6.1). */
	if (c->probes > 0 && stack->now_ms - c->heard_ms >= stack->settings->give_up_ms)
		return timer_end(stack, c, true);
	c->probes += c->probes < UINT8_MAX;
	c->backoff += c->backoff < TIMER_BACKOFF_MAX;
	tcp_timer_set(c, TCP_TIMER_PERSIST, stack->now_ms + tcp_timer_rto_ms(stack, c));
	if (c->snd_wnd > 0)
		c->push_now = true;
	else
		c->probe_now = true;
	stack->counters.window_probes++;
	return false;
}

static bool timer_life(struct tcp_stack *stack, struct tcp_connection *c)
{
	const struct tcp_settings *settings = stack->settings;
	uint32_t quiet = stack->now_ms - c->heard_ms;

	if (c->state == TCP_FIN_WAIT_2)
		return timer_end(stack, c, false);
	if (c->active != NULL && c->active->n_sent == 0) {
		c->active->undo = false;
		tcp_active_tidy(stack, c);
	}
	if (quiet < settings->keepalive_ms || c->snd_una != c->snd_nxt) {
		/*
		 * A segment came meanwhile, or the retransmission timer watches over the
		 * connection.
		 */
		c->timer_ms[TCP_TIMER_LIFE] =
			stack->now_ms + (quiet < settings->keepalive_ms
						 ? settings->keepalive_ms - quiet
						 : settings->keepalive_interval_ms);
		return false;
	}
	if (tcp_timer_runs(c, TCP_TIMER_PERSIST)) {
		c->timer_ms[TCP_TIMER_LIFE] = stack->now_ms + settings->keepalive_interval_ms;
		return false;
	}
	if (c->probes >= settings->keepalive_probes)
		return timer_end(stack, c, true);
	c->probes++;
	c->probe_now = true;
	c->timer_ms[TCP_TIMER_LIFE] = stack->now_ms + settings->keepalive_interval_ms;
	stack->counters.keepalives++;
	return false;
}

bool tcp_timer(struct tcp_stack *stack, struct tcp_connection *c)
{
	if (tcp_timer_ended(stack, c, TCP_TIMER_ACK)) {
		tcp_timer_clear(c, TCP_TIMER_ACK);
		c->ack_now = true;
		if (c->reopened > 0) {
			c->reopened--;
			stack->counters.windows_again++;
		}
	}
	if (tcp_timer_ended(stack, c, TCP_TIMER_REORDER)) {
		tcp_timer_clear(c, TCP_TIMER_REORDER);
		if (c->active != NULL && c->active->n_sent > 0)
			tcp_recovery_reordered(stack, c);
	}
	if (tcp_timer_ended(stack, c, TCP_TIMER_RTO) && timer_rto(stack, c))
		return true;
	if (tcp_timer_ended(stack, c, TCP_TIMER_PROBE)) {
		tcp_timer_clear(c, TCP_TIMER_PROBE);
		c->tail_now = tcp_sent_any(c);
		stack->counters.tail_probes++;
	}
	if (tcp_timer_ended(stack, c, TCP_TIMER_PERSIST) && timer_persist(stack, c))
		return true;
	return tcp_timer_ended(stack, c, TCP_TIMER_LIFE) && timer_life(stack, c);
}
