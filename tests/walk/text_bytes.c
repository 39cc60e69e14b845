/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replies of BYTES, whose elements' lengths are looked at before a byte of them goes to the client:
 * one large element or very many small ones, a row or a batch of them. The worker echoes.
 */
#include <stdio.h>
#include <string.h>

#include "text_turns.h"

#define LARGE 500000u /* bytes of a large row */

static const struct walk_params row_params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 16, max_reply: 16}\n",
	.more = "tcp: {connections: 256, buffer_mb: 32}\n",
};

/* Its input and output have as many elements as the kind says. */
static void bytes_worker(struct walk *w, const struct text_kind *k)
{
	static const struct walk_worker_params large = {
		.max_request = 1 << 20, .max_reply = 1 << 20, .room = 4 << 20};
	static const struct walk_worker_params rows = {
		.max_request = 16, .max_reply = 16, .slots = 512, .max_batch = 256};
	static struct model_description described;

	described = kserve_one_tensor(DATATYPE_BYTES);
	described.batch = k->rows > 1;
	described.input[0].shape[described.batch] = (int32_t)k->elements;
	described.output[0] = described.input[0];
	described.output[0].name[0] = 'b';
	described.input[0].rank = described.output[0].rank = 1 + described.batch;
	kserve_worker_of(w, k->rows > 1 ? &rows : &large, 4 * k->elements, &described);
}

/* The request's values: each element is a length and its bytes. Returns how many bytes they are. */
static uint32_t write_values(const struct text_kind *k, char *at)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->rows * k->elements; i++) {
		memcpy(at + n, &k->length, sizeof(k->length));
		n += sizeof(k->length);
		memset(at + n, 1, k->length); /* \u0001 in JSON */
		n += k->length;
	}
	return n;
}

static void put_requests(const struct text_kind *k, const char *more)
{
	static char values[LARGE + 100];
	uint32_t n = write_values(k, values);
	char json[300], rows[16] = "";
	int length;

	if (k->rows > 1)
		sprintf(rows, "%u,", k->rows);
	length = sprintf(json,
			 "{\"inputs\":[{\"name\":\"a\",\"shape\":[%s%u],\"datatype\":\"BYTES\","
			 "\"parameters\":{\"binary_data_size\":%u}}]%s}",
			 rows, k->elements, n, more);
	for (uint32_t i = 0; i < k->requests; i++)
		text_put_binary(json, (uint32_t)length, values, n);
}

static void make_text(const struct text_kind *k)
{
	put_requests(k, "");
}

static void make_binary(const struct text_kind *k)
{
	put_requests(k, ",\"parameters\":{\"binary_data_output\":true}");
}

/* A message with its prefix. Returns how many bytes it is; its values are the last. */
static uint32_t write_message(const struct text_kind *k, char *message)
{
	char input[64], shape[16], values[16];
	uint32_t s = k->rows > 1 ? text_varint(shape, k->rows) : 0, n = 5, i, v;

	s += text_varint(shape + s, k->elements);
	i = sprintf(input, "\x0a\1a\x12\5BYTES\x1a%c", (char)s);
	memcpy(input + i, shape, s);
	i += s;
	n += sprintf(message + n, "\x0a\4echo\x2a%c", (char)i);
	memcpy(message + n, input, i);
	n += i;
	message[n++] = 0x3a;
	v = k->rows * k->elements * (4 + k->length);
	i = text_varint(values, v);
	memcpy(message + n, values, i);
	n += i;
	n += write_values(k, message + n);
	message[0] = 0;
	for (i = 0; i < 4; i++)
		message[1 + i] = (char)((n - 5) >> (24 - 8 * i));
	return n;
}

static void make_calls(const struct text_kind *k)
{
	static char message[LARGE + 300];
	uint32_t n = write_message(k, message);

	text_begin_http2();
	for (uint32_t call = 0; call < k->requests; call++) {
		text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, 2 * call + 1, GRPC_HEAD,
			       sizeof(GRPC_HEAD) - 1);
		for (uint32_t at = 0; at < n; at += 16000)
			text_put_frame(FRAME_DATA, at + 16000 >= n, 2 * call + 1, message + at,
				       RTE_MIN(n - at, 16000u));
	}
}

/* --- a gap --------------------------------------------------------------------------------------
 */

#define SEGMENT  300u /* bytes of an element and its length */
#define SEGMENTS 200u
#define FRAMED   50u /* of them in a frame */

static const struct text_kind gap = {.rows = 1, .elements = SEGMENTS, .length = SEGMENT - 4};

