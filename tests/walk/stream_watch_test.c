/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of grpc.health.v1.Health/Watch, and calls with more or fewer messages than they take. */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "grpc_text.h"
#include "lb.h"

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
	.more = "tcp: {connections: 256, buffer_mb: 8}\n",
};

#define WATCH_HEAD                                                                                 \
	GRPC_FIELD("\7:method", "\4", "POST")                                                      \
	GRPC_FIELD("\7:scheme", "\4", "http")                                                      \
	GRPC_FIELD("\12:authority", "\1", "h")                                                     \
	GRPC_FIELD("\5:path", "\x1c", "/grpc.health.v1.Health/Watch")                              \
	GRPC_FIELD("\xc"                                                                           \
		   "content-type",                                                                 \
		   "\x10", "application/grpc")

/* Messages of HealthCheckResponse, with their prefix. */
#define SERVING     "\0\0\0\0\2\x8\1"
#define NOT_SERVING "\0\0\0\0\2\x8\2"
#define UNKNOWN     "\0\0\0\0\2\x8\3"

/* Values of grpc-status, whose names are compressed. */
#define RESOURCE_EXHAUSTED                                                                         \
	"\1"                                                                                       \
	"8"
#define UNIMPLEMENTED                                                                              \
	"\2"                                                                                       \
	"12"
#define UNAVAILABLE                                                                                \
	"\2"                                                                                       \
	"14"

#define GET_READY  "GET /v2/health/ready HTTP/1.1\r\nHost: h\r\n\r\n"
#define POST_INFER "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"

static unsigned int count(const struct http_client *c, const char *message)
{
	return text_count(c, message, 7);
}

/* A call on <stream> that watches the model <name>. */
static void add_watch(struct text *t, uint32_t stream, const char *name)
{
	char message[64] = {0};
	uint32_t n = strlen(name);

	text_frame(t, FRAME_HEADERS, FRAME_END_HEADERS, stream, WATCH_HEAD, sizeof(WATCH_HEAD) - 1);
	if (n > 0) {
		message[4] = (char)(n + 2);
		message[5] = 0xa;
		message[6] = (char)n;
		memcpy(message + 7, name, n);
		n += 2;
	}
	text_frame(t, FRAME_DATA, FRAME_END_STREAM, stream, message, 5 + n);
}

static struct http_client *watch(struct walk *w, uint16_t port, const char *name)
{
	struct http_client *c = http_dial(w, port);
	static struct text t;

	text_preface(&t);
	add_watch(&t, 1, name);
	http_say(c, t.at, t.n);
	http_wait(c);
	return c;
}

static void lose(struct walk *w, struct walk_worker *v)
{
	lb_worker_remove(w->lb, walk_worker_of(v), "it leaves");
	v->gone = true;
	walk_pass(w, 5);
}

WALK(clients_are_told_when_workers_come_and_go)
{
	struct walk *w = walk_create(&params);
	struct http_client *all = watch(w, 3000, ""), *echo = watch(w, 3001, "echo"),
			   *other = watch(w, 3002, "other"), *ask;
	struct walk_worker *v;

	walk_expect_eq(count(all, NOT_SERVING), 1);
	walk_expect_eq(count(echo, NOT_SERVING), 1);
	walk_expect_eq(count(other, UNKNOWN), 1);
	/* Nothing is said while nothing changes. */
	walk_pass(w, 200);
	http_wait(all);
	walk_expect_eq(count(all, NOT_SERVING), 1);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 3 * 16);
	v = kserve_worker(w);
	walk_pass(w, 5);
	http_wait(all);
	http_wait(echo);
	walk_expect_eq(count(all, SERVING), 1);
	walk_expect_eq(count(echo, SERVING), 1);
	lose(w, v);
	http_wait(all);
	http_wait(echo);
	http_wait(other);
	walk_expect_eq(count(all, NOT_SERVING), 2);
	walk_expect_eq(count(echo, NOT_SERVING), 2);
	walk_expect_eq(count(other, UNKNOWN), 1);
	walk_expect_eq(text_frames(echo, FRAME_DATA, 1), 3);
	/* So it is for those that ask, by HTTP too. */
	ask = http_dial(w, 3003);
	http_say(ask, GET_READY, sizeof(GET_READY) - 1);
	http_wait(ask);
	walk_expect(strstr(ask->got, "HTTP/1.1 503 ") == ask->got, "%s", ask->got);
	ask->n = 0;
	http_say(ask, POST_INFER, sizeof(POST_INFER) - 1);
	http_wait(ask);
	walk_expect(strstr(ask->got, "HTTP/1.1 503 ") == ask->got, "%s", ask->got);
	http_abort(ask);
	http_abort(all);
	http_abort(echo);
	http_abort(other);
	walk_pass(w, 5);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* A client that reads nothing is told what is so when it reads again, and holds no more. */
