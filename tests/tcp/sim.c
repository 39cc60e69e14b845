/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "pools.h"
#include "tcp/congestion.h"
#include "tcp/cookie.h"
#include "tcp/time_wait.h"

#define SIM_PACKETS 8192
#define SIM_END_US  UINT64_C(3000000000)

struct sim_packet {
	uint64_t at_us, order;
	bool from_client, marked;
	struct tcp_header h;
};

struct sim {
	const struct sim_params *p;
	struct sim_result *result;
	uint64_t random, now_us, order;
	struct tcp_stack stack;
	struct tcp_connection c;
	struct tcp_secret secret;
	struct tcp_ends ends;
	struct tcp_time_wait time_wait;
	bool waits; /* in TIME-WAIT */
	struct client client;
	bool listening, open, over; /* the server: waits for a SYN; has a connection; had one */
	uint8_t *got, *placed;
	uint32_t in_order, told, queued; /* of requests; of replies */
	bool finished;
	uint32_t n_packets;
	struct sim_packet packet[SIM_PACKETS];
	char fault[256];
};

__attribute__((format(printf, 2, 3))) static void sim_fault(struct sim *s, const char *format, ...)
{
	va_list arguments;

	if (s->fault[0] != '\0')
		return;
	va_start(arguments, format);
	vsnprintf(s->fault, sizeof(s->fault), format, arguments);
	va_end(arguments);
}

static bool sim_chance(struct sim *s, unsigned int thousandths)
{
	return client_random(&s->random, 1000) < thousandths;
}

static void sim_clock(struct sim *s)
{
	s->stack.now_us = (uint32_t)s->now_us;
	s->stack.now_ms = (uint32_t)(s->now_us / 1000) + 0xffff8000u; /* wraps in the middle */
}

static uint32_t sim_client_ms(const struct sim *s)
{
	return (uint32_t)(s->now_us / 1000) + 1;
}

/* --- network ------------------------------------------------------------------------------------
 */

static void sim_carry(struct sim *s, const struct tcp_header *h, bool from_client)
{
	const struct sim_network *n = &s->p->network;
	unsigned int copies = 1 + sim_chance(s, n->copy);
	uint8_t bytes[TCP_HEADER_MAX];

	s->result->segments++;
	while (copies-- > 0) {
		struct sim_packet *p = &s->packet[s->n_packets];
		uint64_t delay = n->delay_us;

		if (sim_chance(s, n->lose) || s->n_packets == SIM_PACKETS ||
		    (n->limit != 0 && s->n_packets >= n->limit))
			continue;
		if (sim_chance(s, n->reorder))
			delay += client_random(&s->random, n->jitter_us + 1);
		*p = (struct sim_packet){.at_us = s->now_us + delay,
					 .order = s->order++,
					 .from_client = from_client,
					 .marked = sim_chance(s, n->mark)};
		/* Through the bytes that would be on the wire. */
		if (tcp_header_size(h) > TCP_HEADER_MAX)
			sim_fault(s, "a header of %u bytes", tcp_header_size(h));
		else
			tcp_header_write(h, 1, 2, bytes);
		if (tcp_header_read(bytes, tcp_header_size(h), &p->h) != 0)
			sim_fault(s, "an unreadable header");
		p->h.length = h->length;
		s->n_packets++;
	}
}

static struct sim_packet *sim_first_packet(struct sim *s)
{
	struct sim_packet *first = NULL;

	for (uint32_t i = 0; i < s->n_packets; i++)
		if (first == NULL || s->packet[i].at_us < first->at_us ||
		    (s->packet[i].at_us == first->at_us && s->packet[i].order < first->order))
			first = &s->packet[i];
	return first;
}

/* --- the server ---------------------------------------------------------------------------------
 */

static void sim_check(struct sim *s)
{
	char why[160];

	if (!check_connection(&s->c, why, sizeof(why)))
		sim_fault(s, "%s", why);
}

