/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream_client.h"

#include <arpa/inet.h>

#include <stdlib.h>
#include <string.h>

#include "packet.h"
#include "tcp/connection.h"

struct stream_frame {
	struct stream_frame *next;
	uint32_t at_ms;
	bool to_client;
	uint32_t length;
	uint8_t bytes[PACKET_MAX];
};

static uint32_t now_ms(const struct stream_clients *all)
{
	return lb_tsc_to_ms(all->w->lb, all->w->clock);
}

static bool chance(struct stream_clients *all, unsigned int thousandths)
{
	return client_random(&all->random, 1000) < thousandths;
}

static uint32_t sum_of(const uint8_t *at, uint32_t n, uint32_t sum)
{
	for (; n > 1; n -= 2, at += 2)
		sum += at[0] << 8 | at[1];
	sum += n == 1 ? at[0] << 8 : 0;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/*
 * Does the checksum's field have the sum of the addresses only, as where a sender leaves the rest
 * to hardware? On a port of local senders such a segment is good, whatever is in it. By chance it
 * is so for one damaged segment of 65,536.
 */
static bool looks_unfinished(const uint8_t *ip, bool six)
{
	const uint8_t *tcp = ip + (six ? 40 : 20);
	uint16_t length = six ? ip[4] << 8 | ip[5] : (ip[2] << 8 | ip[3]) - 20;

	return sum_of(ip + (six ? 8 : 12), six ? 32 : 8, IPPROTO_TCP + length) ==
	       (uint32_t)(tcp[16] << 8 | tcp[17]);
}

/* Changes a bit so that the checksum tells. */
static void damage(struct stream_clients *all, struct stream_frame *f)
{
	bool six = f->bytes[12] == 0x86;
	uint8_t *at = f->bytes + 14 + client_random(&all->random, f->length - 14);
	uint8_t bit = 1 << client_random(&all->random, 8);

	*at ^= bit;
	if (looks_unfinished(f->bytes + 14, six))
		*at ^= bit;
}

/* Into the network: in order of arrival. */
static void carry(struct stream_clients *all, bool to_client, const uint8_t *bytes, uint32_t length)
{
	const struct stream_net *net = all->net;
	unsigned int copies = 1 + chance(all, net->copy);

	for (; copies > 0; copies--) {
		struct stream_frame **at = &all->frames, *f;

		if (chance(all, net->lose))
			continue;
		f = malloc(sizeof(*f));
		walk_need(f != NULL && length <= sizeof(f->bytes), "no memory");
		*f = (struct stream_frame){.to_client = to_client, .length = length};
		f->at_ms = now_ms(all) + 1;
		if (chance(all, net->delay))
			f->at_ms += client_random(&all->random, net->delay_ms + 1);
		memcpy(f->bytes, bytes, length);
		if (chance(all, net->damage))
			damage(all, f);
		while (*at != NULL && (int32_t)((*at)->at_ms - f->at_ms) <= 0)
			at = &(*at)->next;
		f->next = *at;
		*at = f;
	}
}

static void send_segment(struct stream_clients *all, struct stream_client *v,
			 const struct tcp_header *h)
{
	uint8_t tcp[PACKET_MAX], frame[PACKET_MAX];
	uint32_t size = tcp_header_write(h, htons(v->port), htons(PACKET_DESTINATION_PORT), tcp);
	struct packet p = {
		.family = v->family,
		.tcp = true,
		.source_port = v->port,
		.l4_sum = all->partial ? SUM_PARTIAL : SUM_RIGHT,
		.bytes = tcp + 4,
		.n_bytes = size - 4 + h->length,
	};

	if (h->length > 0)
		memcpy(tcp + size, v->stream + (h->seq - v->tcp.iss - 1), h->length);
	carry(all, false, frame, packet_build(&p, frame));
}

static struct stream_client *client_of(struct stream_clients *all, uint16_t port)
{
	for (unsigned int i = 0; i < all->n; i++)
		if (all->client[i].port == port)
			return &all->client[i];
	return NULL;
}

static bool is_over(const struct stream_client *v)
{
	return v->tcp.fault[0] != '\0' || v->tcp.reset || (v->tcp.fin_acked && v->tcp.fin_got);
}

/* False: the network has damaged the frame, which fails the row if it does not do that. */
static bool sums_hold(const struct stream_clients *all, const uint8_t *ip, bool six,
		      uint32_t length)
{
	const uint8_t *tcp = ip + (six ? 40 : 20);
	bool holds;

	holds = (six ? (uint32_t)(ip[4] << 8 | ip[5]) : (ip[2] << 8 | ip[3]) - 20u) == length &&
		sum_of(tcp, length,
		       sum_of(ip + (six ? 8 : 12), six ? 32 : 8, IPPROTO_TCP + length)) == 0xffff &&
		(six || sum_of(ip, 20, 0) == 0xffff);
	walk_expect(holds || all->net->damage > 0, "length or checksum");
	return holds;
}

/* As the port does: TCP's continues from the value in the field, and IPv4's may be its, too. */
static void finish_checksums(uint8_t *ip, bool six, uint8_t *tcp, uint32_t length)
{
	uint32_t sum = ~sum_of(tcp, length, 0);

	tcp[16] = sum >> 8;
	tcp[17] = sum;
	if (six || ip[10] != 0 || ip[11] != 0)
		return;
	sum = ~sum_of(ip, 20, 0);
	ip[10] = sum >> 8;
	ip[11] = sum;
}

/* A frame of the load balancer's arrives at its client. */
static void arrive(struct stream_clients *all, struct stream_frame *f)
{
	uint8_t *ip = f->bytes + 14;
	bool six = ip[0] >> 4 == 6;
	uint32_t head = six ? 40 : 20, length = f->length - 14 - head;
	uint8_t *tcp = ip + head;
	struct stream_client *v;
	struct tcp_header h, out;

	if ((six ? ip[6] : ip[9]) != IPPROTO_TCP)
		return;
	if (all->by_port)
		finish_checksums(ip, six, tcp, length);
	if (!sums_hold(all, ip, six, length))
		return;
	v = client_of(all, tcp[2] << 8 | tcp[3]);
	if (v == NULL || !walk_expect_eq(tcp_header_read(tcp, length, &h), 0))
		return;
	/* Its socket is closed: what comes late is answered by a reset. */
	if (v->tcp.fin_acked && v->tcp.fin_got && !(h.flags & TCP_BIT_FIN)) {
		if (tcp_reset_for(&h, &out))
			send_segment(all, v, &out);
		return;
	}
	client_receive(&v->tcp, now_ms(all), &h, tcp + h.size);
}

/* A client's frame comes to the load balancer. */
static void to_load_balancer(struct stream_clients *all, const struct stream_frame *f)
{
	const uint8_t *ip = f->bytes + 14, *tcp = ip + (ip[0] >> 4 == 6 ? 40 : 20);
	unsigned int way = all->wander ? client_random(&all->random, 1 << 16) : tcp[1];
	unsigned int port = (way >> 8) % RTE_MAX(all->ports, 1u);

	walk_send_frame(all->w, port, way % all->w->nic[port].n_queues, f->bytes, f->length);
}

static void deliver(struct stream_clients *all)
{
	struct stream_frame *f;

	while ((f = all->frames) != NULL && (int32_t)(f->at_ms - now_ms(all)) <= 0) {
		all->frames = f->next;
		if (f->to_client)
			arrive(all, f);
		else
			to_load_balancer(all, f);
		free(f);
	}
}

void stream_client_open(struct stream_clients *all, unsigned int i, const uint8_t *stream,
			uint32_t n_stream, const uint8_t *expected, uint32_t n_expected)
{
	struct stream_client *v = &all->client[i];

	*v = (struct stream_client){
		.family = chance(all, 500) ? 4 : 6,
		.port = 20000 + i,
		.stream = stream,
		.n_stream = n_stream,
		.got = calloc(1, n_expected + 1),
	};
	v->manner = (struct client_manner){
		.mss = 536 + client_random(&all->random, 900),
		.scale = chance(all, 800) ? client_random(&all->random, 8) : TCP_SCALE_NONE,
		.sack = chance(all, 800),
		.timestamps = chance(all, 800),
		.flight = 2000 + client_random(&all->random, 60000),
		.buffer = 2000 + client_random(&all->random, 60000),
		.segment = 1 + all->segment + client_random(&all->random, 1000),
		.ack_delay = client_random(&all->random, 40),
		.slow = chance(all, 200) ? 500 : 0,
	};
	walk_need(v->got != NULL, "no memory");
	client_open(&v->tcp, &v->manner, &all->random, n_stream, n_expected, v->got);
	v->tcp.expected = expected;
}

void stream_clients_pass(struct stream_clients *all)
{
	static struct walk_frame f;
	struct tcp_header h;

	for (unsigned int i = 0; i < all->n; i++) {
		struct stream_client *v = &all->client[i];

		client_read(&v->tcp, now_ms(all));
		while (client_next(&v->tcp, now_ms(all), &h))
			send_segment(all, v, &h);
	}
	walk_pass(all->w, 1);
	for (unsigned int port = 0; port < RTE_MAX(all->ports, 1u); port++)
		while (walk_take(all->w, port, &f))
			carry(all, true, f.bytes, f.length);
	deliver(all);
}

void stream_clients_run(struct stream_clients *all, uint32_t limit_ms)
{
	uint32_t end = now_ms(all) + limit_ms;
	unsigned int over = 0;

	while (over < all->n && (int32_t)(end - now_ms(all)) > 0) {
		stream_clients_pass(all);
		over = 0;
		for (unsigned int i = 0; i < all->n; i++)
			over += is_over(&all->client[i]);
	}
	for (unsigned int i = 0; i < all->n; i++) {
		struct client *c = &all->client[i].tcp;

		walk_expect(c->fault[0] == '\0', "client %u: %s", i, c->fault);
		walk_expect(!c->reset, "client %u was reset", i);
		walk_expect(is_over(&all->client[i]),
			    "client %u: %u of %u bytes sent, %u of %u received", i,
			    c->una - c->iss - 1, c->length, c->rcv - c->irs - 1, c->reply);
	}
}

void stream_clients_free(struct stream_clients *all)
{
	while (all->frames != NULL) {
		struct stream_frame *f = all->frames;

		all->frames = f->next;
		free(f);
	}
	for (unsigned int i = 0; i < all->n; i++)
		free(all->client[i].got);
}

void stream_add_echo(uint8_t *stream, uint32_t *n_stream, uint8_t *expected, uint32_t *n_expected,
		     const uint8_t *bytes, uint32_t n)
{
	uint32_t head[2] = {n, 0};

	memcpy(stream + *n_stream, head, 4);
	memcpy(stream + *n_stream + 4, bytes, n);
	*n_stream += 4 + n;
	memcpy(expected + *n_expected, head, 8);
	memcpy(expected + *n_expected + 8, bytes, n);
	*n_expected += 8 + n;
}
