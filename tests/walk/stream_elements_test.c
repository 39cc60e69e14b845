/* SPDX-License-Identifier: BSD-3-Clause */
/* Binary tensors of BYTES, whose elements' lengths are looked at, however they are cut; and what
 * clients gain by lengths that are wrong. The worker echoes. */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "grpc_text.h"

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
	.more = "tcp: {connections: 256, buffer_mb: 8}\n",
};

/* Numbers between two inputs of BYTES. The reply is the request's bytes. */
static struct model_description three = {
	.version = "1",
	.n_inputs = 3,
	.n_outputs = 1,
	.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {2}},
		  {.name = "b", .datatype = DATATYPE_UINT16, .rank = 1, .shape = {2}},
		  {.name = "c", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {-1}}},
	.output = {{.name = "d", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
};

static void three_worker(struct walk *w)
{
	static const struct walk_worker_params roomy = {
		.max_request = 65536, .max_reply = 65536, .room = 262144};

	kserve_worker_of(w, &roomy, 12, &three);
}

/* --- cut anywhere -------------------------------------------------------------------------------
 */

#define B       "\1\0\2\0"
#define B_BYTES 4

/* <fault>: the input's name, and what is said of it; or NULL. */
static const struct {
	const char *a, *c, *name, *fault;
	uint32_t a_bytes, c_bytes, c_elements;
} rows[] = {
	{"\2\0\0\0xy\0\0\0\0", "\1\0\0\0z\3\0\0\0uvw", NULL, NULL, 10, 12, 2},
	{"\2\0\0\0xy\1\0\0\0", "\1\0\0\0z\3\0\0\0uvw", "a", "an element ends behind the tensor", 10,
	 12, 2},
	{"\2\0\0\0xy\0\0\0\0", "\1\0\0\0z\3\0\0\0uvw", "c", "bytes follow its last element", 10, 12,
	 1},
	{"\2\0\0\0xy\0\0\0\0", "\1\0\0\0z\3\0\0\0uvw", "c", "an element ends behind the tensor", 10,
	 12, 3},
	{"\2\0\0\0xy\0\0\0\0", "\1\0\0\0z\xfb\xff\xff\xffuvw", "c",
	 "an element ends behind the tensor", 10, 12, 2},
	{"\2\0\0\0xy\0\0\0\0", "\1\0\0\0z\xfa\xff\xff\xff", "c",
	 "an element ends behind the tensor", 10, 9, 2},
	{"\2\0\0\0xy\0\0\0\0", "\0\0\0", "c", "bytes follow its last element", 10, 3, 0},
};

/* The bytes of the request as its worker gets them. */
static uint32_t write_inputs(unsigned int i, char *at)
{
	memcpy(at, rows[i].a, rows[i].a_bytes);
	memcpy(at + rows[i].a_bytes, B, B_BYTES);
	memcpy(at + rows[i].a_bytes + B_BYTES, rows[i].c, rows[i].c_bytes);
	return rows[i].a_bytes + B_BYTES + rows[i].c_bytes;
}

/* Each byte of the tensors is a chunk; <chunked> false: they are the body's end. Returns where the
 * tensors begin. */
static uint32_t write_request(struct text *t, unsigned int i, bool chunked)
{
	char json[512], inputs[64];
	uint32_t n = write_inputs(i, inputs), from;
	int length =
		sprintf(json,
			"{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"BYTES\","
			"\"parameters\":{\"binary_data_size\":%u}},{\"name\":\"b\",\"shape\":[2],"
			"\"datatype\":\"UINT16\",\"parameters\":{\"binary_data_size\":%u}},{"
			"\"name\":\"c\",\"shape\":[%u],\"datatype\":\"BYTES\",\"parameters\":{"
			"\"binary_data_size\":%u}}],\"parameters\":{\"binary_data_output\":true}"
			"}",
			rows[i].a_bytes, B_BYTES, rows[i].c_elements, rows[i].c_bytes);

	t->n = sprintf(t->at,
		       "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
		       "Inference-Header-Content-Length: %d\r\n",
		       length);
	if (!chunked) {
		t->n += sprintf(t->at + t->n, "Content-Length: %u\r\n\r\n%s", length + n, json);
		memcpy(t->at + t->n, inputs, n);
		t->n += n;
		return t->n - n;
	}
	t->n += sprintf(t->at + t->n, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", length,
			json);
	from = t->n;
	for (uint32_t k = 0; k < n; k++) {
		memcpy(t->at + t->n, "1\r\n", 3);
		t->at[t->n + 3] = inputs[k];
		memcpy(t->at + t->n + 4, "\r\n", 2);
		t->n += 6;
	}
	t->n += sprintf(t->at + t->n, "0\r\n\r\n");
	return from;
}

static uint32_t of_length(struct text *t, unsigned int i)
{
	return write_request(t, i, false);
}

static uint32_t of_chunks(struct text *t, unsigned int i)
{
	return write_request(t, i, true);
}

/* A field with a length, of a message. */
static uint32_t put_field(char *at, uint8_t field, const void *bytes, uint32_t n)
{
	at[0] = (char)(field << 3 | 2);
	at[1] = (char)n;
	memcpy(at + 2, bytes, n);
	return 2 + n;
}

static uint32_t put_input(char *at, const char *name, const char *type, uint8_t elements)
{
	char input[64];
	uint32_t n = put_field(input, 1, name, strlen(name));

	n += put_field(input + n, 2, type, strlen(type));
	n += put_field(input + n, 3, &elements, 1);
	return put_field(at, 5, input, n);
}

static uint32_t put_raw(char *at, unsigned int i)
{
	uint32_t n = put_field(at, 7, rows[i].a, rows[i].a_bytes);

	n += put_field(at + n, 7, B, B_BYTES);
	return n + put_field(at + n, 7, rows[i].c, rows[i].c_bytes);
}

/* <late>: the tensors come before what describes them. <frame>: bytes of a frame. */
static uint32_t write_call(struct text *t, unsigned int i, bool late, uint32_t frame)
{
	char message[256] = {0};
	uint32_t n = 5, from;

	n += put_field(message + n, 1, "echo", 4);
	if (late)
		n += put_raw(message + n, i);
	n += put_input(message + n, "a", "BYTES", 2);
	n += put_input(message + n, "b", "UINT16", 2);
	n += put_input(message + n, "c", "BYTES", rows[i].c_elements);
	if (!late)
		n += put_raw(message + n, i);
	message[4] = (char)(n - 5);
	text_preface(t);
	text_frame(t, FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	from = t->n;
	for (uint32_t at = 0; at < n; at += frame)
		text_frame(t, FRAME_DATA, at + frame >= n ? FRAME_END_STREAM : 0, 1, message + at,
			   RTE_MIN(frame, n - at));
	return from;
}

static uint32_t of_a_frame(struct text *t, unsigned int i)
{
	return write_call(t, i, false, 256);
}

static uint32_t of_frames(struct text *t, unsigned int i)
{
	return write_call(t, i, false, 1);
}

static uint32_t of_raw_first(struct text *t, unsigned int i)
{
	return write_call(t, i, true, 3);
}

/* <before>: what was counted before it came. */
static void expect_row(struct http_client *c, unsigned int i, const struct lb_lcore_stats *before,
		       bool is_call)
{
	struct lb_lcore_stats stats = walk_stats(c->w);
	char inputs[64], fault[96];
	uint32_t n = write_inputs(i, inputs);

	walk_expect_eq(stats.requests - before->requests, rows[i].fault == NULL);
	walk_expect_eq(stats.drop[LB_DROP_FRAMING] - before->drop[LB_DROP_FRAMING],
		       rows[i].fault != NULL);
	walk_expect_eq(text_count(c, inputs, n), rows[i].fault == NULL);
	if (is_call || rows[i].fault == NULL)
		return;
	sprintf(fault, "('%s'): %s", rows[i].name, rows[i].fault);
	walk_expect(strstr(c->got, "HTTP/1.1 400 ") == c->got && strstr(c->got, fault) != NULL,
		    "%s", c->got);
}

WALK(elements_that_are_cut_anywhere)
{
	static const struct {
		const char *name;
		uint32_t (*write)(struct text *t, unsigned int row);
		bool is_call;
	} ways[] = {{"a length", of_length, false},
		    {"chunks of a byte", of_chunks, false},
		    {"a frame", of_a_frame, true},
		    {"frames of a byte", of_frames, true},
		    {"raw contents first", of_raw_first, true}};
	struct walk *w = walk_create(&params);
	static struct text t;

	three_worker(w);
	for (unsigned int i = 0; i < RTE_DIM(ways) * RTE_DIM(rows); i++) {
		unsigned int row = i / RTE_DIM(ways), way = i % RTE_DIM(ways);
		uint32_t from = ways[way].write(&t, row), step = t.n - from > 100 ? 5 : 1;

		/* The chunks' and frames' own bytes are cut by other tests: here one of each. */
		for (uint32_t cut = from; cut < t.n; cut += step) {
			struct http_client *c = http_dial(w, 3000 + cut);
			struct lb_lcore_stats before = walk_stats(w);

			walk_context("row %u, %s, cut at %u", row, ways[way].name, cut);
			http_say(c, t.at, cut);
			http_say(c, t.at + cut, t.n - cut);
			http_wait(c);
			expect_row(c, row, &before, ways[way].is_call);
			http_hang_up(c);
		}
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* --- large ones ---------------------------------------------------------------------------------
 */

#define LARGE 40000u

static struct model_description one;

static void one_worker(struct walk *w)
{
	static const struct walk_worker_params roomy = {
		.max_request = 65536, .max_reply = 65536, .room = 262144};

	one = kserve_one_tensor(DATATYPE_BYTES);
	one.output[0].datatype = DATATYPE_UINT8;
	kserve_worker_of(w, &roomy, 4, &one);
}

/* Elements of up to <most> bytes, of different lengths. Returns how many. */
static uint32_t write_elements(char *at, uint32_t most)
{
	uint32_t n = 0, elements = 0, length;

	for (; n < LARGE; elements++, n += 4 + length) {
		length = elements * 2654435761u % (most + 1);
		if (n + 4 + length + 4 > LARGE)
			length = LARGE - n - 4;
		memcpy(at + n, &length, 4);
		memset(at + n + 4, 'a' + elements % 26, length);
	}
	return elements;
}

static uint32_t write_large(char *at, const char *values, uint32_t elements)
{
	char json[256];
	int n = sprintf(json,
			"{\"inputs\":[{\"name\":\"a\",\"shape\":[%u],\"datatype\":\"BYTES\","
			"\"parameters\":{\"binary_data_size\":%u}}],\"parameters\":{"
			"\"binary_data_output\":true}}",
			elements, LARGE);

	n = sprintf(at,
		    "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n"
		    "Inference-Header-Content-Length: %d\r\n\r\n%s",
		    n + LARGE, n, json);
	memcpy(at + n, values, LARGE);
	return (uint32_t)n + LARGE;
}

/* The same as a call, in frames of 16,384 bytes. */
static uint32_t write_large_call(char *at, const char *values, uint32_t elements)
{
	static char message[LARGE + 64];
	static struct text t;
	uint8_t shape[] = {elements % 128 + 128, elements / 128 % 128 + 128, elements / 16384};
	uint32_t length = 6 + 17 + 4 + LARGE, n = 5;

	message[0] = 0;
	for (unsigned int i = 0; i < 4; i++)
		message[1 + i] = (char)(length >> (24 - 8 * i));
	n += put_field(message + n, 1, "echo", 4);
	memcpy(message + n, "\x2a\xf\xa\1a\x12\5BYTES\x1a\3", 14);
	memcpy(message + n + 14, shape, 3);
	memcpy(message + n + 17, "\x3a\xc0\xb8\2", 4);
	memcpy(message + n + 21, values, LARGE);
	text_preface(&t);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	memcpy(at, t.at, t.n);
	n = t.n;
	for (uint32_t i = 0; i < length + 5; i += 16384) {
		uint32_t part = RTE_MIN(length + 5 - i, 16384u);

		t.n = 0;
		text_frame(&t, FRAME_DATA, 0, 1, message + i, part);
		memcpy(at + n, t.at, t.n);
		n += t.n;
	}
	return n;
}

/* Elements of any length stay in the packets that they came in, whose segments have any. */
WALK(elements_are_not_copied)
{
	static const uint32_t most[] = {0, 3, 100, 1500, LARGE};
	static const uint32_t segments[] = {517, 1000, 1400};
	static char values[LARGE], stream[LARGE + 1024];
	struct walk *w = walk_create(&params);

	one_worker(w);
	for (unsigned int i = 0; i < RTE_DIM(most) * RTE_DIM(segments) * 2; i++) {
		uint32_t segment = segments[i / 2 % RTE_DIM(segments)];
		uint32_t elements = write_elements(values, most[i / 2 / RTE_DIM(segments)]);
		struct http_client *c = http_dial(w, 3000 + i);
		uint32_t n = i % 2 == 0 ? write_large(stream, values, elements)
					: write_large_call(stream, values, elements);

		walk_context("%u elements, segments of %u, %s", elements, segment,
			     i % 2 == 0 ? "by HTTP" : "by gRPC");
		for (uint32_t at = 0; at < n; at += segment) {
			http_put(c, stream + at, RTE_MIN(segment, n - at));
			walk_turn(w);
		}
		http_wait(c);
		walk_expect_eq(w->worker[0]->answered, i + 1);
		walk_expect_eq(walk_stats(w).payload_copies, 0);
		http_abort(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

static void expect_answer(struct walk *w, const char *stream, uint32_t n, uint16_t port)
{
	struct http_client *c = http_dial(w, port);

	http_say(c, stream, n);
	http_wait(c);
	walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
	http_hang_up(c);
}

/* Requests that prove wrong at their last byte give back the place that they had: more of them than
 * a worker has slots take none from others. */
WALK(wrong_lengths_give_back_what_they_had)
{
	static char values[LARGE], right[LARGE + 1024], wrong[LARGE + 1024];
	struct walk *w = walk_create(&params);
	uint32_t elements, n;

	one_worker(w);
	elements = write_elements(values, 1500);
	n = write_large(right, values, elements);
	expect_answer(w, right, n, 2000);
	memset(values + LARGE - 4, 0, 4);
	for (uint32_t at = 0, length; at < LARGE; at += 4 + length) {
		memcpy(&length, values + at, 4);
		if (at + 4 + length == LARGE)
			memcpy(values + at, (uint32_t[]){length - 4}, 4);
	}
	for (unsigned int i = 0; i < 300; i++) {
		struct http_client *c = http_dial(w, 3000 + i);
		bool is_call = i % 2 == 1;

		walk_context("the %uth", i);
		/* Its head was seen before. */
		http_say(c, wrong,
			 is_call ? write_large_call(wrong, values, elements + 2)
				 : write_large(wrong, values, elements));
		http_wait(c);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_FRAMING], i + 1);
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_expect_eq(w->worker[0]->answered, 1);
	expect_answer(w, right, n, 2001);
	walk_destroy(w);
}

/* The same text comes again, with other lengths behind it. */
WALK(a_text_that_was_seen_hides_no_wrong_length)
{
	static const char request[] =
		"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
		"Inference-Header-Content-Length: 92\r\n"
		"Content-Length: 101\r\n\r\n"
		"{\"inputs\":[{\"name\":\"a\",\"shape\":[1],\"datatype\":\"BYTES\","
		"\"parameters\":{\"binary_data_size\":9}}]}"
		"\5\0\0\0abcde";
	static const char message[] = "\0\0\0\0\x20\x0a\4echo\x2a\xd\xa\1a\x12\5BYTES\x1a\1\1"
				      "\x3a\x9\5\0\0\0abcde";
	struct walk *w = walk_create(&params);
	static struct text t;

	one_worker(w);
	for (unsigned int i = 0; i < 10; i++) {
		struct http_client *c = http_dial(w, 3000 + i);
		struct lb_lcore_stats before = walk_stats(w);
		bool is_call = i % 2 == 1, right = i < 8;

		walk_context("the %uth", i);
		if (is_call) {
			text_preface(&t);
			text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD,
				   sizeof(GRPC_HEAD) - 1);
			text_frame(&t, FRAME_DATA, FRAME_END_STREAM, 1, message,
				   sizeof(message) - 1);
		} else {
			t.n = sizeof(request) - 1;
			memcpy(t.at, request, t.n);
		}
		t.at[t.n - 9] += !right;
		http_say(c, t.at, t.n);
		http_wait(c);
		walk_expect_eq(walk_stats(w).requests - before.requests, right);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_FRAMING], i < 8 ? 0 : i - 7);
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}
