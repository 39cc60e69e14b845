/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/time_wait.h"

#define TIME_WAIT_CHALLENGE_MS 500
#define TIME_WAIT_ABOVE        65537 /* a new connection begins this far above the old one */

void tcp_time_wait_enter(const struct tcp_connection *c, uint32_t now_ms, struct tcp_time_wait *out)
{
	*out = (struct tcp_time_wait){
		.snd_nxt = c->snd_nxt,
		.rcv_nxt = c->rcv_nxt,
		.ts_recent = c->ts_recent,
		.ts_offset = c->ts_offset,
		.challenge_ms = now_ms - TIME_WAIT_CHALLENGE_MS,
		.window = (c->rcv_edge - c->rcv_nxt) >> c->rcv_scale,
		.timestamps = c->timestamps,
	};
}

/*
 * RFC 6191: a later timestamp proves a new connection, with any sequence number. Otherwise the
 * number must be above all of the old one (RFC 9293, 3.10.7.4: RFC 1122, 4.2.2.13).
 */
static bool time_wait_is_new(const struct tcp_time_wait *w, const struct tcp_header *h)
{
	if (w->timestamps && h->has_timestamp)
		return sequence_after(h->ts_value, w->ts_recent) ||
		       (h->ts_value == w->ts_recent && sequence_after(h->seq, w->rcv_nxt));
	return sequence_after(h->seq, w->rcv_nxt);
}

static void time_wait_acknowledge(const struct tcp_time_wait *w, uint32_t now_ms,
				  struct tcp_header *out)
{
	out->seq = w->snd_nxt;
	out->ack = w->rcv_nxt;
	out->flags = TCP_BIT_ACK;
	out->window = w->window;
	if (!w->timestamps)
		return;
	out->has_timestamp = true;
	out->ts_value = now_ms + w->ts_offset;
	out->ts_echo = w->ts_recent;
}

enum tcp_time_wait_verdict tcp_time_wait_receive(struct tcp_time_wait *w, uint32_t now_ms,
						 const struct tcp_header *h, struct tcp_header *out)
{
	bool old = w->timestamps && h->has_timestamp && sequence_before(h->ts_value, w->ts_recent);

	*out = (struct tcp_header){.scale = TCP_SCALE_NONE};
	if (h->flags & TCP_BIT_RST)
		return TCP_TIME_WAIT_IGNORE; /* RFC 1337: it would end the wait too early */
	if ((h->flags & (TCP_BIT_SYN | TCP_BIT_ACK)) == TCP_BIT_SYN && time_wait_is_new(w, h)) {
		out->seq = w->snd_nxt + TIME_WAIT_ABOVE;
		return TCP_TIME_WAIT_REOPEN;
	}
	if (h->length == 0 && !(h->flags & (TCP_BIT_SYN | TCP_BIT_FIN)) && h->seq == w->rcv_nxt)
		return TCP_TIME_WAIT_IGNORE; /* an acknowledgement of ours */
	time_wait_acknowledge(w, now_ms, out);
	if (h->flags & TCP_BIT_FIN && h->seq + tcp_header_span(h) == w->rcv_nxt && !old)
		return TCP_TIME_WAIT_RESTART;
	if (now_ms - w->challenge_ms < TIME_WAIT_CHALLENGE_MS)
		return TCP_TIME_WAIT_IGNORE;
	w->challenge_ms = now_ms;
	return TCP_TIME_WAIT_ANSWER;
}
