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
	uint16_t mss, port;
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

#define REQUEST_BYTES 12u  /* with the head */
#define REQUESTS      116u /* of a segment, at most */

/* A segment with <n> bytes of requests, or with blocks, of which there are <sacks>. */
static void ack_put_blocks(struct acker *a, uint8_t flags, const struct tcp_range *block,
			   uint8_t sacks, uint32_t n)
{
	static uint8_t requests[REQUESTS * REQUEST_BYTES];
	struct tcp_header h = {.seq = a->seq,
			       .ack = flags & TCP_BIT_ACK ? a->una : 0,
			       .flags = flags,
			       .window = 65535,
			       .length = n,
			       .scale = TCP_SCALE_NONE,
			       .n_sacks = sacks};
	uint8_t tcp[PACKET_MAX], frame[PACKET_MAX];
	struct packet p = {.family = 4, .tcp = true, .source_port = a->port, .bytes = tcp + 4};
	uint32_t size;

	if (flags & TCP_BIT_SYN) {
		h.mss = a->mss;
		h.scale = SCALE;
		h.sack_permitted = true;
	}
	for (unsigned int i = 0; i < sacks; i++)
		h.sack[i] = block[i];
	size = tcp_header_write(&h, htons(a->port), htons(8000), tcp);
	for (uint32_t i = 0; i < REQUESTS; i++)
		requests[i * REQUEST_BYTES] = REQUEST_BYTES - 4;
	memcpy(tcp + size, requests, n);
	p.n_bytes = size - 4 + n;
	walk_send_frame(a->w, 0, 0, frame, packet_build(&p, frame));
	a->seq += tcp_header_span(&h);
}

static void ack_put(struct acker *a, uint8_t flags, const struct tcp_range *block, uint32_t n)
{
	ack_put_blocks(a, flags, block, block != NULL, n);
}

/* Takes all that came for <n> clients, whose ports follow each other. Returns the segments. */
static unsigned int ack_take_all(struct acker *all, unsigned int n)
{
	static struct walk_frame f;
	struct tcp_header h;
	unsigned int taken = 0;

	for (; walk_take(all->w, 0, &f); taken++) {
		const uint8_t *tcp = f.bytes + 34;
		struct acker *a = &all[(uint16_t)((tcp[2] << 8 | tcp[3]) - all->port)];

		walk_need(a < all + n, "another's segment");
		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		walk_need(!(h.flags & TCP_BIT_RST), "reset");
		ack_check(a, &h, tcp + h.size);
		if (h.flags & TCP_BIT_SYN)
			a->una = a->top = a->first = h.seq + 1;
		else if (sequence_after(h.seq + h.length, a->top))
			a->top = h.seq + h.length;
	}
	return taken;
}

static unsigned int ack_take(struct acker *a)
{
	return ack_take_all(a, 1);
}

static void ack_open_from(struct acker *a, struct walk *w, uint16_t mss, uint16_t port)
{
	*a = (struct acker){.w = w, .mss = mss, .port = port, .seq = 7000};
	ack_put(a, TCP_BIT_SYN, NULL, 0);
	walk_turn(w);
	ack_take(a);
	ack_put(a, TCP_BIT_ACK, NULL, 0);
	walk_turn(w);
}

static void ack_open(struct acker *a, struct walk *w, uint16_t mss)
{
	ack_open_from(a, w, mss, 3000);
}

