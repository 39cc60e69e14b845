/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the framing kserve that want to harm others: what they can have is bounded, what they
 * did is counted, and another client is answered beside them. */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "grpc_text.h"

#define OTHER "198.51.100.9"

#define SERVICE                                                                                    \
	"  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4           \
	", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB, queue: 2048, "           \
	"queue_timeout_ms: 60000, request_timeout_ms: 60000}\n"

static const struct walk_params params = {
	.services = SERVICE,
	.more = "tcp: {connections: 512, buffer_mb: 32}\n",
	.packets = 4096,
};

/* So much memory that it bounds no client's requests. */
static const struct walk_params ample = {
	.services = SERVICE,
	.more = "tcp: {connections: 512, buffer_mb: 128}\n",
	.packets = 4096,
};

static const char live[] = "GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n";

/* A client of another address is answered, and within <ms>. */
static void expect_other(struct walk *w, uint16_t port, unsigned int ms)
{
	struct http_client *c = http_dial_from(w, OTHER, port);

	http_say(c, live, sizeof(live) - 1);
	for (unsigned int i = 0; i < ms && c->n == 0; i++) {
		walk_pass(w, 1);
		http_take_all(c);
	}
	walk_expect(strstr(c->got, "{\"live\":true}") != NULL, "another client got: %s", c->got);
	http_abort(c);
}

/* --- cancels -----------------------------------------------------------------------------------
 */

/* Connections that give all their calls up in one burst: more than a turn cancels. */
WALK(more_cancels_than_a_turn_takes)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = kserve_worker(w);
	struct http_client *c[4];
	struct lb_lcore_stats drops;
	static struct text t;

	v->answers = false;
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		text_preface(&t);
		/* So that the first ones leave room for the next connection. */
		for (uint32_t call = 0; call < 60; call++)
			text_call(&t, 2 * call + 1);
		http_say(c[i], t.at, t.n);
		http_wait(c[i]);
	}
	t.n = 0;
	for (uint32_t call = 0; call < 60; call++)
		text_frame(&t, FRAME_RST, 0, 2 * call + 1, "\0\0\0\10", 4);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_put(c[i], t.at, t.n);
	/* To read them takes some turns, too. */
	walk_turns(w, 20);
	v->answers = true;
	walk_pass(w, 100);
	/* To search for all of them takes longer than a ms may. */
	drops = walk_stats(w);
	walk_expect_eq(drops.drop[LB_DROP_CANCELLED] + drops.drop[LB_DROP_CANCEL_LIMIT], 240);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i]->n = 0;
		t.n = 0;
		text_call(&t, 1001);
		http_say(c[i], t.at, t.n);
		http_wait(c[i]);
		walk_expect_eq(text_frames(c[i], FRAME_DATA, 1001), 1);
		http_abort(c[i]);
	}
	walk_destroy(w);
}

