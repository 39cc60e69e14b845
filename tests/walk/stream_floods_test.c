/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of HTTP/2 for their own sake: of each kind a connection may send some, and then it ends,
 * is told why, and is counted. What clients of gRPC send beside their calls goes on. */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "grpc_text.h"

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
	.more = "tcp: {connections: 64, buffer_mb: 32, idle_ms: 0}\n",
	.packets = 4096,
};

#define CALM    "\0\0\0\xb" /* ENHANCE_YOUR_CALM */
#define RESET   "\0\0\0\x8" /* CANCEL */
#define ANSWERS 100u        /* frames that want an answer, at once */
#define FRAMES  1000u       /* those that bring nothing */
#define PAID    10u         /* and as many for each call or frame of an answer */

/* A connection with a call, number 1, whose message has not come. */
static struct http_client *dial(struct walk *w, uint16_t port)
{
	struct http_client *c = http_dial(w, port);
	static struct text t;

	text_preface(&t);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	http_say(c, t.at, t.n);
	http_wait(c);
	return c;
}

/* --- floods ------------------------------------------------------------------------------------
 */

static const struct flood {
	const char *name;
	const char *bytes;
	uint32_t n, most;
	bool closed; /* the call is given up first */
} floods[] = {
	{"PING",
	 "\0\0\x8\6\0\0\0\0\0"
	 "12345678",
	 17, ANSWERS},
	{"SETTINGS", "\0\0\6\4\0\0\0\0\0\0\4\0\1\0\0", 15, ANSWERS},
	{"PING that answers none",
	 "\0\0\x8\6\1\0\0\0\0"
	 "12345678",
	 17, FRAMES},
	{"PRIORITY", "\0\0\5\2\0\0\0\0\5\0\0\0\1\xff", 14, FRAMES},
	{"PRIORITY_UPDATE", "\0\0\7\x10\0\0\0\0\0\0\0\0\1u=1", 16, FRAMES},
	{"WINDOW_UPDATE", "\0\0\4\x8\0\0\0\0\0\0\0\0\1", 13, FRAMES},
	{"WINDOW_UPDATE of a call", "\0\0\4\x8\0\0\0\0\1\0\0\0\1", 13, FRAMES},
	{"WINDOW_UPDATE of a call that has ended", "\0\0\4\x8\0\0\0\0\1\0\0\0\1", 13, FRAMES, true},
	{"empty DATA", "\0\0\0\0\0\0\0\0\1", 9, FRAMES},
	{"DATA of padding", "\0\0\2\0\x8\0\0\0\1\1\0", 11, FRAMES},
	{"DATA of a call that has ended", "\0\0\1\0\0\0\0\0\1x", 10, FRAMES, true},
	{"an unknown kind", "\0\0\3\x99\xff\0\0\0\7xyz", 12, FRAMES},
};

/* Sends frames, some per turn, until the connection has ended. Returns how many. */
static uint32_t flood(struct http_client *c, const struct flood *f, uint32_t most)
{
	static struct text t;
	uint32_t sent = 0;

	while (sent < most && !c->fin && !c->reset) {
		for (t.n = 0; t.n + f->n <= 300; t.n += f->n, sent++)
			memcpy(t.at + t.n, f->bytes, f->n);
		http_put(c, t.at, t.n);
		walk_turns(c->w, 2);
		http_take_all(c);
		http_acknowledge(c);
	}
	return sent;
}