static void ack_ask(struct acker *a)
{
	static uint8_t bytes[REPLY_BYTES];
	struct walk_worker *v = a->w->worker[0];

	ack_put(a, TCP_BIT_ACK, NULL, REQUEST_BYTES);
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

/* The client resets. */
static void ack_end(struct acker *a)
{
	ack_put(a, TCP_BIT_RST, NULL, 0);
	text_turn_all(a->w);
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
	ack_end(&a);
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
	ack_end(&a);
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
	ack_end(&a);
}

/* A turn with 32 acknowledgements that have the same blocks. */
static void ack_repeat(struct acker *a, const struct tcp_range *block, unsigned int n)
{
	for (unsigned int i = 0; i < 32; i++)
		ack_put_blocks(a, TCP_BIT_ACK, block, n, 0);
	text_turn_all(a->w);
	ack_take(a);
	walk_jump_us(a->w, 20);
}

/* Blocks that say nothing of the thousands of segments that are under way, each acknowledgement
 * again: they begin with what is acknowledged, or end behind all that was sent. */
static void select_untrue(struct walk *w)
{
	struct acker a;

	ack_fill(&a, w);
	for (unsigned int turn = 0; turn < 40; turn++) {
		const struct tcp_range block[] = {{a.una, a.top},
						  {a.una + 1, a.top + 1},
						  {a.una - 1, a.top},
						  {a.una + 2, a.top + 2}};

		ack_repeat(&a, block, 4);
	}
	ack_end(&a);
}

/* Blocks that could be true, and have no segment whole, far apart. */
static void select_parts(struct walk *w)
{
	struct acker a;

	ack_fill(&a, w);
	for (unsigned int turn = 0; turn < 40; turn++) {
		struct tcp_range block[4];

		for (unsigned int i = 0; i < 4; i++) {
			block[i].from = a.una + (TCP_SENT_MAX / 4 * i + 41) * SEGMENT - 60;
			block[i].to = block[i].from + SEGMENT + 2;
		}
		ack_repeat(&a, block, 4);
	}
	ack_end(&a);
}

/* A record, by its place among all that are under way. */
static struct tcp_range ack_record(const struct acker *a, uint32_t i)
{
	return (struct tcp_range){a->una + i * SEGMENT, a->una + (i + 1) * SEGMENT};
}

/* Names records from <from> to <to> one by one, a burst in a turn. */
static void ack_name(struct acker *a, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct tcp_range block = ack_record(a, i);

		ack_put(a, TCP_BIT_ACK, &block, 0);
		if (i % 32 != 31 && i != to - 1)
			continue;
		walk_turn(a->w);
		ack_take(a);
		walk_jump_us(a->w, 20);
	}
}

/* A third of the segments go a second time as another third is delivered, and a third time as the
 * rest is: then each acknowledgement says nothing of them. */
static void send_often(struct walk *w)
{
	const uint32_t third = TCP_SENT_MAX / 3;
	struct tcp_range block;
	struct acker a;

	ack_fill(&a, w);
	walk_jump_us(w, 2000);
	ack_name(&a, 2 * third, TCP_SENT_MAX);
	walk_jump_us(w, 20000); /* a round trip, at least */
	ack_name(&a, third / 2 - 8, third / 2 - 7);
	ack_name(&a, third, 2 * third);
	block = ack_record(&a, third);
	for (unsigned int turn = 0; turn < 20; turn++) {
		for (unsigned int i = 0; i < 32; i++)
			ack_put(&a, TCP_BIT_ACK, &block, 0);
		text_turn_all(w);
		ack_take(&a);
		walk_jump_us(w, 20);
	}
	ack_end(&a);
}

/* --- many at once --------------------------------------------------------------------------------
 */

#define MANY 16u

/* Turns until nothing comes any more. */
static void ack_wait_all(struct acker *a)
{
	for (unsigned int idle = 0; idle < 20; walk_jump_us(a->w, 10)) {
		walk_turn(a->w);
		idle = ack_take_all(a, MANY) > 0 ? 0 : idle + 1;
	}
}

/* Each reads what its window takes at once, so that it grows. */
static void ack_read_all(struct acker *a)
{
	bool more = true;

	while (more) {
		ack_wait_all(a);
		more = false;
		for (unsigned int i = 0; i < MANY; i++) {
			if (a[i].una == a[i].top)
				continue;
			more = true;
			a[i].una = a[i].top;
			ack_put(&a[i], TCP_BIT_ACK, NULL, 0);
		}
	}
}

