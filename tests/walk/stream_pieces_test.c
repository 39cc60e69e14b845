/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies in pieces by framing kserve: events, one object, messages; what happens in between. */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "grpc_text.h"
#include "http_client.h"
#include "worker.h"

static const struct walk_params params = {
	.services = "  - {name: text, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
	.more = "tcp: {connections: 256, buffer_mb: 8, stream_heartbeat_ms: 100}\n",
};

static struct model_description described = {
	.version = "1",
	.n_inputs = 1,
	.n_outputs = 1,
	.input = {{.name = "text", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {1}}},
	.output = {{.name = "said", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {1}}},
};

static struct walk_worker *text_worker(struct walk *w)
{
	static const struct walk_worker_params roomy = {
		.max_request = 65536, .max_reply = 65536, .room = 262144, .max_chunks = 1024};
	struct lb_registration r;
	struct walk_worker *v;

	walk_worker_registration(w, &roomy, &r);
	r.worker.min_request = 4;
	r.worker.description = &described;
	v = walk_worker_register_as(w, &r);
	walk_need(v != NULL, "%s", w->error);
	walk_need(walk_worker_start(v), "not active");
	v->answers = false;
	return v;
}

/* The worker's oldest request gets a piece. */
static void say(struct walk_worker *v, const char *text, bool more)
{
	uint32_t n = strlen(text);
	uint8_t bytes[256];

	memcpy(bytes, &n, 4);
	memcpy(bytes + 4, text, n);
	walk_answer(v, 0, &(struct walk_reply){.bytes = bytes, .n_bytes = 4 + n, .more = more});
}

#define ASK(endpoint, body)                                                                        \
	"POST /v2/models/echo/" endpoint " HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n%s"

/* Sends a request, cut at <cut>, which the worker gets. */
static struct http_client *ask_cut(struct walk *w, struct walk_worker *v, uint16_t port,
				   const char *format, const char *body, uint32_t cut)
{
	struct http_client *c = http_dial(w, port);
	char text[1024];
	uint32_t n = sprintf(text, format, strlen(body), body);

	cut = RTE_MIN(cut, n);
	http_say(c, text, cut);
	http_say(c, text + cut, n - cut);
	http_wait(c);
	walk_need(v->n_requests >= 1, "the worker has no request: %s", c->got);
	return c;
}

static struct http_client *ask(struct walk *w, struct walk_worker *v, uint16_t port,
			       const char *format, const char *body)
{
	return ask_cut(w, v, port, format, body, 0);
}

static void expect_end(const struct http_client *c, const char *end)
{
	uint32_t n = strlen(end);

	walk_expect(c->n >= n && strcmp(c->got + c->n - n, end) == 0, "not at its end %s: %s", end,
		    c->got);
}

#define EVENT(size, text)                                                                          \
	size "\r\ndata: {\"model_name\":\"echo\",\"model_version\":\"1\",\"text_output\":\"" text  \
	     "\"}\n\n\r\n"
#define EVENTS ASK("generate_stream", "")
#define TEXT   ASK("generate", "")
#define LAST   "0\r\n\r\n"

WALK(events_leave_as_pieces_come)
{
	static const char live[] = "GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n";
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);
	struct http_client *c = ask(w, v, 3000, EVENTS, "{\"text_input\":\"ab\"}");

	walk_expect_eq(c->n, 0);
	walk_expect_eq(v->request[0].length, 6);
	walk_expect(memcmp(v->request[0].bytes, "\2\0\0\0ab", 6) == 0, "another text");
	say(v, "o\"ne", true);
	http_wait(c);
	walk_expect(strstr(c->got, "HTTP/1.1 200 OK\r\n") == c->got, "%s", c->got);
	walk_expect(strstr(c->got, "Content-Type: text/event-stream\r\n") != NULL, "%s", c->got);
	expect_end(c, "\r\n\r\n" EVENT("47", "o\\\"ne"));
	/* A character that is cut between two pieces is whole in the second one. */
	say(v, "\xe4\xb8", true);
	http_wait(c);
	expect_end(c, EVENT("42", ""));
	say(v, "\xad!", true);
	http_wait(c);
	expect_end(c, EVENT("46", "\xe4\xb8\xad!"));
	/* An end without bytes has no event. */
	walk_answer(v, 0, &(struct walk_reply){.bytes = "", .n_bytes = 0});
	http_wait(c);
	expect_end(c, EVENT("46", "\xe4\xb8\xad!") LAST);
	walk_expect_eq(walk_service_stats(w, 0).replies, 1);
	/* The connection is kept. */
	http_say(c, live, sizeof(live) - 1);
	http_wait(c);
	expect_end(c, "{\"live\":true}");
	http_hang_up(c);
	walk_destroy(w);
}

