/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that acknowledge long replies: in the smallest segments that they may ask for, most of
 * which are under way, and in the usual ones.
 */
#include <string.h>

#include <arpa/inet.h>

#include "tcp/connection.h"
#include "text_turns.h"

#define REPLY_BYTES 1000000u
#define SCALE       14
#define HEAD_BYTES  8u /* in front of each reply: framing length */
#define SEGMENT     64u

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, framing: length, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64, max_reply: 1000000}\n",
	.more = "tcp: {connections: 256, buffer_mb: 512}\n",
	.packets = 16384,
};

static void long_worker(struct walk *w, const struct text_kind *k)
{
	static const struct walk_worker_params long_ = {.max_request = 64, .max_reply = REPLY_BYTES};

	walk_worker(w, &long_)->answers = false;
}

struct acker {
	struct walk *w;
	uint16_t mss;
	uint32_t seq, una, top; /* of its own; of the load balancer's, acknowledged and seen */
	uint32_t first;         /* number of the first byte of all replies */
};

static uint8_t reply_byte(uint32_t i)
{
	return i * 2654435761u >> 24;
}

/* Are they the bytes that a worker gave, in their place? */
static void ack_check(const struct acker *a, const struct tcp_header *h, const uint8_t *bytes)
{
	bool right = true;

	for (uint32_t i = 0; i < h->length; i++) {
		uint32_t at = (h->seq + i - a->first) % (HEAD_BYTES + REPLY_BYTES);

		right &= at < HEAD_BYTES || bytes[i] == reply_byte(at - HEAD_BYTES);
	}
	walk_expect(right, "other bytes at %u", h->seq - a->first);
}

/* A segment with <n> bytes of a request, or with blocks, of which there are <sacks>. */
static void ack_put_blocks(struct acker *a, uint8_t flags, const struct tcp_range *block,
			   uint8_t sacks, uint32_t n)
{
	static const uint8_t request[12] = {8};
	struct tcp_header h = {.seq = a->seq,
			       .ack = flags & TCP_BIT_ACK ? a->una : 0,
			       .flags = flags,
			       .window = 65535,
			       .length = n,
			       .scale = TCP_SCALE_NONE,
			       .n_sacks = sacks};
	uint8_t tcp[PACKET_MAX], frame[PACKET_MAX];
	struct packet p = {.family = 4, .tcp = true, .source_port = 3000, .bytes = tcp + 4};
	uint32_t size;

	if (flags & TCP_BIT_SYN) {
		h.mss = a->mss;
		h.scale = SCALE;
		h.sack_permitted = true;
	}
	for (unsigned int i = 0; i < sacks; i++)
		h.sack[i] = block[i];
	size = tcp_header_write(&h, htons(3000), htons(8000), tcp);
	memcpy(tcp + size, request, n);
	p.n_bytes = size - 4 + n;
	walk_send_frame(a->w, 0, 0, frame, packet_build(&p, frame));
	a->seq += tcp_header_span(&h);
}

static void ack_put(struct acker *a, uint8_t flags, const struct tcp_range *block, uint32_t n)
{
	ack_put_blocks(a, flags, block, block != NULL, n);
}

/* Takes all that came. Returns the segments. */
static unsigned int ack_take(struct acker *a)
{
	static struct walk_frame f;
	struct tcp_header h;
	unsigned int n = 0;

	for (; walk_take(a->w, 0, &f); n++) {
		const uint8_t *tcp = f.bytes + 34;

		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		walk_need(!(h.flags & TCP_BIT_RST), "reset");
		ack_check(a, &h, tcp + h.size);
		if (h.flags & TCP_BIT_SYN)
			a->una = a->top = a->first = h.seq + 1;
		else if (sequence_after(h.seq + h.length, a->top))
			a->top = h.seq + h.length;
	}
	return n;
}