/* A call whose message has 60,000 bytes; of these <n> come. */
static void add_large(struct text *t, uint32_t stream, uint32_t n)
{
	static const char front[] =
		"\0\0\0\xea\x93\xa\4echo\x2a\xc\xa\1a\x12\4FP32\x1a\1\2\x2a\xf\xa\1b"
		"\x12\5UINT8\x1a\3\xe0\xd4\3\x3a\x8"
		"12345678"
		"\x3a\xe0\xd4\3";
	static char bytes[20000];

	text_frame(t, FRAME_HEADERS, FRAME_END_HEADERS, stream, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	memcpy(bytes, front, sizeof(front) - 1);
	text_frame(t, FRAME_DATA, 0, stream, bytes, n);
}

/* Given up while its bytes are on their way to their place, while the worker has it, while its
 * answer waits for a window, and while nothing of it has come: nothing stays behind. */
WALK(calls_that_are_given_up_in_every_state)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = kserve_worker(w);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;

	text_preface(&t);
	t.n -= 9;
	text_frame(&t, FRAME_SETTINGS, 0, 0, "\0\4\0\0\0\0", 6);
	text_call(&t, 1);
	http_say(c, t.at, t.n);
	http_wait(c);
	v->answers = false;
	t.n = 0;
	text_call(&t, 3);
	add_large(&t, 5, 15000);
	add_large(&t, 7, 70);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 9, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(v->n_requests, 1);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_FRAMING], 0);
	t.n = 0;
	for (uint32_t call = 1; call <= 9; call += 2)
		text_frame(&t, FRAME_RST, 0, call, "\0\0\0\10", 4);
	http_say(c, t.at, t.n);
	http_wait(c);
	v->answers = true;
	walk_pass(w, 20);
	/* That at the worker, and those whose bytes had not come. */
	walk_expect_eq(walk_stats(w).drop[LB_DROP_CANCELLED], 3);
	walk_expect_eq(text_frames(c, FRAME_DATA, 0), 0);
	t.n = 0;
	text_frame(&t, FRAME_SETTINGS, 0, 0, "\0\4\0\1\0\0", 6);
	text_call(&t, 11);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(text_frames(c, FRAME_DATA, 11), 1);
	http_hang_up(c);
	walk_destroy(w);
}

/* --- answers that are not taken ----------------------------------------------------------------
 */

/* Connections that let no byte of an answer come. */
static void dial_shut(struct walk *w, const char *source, struct http_client **c, unsigned int n,
		      uint16_t port)
{
	static struct text t;

	for (unsigned int i = 0; i < n; i++) {
		c[i] = http_dial_from(w, source, port + i);
		text_preface(&t);
		t.n -= 9;
		text_frame(&t, FRAME_SETTINGS, 0, 0, "\0\4\0\0\0\0", 6);
		for (uint32_t call = 0; call < 64; call++)
			text_call(&t, 2 * call + 1);
		http_say(c[i], t.at, t.n);
		http_wait(c[i]);
	}
}

static void ping(struct http_client *c)
{
	static struct text t;

	t.n = 0;
	text_frame(&t, FRAME_PING, 0, 0, "12345678", 8);
	http_say(c, t.at, t.n);
}

/* One client cannot have all that is remembered of requests, nor all streams. */
WALK(windows_that_stay_shut_keep_no_other_out)
{
	struct walk *w = walk_create(&ample);
	struct http_client *c[32];

	kserve_worker(w);
	dial_shut(w, NULL, c, RTE_DIM(c), 3000);
	expect_other(w, 5000, 20);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_destroy(w);
}

/* Several have all of it, and answer PINGs: they are reset when others need it. */
WALK(windows_of_many_clients_that_stay_shut)
{
	static const char *const sources[] = {"198.51.100.1", "198.51.100.2", "198.51.100.3",
					      "198.51.100.4", "198.51.100.5"};
	struct walk *w = walk_create(&params);
	struct http_client *c[5][12];
	unsigned int reset = 0;

	kserve_worker(w);
	for (unsigned int i = 0; i < 5; i++)
		dial_shut(w, sources[i], c[i], 12, 3000 + 100 * i);
	expect_other(w, 5000, 20);
	for (unsigned int s = 0; s < 8; s++) {
		for (unsigned int i = 0; i < 60; i++)
			if (!c[i / 12][i % 12]->reset)
				ping(c[i / 12][i % 12]);
		walk_pass(w, 500);
	}
	http_take_all(c[0][0]);
	for (unsigned int i = 0; i < 60; i++)
		reset += c[i / 12][i % 12]->reset;
	walk_expect(reset > 0, "none was");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_READER], reset);
	expect_other(w, 5001, 20);
	for (unsigned int i = 0; i < 60; i++)
		http_abort(c[i / 12][i % 12]);
	walk_destroy(w);
}