WALK(floods_of_each_kind_end)
{
	struct walk *w = walk_create(&params);
	struct http_client *c;
	uint32_t sent;

	kserve_worker(w);
	for (unsigned int i = 0; i < RTE_DIM(floods); i++) {
		const struct flood *f = &floods[i];

		walk_context("%s", f->name);
		c = dial(w, 3000 + i);
		if (f->closed)
			http_say(c, "\0\0\4\3\0\0\0\0\1" RESET, 13);
		sent = flood(c, f, 3000);
		walk_expect(sent >= f->most - PAID && sent <= f->most + 100, "after %u", sent);
		http_wait(c);
		walk_expect(c->fin || c->reset, "it goes on");
		walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FAULT], i + 1);
		walk_expect_eq(text_frames(c, FRAME_GOAWAY, 0), 1);
		walk_expect_eq(text_count(c, CALM, 4), 1);
		if (f->most == ANSWERS)
			walk_expect_eq(text_count(c, "too_many_pings", 14), 1);
		http_abort(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* All streams may get another window by each: a turn reads few. */
WALK(SETTINGS_take_their_time_of_a_turn)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = dial(w, 3000);
	unsigned int before = text_frames(c, FRAME_SETTINGS, 0), more;
	static struct text t;

	for (t.n = 0; t.n < 60 * floods[1].n; t.n += floods[1].n)
		memcpy(t.at + t.n, floods[1].bytes, floods[1].n);
	http_put(c, t.at, t.n);
	walk_turn(w);
	http_take_all(c);
	more = text_frames(c, FRAME_SETTINGS, 0) - before;
	walk_expect(more > 0 && more <= 16, "%u in a turn", more);
	walk_turns(w, 10);
	http_take_all(c);
	walk_expect_eq(text_frames(c, FRAME_SETTINGS, 0) - before, 60);
	http_abort(c);
	walk_destroy(w);
}

/* Its calls are not answered any more: the worker need not work for them. */
WALK(calls_of_a_flood_are_given_up)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = kserve_worker(w);
	struct http_client *c = dial(w, 3000);
	static struct text t;

	v->answers = false;
	t.n = 0;
	text_call(&t, 3);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(v->n_requests, 1);
	flood(c, &floods[0], 3000);
	http_wait(c);
	walk_expect(c->fin, "it goes on");
	v->answers = true;
	walk_pass(w, 100);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_CANCELLED], 1);
	http_take_all(c);
	walk_expect_eq(text_frames(c, FRAME_DATA, 3), 0);
	http_hang_up(c);
	walk_destroy(w);
}

/* One that goes on sending is not read, and its window stays where it was. */
WALK(a_flood_that_has_ended_is_offered_no_more)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = dial(w, 3000);
	uint32_t offered, sent = 0;
	static char bytes[1000];

	kserve_worker(w);
	flood(c, &floods[0], 3000);
	http_wait(c);
	walk_expect(c->fin, "it goes on");
	offered = c->offered;
	for (; sent < 400000; sent += sizeof(bytes)) {
		http_put(c, bytes, sizeof(bytes));
		walk_turns(w, 2);
		http_take_all(c);
	}
	walk_expect_eq(c->offered, offered);
	walk_expect(c->seq - c->acked > sent - 65536, "%u of %u bytes were taken",
		    sent - (c->seq - c->acked), sent);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FAULT], 1);
	http_abort(c);
	walk_destroy(w);
}

/* A client that takes nothing is not told why; it ends nevertheless, whatever it sends. */
WALK(a_flood_by_one_that_takes_nothing_ends)
{
	static const uint8_t kinds[] = {FRAME_PING, FRAME_DATA, FRAME_HEADERS};

	for (unsigned int i = 0; i < RTE_DIM(kinds); i++) {
		struct walk *w = walk_create(&params);
		struct http_client *c = dial(w, 3000);
		static struct text t;
		uint32_t call = 3, bytes = 0;

		walk_context("kind %u", kinds[i]);
		/* Calls that are refused: 256 KiB of answers wait, and are not acknowledged. */
		for (; call < 12000; call += 2) {
			t.n = 0;
			text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS | FRAME_END_STREAM, call,
				   GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
			http_put(c, t.at, t.n);
			walk_turn(w);
		}
		walk_expect(!c->reset, "it has not done anything bad");
		/* HEADERS of a call that is there already end the session. */
		for (; bytes < 400000 && !c->reset; bytes += t.n) {
			t.n = 0;
			text_frame(&t, kinds[i], 0, kinds[i] == FRAME_PING ? 0 : 2, "12345678", 8);
			http_put(c, t.at, t.n);
			walk_turn(w);
			http_take_all(c);
		}
		walk_expect(c->reset, "it goes on");
		walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FAULT], 1);
		http_abort(c);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