static void ack_open(struct acker *a, struct walk *w, uint16_t mss)
{
	*a = (struct acker){.w = w, .mss = mss, .seq = 7000};
	ack_put(a, TCP_BIT_SYN, NULL, 0);
	walk_turn(w);
	ack_take(a);
	ack_put(a, TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
}

static void ack_ask(struct acker *a)
{
	static uint8_t bytes[REPLY_BYTES];
	struct walk_worker *v = a->w->worker[0];

	ack_put(a, TCP_BIT_ACK, NULL, 12);
	for (unsigned int i = 0; i < 100 && v->n_requests == 0; i++)
		walk_turn(a->w);
	walk_need(v->n_requests == 1, "no request");
	for (uint32_t i = 0; i < REPLY_BYTES; i++)
		bytes[i] = reply_byte(i);
	walk_answer(v, 0, &(struct walk_reply){.bytes = bytes, .n_bytes = REPLY_BYTES});
}

/* Turns until nothing comes any more. Returns the bytes that are under way then. */
static uint32_t ack_wait(struct acker *a)
{
	unsigned int idle = 0;

	while (idle < 50) {
		walk_turn(a->w);
		idle = ack_take(a) > 0 ? 0 : idle + 1;
		walk_jump_us(a->w, 20);
	}
	return a->top - a->una;
}

/* One reply is read as fast as it comes, so that the window grows; of the next one nothing is
 * acknowledged before all of it that may be is under way. */
static void ack_fill(struct acker *a, struct walk *w)
{
	uint32_t bytes;

	ack_open(a, w, SEGMENT);
	ack_ask(a);
	while ((bytes = ack_wait(a)) > 0) {
		a->una = a->top;
		ack_put(a, TCP_BIT_ACK, NULL, 0);
	}
	ack_ask(a);
	walk_need(ack_wait(a) == TCP_SENT_MAX * SEGMENT, "%u are under way", (a->top - a->una) / SEGMENT);
}

/* Of the segments behind the first one, a burst of acknowledgements each name one more. <apart>:
 * every second one, so that nothing of them is a range. */
static void ack_select(struct walk *w, bool apart)
{
	struct tcp_range block;
	struct acker a;

	ack_fill(&a, w);
	block = (struct tcp_range){a.top - a.mss, a.top};
	for (unsigned int turn = 0; turn < 40; turn++) {
		for (unsigned int i = 0; i < 32; i++) {
			ack_put(&a, TCP_BIT_ACK, &block, 0);
			block.from -= (1 + apart) * a.mss;
			if (apart)
				block.to = block.from + a.mss;
		}
		text_turn_all(w);
		ack_take(&a);
		walk_jump_us(w, 20);
	}
	ack_put(&a, TCP_BIT_RST, NULL, 0);
	text_turn_all(w);
}

static void select_range(struct walk *w)
{
	ack_select(w, false);
}

static void select_apart(struct walk *w)
{
	ack_select(w, true);
}

/* All that is under way is acknowledged at once. */
static void acknowledge_all(struct walk *w)
{
	struct acker a;

	ack_fill(&a, w);
	a.una = a.top;
	ack_put(&a, TCP_BIT_ACK, NULL, 0);
	text_turn_all(w);
	ack_wait(&a);
	ack_put(&a, TCP_BIT_RST, NULL, 0);
	text_turn_all(w);
}

/* <n> replies one after the other, which are read or not. */
static void ack_ask_many(struct acker *a, unsigned int n, bool reads)
{
	for (unsigned int i = 0; i < n; i++) {
		ack_ask(a);
		while (ack_wait(a) > 0 && reads) {
			a->una = a->top;
			ack_put(a, TCP_BIT_ACK, NULL, 0);
		}
	}
}

/*
 * Of thousands of usual segments the first one and another are lost, again and again: each time
 * that they go again, so does a new one behind all others.
 */
static void lose_apart(struct walk *w)
{
	uint32_t second, until;
	struct acker a;

	ack_open(&a, w, 1460);
	for (unsigned int i = 0; i < 4; i++)
		ack_ask_many(&a, 3, true);
	ack_ask_many(&a, 4, false);
	second = a.una + (a.top - a.una) / 1460 / 4 * 3 * 1460;
	until = second + 10 * 1460;
	walk_need(a.top - a.una > 1900 * 1460, "%u are under way", (a.top - a.una) / 1460);
	for (unsigned int turn = 0; turn < 100; turn++) {
		struct tcp_range block[] = {{second + 1460, until}, {a.una + 1460, second}};

		walk_jump_us(w, 2000);
		ack_put_blocks(&a, TCP_BIT_ACK, block, 2, 0);
		text_turn(w);
		ack_take(&a);
		until = turn < 10 ? until + (a.top - until) / 10 : a.top;
	}
	ack_put(&a, TCP_BIT_RST, NULL, 0);
	text_turn_all(w);
}

/* None of it is ever: it is all lost, and sent again. */
static void acknowledge_none(struct walk *w)
{
	struct acker a;

	ack_fill(&a, w);
	for (unsigned int ms = 0; ms < 500; ms += 10) {
		walk_jump(w, 10);
		text_turn_all(w);
		ack_take(&a);
	}
	ack_put(&a, TCP_BIT_RST, NULL, 0);
	text_turn_all(w);
}

const struct text_kind text_acks[] = {
	{"acknowledgements, a growing range", &params, long_worker, NULL, select_range},
	{"acknowledgements, every second segment", &params, long_worker, NULL, select_apart},
	{"acknowledgements, all at once", &params, long_worker, NULL, acknowledge_all},
	{"acknowledgements, two lost far apart", &params, long_worker, NULL, lose_apart},
	{"acknowledgements, none", &params, long_worker, NULL, acknowledge_none},
};
const unsigned int n_text_acks = sizeof(text_acks) / sizeof(text_acks[0]);
