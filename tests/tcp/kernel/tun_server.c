/* SPDX-License-Identifier: BSD-3-Clause */
#include "tun_server.h"

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "../pools.h"
#include "tcp/cookie.h"
#include "tcp/time_wait.h"

#define CONNECTIONS 4096
#define BUCKETS     8192
#define PACKET_MAX  9216
#define WAIT_MS     60000

struct serving {
	struct serving *next; /* in its bucket */
	struct tcp_ends ends;
	bool six, waits;
	struct tcp_connection c;
	struct tcp_time_wait wait;
	uint32_t wait_until_ms;
	uint32_t irs, iss;
	uint64_t taken, acked; /* bytes in order; bytes of replies acknowledged */
	uint8_t *buffer;       /* of <grant> bytes, by number modulo that */
	struct exchange exchange;
};

struct tun_server {
	struct tcp_settings settings;
	struct tcp_stack stack;
	struct tcp_secret secret;
	uint16_t port;
	uint32_t grant;
	bool cookies;
	void (*send)(void *context, const uint8_t *ip, uint32_t length);
	void *context;
	struct serving *bucket[BUCKETS];
	uint32_t n;
	uint64_t wrong, bad_sums;
};

struct tun_server *tun_server_create(const struct tcp_settings *settings, uint16_t port,
				     uint32_t grant, bool cookies,
				     void (*send)(void *, const uint8_t *, uint32_t), void *context)
{
	struct tun_server *s = calloc(1, sizeof(*s));

	if (s == NULL)
		errx(1, "no memory");
	s->settings = *settings;
	s->port = htons(port);
	s->grant = grant;
	s->cookies = cookies;
	s->send = send;
	s->context = context;
	s->secret = (struct tcp_secret){{0x1234, (uint64_t)(uintptr_t)s}};
	pools_init(&s->stack, &s->settings, CONNECTIONS, 20000, CONNECTIONS);
	return s;
}

static void set_clock(struct tun_server *s, uint64_t now_us)
{
	s->stack.now_us = (uint32_t)now_us;
	s->stack.now_ms = (uint32_t)(now_us / 1000);
}

static uint32_t sum(const uint8_t *at, uint32_t n, uint32_t before)
{
	uint64_t total = before;

	for (; n > 1; n -= 2, at += 2)
		total += at[0] << 8 | at[1];
	if (n == 1)
		total += at[0] << 8;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return (uint32_t)total;
}

/* The sum of the pseudo header: addresses from <at> on. */
static uint32_t sum_pseudo(const uint8_t *at, bool six, uint32_t length)
{
	return sum(at, six ? 32 : 8, IPPROTO_TCP + length);
}

/* --- sending ------------------------------------------------------------------------------------
 */

static void transmit(struct tun_server *s, const struct tcp_ends *ends, bool six,
		     const struct tcp_header *h, const struct exchange *e, uint64_t from)
{
	uint8_t ip[PACKET_MAX] = {0};
	uint32_t head = six ? 40 : 20, size, total;
	uint8_t *tcp = ip + head;
	uint16_t value;

	size = tcp_header_write(h, ends->server_port, ends->client_port, tcp);
	if (h->length > 0)
		exchange_give(e, from, tcp + size, h->length);
	total = size + h->length;
	if (six) {
		ip[0] = 0x60;
		value = htons(total);
		memcpy(ip + 4, &value, 2);
		ip[6] = IPPROTO_TCP;
		ip[7] = 64;
		memcpy(ip + 8, &ends->server, 16);
		memcpy(ip + 24, &ends->client, 16);
	} else {
		ip[0] = 0x45;
		value = htons(head + total);
		memcpy(ip + 2, &value, 2);
		ip[6] = 0x40;
		ip[8] = 64;
		ip[9] = IPPROTO_TCP;
		memcpy(ip + 12, &ends->server.s6_addr32[3], 4);
		memcpy(ip + 16, &ends->client.s6_addr32[3], 4);
		value = htons(~sum(ip, 20, 0));
		memcpy(ip + 10, &value, 2);
	}
	value = htons(~sum(tcp, total, sum_pseudo(ip + (six ? 8 : 12), six, total)));
	memcpy(tcp + 16, &value, 2);
	s->send(s->context, ip, head + total);
}

static void flush(struct tun_server *s, struct serving *v)
{
	struct tcp_header out;

	while (tcp_next(&s->stack, &v->c, &out))
		transmit(s, &v->ends, v->six, &out, &v->exchange, out.seq - v->iss - 1);
}

/* --- connections --------------------------------------------------------------------------------
 */

static struct serving **find(struct tun_server *s, const struct tcp_ends *ends)
{
	uint64_t hash = tcp_secret_hash(&s->secret, ends, 99);
	struct serving **at = &s->bucket[hash % BUCKETS];

	while (*at != NULL && memcmp(&(*at)->ends, ends, sizeof(*ends)) != 0)
		at = &(*at)->next;
	return at;
}

static void forget(struct tun_server *s, struct serving **at)
{
	struct serving *v = *at;

	*at = v->next;
	tcp_release(&s->stack, &v->c);
	free(v->buffer);
	free(v);
	s->n--;
}