/* --- what goes on ------------------------------------------------------------------------------
 */

static void say_frames(struct http_client *c, const struct flood *f, uint32_t n)
{
	static struct text t;

	for (t.n = 0; n > 0; n--, t.n += f->n)
		memcpy(t.at + t.n, f->bytes, f->n);
	http_say(c, t.at, t.n);
	walk_turns(c->w, 4);
	http_take_all(c);
	http_acknowledge(c);
}

/* Keepalives of gRPC without a call, and ten times as many as that: an hour, and two minutes. */
WALK(keepalives_go_on)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;

	text_preface(&t);
	http_say(c, t.at, t.n);
	http_wait(c);
	for (unsigned int i = 1; i <= 360; i++) {
		c->n = 0;
		walk_jump(w, 10000);
		say_frames(c, &floods[0], 1);
		walk_expect_eq(text_frames(c, FRAME_PING, 0), 1);
	}
	for (unsigned int i = 1; i <= 1200; i++) {
		c->n = 0;
		walk_jump(w, 100);
		say_frames(c, &floods[0], 1);
		walk_expect_eq(text_frames(c, FRAME_PING, 0), 1);
	}
	walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FAULT], 0);
	http_abort(c);
	walk_destroy(w);
}

/* A PING for each answer (Go and C++ measure how far the end is by it), and windows that are
 * updated for each, by little: as many as a client likes in no time. */
WALK(what_answers_ask_for_goes_on)
{
	struct walk *w = walk_create(&params);
	static const struct flood update = {"", "\0\0\4\x8\0\0\0\0\0\0\0\0\x40", 13, 0};
	struct http_client *c = http_dial(w, 3000);
	static struct text t;

	kserve_worker(w);
	text_preface(&t);
	http_say(c, t.at, t.n);
	http_wait(c);
	for (uint32_t call = 1; call < 4000; call += 2) {
		c->n = 0;
		t.n = 0;
		text_call(&t, call);
		http_put(c, t.at, t.n);
		walk_turns(w, 6);
		http_take_all(c);
		walk_context("call %u", call);
		walk_expect_eq(text_frames(c, FRAME_DATA, call), 1);
		say_frames(c, &floods[0], 1);
		say_frames(c, &update, 2);
		walk_expect_eq(text_frames(c, FRAME_PING, 0), 1);
	}
	walk_context("%s", "");
	walk_expect_eq(text_frames(c, FRAME_GOAWAY, 0), 0);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FAULT], 0);
	http_abort(c);
	walk_destroy(w);
}

/* A client may send as many as the bound at once, and time allows it as many again. */
WALK(some_frames_at_once_go_on)
{
	struct walk *w = walk_create(&params);

	for (unsigned int i = 0; i < RTE_DIM(floods); i++) {
		const struct flood *f = &floods[i];
		struct http_client *c = dial(w, 3000 + i);

		walk_context("%s", f->name);
		if (f->closed)
			http_say(c, "\0\0\4\3\0\0\0\0\1" RESET, 13);
		for (unsigned int times = 0; times < 3; times++) {
			walk_expect(flood(c, f, f->most - 50) >= f->most - 50, "too few");
			walk_jump(w, 20000);
		}
		c->n = 0;
		say_frames(c, &floods[0], 1);
		walk_expect_eq(text_frames(c, FRAME_PING, 0), 1);
		walk_expect(!c->fin && !c->reset, "it ended");
		http_abort(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}