WALK(an_object_has_all_pieces)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);
	struct http_client *c = ask(w, v, 3000, TEXT, "{\"id\":\"7\",\"text_input\":\"\"}");

	say(v, "one", true);
	say(v, " tw\xc3", true);
	http_wait(c);
	walk_expect_eq(c->n, 0);
	say(v, "\xb6", false);
	http_wait(c);
	walk_expect(strstr(c->got, "Content-Length: 75\r\n") != NULL, "%s", c->got);
	expect_end(c, "\r\n\r\n{\"id\":\"7\",\"model_name\":\"echo\",\"model_version\":\"1\","
		      "\"text_output\":\"one tw\xc3\xb6\"}");
	http_hang_up(c);
	/* The worker fails in between: there is no part of an answer. */
	c = ask(w, v, 3001, TEXT, "{\"text_input\":\"\"}");
	say(v, "one", true);
	http_wait(c);
	walk_answer(v, 0, &(struct walk_reply){.status = RING_ERROR, .bytes = "", .n_bytes = 0});
	http_wait(c);
	walk_expect(strstr(c->got, "HTTP/1.1 500 ") == c->got, "%s", c->got);
	http_hang_up(c);
	walk_destroy(w);
}

/* While another request keeps the connection busy. */
WALK(what_was_sent_is_not_held)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);
	struct http_client *c = ask(w, v, 3000, TEXT, "{\"text_input\":\"\"}");
	char text[256];

	http_say(c, text, sprintf(text, TEXT, (size_t)17, "{\"text_input\":\"\"}"));
	http_wait(c);
	walk_need(v->n_requests == 2);
	for (unsigned int i = 0; i < 3; i++) {
		say(v, "one", i < 2);
		http_wait(c);
	}
	expect_end(c, "\"text_output\":\"oneoneone\"}");
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	/* The worker fails when text waits for the last piece. */
	say(v, "one", true);
	http_wait(c);
	http_say(c, text, sprintf(text, TEXT, (size_t)17, "{\"text_input\":\"\"}"));
	walk_answer(v, 0, &(struct walk_reply){.status = RING_ERROR, .bytes = "", .n_bytes = 0});
	http_wait(c);
	expect_end(c, "reply does not fit its outputs\"}");
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	say(v, "one", false);
	http_wait(c);
	expect_end(c, "\"text_output\":\"one\"}");
	http_hang_up(c);
	walk_destroy(w);
}

#define STREAM_HEAD                                                                                \
	GRPC_FIELD("\7:method", "\4", "POST")                                                      \
	GRPC_FIELD("\7:scheme", "\4", "http")                                                      \
	GRPC_FIELD("\12:authority", "\1", "h")                                                     \
	GRPC_FIELD("\5:path", "\x30", "/inference.GRPCInferenceService/ModelStreamInfer")          \
	GRPC_FIELD("\xc"                                                                           \
		   "content-type",                                                                 \
		   "\x10", "application/grpc")
#define STREAM_MESSAGE "\0\0\0\0\x20\x0a\4echo\x2a\x10\x0a\4text\x12\5BYTES\x1a\1\1\x3a\6\2\0\0\0ab"

/* The same of messages: while another one of the call has no answer. */
WALK(what_was_sent_of_messages_is_not_held)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);
	struct http_client *c = http_dial(w, 3000);
	uint32_t session = 16; /* packets, as lb/edge/README.md has it */
	static struct text t;

	text_preface(&t);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, STREAM_HEAD, sizeof(STREAM_HEAD) - 1);
	for (unsigned int i = 0; i < 3; i++)
		text_frame(&t, FRAME_DATA, 0, 1, STREAM_MESSAGE, sizeof(STREAM_MESSAGE) - 1);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_need(v->n_requests == 3, "%u requests", v->n_requests);
	for (unsigned int i = 0; i < 3; i++) {
		say(v, "one", i < 2);
		http_wait(c);
		walk_expect_eq(text_frames(c, FRAME_DATA, 1), i + 1);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), session);
	}
	/* The worker fails after a piece. */
	say(v, "one", true);
	walk_answer(v, 0, &(struct walk_reply){.status = RING_ERROR, .bytes = "", .n_bytes = 0});
	http_wait(c);
	walk_expect_eq(text_frames(c, FRAME_DATA, 1), 5);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), session);
	/* The client gives the call up. */
	t.n = 0;
	text_frame(&t, FRAME_RST, 0, 1, "\0\0\0\10", 4);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_expect(v->request[0].cancelled, "the worker is not told");
	say(v, "two", true);
	http_wait(c);
	walk_expect_eq(text_frames(c, FRAME_DATA, 1), 5);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), session);
	http_abort(c);
	walk_destroy(w);
}