/* A window that was shut and is opened: all is there, and nobody was reset. */
WALK(a_window_that_is_opened_late)
{
	struct walk *w = walk_create(&params);
	struct http_client *c;
	static struct text t;

	kserve_worker(w);
	dial_shut(w, NULL, &c, 1, 3000);
	walk_pass(w, 20000);
	http_take_all(c);
	walk_expect(!c->reset, "it was reset, and is in nobody's way");
	t.n = 0;
	text_frame(&t, FRAME_SETTINGS, 0, 0, "\0\4\0\1\0\0", 6);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(text_count(c, "\x32\x8\0\0\x80\x3f\0\0\0\x40\x32\4wxyz", 16), 64);
	http_hang_up(c);
	walk_destroy(w);
}

static void lose_all(struct walk *w)
{
	static struct walk_frame f;

	while (walk_take(w, 0, &f))
		continue;
}

/* Clients that read nothing, so that all they are sent waits, and that end streams and begin
 * others, until the memory of their sessions is used up: no other client is without a stream. */
WALK(streams_that_end_unread)
{
	struct walk *w = walk_create(&ample);
	struct http_client *c[12], *other;
	static struct text t;
	uint32_t call;

	kserve_worker(w);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		text_preface(&t);
		/* 256 KiB of answers that are not acknowledged, and some that wait: to calls
		 * without a message, and to two PINGs for each. */
		for (call = 1; call < 2 * 5520; call += 2) {
			text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS | FRAME_END_STREAM, call,
				   GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
			text_frame(&t, FRAME_PING, 0, 0, "12345678", 8);
			text_frame(&t, FRAME_PING, 0, 0, "12345678", 8);
			if (t.n < 1200)
				continue;
			http_put(c[i], t.at, t.n);
			walk_turns(w, 4);
			lose_all(w);
			t.n = 0;
		}
		for (unsigned int given_up = 0; given_up < 900; given_up++, call += 2) {
			t.n = 0;
			text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, call, GRPC_HEAD,
				   sizeof(GRPC_HEAD) - 1);
			text_frame(&t, FRAME_RST, 0, call, "\0\0\0\10", 4);
			http_put(c[i], t.at, t.n);
			walk_turns(w, 3);
			lose_all(w);
		}
	}
	walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FAULT], RTE_DIM(c));
	other = http_dial_from(w, OTHER, 5000);
	text_preface(&t);
	text_call(&t, 1);
	http_say(other, t.at, t.n);
	http_wait(other);
	walk_expect_eq(text_frames(other, FRAME_DATA, 1), 1);
	http_abort(other);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_destroy(w);
}

/* --- readers -----------------------------------------------------------------------------------
 */

WALK(halves_of_heads_keep_no_other_client_out)
{
	struct walk *w = walk_create(&params);
	struct http_client *c[200];

	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		http_say(c[i], live, 20);
	}
	expect_other(w, 5000, 5);
	/* Its own wait, and go on when there is room. */
	http_say(c[199], live + 20, sizeof(live) - 21);
	for (unsigned int i = 0; i < 199; i++)
		http_say(c[i], live + 20, sizeof(live) - 21);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		http_wait(c[i]);
		walk_expect(strstr(c[i]->got, "{\"live\":true}") != NULL, "%u: %s", i, c[i]->got);
		http_abort(c[i]);
	}
	walk_destroy(w);
}

/* As many strangers as there are readers, each with half a head: they end soon. */
WALK(halves_of_heads_from_many_addresses)
{
	struct walk *w = walk_create(&params);
	static char source[300][16];
	struct http_client *c[300];

	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		sprintf(source[i], "198.51.%u.%u", 101 + i / 200, 1 + i % 200);
		c[i] = http_dial_from(w, source[i], 3000 + i);
		http_say(c[i], live, 20);
	}
	expect_other(w, 5000, 2500);
	walk_expect(walk_stats(w).drop[LB_DROP_TCP_SLOW] > 0, "none ended");
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_destroy(w);
}