/* The port cuts a packet: the last segment has what is left, and FIN and PSH. */
static void sim_cut(struct sim *s, const struct tcp_header *h)
{
	struct tcp_header part = *h;
	uint32_t end = h->seq + h->length;

	do {
		part.length = end - part.seq < s->c.mss ? end - part.seq : s->c.mss;
		part.flags = h->flags;
		if (part.seq + part.length != end)
			part.flags &= ~(TCP_BIT_FIN | TCP_BIT_PSH);
		sim_carry(s, &part, false);
		part.seq += part.length;
	} while (part.seq != end);
}

/* Lets more segments leave with <out>. How many does not come from the run's random numbers: these
 * are the same as without. */
static void sim_extend(struct sim *s, struct tcp_header *out)
{
	uint32_t alone = out->length, most = (out->seq ^ out->seq >> 7) * 2654435761u >> 16;

	tcp_extend(&s->stack, &s->c, most, out);
	if (out->length != alone && out->length > most)
		sim_fault(s, "%u bytes in a packet, not %u", out->length, most);
	s->result->extended += out->length != alone;
}

static void sim_send(struct sim *s)
{
	struct tcp_header out;
	unsigned int n = 0;

	while (s->open && tcp_next(&s->stack, &s->c, &out)) {
		if (s->p->extends)
			sim_extend(s, &out);
		if (out.length > 0 && out.seq + out.length - (s->c.snd_end - s->queued) > s->queued)
			sim_fault(s, "sends bytes that were not queued");
		sim_cut(s, &out);
		sim_check(s);
		if (++n > 20000) {
			sim_fault(s, "sends for ever");
			return;
		}
	}
}

static void sim_end(struct sim *s)
{
	s->waits = s->c.state == TCP_TIME_WAIT;
	if (s->waits)
		tcp_time_wait_enter(&s->c, s->stack.now_ms, &s->time_wait);
	tcp_release(&s->stack, &s->c);
	s->open = false;
	s->over = true;
}

static void sim_place(struct sim *s, const struct tcp_header *h, const struct tcp_received *r)
{
	for (unsigned int i = 0; i < r->n_new; i++) {
		const struct tcp_new *new = &r->new[i];
		uint32_t at = new->seq - s->c.irs - 1;

		if (new->offset + new->length > h->length || new->seq != h->seq + new->offset ||
		    at + new->length > s->p->request)
			return sim_fault(s, "new bytes that are not in the segment");
		for (uint32_t k = 0; k < new->length; k++) {
			if (s->placed[at + k])
				sim_fault(s, "byte %u is new twice", at + k);
			s->placed[at + k] = 1;
		}
		if (at > s->in_order)
			s->result->placed_out_of_order += new->length;
	}
	for (uint32_t k = 0; k < r->advanced; k++)
		if (s->in_order + k >= s->p->request || !s->placed[s->in_order + k])
			return sim_fault(s, "byte %u is in order and never came", s->in_order + k);
	s->in_order += r->advanced;
}

/* The server's program: replies come in pieces, and it closes after the client. */
static void sim_serve(struct sim *s)
{
	uint32_t left = s->p->reply - s->queued;
	uint32_t piece = 1 + (uint32_t)client_random(&s->random, 40000);

	if (s->c.state == TCP_SYN_RECEIVED)
		return;
	tcp_grant(&s->c, s->p->grant);
	piece = piece < left ? piece : left;
	tcp_queue(&s->c, piece);
	s->queued += piece;
	if (s->finished && s->queued == s->p->reply)
		tcp_close(&s->c);
	if (sim_chance(s, 300))
		tcp_acknowledge(&s->c);
}