WALK(a_client_that_does_not_read_is_told_the_last_state)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;
	uint32_t held;

	text_preface(&t);
	t.n -= 9;
	text_frame(&t, FRAME_SETTINGS, 0, 0, "\0\4\0\0\0\0", 6);
	add_watch(&t, 1, "");
	http_say(c, t.at, t.n);
	http_wait(c);
	held = edge_held_packets(w->lb->lcore[0]);
	for (unsigned int i = 0; i < 3; i++) {
		struct walk_worker *v = kserve_worker(w);

		walk_pass(w, 5);
		lose(w, v);
	}
	http_wait(c);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), held);
	walk_expect_eq(count(c, NOT_SERVING) + count(c, SERVING), 0);
	kserve_worker(w);
	walk_pass(w, 5);
	t.n = 0;
	text_frame(&t, FRAME_WINDOW, 0, 1, "\0\0\x10\0", 4);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(count(c, NOT_SERVING), 1);
	walk_expect_eq(count(c, SERVING), 1);
	http_abort(c);
	walk_destroy(w);
}

WALK(a_client_has_some_watches)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;

	kserve_worker(w);
	text_preface(&t);
	for (uint32_t call = 0; call < 20; call++)
		add_watch(&t, 2 * call + 1, "echo");
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(count(c, SERVING), 16);
	/* Heads of further ones are shorter. */
	walk_expect_eq(text_count(c, RESOURCE_EXHAUSTED, 2), 1);
	walk_expect_eq(text_frames(c, FRAME_HEADERS, 0), 20);
	/* Those that end make room, and are no requests that failed. */
	t.n = 0;
	for (uint32_t call = 0; call < 5; call++)
		text_frame(&t, FRAME_RST, 0, 2 * call + 1, "\0\0\0\10", 4);
	http_say(c, t.at, t.n);
	http_wait(c);
	t.n = 0;
	for (uint32_t call = 20; call < 25; call++)
		add_watch(&t, 2 * call + 1, "echo");
	c->n = 0;
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(count(c, SERVING), 5);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_CANCELLED], 0);
	http_abort(c);
	walk_pass(w, 5);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	/* All of them came back. */
	for (uint16_t port = 3001; port < 3020; port++) {
		c = watch(w, port, "echo");
		walk_expect_eq(count(c, SERVING), 1);
		http_abort(c);
	}
	walk_destroy(w);
}

/* A second without requests ends a connection, but not one whose client watches. */
static const struct walk_params hasty = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
	.more = "tcp: {connections: 256, buffer_mb: 8, idle_ms: 1000}\n",
};

WALK(a_client_that_watches_is_not_idle)
{
	struct walk *w = walk_create(&hasty);
	struct walk_worker *v = kserve_worker(w);
	struct http_client *c = watch(w, 3000, "echo"), *idle = http_dial(w, 3001);
	static struct text t;

	text_preface(&t);
	http_say(idle, t.at, t.n);
	http_wait(idle);
	walk_pass(w, 5000);
	http_take_all(c);
	/* One without a call is told to go, and its connection ends. */
	walk_expect_eq(text_frames(idle, FRAME_GOAWAY, 0), 1);
	walk_expect(!c->fin && !c->reset && text_frames(c, FRAME_GOAWAY, 0) == 0, "it was closed");
	lose(w, v);
	http_wait(c);
	walk_expect_eq(count(c, NOT_SERVING), 1);
	/* When it watches no more it is idle, as any other. */
	t.n = 0;
	text_frame(&t, FRAME_RST, 0, 1, "\0\0\0\10", 4);
	http_say(c, t.at, t.n);
	walk_pass(w, 5000);
	http_take_all(c);
	walk_expect_eq(text_frames(c, FRAME_GOAWAY, 0), 1);
	http_abort(c);
	http_abort(idle);
	walk_destroy(w);
}