/* Messages that begin and do not end, on all streams that one client may have. */
WALK(halves_of_messages_keep_no_other_client_out)
{
	struct walk *w = walk_create(&params);
	struct http_client *c[8];
	static struct text t;

	kserve_worker(w);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		text_preface(&t);
		for (uint32_t call = 0; call < 60; call++) {
			text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 2 * call + 1, GRPC_HEAD,
				   sizeof(GRPC_HEAD) - 1);
			text_frame(&t, FRAME_DATA, 0, 2 * call + 1, "\0\0\0\0\x36\x0a", 6);
		}
		http_say(c[i], t.at, t.n);
		http_wait(c[i]);
	}
	expect_other(w, 5000, 5);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_destroy(w);
}

/* --- heads -------------------------------------------------------------------------------------
 */

/* A field of 4,000 bytes is sent once, and then named by a byte, again and again (HPACK). */
WALK(a_head_that_is_long_only_when_it_is_read)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = http_dial(w, 3000);
	static char first[4200], bomb[8000];
	static struct text t;
	uint32_t n = sizeof(GRPC_HEAD) - 1;

	kserve_worker(w);
	text_preface(&t);
	/* Literal with incremental indexing; 127 + 3873 in a prefix of seven bits. */
	memcpy(first, GRPC_HEAD, n);
	memcpy(first + n, "\x40\1x\x7f\xa1\x1e", 6);
	memset(first + n + 6, 'y', 4000);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, first, n + 6 + 4000);
	memcpy(bomb, GRPC_HEAD, n);
	memset(bomb + n, 0xbe, sizeof(bomb) - n);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 3, bomb, sizeof(bomb));
	text_call(&t, 5);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(text_frames(c, FRAME_RST, 1), 0);
	walk_expect_eq(text_frames(c, FRAME_RST, 3), 1);
	walk_expect_eq(text_frames(c, FRAME_DATA, 5), 1);
	http_abort(c);
	walk_destroy(w);
}

/* --- resets that the client provokes -----------------------------------------------------------
 */

/* Each call is complete; then its window is more than may be, so that we reset it (CVE-2025-8671).
 */
WALK(resets_that_are_provoked)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;
	uint32_t call = 0;

	kserve_worker(w)->answers = false;
	text_preface(&t);
	for (; call < 3000 && !c->fin && !c->reset; call++) {
		text_call(&t, 2 * call + 1);
		text_frame(&t, FRAME_WINDOW, 0, 2 * call + 1, "\x7f\xff\xff\xff", 4);
		http_say(c, t.at, t.n);
		t.n = 0;
	}
	walk_expect(call > 900 && call < 1200, "it ended after %u", call);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FAULT], 1);
	http_abort(c);
	walk_destroy(w);
}

WALK(what_ends_a_connection_is_counted)
{
	static const struct {
		const char *frame;
		uint32_t n;
	} rows[] = {
		{"\0\0\5\0\1\0\0\0\1\0\0\0\0\0", 14},        /* DATA of a stream that is idle */
		{"\0\0\4\x8\0\0\0\0\0\0\0\0\0", 13},         /* WINDOW_UPDATE by 0 */
		{"\0\0\4\x8\0\0\0\0\0\x7f\xff\xff\xff", 13}, /* of the connection, too far */
		{"\0\0\1\3\0\0\0\0\1\0", 10},                /* RST_STREAM of a wrong length */
		{"\0\0\0\1\4\0\0\0\2", 9},                   /* a stream of the server */
		{"\0\0\0\x9\4\0\0\0\1", 9},                  /* CONTINUATION of nothing */
		{"\0\0\1\6\0\0\0\0\0\0", 10},                /* PING of a wrong length */
		{"\0\0\5\5\4\0\0\0\1\0\0\0\2\x82", 14},      /* PUSH_PROMISE */
	};
	struct walk *w = walk_create(&params);
	struct http_client *c;
	static struct text t;

	kserve_worker(w);
	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		walk_context("row %u", i);
		c = http_dial(w, 3000 + i);
		text_preface(&t);
		http_say(c, t.at, t.n);
		http_say(c, rows[i].frame, rows[i].n);
		http_wait(c);
		walk_expect(c->fin || c->reset, "it goes on");
		walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FAULT], i + 1);
		http_abort(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

WALK(connections_of_HTTP2_beyond_a_client_s_share_are_counted)
{
	struct walk *w = walk_create(&params);
	struct http_client *c[40];
	static struct text t;
	unsigned int ended = 0;

	text_preface(&t);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		http_say(c[i], t.at, t.n);
	}
	http_wait(c[0]);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		ended += c[i]->fin || c[i]->reset;
	walk_expect_eq(ended, 8);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FULL], 8);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_destroy(w);
}

