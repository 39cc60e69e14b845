/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * States of a TCP connection: transitions, timeouts and names. Pure data. Sections and figures are
 * RFC 9293's unless another RFC is named.
 */
#include "tcp_state.h"

#define CLIENT(next)                                                                               \
	{                                                                                          \
		[TCP_FROM_CLIENT] = TCP_STATE_##next                                               \
	}
#define SERVER(next)                                                                               \
	{                                                                                          \
		[TCP_TO_CLIENT] = TCP_STATE_##next                                                 \
	}
#define EITHER(next)                                                                               \
	{                                                                                          \
		TCP_STATE_##next, TCP_STATE_##next                                                 \
	}

const uint8_t tcp_transition[TCP_STATES][TCP_EVENTS][2] = {
	[TCP_STATE_NONE] =
		{
			[TCP_EVENT_SYN] = CLIENT(SYN_SENT),       /* 3.10.1: active OPEN */
			[TCP_EVENT_PICKUP] = EITHER(ESTABLISHED), /* it began before us */
		},
	[TCP_STATE_SYN_SENT] =
		{
			[TCP_EVENT_SYN] = SERVER(SYN_SENT2), /* figure 7; if it has an ACK, figure 6
							      * goes on with SYN_ACKED */
			[TCP_EVENT_RST] = SERVER(CLOSE),     /* 3.10.7.3: connection refused */
		},
	[TCP_STATE_SYN_SENT2] =
		{
			[TCP_EVENT_SYN_ACKED] = EITHER(SYN_RECV), /* 3.10.7.3: SYN,ACK */
			[TCP_EVENT_RST] = EITHER(CLOSE),          /* 3.10.7.4: SYN-RECEIVED */
		},
	[TCP_STATE_SYN_RECV] =
		{
			[TCP_EVENT_SYN_ACKED] = EITHER(ESTABLISHED), /* 3.10.7.4, fifth */
			[TCP_EVENT_FIN] = EITHER(FIN_WAIT), /* 3.10.4: CLOSE in SYN-RECEIVED */
			[TCP_EVENT_RST] = EITHER(CLOSE),    /* 3.10.7.4, second */
		},
	[TCP_STATE_ESTABLISHED] =
		{
			[TCP_EVENT_FIN] = EITHER(FIN_WAIT), /* sender 3.10.4, peer 3.10.7.4 */
			[TCP_EVENT_RST] = EITHER(CLOSE),    /* 3.10.7.4, second */
		},
	[TCP_STATE_FIN_WAIT] =
		{
			[TCP_EVENT_FIN_ACKED] = EITHER(CLOSE_WAIT), /* figure 12, step 3 */
			[TCP_EVENT_FIN] = EITHER(CLOSING),          /* figure 13, step 2 */
			[TCP_EVENT_RST] = EITHER(CLOSE),            /* 3.10.7.4, second */
		},
	[TCP_STATE_CLOSE_WAIT] =
		{
			[TCP_EVENT_FIN] = EITHER(LAST_ACK), /* figure 12, step 4 */
			[TCP_EVENT_RST] = EITHER(CLOSE),    /* 3.10.7.4, second */
		},
	[TCP_STATE_CLOSING] =
		{
			[TCP_EVENT_FIN_ACKED] = EITHER(LAST_ACK), /* figure 13, step 3 */
			[TCP_EVENT_RST] = EITHER(CLOSE),          /* 3.10.7.4, second */
		},
	[TCP_STATE_LAST_ACK] =
		{
			[TCP_EVENT_FIN_ACKED] = EITHER(TIME_WAIT), /* figure 12, step 5 */
			[TCP_EVENT_RST] = EITHER(CLOSE),           /* 3.10.7.4, second */
		},
	[TCP_STATE_TIME_WAIT] =
		{
			[TCP_EVENT_SYN] = CLIENT(SYN_SENT), /* 3.6.1: reopened */
			/* no RST: it would end the wait too early (RFC 1337) */
		},
	[TCP_STATE_CLOSE] =
		{
			[TCP_EVENT_SYN] = CLIENT(SYN_SENT), /* 3.10.1: active OPEN */
		},
};

/* RFC 5382 asks for 2 h 4 min (REQ-5) while established. */
const uint32_t conntrack_tcp_timeout_ms[TCP_STATES] = {
	[TCP_STATE_SYN_SENT] = 60 * 1000,
	[TCP_STATE_SYN_SENT2] = 60 * 1000,
	[TCP_STATE_SYN_RECV] = 60 * 1000,
	[TCP_STATE_ESTABLISHED] = 124 * 60 * 1000,
	[TCP_STATE_FIN_WAIT] = 4 * 60 * 1000,
	/* a client that has sent all of its request may wait long for a model */
	[TCP_STATE_CLOSE_WAIT] = 10 * 60 * 1000,
	[TCP_STATE_CLOSING] = 60 * 1000,
	[TCP_STATE_LAST_ACK] = 60 * 1000,
	/* common TCP stacks use this; an MSL of two minutes would make it four minutes */
	[TCP_STATE_TIME_WAIT] = 60 * 1000,
	[TCP_STATE_CLOSE] = 10 * 1000,
};

static const char *const state_name[TCP_STATES] = {
	[TCP_STATE_NONE] = "none",
	[TCP_STATE_SYN_SENT] = "syn-sent",
	[TCP_STATE_SYN_SENT2] = "syn-sent2",
	[TCP_STATE_SYN_RECV] = "syn-recv",
	[TCP_STATE_ESTABLISHED] = "established",
	[TCP_STATE_FIN_WAIT] = "fin-wait",
	[TCP_STATE_CLOSE_WAIT] = "close-wait",
	[TCP_STATE_CLOSING] = "closing",
	[TCP_STATE_LAST_ACK] = "last-ack",
	[TCP_STATE_TIME_WAIT] = "time-wait",
	[TCP_STATE_CLOSE] = "close",
};

static const char *const verdict_name[TCP_VERDICTS] = {
	[TCP_VERDICT_ACCEPT] = "accept",       [TCP_VERDICT_REOPEN] = "reopen",
	[TCP_VERDICT_DUPLICATE] = "duplicate", [TCP_VERDICT_CHALLENGE] = "challenge",
	[TCP_VERDICT_INVALID] = "invalid",
};

static const struct {
	const char *name, *text;
} reasons[TCP_REASONS] = {
#define ROW(symbol, name, text) [TCP_REASON_##symbol] = {name, text},
	TCP_REASON_LIST(ROW)
#undef ROW
};

const char *conntrack_tcp_state_name(enum tcp_state state)
{
	return (unsigned int)state < TCP_STATES ? state_name[state] : "unknown";
}

const char *conntrack_tcp_verdict_name(enum tcp_verdict v)
{
	return (unsigned int)v < TCP_VERDICTS ? verdict_name[v] : "unknown";
}

const char *conntrack_tcp_reason_name(enum tcp_reason reason)
{
	return (unsigned int)reason < TCP_REASONS ? reasons[reason].name : "unknown";
}

const char *conntrack_tcp_reason_text(enum tcp_reason reason)
{
	return (unsigned int)reason < TCP_REASONS ? reasons[reason].text : "unknown";
}
