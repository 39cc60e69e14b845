/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RTO_MS     300
#define RTO_MAX_MS 3000

uint64_t client_random(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (*state >> 11) % below;
}

static bool chance(struct client *c, unsigned int thousandths)
{
	return client_random(c->random, 1000) < thousandths;
}

__attribute__((format(printf, 2, 3))) static void fault(struct client *c, const char *format, ...)
{
	va_list arguments;

	if (c->fault[0] != '\0')
		return;
	va_start(arguments, format);
	vsnprintf(c->fault, sizeof(c->fault), format, arguments);
	va_end(arguments);
}

void client_open(struct client *c, const struct client_manner *manner, uint64_t *random,
		 uint32_t length, uint32_t reply, uint8_t *got)
{
	*c = (struct client){
		.manner = manner,
		.random = random,
		.length = length,
		.reply = reply,
		.got = got,
		.rto_ms = RTO_MS,
	};
	c->iss = (uint32_t)client_random(random, UINT64_C(1) << 32);
	c->una = c->nxt = c->top = c->iss;
	memset(got, 0, reply);
}

/* The stream's end in sequence numbers, without the FIN. */
static uint32_t end_of(const struct client *c)
{
	return c->iss + 1 + c->length;
}

/* --- receiving ----------------------------------------------------------------------------------
 */

static void take_syn(struct client *c, const struct tcp_header *h)
{
	const struct client_manner *m = c->manner;

	if (c->opened && h->seq != c->irs)
		return fault(c, "a second SYN-ACK with another number");
	if (h->ack != c->iss + 1)
		return fault(c, "the SYN-ACK acknowledges %u", h->ack - c->iss);
	if ((h->scale != TCP_SCALE_NONE) != (m->scale != TCP_SCALE_NONE) ||
	    h->sack_permitted != m->sack || h->has_timestamp != m->timestamps)
		return fault(c, "the SYN-ACK's options do not answer the SYN's");
	c->ack_due = true;
	if (c->opened)
		return;
	c->opened = true;
	c->irs = h->seq;
	c->rcv = h->seq + 1;
	c->offered = c->rcv + (m->buffer < UINT16_MAX ? m->buffer : UINT16_MAX);
	c->uses_ts = m->timestamps;
	c->uses_sack = m->sack;
	c->scale = h->scale == TCP_SCALE_NONE ? 0 : h->scale;
	c->una = c->nxt = c->top = h->ack;
	c->wnd = h->window;
	c->edge = h->ack + h->window;
	c->wl1 = h->seq;
	c->wl2 = h->ack;
	c->ts_recent = h->ts_value;
	c->rto_at = 0;
}

static void take_ack(struct client *c, uint32_t now_ms, const struct tcp_header *h)
{
	uint32_t edge = h->ack + ((uint32_t)h->window << c->scale);

	if (sequence_after(h->ack, c->top))
		return fault(c, "acknowledges %u bytes that were never sent", h->ack - c->top);
	for (unsigned int i = 0; i < h->n_sacks; i++)
		if (!sequence_before(h->sack[i].from, h->sack[i].to) ||
		    sequence_after(h->sack[i].to, c->top))
			return fault(c, "block %u is %u to %u of %u", i, h->sack[i].from - c->iss,
				     h->sack[i].to - c->iss, c->top - c->iss);
	if (sequence_after(h->ack, c->una)) {
		c->una = h->ack;
		c->nxt = sequence_max(c->nxt, c->una);
		c->duplicates = 0;
		c->rto_ms = RTO_MS;
		c->rto_at = c->una == c->top ? 0 : now_ms + c->rto_ms;
		c->fin_acked = c->fin_sent && sequence_after(c->una, end_of(c));
	} else if (h->ack == c->una && h->length == 0 && c->una != c->top && ++c->duplicates == 3) {
		c->nxt = c->una;
	}
	if (sequence_before(c->wl1, h->seq) ||
	    (c->wl1 == h->seq && !sequence_after(c->wl2, h->ack))) {
		/* A segment with the same numbers may have been overtaken by a window update. */
		if (sequence_before(edge, c->edge) && sequence_after(h->ack, c->wl2))
			fault(c, "the window shrinks by %u", c->edge - edge);
		c->edge = sequence_max(c->edge, edge);
		c->wnd = c->edge - h->ack;
		c->wl1 = h->seq;
		c->wl2 = h->ack;
	}
}

