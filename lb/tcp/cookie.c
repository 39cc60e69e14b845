/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/cookie.h"

#define COOKIE_MINUTE_MS 60000
#define COOKIE_LOW       0xffffffu /* bits below the minutes */

/* The options in the timestamp's lowest bits. */
#define COOKIE_SCALE      0x0f
#define COOKIE_SCALE_NONE 0x0f
#define COOKIE_SACK       0x10
#define COOKIE_ECN        0x20
#define COOKIE_OPTIONS    0x3f

/*
 * MSS values of unusual paths, tunnels, ordinary paths and jumbo frames; a client's is rounded
 * down.
 */
static const uint16_t cookie_mss[] = {
	64,   128,  256,  400, TCP_MSS_DEFAULT, 768, 1024, 1220, 1300, 1360, 1400, 1440,
	1460, 4016, 8192, 8960};
#define COOKIE_SIZES (sizeof(cookie_mss) / sizeof(cookie_mss[0]))

/*
 * The client's number is hashed too, not added: with a sum, a later segment of the same client, a
 * few bytes on, would pass for its first.
 */
static uint32_t cookie_low(const struct tcp_secret *secret, const struct tcp_ends *ends,
			   uint8_t minute, uint32_t irs)
{
	return (uint32_t)tcp_secret_hash(
		secret, ends, TCP_PURPOSE_COOKIE | (uint64_t)minute << 8 | (uint64_t)irs << 32);
}

/* The minute in the highest byte, hidden by a number that is the client's own. */
static uint32_t cookie_high(const struct tcp_secret *secret, const struct tcp_ends *ends)
{
	return (uint32_t)tcp_secret_hash(secret, ends, TCP_PURPOSE_COOKIE_TIME) & ~COOKIE_LOW;
}

static uint32_t cookie_index(uint16_t mss)
{
	uint32_t i = COOKIE_SIZES - 1;

	while (i > 0 && cookie_mss[i] > mss)
		i--;
	return i;
}

/* The clock with the options in its lowest bits, not later than now: it must not run backwards. */
static uint32_t cookie_timestamp(const struct tcp_stack *stack, const struct tcp_header *syn)
{
	const struct tcp_settings *settings = stack->settings;
	uint32_t options = syn->scale == TCP_SCALE_NONE ? COOKIE_SCALE_NONE : syn->scale, at;

	if (settings->sack && syn->sack_permitted)
		options |= COOKIE_SACK;
	if (settings->ecn &&
	    (syn->flags & (TCP_BIT_ECE | TCP_BIT_CWR)) == (TCP_BIT_ECE | TCP_BIT_CWR))
		options |= COOKIE_ECN;
	at = (stack->now_ms & ~COOKIE_OPTIONS) | options;
	return sequence_after(at, stack->now_ms) ? at - COOKIE_OPTIONS - 1 : at;
}

void tcp_cookie_answer(struct tcp_stack *stack, const struct tcp_secret *secret,
		       const struct tcp_ends *ends, const struct tcp_header *syn, uint32_t window,
		       struct tcp_header *out)
{
	const struct tcp_settings *settings = stack->settings;
	uint8_t minute = stack->now_ms / COOKIE_MINUTE_MS;
	uint32_t index = cookie_index(syn->mss != 0 ? syn->mss : TCP_MSS_DEFAULT);

	*out = (struct tcp_header){
		.seq = (cookie_high(secret, ends) + ((uint32_t)minute << 24)) |
		       ((cookie_low(secret, ends, minute, syn->seq) + index) & COOKIE_LOW),
		.ack = syn->seq + 1,
		.flags = TCP_BIT_SYN | TCP_BIT_ACK,
		.window = window < UINT16_MAX ? window : UINT16_MAX,
		.mss = settings->mss,
		.scale = TCP_SCALE_NONE,
	};
	stack->counters.cookies_out++;
	stack->cookie_ms = stack->now_ms;
	if (!settings->timestamps || !syn->has_timestamp)
		return;
	out->has_timestamp = true;
	out->ts_value = cookie_timestamp(stack, syn) + tcp_secret_timestamp(secret, ends);
	out->ts_echo = syn->ts_value;
	out->sack_permitted = settings->sack && syn->sack_permitted;
	if (syn->scale != TCP_SCALE_NONE)
		out->scale = settings->scale;
	if (settings->ecn && syn->flags & TCP_BIT_ECE && syn->flags & TCP_BIT_CWR)
		out->flags |= TCP_BIT_ECE;
}