static struct serving *add(struct tun_server *s, struct serving **at, const struct tcp_ends *ends,
			   bool six)
{
	struct serving *v = calloc(1, sizeof(*v));

	if (v == NULL || (v->buffer = malloc(s->grant)) == NULL)
		errx(1, "no memory");
	v->ends = *ends;
	v->six = six;
	*at = v;
	s->n++;
	return v;
}

/* The connection has closed: it goes into TIME-WAIT, or leaves no state. */
static void end(struct tun_server *s, struct serving **at)
{
	struct serving *v = *at;

	if (v->c.state != TCP_TIME_WAIT) {
		forget(s, at);
		return;
	}
	tcp_time_wait_enter(&v->c, s->stack.now_ms, &v->wait);
	v->wait_until_ms = s->stack.now_ms + WAIT_MS;
	v->waits = true;
	tcp_release(&s->stack, &v->c);
	free(v->buffer);
	v->buffer = NULL;
}

static void place(struct tun_server *s, struct serving *v, const struct tcp_received *r,
		  const uint8_t *payload)
{
	for (unsigned int i = 0; i < r->n_new; i++) {
		const struct tcp_new *new = &r->new[i];
		uint32_t at = (new->seq - v->irs) % s->grant;
		uint32_t part = s->grant - at < new->length ? s->grant - at : new->length;

		memcpy(v->buffer + at, payload + new->offset, part);
		memcpy(v->buffer, payload + new->offset + part, new->length - part);
	}
}

/* Reads what is in order. */
static void consume(struct tun_server *s, struct serving *v, uint32_t advanced)
{
	uint32_t seq = v->irs + 1 + (uint32_t)v->taken;

	v->taken += advanced;
	while (advanced > 0) {
		uint32_t at = (seq - v->irs) % s->grant;
		uint32_t part = s->grant - at < advanced ? s->grant - at : advanced;

		tcp_queue(&v->c, (uint32_t)exchange_take(&v->exchange, v->buffer + at, part));
		seq += part;
		advanced -= part;
	}
	/* In the middle of a request there is no reply to carry the acknowledgement. */
	if (v->exchange.head_have > 0)
		tcp_acknowledge(&v->c);
	if (v->exchange.wrong) {
		s->wrong++;
		tcp_abort(&v->c);
	}
}

static void take(struct tun_server *s, struct serving **at, const struct tcp_header *h,
		 const uint8_t *payload, bool marked)
{
	struct serving *v = *at;
	struct tcp_received r;

	tcp_receive(&s->stack, &v->c, h, marked, &r);
	place(s, v, &r, payload);
	v->acked += r.acked;
	exchange_forget(&v->exchange, v->acked);
	consume(s, v, r.advanced);
	/* The ring of numbers keeps one unit free: windows are rounded up. */
	tcp_grant(&v->c, s->grant - (1u << s->settings.scale));
	if (r.finished)
		tcp_close(&v->c);
	flush(s, v);
	if (r.closed || v->c.state == TCP_CLOSED)
		end(s, at);
}

/* Takes a segment that belongs to no connection: opens one, or sends a reset. */
static void listen_to(struct tun_server *s, struct serving **at, const struct tcp_ends *ends,
		      bool six, const struct tcp_header *h, const uint8_t *payload, uint32_t floor)
{
	uint32_t grant = s->grant - (1u << s->settings.scale), iss;
	uint16_t mss = s->settings.mss - (six ? 20 : 0);
	struct tcp_connection c;
	struct tcp_header out;
	struct serving *v;

	if (ends->server_port == s->port &&
	    (h->flags & (TCP_BIT_SYN | TCP_BIT_ACK | TCP_BIT_RST)) == TCP_BIT_SYN) {
		if (s->cookies) {
			tcp_cookie_answer(&s->stack, &s->secret, ends, h, grant, &out);
			out.mss = mss;
			return transmit(s, ends, six, &out, NULL, 0);
		}
		v = add(s, at, ends, six);
		iss = tcp_secret_sequence(&s->secret, ends, s->stack.now_us);
		v->iss = floor != 0 && sequence_before(iss, floor) ? floor : iss;
		v->irs = h->seq;
		tcp_open(&s->stack, &v->c, h, mss, grant, v->iss,
			 tcp_secret_timestamp(&s->secret, ends));
		return flush(s, v);
	}
	if (s->cookies && ends->server_port == s->port &&
	    tcp_cookie_open(&s->stack, &s->secret, ends, h, mss, grant, &c)) {
		v = add(s, at, ends, six);
		v->c = c;
		v->irs = c.irs;
		v->iss = c.snd_una;
		return take(s, at, h, payload, false);
	}
	if (tcp_cookie_may_come(&s->stack, &s->secret, ends, h))
		return;
	if (tcp_reset_for(h, &out))
		transmit(s, ends, six, &out, NULL, 0);
}

