/* SPDX-License-Identifier: BSD-3-Clause */
/* Services with framing kserve: HTTP requests, cut anywhere, and their answers. The worker echoes.
 */
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "edge/edge.h"
#include "tcp/connection.h"
#include "walk.h"
#include "worker.h"

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
	.more = "tcp: {connections: 256, buffer_mb: 8}\n",
};

static struct model_description described = {
	.version = "1",
	.n_inputs = 2,
	.n_outputs = 2,
	.input = {{.name = "a", .datatype = DATATYPE_FP32, .rank = 1, .shape = {2}},
		  {.name = "b", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
	.output = {{.name = "c", .datatype = DATATYPE_FP32, .rank = 1, .shape = {2}},
		   {.name = "d", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
};

static struct walk_worker *described_worker(struct walk *w)
{
	static const struct walk_worker_params roomy = {
		.max_request = 65536, .max_reply = 65536, .room = 262144};
	struct lb_registration r;
	struct walk_worker *v;

	walk_worker_registration(w, &roomy, &r);
	r.worker.min_request = 8;
	r.worker.description = &described;
	v = walk_worker_register_as(w, &r);
	walk_need(v != NULL, "%s", w->error);
	walk_need(walk_worker_start(v), "not active");
	return v;
}

/* --- a client ----------------------------------------------------------------------------------
 */

struct client_of_http {
	struct walk *w;
	uint16_t port;
	uint32_t seq, ack;
	bool fin, reset;
	uint32_t n;
	char got[262144]; /* with a NUL */
};

static struct client_of_http *client_by_port[UINT16_MAX + 1];

/* Every frame to the client that it is for. */
static void take_all(struct client_of_http *any)
{
	static struct walk_frame f;
	struct tcp_header h;

	while (walk_take(any->w, 0, &f)) {
		const uint8_t *tcp = f.bytes + 34;
		struct client_of_http *c = client_by_port[tcp[2] << 8 | tcp[3]];

		if (f.bytes[23] != IPPROTO_TCP || c == NULL)
			continue;
		walk_need(tcp_header_read(tcp, (f.bytes[16] << 8 | f.bytes[17]) - 20u, &h) == 0);
		c->reset |= (h.flags & TCP_BIT_RST) != 0;
		if (h.flags & TCP_BIT_SYN)
			c->ack = h.seq;
		if (h.seq != c->ack)
			continue;
		walk_need(c->n + h.length < sizeof(c->got), "too long an answer");
		memcpy(c->got + c->n, tcp + h.size, h.length);
		c->n += h.length;
		c->ack += tcp_header_span(&h);
		c->fin |= (h.flags & TCP_BIT_FIN) != 0;
		c->got[c->n] = '\0';
	}
}

static void transmit(struct client_of_http *c, uint8_t flags, const void *bytes, uint32_t n)
{
	struct tcp_header h = {.seq = c->seq,
			       .ack = flags & TCP_BIT_ACK ? c->ack : 0,
			       .flags = flags,
			       .window = 65535,
			       .length = n,
			       .scale = TCP_SCALE_NONE};
	uint8_t tcp[PACKET_MAX], frame[PACKET_MAX];
	uint32_t size = tcp_header_write(&h, htons(c->port), htons(8000), tcp);
	struct packet p = {.family = 4,
			   .tcp = true,
			   .source_port = c->port,
			   .bytes = tcp + 4,
			   .n_bytes = size - 4 + n};

	if (n > 0)
		memcpy(tcp + size, bytes, n);
	walk_send_frame(c->w, 0, 0, frame, packet_build(&p, frame));
	c->seq += tcp_header_span(&h);
	walk_turn(c->w);
	take_all(c);
}

static struct client_of_http *dial(struct walk *w, uint16_t port)
{
	struct client_of_http *c = calloc(1, sizeof(*c));

	*c = (struct client_of_http){.w = w, .port = port, .seq = port * 1000};
	client_by_port[port] = c;
	transmit(c, TCP_BIT_SYN, NULL, 0);
	transmit(c, TCP_BIT_ACK, NULL, 0);
	return c;
}

/* Sends and acknowledges until nothing more comes. */
static void wait_answers(struct client_of_http *c)
{
	uint32_t before;

	do {
		before = c->n;
		for (unsigned int i = 0; i < 20; i++)
			walk_pass(c->w, 1);
		take_all(c);
		transmit(c, TCP_BIT_ACK, NULL, 0);
	} while (c->n != before);
}

static void say(struct client_of_http *c, const char *bytes, uint32_t n)
{
	for (uint32_t at = 0; at < n; at += 1000) {
		uint32_t part = RTE_MIN(n - at, 1000u);

		transmit(c, TCP_BIT_ACK | TCP_BIT_PSH, bytes + at, part);
	}
}

static void hang_up(struct client_of_http *c)
{
	if (!c->reset)
		transmit(c, TCP_BIT_ACK | TCP_BIT_FIN, NULL, 0);
	for (unsigned int i = 0; i < 100 && !c->reset && !c->fin; i++) {
		walk_pass(c->w, 1);
		take_all(c);
	}
	if (!c->reset)
		transmit(c, TCP_BIT_ACK, NULL, 0);
	walk_expect_eq(edge_held_packets(c->w->lb->lcore[0]), 0);
	client_by_port[c->port] = NULL;
	free(c);
}

/* The clock is not the walk's. */
static void blank_dates(char *text, uint32_t n)
{
	static const char field[] = "\r\nDate: ";

	for (uint32_t i = 0; i + 36 < n; i++)
		if (memcmp(text + i, field, sizeof(field) - 1) == 0)
			memset(text + i + 8, '-', 29);
}

/* --- streams -----------------------------------------------------------------------------------
 */

#define POST "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"

struct text {
	uint32_t n;
	char at[16384];
};

static void add(struct text *t, const char *head, const char *json, bool length, const char *binary,
		uint32_t n_binary)
{
	t->n += sprintf(t->at + t->n, "%sContent-Length: %zu\r\n", head, strlen(json) + n_binary);
	if (length)
		t->n += sprintf(t->at + t->n, "Inference-Header-Content-Length: %zu\r\n",
				strlen(json));
	t->n += sprintf(t->at + t->n, "\r\n%s", json);
	memcpy(t->at + t->n, binary, n_binary);
	t->n += n_binary;
}

#define BOTH_JSON                                                                                  \
	"{\"id\":\"x\",\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\",\"data\":"  \
	"[1.5,-2]},{\"name\":\"b\",\"shape\":[3],\"datatype\":\"UINT8\",\"data\":[7,8,9]}]}"
#define B_FIRST                                                                                    \
	"{\"inputs\":[{\"data\":[1,2],\"name\":\"b\",\"shape\":[2],\"datatype\":\"UINT8\"},"       \
	"{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\"" \
	":8}}],\"outputs\":[{\"name\":\"d\"}]}"
#define BINARY                                                                                     \
	"{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\",\"parameters\":"         \
	"{\"binary_data_size\":8}},{\"name\":\"b\",\"shape\":[4],\"datatype\":\"UINT8\","          \
	"\"parameters\":{\"binary_data_size\":4}}],\"parameters\":{\"binary_data_output\":true}}"

static void add_all(struct text *t)
{
	t->n = 0;
	add(t, POST, BOTH_JSON, false, "", 0);
	add(t, POST "Expect: 100-continue\r\n", BINARY, true, "\0\0\x80\x3f\0\0\0\x40wxyz", 12);
	add(t, POST, B_FIRST, true, "\0\0\0\0\0\0\0\0", 8);
	add(t, POST, "{\"inputs\":7}", false, "", 0);
	add(t, "POST /v2/models/other/infer HTTP/1.1\r\nHost: h\r\n", BOTH_JSON, false, "", 0);
	t->n += sprintf(t->at + t->n,
			"HEAD /v2/models/echo HTTP/1.1\r\nHost: h\r\n\r\n"
			"GET /v2/health/ready HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
}

/* Sends <t> cut at <cut>, waits for the end, and returns what came, to be freed. */
static char *converse(struct walk *w, uint16_t port, const struct text *t, uint32_t cut)
{
	struct client_of_http *c = dial(w, port);
	char *got;

	say(c, t->at, cut);
	say(c, t->at + cut, t->n - cut);
	wait_answers(c);
	walk_expect(c->fin, "Connection: close, and it did not");
	blank_dates(c->got, c->n);
	got = memcpy(malloc(c->n + 1), c->got, c->n + 1);
	hang_up(c);
	return got;
}

static void expect_in_order(const char *text, const char *const parts[], unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const char *at = strstr(text, parts[i]);

		walk_expect(at != NULL, "no \"%s\" in: %s", parts[i], text);
		if (at == NULL)
			return;
		text = at + strlen(parts[i]);
	}
}

WALK(requests_that_are_cut_anywhere)
{
	static const char *const parts[] = {
		"HTTP/1.1 200 OK\r\n",
		"\"id\":\"x\",\"outputs\":[{\"name\":\"c\",\"datatype\":\"FP32\",\"shape\":[2],"
		"\"data\":[1.5,-2.0]},{\"name\":\"d\",\"datatype\":\"UINT8\",\"shape\":[3],"
		"\"data\":[7,8,9]}]}",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n",
		"Inference-Header-Content-Length: ",
		"\"parameters\":{\"binary_data_size\":4}}]}",
	};
	static const char *const rest[] = {
		"{\"model_name\":\"echo\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"d\",",
		"\"datatype\":\"UINT8\",\"shape\":[2],\"data\":[1,2]}]}HTTP/1.1 400 Bad Request",
		"{\"error\":\"",
		"HTTP/1.1 404 Not Found\r\n",
		"HTTP/1.1 200 OK\r\n",
		"\r\n\r\nHTTP/1.1 200 OK\r\n",
		"Connection: close\r\n",
		"{\"ready\":true}",
	};
	struct walk *w = walk_create(&params);
	static struct text t;
	char *whole, *got, *binary;

	described_worker(w);
	add_all(&t);
	whole = converse(w, 3000, &t, 0);
	expect_in_order(whole, parts, 5);
	/* The bytes of tensors have zeros. */
	binary = strstr(whole, parts[4]) + strlen(parts[4]);
	walk_expect(memcmp(binary, "\0\0\x80\x3f\0\0\0\x40wxyz", 12) == 0, "other bytes");
	expect_in_order(binary + 12, rest, 8);
	for (uint32_t cut = 1; cut < t.n; cut++) {
		walk_context("cut at %u", cut);
		got = converse(w, 3000 + cut, &t, cut);
		walk_expect(strcmp(got, whole) == 0, "%s", got);
		free(got);
	}
	walk_context("%s", "");
	free(whole);
	walk_destroy(w);
}

WALK(a_request_byte_by_byte)
{
	struct walk *w = walk_create(&params);
	struct client_of_http *c;
	static struct text t;

	described_worker(w);
	add(&t, POST, BOTH_JSON, false, "", 0);
	c = dial(w, 3000);
	for (uint32_t i = 0; i < t.n; i++)
		say(c, t.at + i, 1);
	wait_answers(c);
	walk_expect(strstr(c->got, "\"data\":[7,8,9]}]}") != NULL, "%s", c->got);
	hang_up(c);
	walk_destroy(w);
}

/* 60,000 numbers: neither their text nor that of the answer is converted in one turn. */
WALK(much_text_takes_many_turns)
{
	struct walk *w = walk_create(&params);
	uint32_t n = 0, values = 60000;
	char *json = malloc(values * 4 + 300), head[200], end[40];
	struct client_of_http *c;
	const char *at;

	described_worker(w);
	n += sprintf(json,
		     "{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\","
		     "\"data\":[0,0]},{\"name\":\"b\",\"shape\":[%u],\"datatype\":\"UINT8\","
		     "\"data\":[",
		     values);
	for (uint32_t i = 0; i < values; i++)
		n += sprintf(json + n, "%s%u", i > 0 ? "," : "", i % 251);
	n += sprintf(json + n, "]}]}");
	snprintf(head, sizeof(head), POST "Content-Length: %u\r\n\r\n", n);
	c = dial(w, 3000);
	say(c, head, strlen(head));
	for (uint32_t sent = 0; sent < n; sent += 20000) {
		say(c, json + sent, RTE_MIN(n - sent, 20000u));
		wait_answers(c);
	}
	wait_answers(c);
	snprintf(end, sizeof(end), ",%u,%u]}]}", (values - 2) % 251, (values - 1) % 251);
	walk_expect(strncmp(c->got, "HTTP/1.1 200 OK\r\n", 17) == 0, "%.200s", c->got);
	at = strstr(c->got, "\"shape\":[60000],\"data\":[0,1,2,");
	walk_expect(at != NULL && strcmp(c->got + c->n - strlen(end), end) == 0, "%.300s", c->got);
	/* The text of the values comes back as it was sent. */
	walk_expect(at != NULL && memcmp(strstr(at, "[0,1"), strstr(json, "[0,1"), values * 3) == 0,
		    "other values");
	hang_up(c);
	free(json);
	walk_destroy(w);
}

WALK(a_reply_that_is_none_of_the_model)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = described_worker(w);
	struct client_of_http *c;
	static struct text t;

	add(&t, POST, BOTH_JSON, false, "", 0);
	v->answers = false;
	c = dial(w, 3000);
	for (unsigned int i = 0; i < 2; i++) {
		c->n = 0;
		say(c, t.at, t.n);
		walk_pass(w, 5);
		walk_need(v->n_requests == 1, "%u requests", v->n_requests);
		/* Too short; in two chunks. */
		walk_answer(v, 0,
			    &(struct walk_reply){.bytes = "abcd", .n_bytes = 4, .more = i == 1});
		wait_answers(c);
		walk_expect(strncmp(c->got, "HTTP/1.1 500 ", 13) == 0, "%s", c->got);
	}
	hang_up(c);
	walk_destroy(w);
}

WALK(a_head_that_does_not_end)
{
	struct walk *w = walk_create(&params);
	struct client_of_http *c = dial(w, 3000);

	say(c, POST, strlen(POST));
	walk_pass(w, 9000);
	take_all(c);
	walk_expect(!c->reset, "too soon");
	walk_pass(w, 1100);
	take_all(c);
	walk_expect(c->reset, "it was let");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 1);
	hang_up(c);
	walk_destroy(w);
}

/* Of more clients in the middle of a head than there are readers some wait, and go on when others
 * are done. */
WALK(more_heads_than_readers)
{
	static const char head[] = "GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n";
	struct walk *w = walk_create(&params);
	struct client_of_http *c[100];

	for (unsigned int i = 0; i < 100; i++) {
		c[i] = dial(w, 3000 + i);
		say(c[i], head, 20);
	}
	/* The last one cannot be read; the first one can. */
	say(c[99], head + 20, sizeof(head) - 21);
	wait_answers(c[99]);
	walk_expect_eq(c[99]->n, 0);
	for (unsigned int i = 0; i < 99; i++)
		say(c[i], head + 20, sizeof(head) - 21);
	for (unsigned int i = 0; i < 100; i++) {
		wait_answers(c[i]);
		walk_expect(strstr(c[i]->got, "\r\n\r\n{\"live\":true}") != NULL, "%u: %s", i,
			    c[i]->got);
	}
	for (unsigned int i = 0; i < 99; i++) {
		transmit(c[i], TCP_BIT_ACK | TCP_BIT_RST, NULL, 0);
		client_by_port[c[i]->port] = NULL;
		free(c[i]);
	}
	hang_up(c[99]);
	walk_destroy(w);
}

/* A head that HTTP forbids ends the connection behind its 400; a request that came before is answered. */
WALK(a_head_that_is_none)
{
	static const char bad[] = "GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n"
				  "POST /v2 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
				  "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v2 HTTP/1.1\r\n";
	static const char *const parts[] = {"HTTP/1.1 200 OK\r\n", "HTTP/1.1 400 Bad Request\r\n",
					    "Connection: close\r\n", "{\"error\":"};
	struct walk *w = walk_create(&params);
	struct client_of_http *c = dial(w, 3000);

	say(c, bad, sizeof(bad) - 1);
	wait_answers(c);
	expect_in_order(c->got, parts, 4);
	walk_expect(c->fin, "it was kept");
	walk_expect(strstr(strstr(c->got, "400"), "HTTP/1.1") == NULL, "%s", c->got);
	hang_up(c);
	walk_destroy(w);
}

/* --- gRPC --------------------------------------------------------------------------------------
 */

#define FIELD(name, length, value) "\0" name length value
#define GRPC_PATH                  "/inference.GRPCInferenceService/ModelInfer"
#define GRPC_HEAD                                                                                  \
	FIELD("\7:method", "\4", "POST")                                                           \
	FIELD("\7:scheme", "\4", "http")                                                           \
	FIELD("\12:authority", "\1", "h")                                                          \
	FIELD("\5:path", "\x2a", GRPC_PATH)                                                        \
	FIELD("\xc"                                                                                \
	      "content-type",                                                                      \
	      "\x10", "application/grpc")
#define GRPC_INPUTS                                                                                \
	"\x0a\4echo\x1a\1x\x2a\xc\xa\1a\x12\4FP32\x1a\1\2"                                         \
	"\x2a\xd\xa\1b\x12\5UINT8\x1a\1\4\x3a\x8\0\0\x80\x3f\0\0\0\x40\x3a\4wxyz"

static void add_frame(struct text *t, uint8_t type, uint8_t flags, uint8_t stream,
		      const char *bytes, uint8_t n)
{
	const uint8_t head[9] = {0, 0, n, type, flags, 0, 0, 0, stream};

	memcpy(t->at + t->n, head, sizeof(head));
	memcpy(t->at + t->n + sizeof(head), bytes, n);
	t->n += sizeof(head) + n;
}

/* A call on <stream>; its message in two frames. */
static void add_call(struct text *t, uint8_t stream)
{
	static const char message[] = "\0\0\0\0\x36" GRPC_INPUTS;

	add_frame(t, 1, 4, stream, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	add_frame(t, 0, 0, stream, message, 30);
	add_frame(t, 0, 1, stream, message + 30, sizeof(message) - 1 - 30);
}

static unsigned int count(const struct client_of_http *c, const char *bytes, uint32_t n)
{
	unsigned int times = 0;

	for (uint32_t i = 0; i + n <= c->n; i++)
		times += memcmp(c->got + i, bytes, n) == 0;
	return times;
}

/* Two calls of gRPC over a connection, cut at every byte. */
WALK(calls_that_are_cut_anywhere)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	struct walk *w = walk_create(&params);
	static struct text t;

	described_worker(w);
	memcpy(t.at, preface, sizeof(preface) - 1);
	t.n = sizeof(preface) - 1;
	add_frame(&t, 4, 0, 0, "", 0);
	add_call(&t, 1);
	add_call(&t, 3);
	for (uint32_t cut = 0; cut < t.n; cut++) {
		struct client_of_http *c = dial(w, 3000 + cut);

		walk_context("cut at %u", cut);
		say(c, t.at, cut);
		say(c, t.at + cut, t.n - cut);
		wait_answers(c);
		walk_expect_eq(count(c, "\x32\x8\0\0\x80\x3f\0\0\0\x40\x32\4wxyz", 16), 2);
		walk_expect(!c->fin && !c->reset, "the connection ended");
		hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* A client that goes while its calls are read or answered leaves nothing behind. */
WALK(calls_of_a_client_that_goes)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	struct walk *w = walk_create(&params);
	static struct text t;

	described_worker(w);
	memcpy(t.at, preface, sizeof(preface) - 1);
	t.n = sizeof(preface) - 1;
	add_frame(&t, 4, 0, 0, "", 0);
	add_call(&t, 1);
	for (uint32_t cut = 1; cut <= t.n; cut++) {
		struct client_of_http *c = dial(w, 3000 + cut);

		walk_context("cut at %u", cut);
		say(c, t.at, cut);
		if (cut % 2 == 0) {
			hang_up(c);
			continue;
		}
		transmit(c, TCP_BIT_ACK | TCP_BIT_RST, NULL, 0);
		for (unsigned int i = 0; i < 20; i++)
			walk_pass(w, 1);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
		client_by_port[c->port] = NULL;
		free(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}