/* Takes a segment for a port that listens. True: <c> is open, and takes it. */
static bool sim_listen(struct sim *s, const struct tcp_header *h)
{
	uint16_t mss = s->p->settings.mss;
	struct tcp_header out;

	if (!(h->flags & TCP_BIT_SYN)) {
		s->open = s->p->cookies && tcp_cookie_open(&s->stack, &s->secret, &s->ends, h, mss,
							   s->p->grant, &s->c);
		s->listening = !s->open;
		if (!s->open && !tcp_cookie_may_come(&s->stack, &s->secret, &s->ends, h) &&
		    tcp_reset_for(h, &out))
			sim_carry(s, &out, false);
		return s->open;
	}
	if (s->p->cookies) {
		tcp_cookie_answer(&s->stack, &s->secret, &s->ends, h, s->p->grant, &out);
		sim_carry(s, &out, false);
		return false;
	}
	tcp_open(&s->stack, &s->c, h, mss, s->p->grant,
		 tcp_secret_sequence(&s->secret, &s->ends, s->stack.now_us),
		 tcp_secret_timestamp(&s->secret, &s->ends));
	s->listening = false;
	s->open = true;
	sim_send(s);
	return false;
}

/* Takes a segment that belongs to no connection. */
static void sim_serve_stray(struct sim *s, const struct tcp_header *h)
{
	struct tcp_header out;

	if (s->waits) {
		switch (tcp_time_wait_receive(&s->time_wait, s->stack.now_ms, h, &out)) {
		case TCP_TIME_WAIT_ANSWER:
		case TCP_TIME_WAIT_RESTART:
			sim_carry(s, &out, false);
			break;
		case TCP_TIME_WAIT_REOPEN:
			if (!sequence_after(h->seq, s->client.iss) && !h->has_timestamp)
				sim_fault(s, "an old SYN reopens");
			break;
		case TCP_TIME_WAIT_IGNORE:
			break;
		}
	} else if (!s->over && tcp_reset_for(h, &out)) {
		sim_carry(s, &out, false);
	}
}

static void sim_serve_segment(struct sim *s, const struct sim_packet *p)
{
	struct tcp_received r;

	sim_clock(s);
	if (!s->open && !(s->listening && sim_listen(s, &p->h))) {
		if (!s->listening && !s->open)
			sim_serve_stray(s, &p->h);
		return;
	}
	tcp_receive(&s->stack, &s->c, &p->h, p->marked, &r);
	sim_check(s);
	sim_place(s, &p->h, &r);
	s->finished |= r.finished;
	if (r.reset)
		sim_fault(s, "reset by the client");
	sim_serve(s);
	sim_send(s);
	if (r.closed)
		sim_end(s);
}

static void sim_server_timer(struct sim *s)
{
	struct tcp_header out;

	sim_clock(s);
	if (!tcp_timer(&s->stack, &s->c)) {
		sim_check(s);
		sim_send(s);
		return;
	}
	if (!s->client.fin_got && s->p->network.lose < 500)
		sim_fault(s, "gave up in state of %u probes", s->c.probes);
	while (tcp_next(&s->stack, &s->c, &out))
		sim_carry(s, &out, false);
	sim_end(s);
}

/* --- the client and the run ---------------------------------------------------------------------
 */

static void sim_client_send(struct sim *s)
{
	struct tcp_header out;
	unsigned int n = 0;

	while (client_next(&s->client, sim_client_ms(s), &out) && n++ < 1000)
		sim_carry(s, &out, true);
}

static void sim_client_segment(struct sim *s, const struct sim_packet *p)
{
	static uint8_t payload[UINT16_MAX];
	uint32_t first = p->h.seq - s->client.irs - 1;

	for (uint32_t i = 0; i < p->h.length; i++)
		payload[i] = client_byte(first + i, true);
	client_receive(&s->client, sim_client_ms(s), &p->h, payload);
	if (s->client.fault[0] != '\0')
		sim_fault(s, "client: %s", s->client.fault);
	if (s->client.reset)
		sim_fault(s, "reset by the server");
	client_read(&s->client, sim_client_ms(s));
	sim_client_send(s);
}