/* Four clients with all that they may have leave some for others. */
WALK(connections_of_HTTP2_of_many_clients)
{
	static const char *const sources[] = {"198.51.100.11", "198.51.100.12", "198.51.100.13",
					      "198.51.100.14"};
	struct walk *w = walk_create(&params);
	struct http_client *c[4 * 32], *other[4];
	static struct text t;

	kserve_worker(w);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial_from(w, sources[i % 4], 3000 + i);
		text_preface(&t);
		http_say(c[i], t.at, t.n);
	}
	for (unsigned int i = 0; i < RTE_DIM(other); i++) {
		static char source[4][16];

		sprintf(source[i], "198.51.100.%u", 20 + i);
		other[i] = http_dial_from(w, source[i], 5000 + i);
		text_preface(&t);
		text_call(&t, 1);
		http_say(other[i], t.at, t.n);
		http_wait(other[i]);
		walk_expect_eq(text_frames(other[i], FRAME_DATA, 1), 1);
	}
	for (unsigned int i = 0; i < RTE_DIM(other); i++)
		http_abort(other[i]);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_destroy(w);
}

/* Sessions of several clients, as many as they may open, where there is little memory: each of them
 * has room for calls, and so has another client. */
WALK(connections_of_HTTP2_leave_room_for_calls)
{
	static const struct walk_params little = {
		.services = SERVICE,
		.more = "tcp: {connections: 512, buffer_mb: 4}\n",
		.packets = 4096,
	};
	static const char *const sources[] = {"198.51.100.21", "198.51.100.22", "198.51.100.23",
					      "198.51.100.24"};
	struct walk *w = walk_create(&little);
	struct http_client *c[4 * 32];
	unsigned int ended = 0;
	static struct text t;

	kserve_worker(w);
	text_preface(&t);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial_from(w, sources[i / 32], 3000 + i);
		http_say(c[i], t.at, t.n);
	}
	http_wait(c[0]);
	expect_other(w, 5000, 20);
	t.n = 0;
	text_call(&t, 1);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		ended += c[i]->fin || c[i]->reset;
		if (!c[i]->fin && !c[i]->reset)
			http_put(c[i], t.at, t.n);
		walk_turn(w);
	}
	walk_pass(w, 20);
	http_take_all(c[0]);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		walk_expect(c[i]->fin || c[i]->reset || text_frames(c[i], FRAME_DATA, 1) == 1,
			    "the call of connection %u has no answer", i);
	walk_expect(ended < RTE_DIM(c), "no connection was taken");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_HTTP2_FULL], ended);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_destroy(w);
}

/* In every turn more small requests come than a turn reads: one that had to wait has its turn, too.
 */
WALK(a_flood_of_small_requests_delays_none_for_ever)
{
	static const char small[] =
		"GET / HTTP/1.1\r\nHost:\r\n\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n";
	struct walk *w = walk_create(&ample);
	struct http_client *c[200], *other;
	unsigned int turns = 0, next = 0;

	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		c[i] = http_dial(w, 3000 + i);
	other = http_dial_from(w, OTHER, 5000);
	for (; turns < 400 && other->n == 0; turns++) {
		for (unsigned int i = 0; i < 31; i++)
			http_put(c[next++ % RTE_DIM(c)], small, sizeof(small) - 1);
		if (turns == 20)
			http_put(other, live, sizeof(live) - 1);
		walk_turn(w);
		http_take_all(other);
	}
	walk_expect(strstr(other->got, "{\"live\":true}") != NULL, "not in %u turns", turns);
	http_abort(other);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_destroy(w);
}

