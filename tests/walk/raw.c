/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw.h"

#include <string.h>

#include <arpa/inet.h>

#include "lb.h"
#include "worker.h"

const struct walk_params raw_small = {
	.services = RAW_SERVICES,
	.more = "tcp: {connections: 256, buffer_mb: 8}\n",
};

const struct walk_worker_params large_roomy = {
	.max_request = 65536, .max_reply = 65536, .room = 262144};

struct walk *large_create(const char *more, const char *buffer)
{
	static char services[1024], tcp[256];
	struct walk_params params = {.services = services, .more = tcp};

	snprintf(services, sizeof(services), LARGE_SERVICE, more, more);
	snprintf(tcp, sizeof(tcp), "tcp: {connections: 256, %s}\n", buffer);
	return walk_create(&params);
}

void large_expect_room(const struct walk *w)
{
	const struct lcore *lc = w->lb->lcore[0];

	for (unsigned int i = 0; i < lc->n_links; i++) {
		walk_expect_eq(lc->links[i]->n_free, lc->links[i]->slots);
		walk_expect_eq(lc->links[i]->room.free, lc->links[i]->room.pages);
	}
}

bool raw_take(struct raw *r, struct tcp_header *h, uint8_t *payload)
{
	static struct walk_frame f;

	while (walk_take(r->w, r->on, &f)) {
		const uint8_t *tcp = f.bytes + 34;

		if (f.bytes[23] != IPPROTO_TCP || (tcp[2] << 8 | tcp[3]) != r->port)
			continue;
		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, h) == 0);
		memcpy(payload, tcp + h->size, h->length);
		r->fin |= h->flags & TCP_BIT_FIN;
		r->sent_to = f.destination_mac[5];
		return true;
	}
	return false;
}

void raw_put(struct raw *r, uint8_t flags, const void *bytes, uint32_t n)
{
	struct tcp_header h = {
		.seq = r->seq,
		.ack = flags & TCP_BIT_ACK ? r->ack : 0,
		.flags = flags,
		.window = 65535,
		.length = n,
		.scale = TCP_SCALE_NONE,
	};
	uint8_t tcp[PACKET_MAX], frame[PACKET_MAX];
	uint32_t size = tcp_header_write(&h, htons(r->port),
					 htons(r->service != 0 ? r->service : 8000), tcp);
	struct packet p = {
		.family = 4,
		.tcp = true,
		.source = r->source,
		.source_port = r->port,
		.destination_port = r->service,
		.station = r->station,
		.l4_sum = r->sum,
		.bytes = tcp + 4,
		.n_bytes = size - 4 + n,
	};

	if (bytes != NULL)
		memcpy(tcp + size, bytes, n);
	walk_send_frame(r->w, r->on, 0, frame, packet_build(&p, frame));
	r->seq += tcp_header_span(&h);
}

void raw_send(struct raw *r, uint8_t flags, const void *bytes, uint32_t n)
{
	raw_put(r, flags, bytes, n);
	walk_turn(r->w);
}

void raw_connect(struct raw *r)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	raw_send(r, TCP_BIT_SYN, NULL, 0);
	walk_need(raw_take(r, &h, payload), "no SYN-ACK");
	walk_expect_eq(h.flags, TCP_BIT_SYN | TCP_BIT_ACK);
	walk_expect_eq(h.ack, r->seq);
	r->ack = h.seq + 1;
	raw_send(r, TCP_BIT_ACK, NULL, 0);
}

void raw_open_on(struct raw *r, struct walk *w, uint16_t port, unsigned int on)
{
	*r = (struct raw){.w = w, .port = port, .on = on, .seq = port * 1000};
	raw_connect(r);
}

void raw_open(struct raw *r, struct walk *w, uint16_t port)
{
	raw_open_on(r, w, port, 0);
}

void raw_ask(struct raw *r, uint32_t said, uint32_t n)
{
	uint8_t bytes[1460] = {0};

	memcpy(bytes, &said, 4);
	memset(bytes + 4, 0x61, n);
	raw_send(r, TCP_BIT_ACK | TCP_BIT_PSH, bytes, 4 + n);
}

void raw_expect_answer(struct raw *r, uint32_t status, uint32_t length)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;
	uint32_t head[2];

	walk_pass(r->w, 20);
	do
		walk_need(raw_take(r, &h, payload), "no answer");
	while (h.length == 0);
	memcpy(head, payload, 8);
	walk_expect_eq(head[0], length);
	walk_expect_eq(head[1], status);
	walk_expect_eq(h.length, 8 + length);
	walk_expect_eq(h.seq, r->ack);
	r->ack = h.seq + tcp_header_span(&h);
	raw_send(r, TCP_BIT_ACK, NULL, 0);
}