/* As ack_fill(), of many connections. */
static void ack_fill_all(struct acker *a, struct walk *w)
{
	for (unsigned int i = 0; i < MANY; i++)
		ack_open_from(&a[i], w, SEGMENT, 3000 + i);
	for (unsigned int replies = 0; replies < 2; replies++) {
		for (unsigned int i = 0; i < MANY; i++) {
			ack_ask(&a[i]);
			/* The wire holds the packets of one reply. */
			for (unsigned int turn = 0; turn < REPLY_BYTES / (LB_BURST * 1024) + 2;
			     turn++) {
				walk_turn(w);
				ack_take_all(a, MANY);
			}
		}
		if (replies == 0)
			ack_read_all(a);
	}
	ack_wait_all(a);
	for (unsigned int i = 0; i < MANY; i++)
		walk_need(a[i].top - a[i].una == TCP_SENT_MAX * SEGMENT, "%u are under way of %u",
			  (a[i].top - a[i].una) / SEGMENT, i);
}

static void ack_reset_all(struct acker *a)
{
	for (unsigned int i = 0; i < MANY; i++)
		ack_put(&a[i], TCP_BIT_RST, NULL, 0);
	text_turn_all(a->w);
}

/* All that is under way to many is acknowledged in the same turn. */
static void acknowledge_all_of_many(struct walk *w)
{
	struct acker a[MANY];

	ack_fill_all(a, w);
	for (unsigned int i = 0; i < MANY; i++) {
		a[i].una = a[i].top;
		ack_put(&a[i], TCP_BIT_ACK, NULL, 0);
	}
	text_turn_all(w);
	ack_take_all(a, MANY);
	ack_reset_all(a);
}

/* All that is under way to many connections is lost at the same time. */
static void acknowledge_none_of_many(struct walk *w)
{
	struct acker a[MANY];

	ack_fill_all(a, w);
	for (unsigned int i = 0; i < MANY; i++) {
		a[i].una += SEGMENT;
		ack_put(&a[i], TCP_BIT_ACK, NULL, 0);
	}
	walk_turn(w);
	for (unsigned int ms = 0; ms < 300; ms += 10) {
		ack_take_all(a, MANY);
		walk_jump(w, 10);
		text_turn_all(w);
	}
	ack_take_all(a, MANY);
	ack_reset_all(a);
}

/* Each of a burst of segments has many small requests. */
static void ask_many(struct walk *w)
{
	struct acker a[MANY];

	for (unsigned int i = 0; i < MANY; i++)
		ack_open_from(&a[i], w, 1460, 3000 + i);
	for (unsigned int i = 0; i < MANY; i++)
		ack_put(&a[i], TCP_BIT_ACK, NULL, REQUESTS * REQUEST_BYTES);
	text_turn_all(w);
	ack_take_all(a, MANY);
	ack_reset_all(a);
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
	ack_end(&a);
}

const struct text_kind text_acks[] = {
	{"acknowledgements, a growing range", &params, long_worker, NULL, select_range},
	{"acknowledgements, every second segment", &params, long_worker, NULL, select_apart},
	{"acknowledgements, all at once", &params, long_worker, NULL, acknowledge_all},
	{"acknowledgements, two lost far apart", &params, long_worker, NULL, lose_apart},
	{"acknowledgements, none", &params, long_worker, NULL, acknowledge_none},
	{"acknowledgements, blocks that are untrue", &params, long_worker, NULL, select_untrue},
	{"acknowledgements, blocks of parts", &params, long_worker, NULL, select_parts},
	{"acknowledgements, of many at once", &params, long_worker, NULL, acknowledge_all_of_many},
	{"acknowledgements, of many, to none", &params, long_worker, NULL,
	 acknowledge_none_of_many},
	{"acknowledgements, sent often", &params, long_worker, NULL, send_often},
	{"many small requests of many", &params, long_worker, NULL, ask_many},
};
const unsigned int n_text_acks = sizeof(text_acks) / sizeof(text_acks[0]);