/* --- turns ------------------------------------------------------------------------------------
 */

#define BACKLOG 24000u /* bytes, in segments of 1,000: less than a burst, and than a window */

static void add_ping(struct text *t, uint32_t i)
{
	text_frame(t, FRAME_PING, 0, 0, "12345678", 8);
}

static void add_empty(struct text *t, uint32_t i)
{
	text_frame(t, FRAME_DATA, 0, 1, NULL, 0);
}

static void add_update(struct text *t, uint32_t i)
{
	text_frame(t, FRAME_WINDOW, 0, 1, "\0\0\0\1", 4);
}

/* A call that is given up at once. */
static void add_rapid(struct text *t, uint32_t i)
{
	text_call(t, 2 * i + 3);
	text_frame(t, FRAME_RST, 0, 2 * i + 3, "\0\0\0\10", 4);
}

/* A head that names a field of 2,000 bytes again and again. */
static void add_bomb(struct text *t, uint32_t i)
{
	static char head[4200];
	uint32_t n = sizeof(GRPC_HEAD) - 1;

	memcpy(head, GRPC_HEAD, n);
	if (i == 0) {
		/* 127 + 1873 in a prefix of seven bits */
		memcpy(head + n, "\x40\1x\x7f\xd1\xe", 6);
		memset(head + n + 6, 'y', 2000);
		n += 2006;
	} else {
		memset(head + n, 0xbe, 200);
		n += 200;
	}
	text_frame(t, FRAME_HEADERS, FRAME_END_HEADERS, 2 * i + 3, head, n);
}

static const struct flood {
	const char *name;
	void (*add)(struct text *t, uint32_t i); /* NULL: JSON by HTTP/1.1 */
} floods[] = {
	{"pings", add_ping},  {"empty", add_empty}, {"updates", add_update},
	{"rapid", add_rapid}, {"bombs", add_bomb},  {"json", NULL},
};

static struct http_client *flood_dial(struct walk *w, const struct flood *f, uint16_t port)
{
	struct http_client *c = http_dial(w, port);
	static struct text t;

	if (f->add == NULL)
		return c;
	text_preface(&t);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	http_say(c, t.at, t.n);
	http_wait(c);
	return c;
}

/* More than many turns can read. */
static void flood_put(struct http_client *c, const struct flood *f)
{
	static const char head[] = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
				   "Content-Length: 200000\r\n\r\n{\"x\":[";
	static struct text t;

	t.n = 0;
	for (uint32_t i = 0; f->add != NULL && t.n < BACKLOG; i++)
		f->add(&t, i);
	if (f->add == NULL) {
		memcpy(t.at, head, sizeof(head) - 1);
		for (t.n = sizeof(head) - 1; t.n < BACKLOG; t.n += 3)
			memcpy(t.at + t.n, "[],", 3);
	}
	for (uint32_t at = 0; at + 1000 <= BACKLOG; at += 1000)
		http_put(c, t.at + at, 1000);
}

static unsigned int turns_until_answer(struct walk *w, struct http_client *c)
{
	unsigned int turns = 0;

	for (; turns < 400 && c->n == 0; turns++) {
		walk_turn(w);
		http_take_all(c);
	}
	return turns;
}

/* Bytes of a client, of any kind, that were not read yet: another client's request does not wait
 * behind it, whichever came first. */