/* A message of no model: there is no memory to say so, nor to reset the connection. */
WALK(messages_that_are_refused_without_memory_for_an_answer)
{
	static const char other[] =
		"\0\0\0\0\x20\x0a\4none\x2a\x10\x0a\4text\x12\5BYTES\x1a\1\1\x3a\6\2\0\0\0ab";
	struct walk *w = walk_create(&params);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;

	text_worker(w);
	text_preface(&t);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, STREAM_HEAD, sizeof(STREAM_HEAD) - 1);
	http_say(c, t.at, t.n);
	http_wait(c);
	t.n = 0;
	text_frame(&t, FRAME_DATA, 0, 1, other, sizeof(other) - 1);
	http_put(c, t.at, t.n);
	walk_take_memory(w);
	walk_turns(w, 3);
	walk_give_memory(w);
	walk_settle(w);
	walk_expect(conntrack_count(w->lb->lcore[0]->ct) == 0, "the connection goes on");
	http_forget(c);
	walk_destroy(w);
}

/* Requests that are cut anywhere, and in chunks. */
WALK(texts_that_are_cut_anywhere)
{
	static const char body[] =
		"{\"stop\":[\"text_input\"],\"parameters\":{\"priority\":1,\"text_input\":2},"
		"\"text_input\":\"a\\u00e9\\ud83d\\ude00\\n\xe4\xb8\xad\"}";
	static const char want[] = "\xb\0\0\0a\xc3\xa9\xf0\x9f\x98\x80\n\xe4\xb8\xad";
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);

	for (uint32_t cut = 0; cut < 220; cut++) {
		struct http_client *c;

		walk_context("cut at %u", cut);
		c = ask_cut(w, v, 3000 + cut, TEXT, body, cut);
		walk_expect_eq(v->request[0].length, sizeof(want) - 1);
		walk_expect(memcmp(v->request[0].bytes, want, sizeof(want) - 1) == 0,
			    "another text");
		say(v, "yes", false);
		http_wait(c);
		expect_end(c, "\"text_output\":\"yes\"}");
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* Longer than what is kept: the length comes last, and the place is as large as it may have to be.
 */
WALK(a_long_text_has_a_place)
{
	static const uint32_t sizes[] = {4000, 4091, 4092, 4093, 5000, 20000, 65532};
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);
	static char text[80000];

	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		uint32_t size = sizes[i], n;
		struct http_client *c = http_dial(w, 3000 + i);

		walk_context("%u bytes", size);
		n = sprintf(text,
			    "POST /v2/models/echo/generate HTTP/1.1\r\nHost: h\r\nContent-Length: "
			    "%u\r\n\r\n{\"text_input\":\"",
			    size + 17);
		memset(text + n, 'x', size);
		n += size;
		n += sprintf(text + n, "\"}");
		http_say(c, text, n);
		http_wait(c);
		walk_need(v->n_requests == 1, "%s", c->got);
		walk_expect_eq(v->request[0].length, size + 4);
		walk_expect(memcmp(v->request[0].bytes, &size, 4) == 0, "another length");
		for (uint32_t k = 0; k < size; k++)
			walk_need(v->request[0].bytes[4 + k] == 'x', "byte %u", k);
		say(v, "yes", false);
		http_wait(c);
		expect_end(c, "\"text_output\":\"yes\"}");
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

WALK(silence_is_filled)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);
	struct http_client *c = ask(w, v, 3000, EVENTS, "{\"text_input\":\"\"}");

	for (unsigned int i = 0; i < 100; i++)
		walk_pass(w, 1);
	http_wait(c);
	expect_end(c, "\r\n\r\n3\r\n:\n\n\r\n");
	say(v, "one", true);
	http_wait(c);
	expect_end(c, "3\r\n:\n\n\r\n" EVENT("45", "one"));
	/* Then a status says nothing any more. */
	walk_answer(v, 0, &(struct walk_reply){.status = RING_ERROR, .bytes = "", .n_bytes = 0});
	http_wait(c);
	expect_end(c, "\n\n\r\n" LAST);
	walk_expect(strstr(c->got, "data: {\"error\":\"the model failed") != NULL, "%s", c->got);
	http_hang_up(c);
	walk_destroy(w);
}

