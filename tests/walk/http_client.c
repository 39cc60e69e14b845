/* SPDX-License-Identifier: BSD-3-Clause */
#include "http_client.h"

#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "edge/edge.h"
#include "tcp/connection.h"

static struct http_client *client_by_port[UINT16_MAX + 1];

/* Every frame to the client that it is for. */
void http_take_all(struct http_client *any)
{
	static struct walk_frame f;
	struct tcp_header h;

	while (walk_take(any->w, 0, &f)) {
		const uint8_t *tcp = f.bytes + 34;
		struct http_client *c = client_by_port[tcp[2] << 8 | tcp[3]];

		if (f.bytes[23] != IPPROTO_TCP || c == NULL)
			continue;
		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		c->acked = h.ack;
		c->offered = h.ack + h.window;
		c->reset |= (h.flags & TCP_BIT_RST) != 0;
		if (h.flags & TCP_BIT_SYN)
			c->ack = h.seq;
		if (h.seq != c->ack)
			continue;
		walk_need(c->n + h.length < sizeof(c->got), "too long an answer");
		memcpy(c->got + c->n, tcp + h.size, h.length);
		c->n += h.length;
		c->ack += tcp_header_span(&h);
		c->fin |= (h.flags & TCP_BIT_FIN) != 0;
		c->got[c->n] = '\0';
	}
}

static void http_send(struct http_client *c, uint8_t flags, const void *bytes, uint32_t n)
{
	struct tcp_header h = {.seq = c->seq,
			       .ack = flags & TCP_BIT_ACK ? c->ack : 0,
			       .flags = flags,
			       .window = c->window,
			       .length = n,
			       .scale = TCP_SCALE_NONE};
	uint8_t tcp[PACKET_MAX], frame[PACKET_MAX];
	uint32_t size = tcp_header_write(&h, htons(c->port), htons(8000), tcp);
	struct packet p = {.family = 4,
			   .tcp = true,
			   .source = c->source,
			   .source_port = c->port,
			   .bytes = tcp + 4,
			   .n_bytes = size - 4 + n};

	if (n > 0)
		memcpy(tcp + size, bytes, n);
	walk_send_frame(c->w, 0, 0, frame, packet_build(&p, frame));
	c->seq += tcp_header_span(&h);
}

static void http_transmit(struct http_client *c, uint8_t flags, const void *bytes, uint32_t n)
{
	http_send(c, flags, bytes, n);
	walk_turn(c->w);
	http_take_all(c);
}

void http_put(struct http_client *c, const void *bytes, uint32_t n)
{
	http_send(c, TCP_BIT_ACK | TCP_BIT_PSH, bytes, n);
}

void http_finish(struct http_client *c)
{
	http_transmit(c, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
}

void http_acknowledge(struct http_client *c)
{
	http_send(c, TCP_BIT_ACK, NULL, 0);
}

struct http_client *http_dial(struct walk *w, uint16_t port)
{
	return http_dial_from(w, NULL, port);
}

struct http_client *http_dial_from(struct walk *w, const char *source, uint16_t port)
{
	struct http_client *c = calloc(1, sizeof(*c));

	*c = (struct http_client){
		.w = w, .source = source, .port = port, .seq = port * 1000, .window = 65535};
	client_by_port[port] = c;
	http_transmit(c, TCP_BIT_SYN, NULL, 0);
	http_transmit(c, TCP_BIT_ACK, NULL, 0);
	return c;
}

/* A ms, with the turns that follow each other at once because there is more to do. */
static void http_pass(struct walk *w)
{
	struct lcore *lc = w->lb->lcore[0];

	walk_pass(w, 1);
	for (unsigned int i = 0; i < 100 && edge_deadline(lc) <= lc->now; i++)
		walk_turn(w);
}

void http_wait(struct http_client *c)
{
	uint32_t before;

	do {
		before = c->n;
		for (unsigned int i = 0; i < 20; i++)
			http_pass(c->w);
		http_take_all(c);
		http_transmit(c, TCP_BIT_ACK, NULL, 0);
	} while (c->n != before);
}

void http_say(struct http_client *c, const char *bytes, uint32_t n)
{
	for (uint32_t at = 0; at < n; at += 1000) {
		uint32_t part = RTE_MIN(n - at, 1000u);

		http_transmit(c, TCP_BIT_ACK | TCP_BIT_PSH, bytes + at, part);
	}
}

void http_hang_up(struct http_client *c)
{
	if (!c->reset)
		http_finish(c);
	for (unsigned int i = 0; i < 100 && !c->reset && !c->fin; i++) {
		walk_pass(c->w, 1);
		http_take_all(c);
	}
	if (!c->reset)
		http_transmit(c, TCP_BIT_ACK, NULL, 0);
	walk_expect_eq(edge_held_packets(c->w->lb->lcore[0]), 0);
	client_by_port[c->port] = NULL;
	free(c);
}

void http_put_reset(struct http_client *c)
{
	/* It may have been offered less than it sent: only the number that is expected counts. */
	if (c->acked != 0 && c->acked != c->seq) {
		uint32_t seq = c->seq;

		c->seq = c->acked;
		http_send(c, TCP_BIT_ACK | TCP_BIT_RST, NULL, 0);
		c->seq = seq;
	}
	http_send(c, TCP_BIT_ACK | TCP_BIT_RST, NULL, 0);
}

void http_forget(struct http_client *c)
{
	client_by_port[c->port] = NULL;
	free(c);
}

void http_abort(struct http_client *c)
{
	http_put_reset(c);
	walk_turn(c->w);
	http_take_all(c);
	http_forget(c);
}