static void take_payload(struct client *c, const struct tcp_header *h, const uint8_t *payload)
{
	uint32_t first = h->seq - c->irs - 1, fresh = 0;

	if (h->length > c->manner->mss ||
	    h->length + h->size > c->manner->mss + (uint32_t)TCP_HEADER_MIN)
		fault(c, "%u bytes and %u of header in a segment", h->length, h->size);
	if (sequence_after(h->seq + h->length, c->offered))
		fault(c, "%u bytes beyond the window", h->seq + h->length - c->offered);
	for (uint32_t i = 0; i < h->length; i++) {
		if (first + i >= c->reply)
			return fault(c, "byte %u of a stream of %u", first + i, c->reply);
		if (payload[i] != (c->expected != NULL ? c->expected[first + i]
						       : client_byte(first + i, true)))
			return fault(c, "byte %u is wrong", first + i);
		if (c->got[first + i] == 0 && !sequence_before(h->seq + i, c->rcv)) {
			c->got[first + i] = 1;
			fresh++;
		}
	}
	c->last_from = h->seq;
	if (fresh == 0 && h->length > 0)
		c->dsack = (struct tcp_range){h->seq, h->seq + h->length};
	c->ack_due |= fresh == 0 && h->length > 0;
	while (c->rcv - c->irs - 1 < c->reply && c->got[c->rcv - c->irs - 1] != 0) {
		c->rcv++;
		c->unread++;
	}
	if (h->flags & TCP_BIT_FIN && h->seq + h->length == c->rcv && !c->fin_got) {
		if (c->rcv - c->irs - 1 != c->reply)
			fault(c, "closed after %u of %u bytes", c->rcv - c->irs - 1, c->reply);
		c->fin_got = true;
		c->rcv++;
		c->ack_due = true;
	}
}

void client_receive(struct client *c, uint32_t now_ms, const struct tcp_header *h,
		    const uint8_t *payload)
{
	uint32_t before = c->rcv;

	if (h->flags & TCP_BIT_RST) {
		c->reset = true;
		return;
	}
	if (!(h->flags & TCP_BIT_ACK))
		return fault(c, "a segment without ACK");
	if (h->flags & TCP_BIT_SYN)
		return take_syn(c, h);
	if (!c->opened)
		return; /* its SYN-ACK was lost or is late */
	if (c->uses_ts != h->has_timestamp)
		return fault(c, "timestamps are missing, or were not asked for");
	if (c->uses_ts && !sequence_after(h->seq, c->ts_acked) &&
	    !sequence_before(h->ts_value, c->ts_recent))
		c->ts_recent = h->ts_value;
	take_ack(c, now_ms, h);
	take_payload(c, h, payload);
	if (h->length == 0 && !(h->flags & TCP_BIT_FIN)) {
		c->ack_due |= sequence_before(h->seq, c->rcv); /* a probe */
		return;
	}
	/* Out of order, or every second segment: at once (RFC 5681, 4.2). */
	if (c->rcv == before || c->ack_at != 0)
		c->ack_due = true;
	else
		c->ack_at =
			now_ms + 1 + (uint32_t)client_random(c->random, c->manner->ack_delay + 1);
}

/* ms until a program that did not read looks again. */
#define READ_AGAIN_MS 50

void client_read(struct client *c, uint32_t now_ms)
{
	bool closed = c->offered == c->rcv;

	c->read_at = 0;
	if (chance(c, c->manner->slow)) {
		c->read_at = closed && c->opened ? now_ms + READ_AGAIN_MS : 0;
		return;
	}
	c->unread = 0;
	if (closed && c->opened)
		c->ack_due = true;
}

/* --- sending ------------------------------------------------------------------------------------
 */

static void put_blocks(struct client *c, struct tcp_header *out)
{
	uint32_t max = c->uses_ts ? 3 : 4, end = c->reply, at;

	if (c->dsack.from != c->dsack.to) {
		out->sack[out->n_sacks++] = c->dsack;
		c->dsack = (struct tcp_range){0, 0};
	}
	/* The range that came last, then others from the left. */
	at = c->last_from - c->irs - 1;
	if (sequence_after(c->last_from, c->rcv) && at < end && c->got[at]) {
		uint32_t from = at, to = at;

		while (from > 0 && c->got[from - 1])
			from--;
		while (to < end && c->got[to])
			to++;
		out->sack[out->n_sacks++] = (struct tcp_range){c->irs + 1 + from, c->irs + 1 + to};
	}
	for (at = c->rcv - c->irs - 1; at < end && out->n_sacks < max;) {
		uint32_t to;

		while (at < end && !c->got[at])
			at++;
		for (to = at; to < end && c->got[to];)
			to++;
		if (to > at &&
		    (out->n_sacks == 0 || out->sack[out->n_sacks - 1].from != c->irs + 1 + at))
			out->sack[out->n_sacks++] =
				(struct tcp_range){c->irs + 1 + at, c->irs + 1 + to};
		at = to;
	}
}