/* Without a word, as a machine that lost its power: keepalives find it, and its watches come back. */
WALK(a_client_that_watches_and_is_gone)
{
	struct walk *w = walk_create(&hasty);
	struct http_client *c = watch(w, 3000, "echo");
	uint32_t connections = edge_left(w->lb->lcore[0], EDGE_ALL_SERVICES).connections;

	walk_expect_eq(connections, 1);
	/* A minute of silence, then three probes. */
	for (unsigned int s = 0; s < 80; s++)
		walk_pass(w, 1000);
	walk_expect_eq(edge_left(w->lb->lcore[0], EDGE_ALL_SERVICES).connections, 1);
	for (unsigned int s = 0; s < 20; s++)
		walk_pass(w, 1000);
	walk_expect_eq(edge_left(w->lb->lcore[0], EDGE_ALL_SERVICES).connections, 0);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	http_forget(c);
	walk_destroy(w);
}

/* Beside calls that are answered; at the end all are told, and the connection closes. */
WALK(watches_end_when_the_load_balancer_stops)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = watch(w, 3000, "echo"), *finished;
	static struct text t;

	kserve_worker(w);
	walk_pass(w, 5);
	text_call(&t, 3);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(text_frames(c, FRAME_DATA, 3), 1);
	walk_expect_eq(count(c, SERVING), 1);
	walk_expect_eq(count(c, NOT_SERVING), 1);
	/* A client that has closed its side is not waited for. */
	finished = watch(w, 3001, "echo");
	walk_expect_eq(count(finished, SERVING), 1);
	http_finish(finished);
	http_wait(finished);
	walk_expect(finished->fin, "its connection is not closed");
	http_abort(finished);
	edge_close_all(w->lb->lcore[0]);
	http_wait(c);
	walk_expect_eq(count(c, NOT_SERVING), 2);
	walk_expect_eq(text_count(c, UNAVAILABLE, 3), 1);
	walk_expect(c->fin, "the connection is not closed");
	http_abort(c);
	walk_destroy(w);
}

/* --- messages of a call -------------------------------------------------------------------------
 */

/* While the worker has the first one: nobody waits for its answer. */
WALK(a_call_with_two_messages)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = kserve_worker(w);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;

	v->answers = false;
	text_preface(&t);
	text_call(&t, 1);
	t.at[t.n - 9 - 29 + 4] = 0; /* END_STREAM of the last frame */
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_need(v->n_requests == 1, "%u requests", v->n_requests);
	t.n = 0;
	text_frame(&t, FRAME_DATA, FRAME_END_STREAM, 1, "\0\0\0\0\0", 5);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(text_count(c, UNIMPLEMENTED, 3), 1);
	walk_expect(v->request[0].cancelled, "the worker is not told");
	walk_answer(v, 0,
		    &(struct walk_reply){.status = RING_CANCELLED, .bytes = "", .n_bytes = 0});
	http_wait(c);
	walk_expect_eq(text_frames(c, FRAME_DATA, 1), 0);
	/* The connection goes on. */
	v->answers = true;
	t.n = 0;
	text_call(&t, 3);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(text_frames(c, FRAME_DATA, 3), 1);
	http_abort(c);
	walk_pass(w, 5);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

WALK(a_call_without_a_message)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;

	kserve_worker(w);
	text_preface(&t);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS | FRAME_END_STREAM, 1, GRPC_HEAD,
		   sizeof(GRPC_HEAD) - 1);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect_eq(text_count(c, UNIMPLEMENTED, 3), 1);
	http_abort(c);
	walk_destroy(w);
}

/* Media types have no case. */
WALK(a_content_type_in_capitals)
{
	static const char *const types[] = {"Application/gRPC", "APPLICATION/GRPC"};
	struct walk *w = walk_create(&params);

	kserve_worker(w);
	for (uint32_t i = 0; i < RTE_DIM(types); i++) {
		struct http_client *c = http_dial(w, 3000 + i);
		static struct text t;
		char *at;

		text_preface(&t);
		text_call(&t, 1);
		at = memmem(t.at, t.n, "application/grpc", 16);
		memcpy(at, types[i], 16);
		http_say(c, t.at, t.n);
		http_wait(c);
		walk_expect_eq(text_frames(c, FRAME_DATA, 1), 1);
		http_abort(c);
	}
	walk_destroy(w);
}