/* Sends segments with the right ports and random numbers, which are not the client's. */
static void sim_forge(struct sim *s)
{
	struct tcp_header h = {
		.seq = (uint32_t)client_random(&s->random, UINT64_C(1) << 32),
		.ack = (uint32_t)client_random(&s->random, UINT64_C(1) << 32),
		.length = (uint32_t)client_random(&s->random, 2000),
		.window = (uint16_t)client_random(&s->random, 65536),
		.flags = (uint8_t)client_random(&s->random, 256),
		.scale = TCP_SCALE_NONE,
		.has_timestamp = s->c.timestamps,
		.ts_value = (uint32_t)client_random(&s->random, UINT64_C(1) << 32),
	};
	struct sim_packet p = {.h = h};
	struct tcp_received r;

	/* Random numbers are hardly ever in the window and an acceptable acknowledgement: most are
	 * chosen near both. */
	if (sim_chance(s, 500))
		h.seq = s->c.rcv_nxt + 1 + (uint32_t)client_random(&s->random, 1000000);
	if (sequence_before(h.seq, s->c.rcv_nxt + 1) ||
	    (!sequence_after(h.ack, s->c.snd_nxt) &&
	     !sequence_before(h.ack, s->c.snd_una - s->c.snd_wnd_max)))
		return;
	sim_clock(s);
	tcp_receive(&s->stack, &s->c, &p.h, false, &r);
	if (r.reset || r.closed || r.n_new > 0 || r.acked > 0)
		sim_fault(s, "a forged segment had an effect");
	sim_check(s);
	sim_send(s);
}

static bool sim_is_over(const struct sim *s)
{
	return s->over && s->client.fin_got;
}

static void sim_step(struct sim *s)
{
	struct sim_packet *first = sim_first_packet(s), p;
	uint64_t at = first == NULL ? SIM_END_US + 1 : first->at_us, server = at, client = at;
	uint32_t ms;

	sim_clock(s);
	if (s->open && tcp_due(&s->c, &ms))
		server =
			s->now_us +
			(uint64_t)((int32_t)(ms - s->stack.now_ms) > 0 ? ms - s->stack.now_ms : 0) *
				1000;
	if (client_due(&s->client, &ms))
		client = s->now_us + (uint64_t)((int32_t)(ms - sim_client_ms(s)) > 0
							? ms - sim_client_ms(s)
							: 0) *
					     1000;
	if (first != NULL && at <= server && at <= client) {
		p = *first;
		*first = s->packet[--s->n_packets];
		s->now_us = at > s->now_us ? at : s->now_us;
		if (p.from_client)
			sim_serve_segment(s, &p);
		else
			sim_client_segment(s, &p);
	} else if (server <= client) {
		s->now_us = server;
		sim_server_timer(s);
	} else {
		s->now_us = client;
		client_read(&s->client, sim_client_ms(s));
		sim_client_send(s);
	}
	if (s->open && s->p->forge > 0 && sim_chance(s, s->p->forge))
		sim_forge(s);
}

static void sim_check_pools(struct sim *s, uint32_t actives, uint32_t chunks, uint32_t helds)
{
	char why[160];

	if (!check_pools(&s->stack, actives, chunks, helds, why, sizeof(why)))
		sim_fault(s, "%s", why);
}

int sim_run(const struct sim_params *p, struct sim_result *result)
{
	uint32_t chunks = p->scarce ? 2 : 1000, actives = p->scarce ? 1 : 4, helds = !p->scarce;
	struct sim *s = calloc(1, sizeof(*s));
	void *pools;

	*result = (struct sim_result){0};
	s->p = p;
	s->result = result;
	s->random = p->seed * 2654435761u + 88172645463325252ull;
	s->listening = true;
	s->secret = (struct tcp_secret){{client_random(&s->random, INT64_MAX), p->seed}};
	s->ends.client_port = (uint16_t)p->seed;
	s->got = malloc(p->reply + 1);
	s->placed = calloc(1, p->request + 1);
	pools = pools_init(&s->stack, &p->settings, actives, chunks, helds);
	client_open(&s->client, &p->manner, &s->random, p->request, p->reply, s->got);
	sim_client_send(s);
	while (!sim_is_over(s) && s->fault[0] == '\0') {
		sim_step(s);
		if (s->now_us > SIM_END_US)
			sim_fault(s,
				  "not over: %u of %u requested, %u of %u replied, state %s, "
				  "client %u",
				  s->in_order, p->request, s->client.rcv - s->client.irs - 1,
				  p->reply, tcp_state_name(s->c.state), s->client.fin_got);
	}
	if (s->fault[0] == '\0' && s->in_order != p->request)
		sim_fault(s, "%u of %u bytes came", s->in_order, p->request);
	tcp_release(&s->stack, &s->c);
	sim_check_pools(s, actives, chunks, helds);
	result->end_us = s->now_us;
	result->counters = s->stack.counters;
	free(pools);
	if (s->fault[0] != '\0')
		fprintf(stderr, "seed %lu at %lu us: %s\n", (unsigned long)p->seed,
			(unsigned long)s->now_us, s->fault);
	free(s->got);
	free(s->placed);
	int ret = s->fault[0] == '\0' ? 0 : -1;
	free(s);
	return ret;
}