static void wait_receive(struct tun_server *s, struct serving **at, const struct tcp_header *h,
			 const uint8_t *payload)
{
	struct serving *v = *at;
	struct tcp_ends ends = v->ends;
	struct tcp_header out;
	bool six = v->six;

	switch (tcp_time_wait_receive(&v->wait, s->stack.now_ms, h, &out)) {
	case TCP_TIME_WAIT_RESTART:
		v->wait_until_ms = s->stack.now_ms + WAIT_MS;
		/* fall through */
	case TCP_TIME_WAIT_ANSWER:
		transmit(s, &ends, six, &out, NULL, 0);
		break;
	case TCP_TIME_WAIT_REOPEN:
		forget(s, at);
		at = find(s, &ends);
		listen_to(s, at, &ends, six, h, payload, out.seq);
		break;
	case TCP_TIME_WAIT_IGNORE:
		break;
	}
}

/* Finds TCP in <ip> and returns its length; 0: the packet is not for us. */
static uint32_t parse_ip(const uint8_t *ip, uint32_t length, struct tcp_ends *ends, bool *six,
			 bool *marked, uint32_t *tcp_length)
{
	uint32_t head, total;

	memset(ends, 0, sizeof(*ends));
	*six = length >= 40 && ip[0] >> 4 == 6;
	if (!*six && (length < 20 || ip[0] >> 4 != 4))
		return 0;
	head = *six ? 40 : (ip[0] & 15) * 4u;
	total = *six ? 40 + (ip[4] << 8 | ip[5]) : ip[2] << 8 | ip[3];
	if (total > length || total < head + TCP_HEADER_MIN ||
	    (*six ? ip[6] : ip[9]) != IPPROTO_TCP || (!*six && sum(ip, head, 0) != 0xffff))
		return 0;
	if (*six) {
		memcpy(&ends->client, ip + 8, 16);
		memcpy(&ends->server, ip + 24, 16);
		*marked = (ip[1] >> 4 & 3) == 3;
	} else {
		ends->client.s6_addr16[5] = ends->server.s6_addr16[5] = 0xffff;
		memcpy(&ends->client.s6_addr32[3], ip + 12, 4);
		memcpy(&ends->server.s6_addr32[3], ip + 16, 4);
		*marked = (ip[1] & 3) == 3;
	}
	memcpy(&ends->client_port, ip + head, 2);
	memcpy(&ends->server_port, ip + head + 2, 2);
	*tcp_length = total - head;
	return head;
}

void tun_server_receive(struct tun_server *s, uint64_t now_us, const uint8_t *ip, uint32_t length)
{
	struct tcp_ends ends;
	struct tcp_header h;
	bool six, marked;
	uint32_t tcp_length, head = parse_ip(ip, length, &ends, &six, &marked, &tcp_length);
	const uint8_t *tcp = ip + head;
	struct serving **at;

	if (head == 0)
		return;
	if (sum(tcp, tcp_length, sum_pseudo(ip + (six ? 8 : 12), six, tcp_length)) != 0xffff ||
	    tcp_header_read(tcp, tcp_length, &h) != 0) {
		s->bad_sums++;
		return;
	}
	set_clock(s, now_us);
	at = find(s, &ends);
	if (*at == NULL)
		listen_to(s, at, &ends, six, &h, tcp + h.size, 0);
	else if ((*at)->waits)
		wait_receive(s, at, &h, tcp + h.size);
	else
		take(s, at, &h, tcp + h.size, marked);
}

static void poll_one(struct tun_server *s, struct serving **at, uint32_t *next_ms)
{
	struct serving *v = *at;
	uint32_t ms;

	if (v->waits) {
		if (sequence_before(v->wait_until_ms, s->stack.now_ms))
			forget(s, at);
		return;
	}
	if (!tcp_due(&v->c, &ms))
		return;
	if (!sequence_after(ms, s->stack.now_ms)) {
		tcp_timer(&s->stack, &v->c);
		flush(s, v);
		if (v->c.state == TCP_CLOSED) {
			end(s, at);
			return;
		}
		if (!tcp_due(&v->c, &ms))
			return;
	}
	if (sequence_before(ms, *next_ms))
		*next_ms = ms;
}

uint64_t tun_server_poll(struct tun_server *s, uint64_t now_us)
{
	uint32_t next_ms;

	set_clock(s, now_us);
	next_ms = s->stack.now_ms + 1000;
	for (uint32_t i = 0; i < BUCKETS && s->n > 0; i++) {
		struct serving **at = &s->bucket[i];

		while (*at != NULL) {
			struct serving *v = *at;

			poll_one(s, at, &next_ms);
			if (*at == v)
				at = &v->next;
		}
	}
	return now_us + (next_ms - s->stack.now_ms) * UINT64_C(1000);
}

const struct tcp_counters *tun_server_counters(const struct tun_server *s)
{
	return &s->stack.counters;
}

uint64_t tun_server_wrong(const struct tun_server *s)
{
	return s->wrong;
}

uint64_t tun_server_bad_sums(const struct tun_server *s)
{
	return s->bad_sums;
}

uint32_t tun_server_open(const struct tun_server *s)
{
	return s->n;
}
