/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as segments and calls of one TCP connection (lb/tcp): numbers near those that count, any
 * flags and options, time, and an owner that grants, queues, closes and aborts. Each byte is new
 * once, bytes that go out were queued and are inside the window, nothing leaks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "pools.h"
#include "tcp/congestion.h"
#include "tcp/time_wait.h"

#define STREAM_MAX (1u << 18)
#define ACTIVES    1
#define CHUNKS     4
#define HELDS      1

struct input {
	const uint8_t *at, *end;
};

struct run {
	struct input in;
	struct tcp_settings settings;
	struct tcp_stack stack;
	void *pools;
	struct tcp_connection c;
	uint32_t irs, iss, edge, queued;
	bool fin_came;
	uint8_t came[STREAM_MAX];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t byte(struct run *r)
{
	return r->in.at < r->in.end ? *r->in.at++ : 0;
}

static uint16_t word(struct run *r)
{
	uint16_t low = byte(r);

	return low | byte(r) << 8;
}

static void need(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void check(const struct run *r)
{
	char why[160];

	if (!check_connection(&r->c, why, sizeof(why)))
		need(false, why);
}

static void take(struct run *r, const struct tcp_header *h)
{
	struct tcp_received got;

	if (r->c.state == TCP_CLOSED || r->c.state == TCP_TIME_WAIT)
		return;
	tcp_receive(&r->stack, &r->c, h, byte(r) & 1, &got);
	for (unsigned int i = 0; i < got.n_new; i++) {
		const struct tcp_new *new = &got.new[i];
		uint32_t at = new->seq - r->irs - 1;

		need(new->length > 0 && new->offset + new->length <= h->length &&new->seq ==
						h->seq + new->offset,
		     "new bytes that are not in the segment");
		need(at + new->length <= STREAM_MAX, "bytes that were not granted");
		for (uint32_t k = 0; k < new->length; k++) {
			need(r->came[at + k] == 0, "a byte is new twice");
			r->came[at + k] = 1;
		}
	}
	for (uint32_t k = 0; k < got.advanced; k++)
		need(r->came[r->c.rcv_nxt - got.finished - got.advanced + k - r->irs - 1] == 1,
		     "a byte is in order that never came");
	need(!got.finished || !r->fin_came, "the end comes twice");
	r->fin_came |= got.finished;
	if (h->flags & TCP_BIT_ACK && got.refusal == TCP_REFUSAL_NONE)
		r->edge = sequence_max(r->edge, r->c.snd_una + r->c.snd_wnd);
	check(r);
}

/* Returns a number near <number>; the first two bits of <how> say how far. */
static uint32_t near(struct run *r, uint32_t number, uint8_t how)
{
	switch (how & 3) {
	case 0:
		return number;
	case 1:
		return number + (int8_t)byte(r);
	case 2:
		return number + (int16_t)word(r);
	default:
		return number + ((uint32_t)word(r) << 16 | word(r));
	}
}

static void any_segment(struct run *r)
{
	uint8_t how = byte(r), options = byte(r);
	struct tcp_header h = {
		.flags = byte(r),
		.scale = TCP_SCALE_NONE,
		.has_timestamp = r->c.timestamps != (options & 1),
		.window = how & 64 ? word(r) : UINT16_MAX,
		.length = how & 128 ? word(r) % 3000 : 0,
	};

	h.seq = near(r, r->c.rcv_nxt, how);
	h.ack = near(r, how & 16 ? r->c.snd_nxt : r->c.snd_una, how >> 2);
	h.ts_value = r->c.ts_recent + (options & 2 ? (int8_t)byte(r) : 1);
	h.ts_echo = r->stack.now_ms + r->c.ts_offset - (options & 4 ? byte(r) : 0);
	for (h.n_sacks = 0; h.n_sacks < (options >> 3 & 3);) {
		uint32_t from = r->c.snd_una + word(r);

		h.sack[h.n_sacks++] = (struct tcp_range){from, from + (int16_t)word(r)};
	}
	take(r, &h);
}

static void good_segment(struct run *r, uint32_t length, uint32_t ack)
{
	struct tcp_header h = {
		.seq = r->c.rcv_nxt,
		.ack = ack,
		.length = length,
		.flags = TCP_BIT_ACK,
		.window = UINT16_MAX,
		.scale = TCP_SCALE_NONE,
		.has_timestamp = r->c.timestamps,
		.ts_value = r->c.ts_recent + 1,
		.ts_echo = r->stack.now_ms + r->c.ts_offset,
	};

	take(r, &h);
}

static void selective(struct run *r)
{
	uint32_t flight = r->c.snd_nxt - r->c.snd_una, from = flight > 0 ? word(r) % flight : 0;
	struct tcp_header h = {
		.seq = r->c.rcv_nxt,
		.ack = r->c.snd_una,
		.flags = TCP_BIT_ACK,
		.window = UINT16_MAX,
		.scale = TCP_SCALE_NONE,
		.has_timestamp = r->c.timestamps,
		.ts_value = r->c.ts_recent + 1,
		.ts_echo = r->stack.now_ms + r->c.ts_offset,
		.n_sacks = 1,
		.sack = {{r->c.snd_una + from, r->c.snd_nxt}},
	};

	take(r, &h);
}

static void send(struct run *r, unsigned int max)
{
	struct tcp_header out;
	uint8_t bytes[TCP_HEADER_MAX];
	uint32_t end;

	while (max-- > 0 && tcp_next(&r->stack, &r->c, &out)) {
		need(tcp_header_size(&out) <= TCP_HEADER_MAX, "a header too long");
		tcp_header_write(&out, 0, 0, bytes);
		end = out.seq + out.length - r->iss - 1;
		need(out.length == 0 || (int32_t)end <= (int32_t)r->queued,
		     "bytes that were not queued");
		need(out.length == 0 || !sequence_after(out.seq + out.length, r->edge),
		     "bytes beyond the window");
		need(out.length <= UINT16_MAX, "a segment too long");
		check(r);
	}
}

static void pass(struct run *r)
{
	uint8_t how = byte(r);
	uint32_t ms = how < 128 ? how : (how - 127) * 100;

	r->stack.now_ms += ms;
	r->stack.now_us += ms * 1000 + byte(r);
	tcp_timer(&r->stack, &r->c);
	if (r->c.state != TCP_CLOSED)
		check(r);
}

static void own(struct run *r)
{
	uint8_t how = byte(r);
	uint32_t bytes = word(r), room;

	switch (how % 8) {
	case 0:
	case 1:
		room = r->irs + 1 + STREAM_MAX - 256 - r->c.rcv_nxt;
		if (r->c.state != TCP_CLOSED && (int32_t)room > 0)
			tcp_grant(&r->c, bytes < room ? bytes : room);
		break;
	case 2:
	case 3:
	case 4:
		if (r->c.fin_queued || r->c.state == TCP_CLOSED)
			break;
		r->queued += bytes;
		tcp_queue(&r->c, bytes);
		break;
	case 5:
		tcp_acknowledge(&r->c);
		break;
	case 6:
		tcp_set_mss(&r->c, 100 + bytes % 9000);
		break;
	default:
		if (bytes % 16 == 0)
			tcp_abort(&r->c);
		else
			tcp_close(&r->c);
	}
}

static void open_connection(struct run *r)
{
	static const struct tcp_congestion *const kinds[] = {&tcp_cubic, &tcp_reno, &tcp_dctcp};
	uint8_t how = byte(r), more = byte(r);
	struct tcp_header syn = {
		.flags = TCP_BIT_SYN | (how & 8 ? TCP_BIT_ECE | TCP_BIT_CWR : 0),
		.seq = (uint32_t)byte(r) << 24,
		.window = 5000,
		.mss = how & 16 ? 100 + byte(r) * 40 : 1460,
		.scale = how & 1 ? more & 15 : TCP_SCALE_NONE,
		.sack_permitted = how & 2,
		.has_timestamp = how & 4,
	};

	r->settings = tcp_settings_default;
	r->settings.ecn = true;
	r->settings.scale = more >> 4 & 7;
	r->settings.congestion = kinds[(how >> 5) % 3];
	r->pools = pools_init(&r->stack, &r->settings, ACTIVES, CHUNKS, HELDS);
	r->irs = syn.seq;
	r->iss = 0xffff0000;
	tcp_open(&r->stack, &r->c, &syn, 9000, 8192, r->iss, 12345);
	r->edge = r->iss + 1 + syn.window;
	send(r, 1);
	if (!(how & 128))
		good_segment(r, 0, r->iss + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct run run;
	struct run *r = &run;
	char why[160];

	memset(r, 0, sizeof(*r));
	r->in = (struct input){data, data + size};
	open_connection(r);
	while (r->in.at < r->in.end) {
		switch (byte(r) % 12) {
		case 0:
		case 1:
		case 2:
		case 3:
			any_segment(r);
			break;
		case 4:
			good_segment(r, word(r) % 3000, r->c.snd_una);
			break;
		case 5:
			good_segment(r, 0, r->c.snd_nxt);
			break;
		case 6:
			selective(r);
			break;
		case 7:
			pass(r);
			break;
		case 8:
			send(r, 1 + byte(r) % 4);
			break;
		case 9:
			send(r, 10000);
			break;
		default:
			own(r);
		}
	}
	tcp_release(&r->stack, &r->c);
	if (!check_pools(&r->stack, ACTIVES, CHUNKS, HELDS, why, sizeof(why)))
		need(false, why);
	free(r->pools);
	return 0;
}