static void gap_worker(struct walk *w, const struct text_kind *k)
{
	bytes_worker(w, &gap);
}

/* Puts an element, the next segment. */
static void put_element(struct http_client *c, const char *values, uint32_t i, bool framed)
{
	uint32_t length = RTE_MIN(SEGMENTS - i, FRAMED) * SEGMENT, n = 0;
	char bytes[SEGMENT + 9];

	if (framed && i % FRAMED == 0) {
		memcpy(bytes, (char[]){0, length >> 8, length, FRAME_DATA, 0, 0, 0, 0, 1}, 9);
		n = 9;
	}
	memcpy(bytes + n, values + i * SEGMENT, SEGMENT);
	http_put(c, bytes, n + SEGMENT);
}

/* When the first segment of a tensor comes, all others are there: each length lies in a packet of
 * its own. <head>: what is in front of it. */
static void fill_gap(struct walk *w, const struct text *head, const char *values, bool framed)
{
	struct http_client *c = http_dial(w, 3000);
	uint32_t from;

	http_say(c, head->at, head->n);
	from = c->seq;
	c->seq += (framed ? 9 : 0) + SEGMENT;
	for (uint32_t i = 1; i < SEGMENTS; i++) {
		put_element(c, values, i, framed);
		text_turn(w);
	}
	walk_expect_eq(walk_service_stats(w, 0).requests, 0);
	c->seq = from;
	put_element(c, values, 0, framed);
	text_turns_pass(w, c, 20);
	walk_expect_eq(w->worker[0]->answered, 1);
	http_abort(c);
}

static void fill_gap_of_request(struct walk *w)
{
	static char values[SEGMENT * SEGMENTS];
	char json[200];
	static struct text t;
	int n = sprintf(json,
			"{\"inputs\":[{\"name\":\"a\",\"shape\":[%u],\"datatype\":\"BYTES\","
			"\"parameters\":{\"binary_data_size\":%u}}]}",
			SEGMENTS, SEGMENTS * SEGMENT);

	write_values(&gap, values);
	t.n = sprintf(t.at,
		      "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n"
		      "Inference-Header-Content-Length: %d\r\n\r\n%s",
		      n + SEGMENTS * SEGMENT, n, json);
	fill_gap(w, &t, values, false);
}

static void fill_gap_of_call(struct walk *w)
{
	static char message[SEGMENT * SEGMENTS + 100];
	uint32_t head = write_message(&gap, message) - SEGMENT * SEGMENTS;
	static struct text t;

	text_preface(&t);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	text_frame(&t, FRAME_DATA, 0, 1, message, head);
	fill_gap(w, &t, message + head, true);
}

/* -----------------------------------------------------------------------------------------------
 */

#define BYTES_OF(what, with, n_rows, n_elements, bytes, n_requests)                                \
	{"BYTES, " what " in JSON",                                                                \
	 &with,                                                                                    \
	 bytes_worker,                                                                             \
	 make_text,                                                                                \
	 .rows = n_rows,                                                                           \
	 .elements = n_elements,                                                                   \
	 .length = bytes,                                                                          \
	 .requests = n_requests},                                                                  \
		{"BYTES, " what " in binary",                                                      \
		 &with,                                                                            \
		 bytes_worker,                                                                     \
		 make_binary,                                                                      \
		 .rows = n_rows,                                                                   \
		 .elements = n_elements,                                                           \
		 .length = bytes,                                                                  \
		 .requests = n_requests},                                                          \
	{                                                                                          \
		"BYTES, " what " by gRPC", &with, bytes_worker, make_calls,                        \
			.rows = n_rows, .elements = n_elements, .length = bytes,                   \
			.requests = n_requests                                                     \
	}

const struct text_kind text_bytes[] = {
	BYTES_OF("one element", text_large_params, 1, 1, LARGE - 4, 2),
	BYTES_OF("125,000 empty elements", text_large_params, 1, LARGE / 4, 0, 2),
	BYTES_OF("elements of 100 bytes", text_large_params, 1, LARGE / 104, 100, 2),
	BYTES_OF("256 rows of an element", row_params, 256, 1, 12, 30),
	BYTES_OF("256 rows of 4 empty ones", row_params, 256, 4, 0, 30),
	{"BYTES behind a gap, in binary", &text_large_params, gap_worker,
	 .run = fill_gap_of_request},
	{"BYTES behind a gap, by gRPC", &text_large_params, gap_worker, .run = fill_gap_of_call},
};
const unsigned int n_text_bytes = RTE_DIM(text_bytes);