static void fill(struct client *c, uint32_t now_ms, struct tcp_header *out)
{
	uint32_t room = c->manner->buffer > c->unread ? c->manner->buffer - c->unread : 0;
	uint8_t scale = c->manner->scale == TCP_SCALE_NONE ? 0 : c->manner->scale;
	uint32_t edge = sequence_max(c->offered, c->rcv + room), units;

	units = (edge - c->rcv + (1u << scale) - 1) >> scale;
	if (units > UINT16_MAX)
		units = UINT16_MAX;
	c->offered = sequence_max(c->offered, c->rcv + (units << scale));
	out->flags |= TCP_BIT_ACK;
	out->ack = c->rcv;
	out->window = units;
	out->has_timestamp = c->uses_ts;
	out->ts_value = now_ms;
	out->ts_echo = c->ts_recent;
	c->ts_acked = c->rcv;
	c->ack_due = false;
	c->ack_at = 0;
	if (c->uses_sack)
		put_blocks(c, out);
}

static bool next_syn(struct client *c, uint32_t now_ms, struct tcp_header *out)
{
	const struct client_manner *m = c->manner;

	if (c->syn_sent && (c->rto_at == 0 || sequence_before(now_ms, c->rto_at)))
		return false;
	c->syn_sent = true;
	c->rto_at = now_ms + 1000;
	*out = (struct tcp_header){
		.seq = c->iss,
		.flags = TCP_BIT_SYN | (m->ecn ? TCP_BIT_ECE | TCP_BIT_CWR : 0),
		.window = m->buffer < UINT16_MAX ? m->buffer : UINT16_MAX,
		.mss = m->mss,
		.scale = m->scale,
		.sack_permitted = m->sack,
		.has_timestamp = m->timestamps,
		.ts_value = now_ms,
	};
	c->top = c->iss + 1;
	return true;
}

static uint32_t data_length(struct client *c)
{
	uint32_t left = end_of(c) - c->nxt, window = c->edge - c->nxt, flight, length;

	if (sequence_after(c->nxt, end_of(c)) || left == 0 || (int32_t)window <= 0)
		return 0;
	flight = c->nxt - c->una;
	if (flight >= c->manner->flight)
		return 0;
	length = 1 + (uint32_t)client_random(c->random, c->manner->segment);
	length = length < left ? length : left;
	return length < window ? length : window;
}

bool client_next(struct client *c, uint32_t now_ms, struct tcp_header *out)
{
	uint32_t length;

	if (c->reset || c->closed)
		return false;
	if (!c->opened)
		return next_syn(c, now_ms, out);
	if (c->rto_at != 0 && !sequence_before(now_ms, c->rto_at)) {
		c->nxt = c->una;
		c->rto_ms = c->rto_ms * 2 < RTO_MAX_MS ? c->rto_ms * 2 : RTO_MAX_MS;
		c->rto_at = 0;
	}
	if (c->ack_at != 0 && !sequence_before(now_ms, c->ack_at))
		c->ack_due = true;
	*out = (struct tcp_header){.seq = c->nxt, .scale = TCP_SCALE_NONE};
	length = data_length(c);
	if (length > 0 || (c->nxt == end_of(c) && !c->fin_acked &&
			   (!c->fin_sent || sequence_before(c->nxt, c->top)))) {
		out->length = length;
		if (c->nxt + length == end_of(c)) {
			out->flags |= TCP_BIT_FIN;
			c->fin_sent = true;
		}
		c->nxt += tcp_header_span(out);
		c->top = sequence_max(c->top, c->nxt);
		if (c->rto_at == 0)
			c->rto_at = now_ms + c->rto_ms;
		fill(c, now_ms, out);
		if (length > 0)
			out->n_sacks = 0;
		return true;
	}
	if (c->rto_at == 0 && c->edge == c->una && sequence_before(c->una, end_of(c))) {
		/* A closed window: probe it with a byte that came before. */
		c->rto_at = now_ms + c->rto_ms;
		out->seq = c->una - 1;
		fill(c, now_ms, out);
		return true;
	}
	if (!c->ack_due)
		return false;
	out->seq = c->top;
	if (sequence_after(c->top, c->edge))
		out->seq = c->edge;
	fill(c, now_ms, out);
	return true;
}

bool client_due(const struct client *c, uint32_t *at_ms)
{
	bool found = c->rto_at != 0;

	*at_ms = c->rto_at;
	if (c->ack_at != 0 && (!found || sequence_before(c->ack_at, *at_ms))) {
		*at_ms = c->ack_at;
		found = true;
	}
	if (c->read_at != 0 && (!found || sequence_before(c->read_at, *at_ms))) {
		*at_ms = c->read_at;
		found = true;
	}
	return found;
}