WALK(bytes_that_wait_to_be_read_delay_their_sender)
{
	for (unsigned int i = 0; i < RTE_DIM(floods); i++) {
		struct walk *w = walk_create(&ample);
		struct http_client *c, *other;
		unsigned int turns;

		walk_context("%s", floods[i].name);
		kserve_worker(w);
		c = flood_dial(w, &floods[i], 3000);
		other = http_dial_from(w, OTHER, 5000);
		flood_put(c, &floods[i]);
		http_put(other, live, sizeof(live) - 1);
		turns = turns_until_answer(w, other);
		walk_expect(turns <= 4, "%u turns behind it", turns);
		other->n = 0;
		http_put(other, live, sizeof(live) - 1);
		turns = turns_until_answer(w, other);
		walk_expect(turns <= 4, "%u turns beside it", turns);
		http_abort(c);
		http_abort(other);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

static uint32_t add_json(char *to, uint32_t values)
{
	static char json[262144];
	uint32_t n = sprintf(json,
			     "{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\","
			     "\"data\":[0,0]},{\"name\":\"b\",\"shape\":[%u],\"datatype\":"
			     "\"UINT8\",\"data\":[",
			     values);

	for (uint32_t i = 0; i < values; i++)
		n += sprintf(json + n, "%s%u", i > 0 ? "," : "", i % 251);
	n += sprintf(json + n, "]}]}");
	return sprintf(to,
		       "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
		       "Content-Length: %u\r\n\r\n%s",
		       n, json);
}

/* Many connections get no more than one: another client has half of all turns. */
WALK(connections_of_one_client_share_its_turns)
{
	for (unsigned int i = 0; i < RTE_DIM(floods); i++) {
		struct walk *w = walk_create(&ample);
		struct http_client *c[8], *other;
		static char json[262144 + 200];
		unsigned int turns;
		uint32_t n;

		walk_context("%s", floods[i].name);
		kserve_worker(w);
		for (unsigned int k = 0; k < RTE_DIM(c); k++)
			c[k] = flood_dial(w, &floods[i], 3000 + k);
		other = http_dial_from(w, OTHER, 5000);
		for (unsigned int k = 0; k < RTE_DIM(c); k++) {
			flood_put(c[k], &floods[i]);
			walk_turn(w);
		}
		/* It takes the text of two turns. */
		n = add_json(json, 1000);
		for (uint32_t at = 0; at < n; at += 1000)
			http_put(other, json + at, RTE_MIN(n - at, 1000u));
		turns = turns_until_answer(w, other);
		walk_expect(turns <= 16, "%u turns", turns);
		for (unsigned int k = 0; k < RTE_DIM(c); k++)
			http_abort(c[k]);
		http_abort(other);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

/* --- long answers ------------------------------------------------------------------------------
 */

/* Eight answers of 200 KiB of JSON are being written: a short one, and a request, wait for none. */
WALK(long_answers_delay_no_short_one)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = kserve_worker(w);
	struct http_client *c[8], *other;
	char *json = malloc(262144 + 200);
	unsigned int turns = 0;
	uint32_t n;

	v->answers = false;
	n = add_json(json, 60000);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		for (uint32_t at = 0; at < n; at += 20000) {
			http_say(c[i], json + at, RTE_MIN(n - at, 20000u));
			http_wait(c[i]);
		}
	}
	other = http_dial_from(w, OTHER, 5000);
	n = add_json(json, 3);
	walk_need(v->n_requests == 4, "%u requests", v->n_requests);
	v->answers = true;
	walk_answer_all(v);
	http_put(other, json, n);
	for (; turns < 200 && other->n == 0; turns++) {
		walk_turn(w);
		http_take_all(other);
	}
	walk_expect(strstr(other->got, "\"data\":[0,1,2]") != NULL, "%s", other->got);
	walk_expect(turns < 20, "%u turns", turns);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		for (unsigned int k = 0; k < 50 && c[i]->n < 200000; k++)
			http_wait(c[i]);
		walk_expect(strncmp(c[i]->got, "HTTP/1.1 200 OK\r\n", 17) == 0, "%.200s",
			    c[i]->got);
		http_abort(c[i]);
	}
	http_abort(other);
	free(json);
	walk_destroy(w);
}