void raw_expect_fin(struct raw *r)
{
	uint8_t payload[PACKET_MAX];
	struct tcp_header h;

	walk_pass(r->w, 20);
	while (!r->fin) {
		walk_need(raw_take(r, &h, payload), "no FIN");
		r->ack = h.seq + tcp_header_span(&h);
	}
}

void raw_expect_none_left(struct walk *w, uint32_t ms)
{
	for (uint32_t i = 0; i < ms && conntrack_count(w->lb->lcore[0]->ct) > 0; i++)
		walk_pass(w, 1);
	walk_expect_eq(conntrack_count(w->lb->lcore[0]->ct), 0);
}

void raw_take_service_away(struct walk *w, const struct walk_params *params)
{
	char text[4096];

	walk_yaml(params,
		  "  - {name: echo6, protocol: tcp, address: \"" PACKET_DESTINATION6
		  "\", port: 8000, model: echo, max_request: 1400, max_reply: 1400}\n",
		  text, sizeof(text));
	walk_expect_eq(walk_reload(w, text), 0);
}

void raw_into_time_wait(struct raw *r)
{
	raw_expect_fin(r);
	raw_send(r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
}

bool raw_read(struct raw *r, const struct raw *other)
{
	struct tcp_header h;
	struct walk_frame f;
	bool found = false;

	while (walk_take(r->w, r->on, &f)) {
		const uint8_t *tcp = f.bytes + 34;
		uint16_t port = tcp[2] << 8 | tcp[3];

		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		found |= port == other->port && h.length > 0;
		if (port == r->port)
			r->ack = h.seq + h.length;
	}
	raw_send(r, TCP_BIT_ACK, NULL, 0);
	return found;
}

void raw_note_acks(struct raw *r, unsigned int n)
{
	struct tcp_header h;
	struct walk_frame f;

	while (walk_take(r->w, r->on, &f)) {
		const uint8_t *tcp = f.bytes + 34;

		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		for (unsigned int i = 0; i < n; i++)
			if ((tcp[2] << 8 | tcp[3]) == r[i].port)
				r[i].ack = h.seq + h.length;
	}
}

void raw_part(struct raw *r, uint32_t size, uint32_t from, uint32_t to)
{
	uint8_t bytes[1004];

	while (from < to) {
		uint32_t n = RTE_MIN(to - from, 1000u), head = from == 0 ? 4 : 0;

		memcpy(bytes, &size, 4);
		for (uint32_t i = 0; i < n; i++)
			bytes[head + i] = (from + i) * 7;
		raw_send(r, TCP_BIT_ACK, bytes, head + n);
		from += n;
	}
}

void large_expect_request(const struct walk_worker *v, unsigned int i, uint32_t size)
{
	walk_need(v->n_requests > i, "%s has %u requests", v->name, v->n_requests);
	walk_expect_eq(v->request[i].length, size);
	for (uint32_t k = 0; k < size; k++)
		if (!walk_expect_eq(v->request[i].bytes[k], (uint8_t)(k * 7)))
			break;
}

void large_answer(struct walk_worker *v)
{
	while (v->n_requests > 0)
		walk_answer(v, 0, &(struct walk_reply){.bytes = "ok", .n_bytes = 2});
}

void large_two_and_a_part(struct raw *r, struct walk *w, struct walk_worker **has,
			  struct walk_worker **other)
{
	struct walk_worker *v[2] = {walk_worker(w, &large_roomy), walk_worker(w, &large_roomy)};
	struct lcore *lc = w->lb->lcore[0];
	unsigned int at;

	v[0]->answers = v[1]->answers = false;
	raw_open(r, w, 3000);
	raw_part(r, 30000, 0, 20000);
	at = link_outstanding(lc->link[walk_worker_of(v[0])->number]) == 1 ? 0 : 1;
	*has = v[at];
	*other = v[1 - at];
	walk_expect_eq(link_outstanding(lc->link[walk_worker_of(*has)->number]), 1);
	walk_expect_eq(link_outstanding(lc->link[walk_worker_of(*other)->number]), 0);
}

void large_take_worker(struct walk *w, struct walk_worker *v)
{
	walk_settle(w);
	v->gone = true;
	lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
	walk_pass(w, 3);
}

void raw_end(struct raw *r)
{
	raw_send(r, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	raw_expect_fin(r);
	raw_send(r, TCP_BIT_ACK, NULL, 0);
	walk_settle(r->w);
	large_expect_room(r->w);
	walk_destroy(r->w);
}

struct walk_worker *large_silent_worker(struct walk *w)
{
	struct walk_worker *v = walk_worker(w, &large_roomy);

	v->answers = false;
	return v;
}
