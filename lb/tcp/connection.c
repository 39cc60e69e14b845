/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections from their SYN to their end, and the calls of their owner. */
#include "tcp/connection.h"

#include <string.h>

#include "tcp/congestion.h"
#include "tcp/held.h"
#include "tcp/sent.h"
#include "tcp/timers.h"

#define OPEN_RTO_MS 1000 /* RFC 6298, 2.1 */

const struct tcp_settings tcp_settings_default = {
	.rto_min_ms = 200,
	.rto_max_ms = 60000,
	.ack_delay_ms = 10,
	.give_up_ms = 60000,
	.keepalive_ms = 60000,
	.keepalive_interval_ms = 10000,
	.fin_wait_ms = 10000,
	.mss = 1460,
	.scale = 7,
	.keepalive_probes = 3,
	.syn_retries = 3,
	.initial_segments = 10,
	.sack = true,
	.timestamps = true,
	.congestion = &tcp_cubic,
};

size_t tcp_stack_bytes(uint32_t actives, uint32_t chunks, uint32_t helds)
{
	return chunks * sizeof(struct tcp_chunk) + actives * sizeof(struct tcp_active) +
	       helds * sizeof(struct tcp_held);
}

void tcp_stack_init(struct tcp_stack *stack, const struct tcp_settings *settings, uint32_t actives,
		    uint32_t chunks, uint32_t helds, void *memory)
{
	struct tcp_chunk *chunk = memory;
	struct tcp_active *active = (struct tcp_active *)(chunk + chunks);
	struct tcp_held *held = (struct tcp_held *)(active + actives);

	*stack = (struct tcp_stack){.settings = settings, .n_chunks = chunks, .n_aside = actives};
	for (; chunks > 0; chunks--, chunk++) {
		chunk->next = stack->chunks;
		stack->chunks = chunk;
	}
	for (; actives > 0; actives--, active++) {
		active->next = stack->actives;
		stack->actives = active;
	}
	for (; helds > 0; helds--, held++) {
		held->next = stack->helds;
		stack->helds = held;
	}
}

/* Bytes of <mss> that are left for payload after the options that every segment has. */
static uint16_t connection_payload(const struct tcp_connection *c, uint16_t mss)
{
	uint16_t options = c->timestamps ? TCP_TIMESTAMP : 0;

	return mss > options + 64 ? mss - options : 64;
}

void tcp_open(const struct tcp_stack *stack, struct tcp_connection *c, const struct tcp_header *syn,
	      uint16_t mss, uint32_t window, uint32_t iss, uint32_t ts_offset)
{
	const struct tcp_settings *settings = stack->settings;
	uint16_t theirs = syn->mss != 0 ? syn->mss : TCP_MSS_DEFAULT;

	*c = (struct tcp_connection){
		.snd_una = iss,
		.snd_nxt = iss + 1,
		.snd_end = iss + 1,
		.snd_wnd = syn->window, /* a SYN's is never scaled */
		.snd_wnd_max = syn->window,
		.snd_wl1 = syn->seq,
		.rcv_nxt = syn->seq + 1,
		.rcv_limit = syn->seq + 1 + window,
		.rcv_edge = syn->seq + 1,
		.rcv_acked = syn->seq + 1,
		.irs = syn->seq,
		.ts_offset = ts_offset,
		.ssthresh = UINT32_MAX / 2,
		.rto_ms = OPEN_RTO_MS,
		.heard_ms = stack->now_ms,
		.sent_ms = stack->now_ms,
		.progress_ms = stack->now_ms,
		.challenge_ms = stack->now_ms - UINT16_MAX,
		.state = TCP_SYN_RECEIVED,
		.sack = settings->sack && syn->sack_permitted,
		.timestamps = settings->timestamps && syn->has_timestamp,
		.syn_now = true,
	};
	if (syn->scale != TCP_SCALE_NONE) {
		c->scales = true;
		c->snd_scale = syn->scale;
		c->rcv_scale = settings->scale;
	}
	if (c->timestamps) {
		c->ts_recent = syn->ts_value;
		c->ts_recent_ms = stack->now_ms;
	}
	c->ecn = settings->ecn &&
		 (syn->flags & (TCP_BIT_ECE | TCP_BIT_CWR)) == (TCP_BIT_ECE | TCP_BIT_CWR);
	c->mss = connection_payload(c, theirs < mss ? theirs : mss);
	c->cwnd = (uint32_t)settings->initial_segments * c->mss;
	settings->congestion->open(c);
}

void tcp_set_mss(struct tcp_connection *c, uint16_t mss)
{
	mss = connection_payload(c, mss);
	if (mss < c->mss)
		c->mss = mss;
	if (c->cwnd < c->mss)
		c->cwnd = c->mss;
}

void tcp_close(struct tcp_connection *c)
{
	c->fin_queued = true;
}

void tcp_abort(struct tcp_connection *c)
{
	c->rst_now = true;
}

void tcp_acknowledge(struct tcp_connection *c)
{
	if (c->rcv_acked != c->rcv_nxt)
		c->ack_now = true;
}

void tcp_release(struct tcp_stack *stack, struct tcp_connection *c)
{
	struct tcp_active *a = c->active;

	if (a != NULL) {
		tcp_held_forget(stack, c);
		for (struct tcp_chunk *chunk = a->first.chunk, *next; chunk != NULL; chunk = next) {
			next = chunk == a->last ? NULL : chunk->next;
			tcp_chunk_free(stack, chunk);
		}
		tcp_active_free(stack, a);
	}
	*c = (struct tcp_connection){0};
}

bool tcp_reset_for(const struct tcp_header *in, struct tcp_header *out)
{
	if (in->flags & TCP_BIT_RST)
		return false;
	*out = (struct tcp_header){.flags = TCP_BIT_RST, .scale = TCP_SCALE_NONE};
	if (in->flags & TCP_BIT_ACK) {
		out->seq = in->ack;
	} else {
		out->flags |= TCP_BIT_ACK;
		out->ack = in->seq + tcp_header_span(in);
	}
	return true;
}

const char *tcp_state_name(enum tcp_state state)
{
	static const char *const names[] = {
		[TCP_CLOSED] = "closed",           [TCP_SYN_RECEIVED] = "syn_received",
		[TCP_ESTABLISHED] = "established", [TCP_FIN_WAIT_1] = "fin_wait_1",
		[TCP_FIN_WAIT_2] = "fin_wait_2",   [TCP_CLOSE_WAIT] = "close_wait",
		[TCP_CLOSING] = "closing",         [TCP_LAST_ACK] = "last_ack",
		[TCP_TIME_WAIT] = "time_wait",
	};

	return (unsigned int)state < TCP_STATES ? names[state] : "unknown";
}

const char *tcp_phase_name(enum tcp_phase phase)
{
	static const char *const names[] = {
		[TCP_PHASE_OPEN] = "open",
		[TCP_PHASE_REDUCED] = "reduced",
		[TCP_PHASE_RECOVERY] = "recovery",
		[TCP_PHASE_TIMEOUT] = "timeout",
	};

	return (unsigned int)phase <= TCP_PHASE_TIMEOUT ? names[phase] : "unknown";
}

const char *tcp_refusal_name(enum tcp_refusal refusal)
{
	static const char *const names[] = {
#define REFUSAL_NAME(symbol, name, text) [TCP_REFUSAL_##symbol] = name,
		TCP_REFUSAL_LIST(REFUSAL_NAME)
#undef REFUSAL_NAME
	};

	return (unsigned int)refusal < TCP_REFUSALS ? names[refusal] : "unknown";
}