/* The SYN that the client must have sent, as far as it matters. */
static void cookie_restore_syn(const struct tcp_stack *stack, const struct tcp_header *ack,
			       uint16_t mss, uint32_t ts_offset, struct tcp_header *syn)
{
	uint32_t options = (ack->ts_echo - ts_offset) & COOKIE_OPTIONS;

	*syn = (struct tcp_header){
		.seq = ack->seq - 1,
		.window = ack->window,
		.mss = mss,
		.flags = TCP_BIT_SYN,
		.scale = TCP_SCALE_NONE,
	};
	if (!stack->settings->timestamps || !ack->has_timestamp)
		return;
	syn->has_timestamp = true;
	syn->ts_value = ack->ts_value;
	syn->sack_permitted = options & COOKIE_SACK;
	if ((options & COOKIE_SCALE) != COOKIE_SCALE_NONE)
		syn->scale = options & COOKIE_SCALE;
	if (options & COOKIE_ECN)
		syn->flags |= TCP_BIT_ECE | TCP_BIT_CWR;
}

/* Minutes since the cookie that <h> acknowledges was given, if it acknowledges one. */
static uint8_t cookie_age(const struct tcp_stack *stack, const struct tcp_secret *secret,
			  const struct tcp_ends *ends, const struct tcp_header *h)
{
	uint8_t minute = (h->ack - 1 - cookie_high(secret, ends)) >> 24;

	return (uint8_t)(stack->now_ms / COOKIE_MINUTE_MS) - minute;
}

/* Segments that a client sends after its SYN. */
static bool cookie_is_acknowledgement(const struct tcp_header *h)
{
	return (h->flags & (TCP_BIT_SYN | TCP_BIT_RST | TCP_BIT_ACK)) == TCP_BIT_ACK;
}

bool tcp_cookie_open(const struct tcp_stack *stack, const struct tcp_secret *secret,
		     const struct tcp_ends *ends, const struct tcp_header *ack, uint16_t mss,
		     uint32_t window, struct tcp_connection *c)
{
	uint8_t age = cookie_age(stack, secret, ends, ack);
	uint8_t minute = (uint8_t)(stack->now_ms / COOKIE_MINUTE_MS) - age;
	uint32_t value = ack->ack - 1, index;
	uint32_t ts_offset = tcp_secret_timestamp(secret, ends);
	struct tcp_header syn;

	if (!cookie_is_acknowledgement(ack) || age >= TCP_COOKIE_MINUTES)
		return false;
	index = (value - cookie_low(secret, ends, minute, ack->seq - 1)) & COOKIE_LOW;
	if (index >= COOKIE_SIZES)
		return false;
	cookie_restore_syn(stack, ack, cookie_mss[index], ts_offset, &syn);
	tcp_open(stack, c, &syn, mss, window, ack->ack - 1, ts_offset);
	c->syn_now = false; /* it was sent */
	return true;
}

bool tcp_cookie_may_come(const struct tcp_stack *stack, const struct tcp_secret *secret,
			 const struct tcp_ends *ends, const struct tcp_header *h)
{
	const uint32_t valid_ms = TCP_COOKIE_MINUTES * COOKIE_MINUTE_MS;
	uint32_t given_ms = h->ts_echo - tcp_secret_timestamp(secret, ends);

	if (stack->counters.cookies_out == 0 || stack->now_ms - stack->cookie_ms > valid_ms ||
	    !cookie_is_acknowledgement(h) ||
	    cookie_age(stack, secret, ends, h) >= TCP_COOKIE_MINUTES)
		return false;
	return !stack->settings->timestamps || !h->has_timestamp ||
	       stack->now_ms - given_ms <= valid_ms + COOKIE_OPTIONS;
}