void sim_params_random(uint64_t seed, struct sim_params *p)
{
	static const struct tcp_congestion *const kinds[] = {&tcp_cubic, &tcp_reno, &tcp_dctcp};
	uint64_t r = seed * 0x9e3779b97f4a7c15ull + 1;
	bool wild;

	for (int i = 0; i < 8; i++)
		client_random(&r, 2);
	wild = client_random(&r, 2);
	*p = (struct sim_params){.seed = seed, .settings = tcp_settings_default};
	p->network = (struct sim_network){
		.lose = client_random(&r, 3) == 0 ? 0 : client_random(&r, wild ? 150 : 30),
		.copy = client_random(&r, 3) == 0 ? 0 : client_random(&r, 50),
		.reorder = client_random(&r, 3) == 0 ? 0 : client_random(&r, 300),
		.mark = client_random(&r, 4) == 0 ? client_random(&r, 200) : 0,
		.delay_us = 10 + client_random(&r, client_random(&r, 2) ? 200 : 50000),
		.jitter_us = client_random(&r, 100000),
		.limit = client_random(&r, 4) == 0 ? 8 + client_random(&r, 60) : 0,
	};
	p->manner = (struct client_manner){
		.mss = 100 + client_random(&r, 1361),
		.scale = client_random(&r, 4) == 0 ? TCP_SCALE_NONE : client_random(&r, 15),
		.sack = client_random(&r, 4) != 0,
		.timestamps = client_random(&r, 4) != 0,
		.ecn = client_random(&r, 3) == 0,
		.flight = 1 + client_random(&r, client_random(&r, 2) ? 3000 : 200000),
		.buffer = 1 + client_random(&r, client_random(&r, 3) == 0 ? 2000 : 1000000),
		.segment = 1 + client_random(&r, 1460),
		.ack_delay = client_random(&r, 60),
		.slow = client_random(&r, 3) == 0 ? client_random(&r, 900) : 0,
	};
	/* A client that goes back sends all of this again. */
	if (p->manner.flight > 200 * p->manner.segment)
		p->manner.flight = 200 * p->manner.segment;
	p->settings.ecn = client_random(&r, 2);
	p->settings.sack = client_random(&r, 8) != 0;
	p->settings.timestamps = client_random(&r, 8) != 0;
	p->settings.mss = 536 + client_random(&r, 8500);
	p->settings.scale = client_random(&r, 9);
	p->settings.give_up_ms = 600000;
	p->settings.congestion = kinds[client_random(&r, 3)];
	p->request = client_random(&r, client_random(&r, 3) == 0 ? 200000 : 3000);
	p->reply = client_random(&r, client_random(&r, 3) == 0 ? 200000 : 3000);
	p->grant = 200 + client_random(&r, client_random(&r, 3) == 0 ? 3000 : 300000);
	p->forge = client_random(&r, 3) == 0 ? client_random(&r, 100) : 0;
	p->scarce = client_random(&r, 8) == 0;
	p->cookies = client_random(&r, 4) == 0;
	/* An option that is off must not be in the answer. */
	if (p->cookies && (!p->manner.timestamps || !p->settings.timestamps)) {
		p->manner.sack = false;
		p->manner.scale = TCP_SCALE_NONE;
	}
	p->manner.sack &= p->settings.sack;
	p->manner.timestamps &= p->settings.timestamps;
}