/* A long text has its place before it has come. What is wrong at its end still has a status. */
WALK(silence_of_a_client_is_not_filled)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);
	struct http_client *c = http_dial(w, 3000);
	static char text[8000];
	uint32_t n = sprintf(text, "POST /v2/models/echo/generate_stream HTTP/1.1\r\nHost: h\r\n"
				   "Content-Length: 20017\r\n\r\n{\"text_input\":\"");

	memset(text + n, 'x', 6000);
	http_say(c, text, n + 6000);
	walk_pass(w, 300);
	http_take_all(c);
	walk_expect_eq(c->n, 0);
	http_say(c, "\x9f\"}", 3);
	http_wait(c);
	walk_expect(strncmp(c->got, "HTTP/1.1 400 ", 13) == 0, "%s", c->got);
	walk_expect_eq(v->n_requests, 0);
	http_hang_up(c);
	walk_destroy(w);
}

WALK(time_that_is_over_in_the_middle)
{
	static const char body[] = "{\"text_input\":\"\",\"parameters\":{\"timeout\":50000}}";
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);
	struct http_client *c = ask(w, v, 3000, EVENTS, body);

	say(v, "one", true);
	http_wait(c);
	for (unsigned int i = 0; i < 60; i++)
		walk_pass(w, 1);
	http_wait(c);
	walk_expect(strstr(c->got,
			   "data: {\"error\":\"cannot be answered within the deadline\"}") != NULL,
		    "%s", c->got);
	expect_end(c, LAST);
	walk_expect(v->request[0].cancelled, "the worker is not told");
	walk_expect_drops(w, {LB_DROP_DEADLINE, 1});
	walk_expect_eq(w->lb->lcore[0]->service[0].stats.drops, 1);
	/* It ends the request, which is no news for the client. */
	walk_answer(v, 0,
		    &(struct walk_reply){.status = RING_CANCELLED, .bytes = "", .n_bytes = 0});
	http_wait(c);
	expect_end(c, LAST);
	walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	http_hang_up(c);
	walk_destroy(w);
}

/* Clients that go in the middle, before and after a piece, of both kinds. */
WALK(clients_that_leave_in_the_middle)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);

	for (unsigned int i = 0; i < 8; i++) {
		struct http_client *c =
			ask(w, v, 3000 + i, i % 2 ? TEXT : EVENTS, "{\"text_input\":\"\"}");

		walk_context("%u", i);
		if (i / 2 % 2)
			say(v, "one", true);
		if (i / 4 % 2)
			http_wait(c);
		http_abort(c);
		for (unsigned int k = 0; k < 20; k++)
			walk_pass(w, 1);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
		walk_need(v->n_requests == 1);
		walk_expect(v->request[0].cancelled, "the worker is not told");
		say(v, "two", true);
		walk_answer(
			v, 0,
			&(struct walk_reply){.status = RING_CANCELLED, .bytes = "", .n_bytes = 0});
		for (unsigned int k = 0; k < 20; k++)
			walk_pass(w, 1);
		walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* The second request's pieces wait for the end of the first one's. */
WALK(streams_keep_their_order)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = text_worker(w);
	struct http_client *c = ask(w, v, 3000, EVENTS, "{\"text_input\":\"1\"}");
	char text[256];

	http_say(c, text, sprintf(text, EVENTS, (size_t)18, "{\"text_input\":\"2\"}"));
	http_wait(c);
	walk_need(v->n_requests == 2);
	for (unsigned int i = 0; i < 2; i++) {
		walk_answer(
			v, 1,
			&(struct walk_reply){.bytes = "\3\0\0\0two", .n_bytes = 7, .more = i == 0});
		http_wait(c);
		walk_expect_eq(c->n, 0);
	}
	say(v, "one", true);
	say(v, "one", false);
	http_wait(c);
	expect_end(c, EVENT("45", "two") EVENT("45", "two") LAST);
	walk_expect(strstr(c->got, EVENT("45", "one") EVENT("45", "one") LAST) != NULL, "%s",
		    c->got);
	http_hang_up(c);
	walk_destroy(w);
}

/* A reader that takes nothing is reset when its share is full, and the worker is told. */
WALK(a_reader_that_does_not_read_a_stream)
{
	static const struct walk_params small = {
		.services = "  - {name: text, protocol: tcp, framing: kserve, "
			    "address: " PACKET_DESTINATION4
			    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
		.more = "tcp: {connections: 256, buffer_mb: 8, client_percent: 1, window: 64KiB}\n",
	};
	struct walk *w = walk_create(&small);
	struct walk_worker *v = text_worker(w);
	struct http_client *c = ask(w, v, 3000, EVENTS, "{\"text_input\":\"\"}");

	for (unsigned int i = 0; i < 300 && !v->request[0].cancelled; i++) {
		say(v, "a piece", true);
		for (unsigned int k = 0; k < 20; k++)
			walk_pass(w, 1);
	}
	walk_expect(v->request[0].cancelled, "the worker is not told");
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	http_take_all(c);
	walk_expect(c->reset, "it is not reset");
	http_abort(c);
	walk_destroy(w);
}
