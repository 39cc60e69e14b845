/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of one client that make turns long. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text_turns.h"

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
	.more = "tcp: {connections: 256, buffer_mb: 32}\n",
};

const struct walk_params text_large_params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 1MiB, max_reply: 1MiB}\n",
	.more = "tcp: {connections: 256, buffer_mb: 64}\n",
	.packets = 8192,
};

/* Of rows of two bytes. */
static const struct walk_params row_params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 2, max_reply: 2}\n",
	.more = "tcp: {connections: 256, buffer_mb: 32}\n",
};

/* Of 16 inputs of two bytes. */
static const struct walk_params wide_params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 32, max_reply: 32}\n",
	.more = "tcp: {connections: 256, buffer_mb: 32}\n",
};

static void worker(struct walk *w, const struct text_kind *k)
{
	kserve_worker(w);
}

static void rows_worker(struct walk *w, const struct text_kind *k)
{
	kserve_rows_worker(w, NULL, 256);
}

/* A request by HTTP/1.1 whose values are in its JSON. */
static void put_json(const char *json, uint32_t n)
{
	char head[200];

	text_put(head, sprintf(head,
			       "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
			       "Content-Length: %u\r\n\r\n",
			       n));
	text_put(json, n);
}

/* One whose values follow its JSON. */
void text_put_binary(const char *json, uint32_t length, const char *values, uint32_t n)
{
	char head[200];

	text_put(head, sprintf(head,
			       "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
			       "Content-Length: %u\r\n"
			       "Inference-Header-Content-Length: %u\r\n\r\n",
			       length + n, length));
	text_put(json, length);
	text_put(values, n);
}

static void make_json(const struct text_kind *k)
{
	static char json[200000];
	uint32_t n =
		sprintf(json, "{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\","
			      "\"data\":[0,0]},{\"name\":\"b\",\"shape\":[60000],\"datatype\":"
			      "\"UINT8\",\"data\":[");

	for (unsigned int i = 0; i < 60000; i++)
		n += sprintf(json + n, "%s%u", i > 0 ? "," : "", i % 10);
	n += sprintf(json + n, "]}]}");
	for (unsigned int i = 0; i < 2; i++)
		put_json(json, n);
}

/* Of 256 rows of two bytes. */
static void make_batches(const struct text_kind *k)
{
	static const char json[] = "{\"inputs\":[{\"name\":\"a\",\"shape\":[256],\"datatype\":"
				   "\"UINT16\",\"parameters\":{\"binary_data_size\":512}}],"
				   "\"parameters\":{\"binary_data_output\":true}}";
	static const char rows[512];

	for (unsigned int i = 0; i < 60; i++)
		text_put_binary(json, sizeof(json) - 1, rows, sizeof(rows));
}

static void make_spaces(const struct text_kind *k)
{
	static const char head[] = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
				   "Content-Length: 1000000\r\n\r\n";

	text_put(head, sizeof(head) - 1);
	text_put("{\"x\":[", 6);
	for (unsigned int i = 0; i < 60000; i++)
		text_put("[],", 3);
}

static void make_chunks(const struct text_kind *k)
{
	static const char head[] = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n";

	text_put(head, sizeof(head) - 1);
	text_put("1\r\n{\r\n", 6);
	for (unsigned int i = 0; i < 10000; i++)
		text_put("1\r\n \r\n", 6);
}

static void make_small_requests(const struct text_kind *k)
{
	for (unsigned int i = 0; i < 3000; i++)
		text_put("GET / HTTP/1.1\r\nHost:\r\n\r\n", 25);
}

static void make_typed(const struct text_kind *k)
{
	static char message[70000];
	uint32_t n = 5;

	text_begin_http2();
	n += sprintf(message + n, "\x0a\4echo\x2a\x18\xa\1a\x12\4FP32\x1a\1\2\x2a\xa\x32\x8");
	memset(message + n, 1, 8);
	n += 8;
	/* b: UINT8 of 60,000, packed */
	memcpy(message + n,
	       "\x2a\xf7\xd4\3\xa\1b\x12\5UINT8\x1a\3\xe0\xd4\3\x2a\xe4\xd4\3\x22\xe0\xd4\3", 27);
	n += 27;
	memset(message + n, 7, 60000);
	n += 60000;
	message[1] = 0;
	message[2] = 0;
	message[3] = (char)((n - 5) >> 8);
	message[4] = (char)(n - 5);
	for (uint32_t call = 1; call < 12; call += 2) {
		text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, call, GRPC_HEAD,
			       sizeof(GRPC_HEAD) - 1);
		for (uint32_t at = 0; at < n; at += 16000)
			text_put_frame(FRAME_DATA, at + 16000 >= n, call, message + at,
				       RTE_MIN(n - at, 16000u));
	}
}

/* Fields of a message that say nothing. */
static void make_empty_fields(const struct text_kind *k)
{
	static char message[16000];

	text_begin_http2();
	text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	text_put_frame(FRAME_DATA, 0, 1, "\0\0\xf\0\0", 5);
	for (unsigned int i = 0; i < sizeof(message); i += 2)
		memcpy(message + i, "\x22", 2);
	for (unsigned int i = 0; i < 60; i++)
		text_put_frame(FRAME_DATA, 0, 1, message, sizeof(message));
}

/* Heads of which each byte is a field that was sent before. <heads> fit: others are too long. */
static void make_references(uint32_t references, uint32_t length)
{
	static char first[8200], head[16384];
	uint32_t n = sizeof(GRPC_HEAD) - 1;

	text_begin_http2();
	memcpy(first, GRPC_HEAD, n);
	memcpy(first + n, "\x40\1x\x7f", 4);
	first[n + 4] = (char)((length - 127) % 128 | 0x80);
	first[n + 5] = (char)((length - 127) / 128);
	memset(first + n + 6, 'y', length);
	text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, 1, first, n + 6 + length);
	memcpy(head, GRPC_HEAD, n);
	memset(head + n, 0xbe, references);
	for (uint32_t call = 3; call < 400 && text_length() < 100000; call += 2) {
		text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, call, head, n + references);
		text_put_frame(FRAME_RST, 0, call, "\0\0\0\10", 4);
	}
}

static void make_one_reference(const struct text_kind *k)
{
	make_references(1, 4000);
}

static void make_many_references(const struct text_kind *k)
{
	make_references(16000, 4000);
}

static void make_short_references(const struct text_kind *k)
{
	make_references(200, 127);
}

static void make_frames(uint8_t type, uint32_t id, const void *bytes, uint32_t n)
{
	text_begin_http2();
	if (id > 0)
		text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, id, GRPC_HEAD,
			       sizeof(GRPC_HEAD) - 1);
	for (unsigned int i = 0; i < 3000; i++)
		text_put_frame(type, 0, id, bytes, n);
}

static void make_pings(const struct text_kind *k)
{
	make_frames(FRAME_PING, 0, "12345678", 8);
}

static void make_settings(const struct text_kind *k)
{
	make_frames(FRAME_SETTINGS, 0, "\0\4\0\1\0\0", 6);
}

static void make_priorities(const struct text_kind *k)
{
	text_begin_http2();
	for (uint32_t i = 0; i < 3000; i++) {
		uint8_t on[5] = {0, 0, (2 * i + 1) >> 8 & 255, (2 * i + 1) & 255, i};

		text_put_frame(2, 0, 2 * i + 3, on, 5);
	}
}

static void make_windows(const struct text_kind *k)
{
	make_frames(FRAME_WINDOW, 1, "\0\0\0\1", 4);
}

static void make_empty_data(const struct text_kind *k)
{
	make_frames(FRAME_DATA, 1, "", 0);
}

static void make_resets(const struct text_kind *k)
{
	text_begin_http2();
	for (uint32_t call = 1; call < 200; call += 2) {
		text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, call, GRPC_HEAD,
			       sizeof(GRPC_HEAD) - 1);
		text_put_frame(FRAME_RST, 0, call, "\0\0\0\10", 4);
	}
}

static void make_refused_calls(const struct text_kind *k)
{
	text_begin_http2();
	for (uint32_t call = 1; call < 1000; call += 2)
		text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS | FRAME_END_STREAM, call, GRPC_HEAD,
			       sizeof(GRPC_HEAD) - 1);
}

static void make_calls(const struct text_kind *k)
{
	static struct text t;

	text_begin_http2();
	for (uint32_t call = 1; call < 1000; call += 2) {
		t.n = 0;
		text_call(&t, call);
		text_put_text(&t);
	}
}

/* --- JSON of a megabyte ------------------------------------------------------------------------
 */

#define JSON_BYTES   1000000u
#define TENSOR_BYTES 500000u

/* One value of each datatype that takes long to read for its length. */
static const char *value_of(enum datatype type)
{
	switch (type) {
	case DATATYPE_BOOL:
		return "true";
	case DATATYPE_FP32: /* halfway between two floats */
		return "1.00000017881393432617187499";
	case DATATYPE_FP64:
		return "1.00000000000000033306690738754696212708950042724609375";
	case DATATYPE_BYTES:
		return "\"\\u00e9\"";
	default:
		return "7";
	}
}

/* A request of about a megabyte of text, whose values are all alike. */
static void put_values(const struct text_kind *k, const char *value)
{
	static char json[JSON_BYTES + 1000];
	uint32_t each = (uint32_t)strlen(value) + 1, elements = JSON_BYTES / each, n;

	if (workers_datatype_bytes(k->datatype) * elements > TENSOR_BYTES)
		elements = TENSOR_BYTES / workers_datatype_bytes(k->datatype);
	if (k->datatype == DATATYPE_BYTES)
		elements = RTE_MIN(elements, TENSOR_BYTES / 8);
	n = sprintf(json,
		    "{\"inputs\":[{\"name\":\"a\",\"shape\":[%u],\"datatype\":\"%s\",\"data\":[%s",
		    elements, workers_datatype_name(k->datatype), value);
	for (uint32_t i = 1; i < elements; i++) {
		json[n++] = ',';
		memcpy(json + n, value, each - 1);
		n += each - 1;
	}
	n += sprintf(json + n, "]}]}");
	put_json(json, n);
}

static void make_values(const struct text_kind *k)
{
	put_values(k, value_of(k->datatype));
}

/* Values that are short in the request and long in the reply. */
static void make_long_answer(const struct text_kind *k)
{
	static char bytes[TENSOR_BYTES];
	uint32_t each = workers_datatype_bytes(k->datatype), n = sizeof(bytes) / each;
	char json[200];
	const double third = 1.0 / 3;
	int length = sprintf(json,
			     "{\"inputs\":[{\"name\":\"a\",\"shape\":[%u],\"datatype\":\"%s\","
			     "\"parameters\":{\"binary_data_size\":%u}}]}",
			     n, workers_datatype_name(k->datatype), n * each);

	for (uint32_t i = 0; i < n; i++)
		memcpy(bytes + i * each, &third, each);
	text_put_binary(json, length, bytes, n * each);
}

/* --- typed contents of each datatype ------------------------------------------------------------
 */

uint32_t text_varint(char *at, uint64_t value)
{
	uint32_t n = 0;

	for (; value > 127; value >>= 7)
		at[n++] = (char)(value | 128);
	at[n++] = (char)value;
	return n;
}

/* Messages with as many elements as <packed> bytes of contents have, each of one byte. */
static void put_typed(const struct text_kind *k, uint32_t elements, const char *contents,
		      uint32_t length)
{
	static char message[1200000];
	const char *type = workers_datatype_name(k->datatype);
	char shape[8], input[64], size[8];
	uint32_t s = text_varint(shape, elements), c = text_varint(size, length), n = 5, i;

	i = sprintf(input, "\x0a\1a\x12%c%s\x1a%c", (char)strlen(type), type, (char)s);
	memcpy(input + i, shape, s);
	i += s;
	n += sprintf(message + n, "\x0a\4echo\x2a");
	n += text_varint(message + n, i + 1 + c + length);
	memcpy(message + n, input, i);
	n += i;
	message[n++] = 0x2a;
	memcpy(message + n, size, c);
	n += c;
	memcpy(message + n, contents, length);
	n += length;
	message[0] = 0;
	message[1] = (char)((n - 5) >> 24);
	message[2] = (char)((n - 5) >> 16);
	message[3] = (char)((n - 5) >> 8);
	message[4] = (char)(n - 5);
	text_begin_http2();
	text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	for (uint32_t at = 0; at < n; at += 16000)
		text_put_frame(FRAME_DATA, at + 16000 >= n, 1, message + at,
			       RTE_MIN(n - at, 16000u));
}

/* The field of InferTensorContents. */
static uint8_t field_of(enum datatype type)
{
	static const uint8_t field[DATATYPES] = {
		[DATATYPE_BOOL] = 1,   [DATATYPE_UINT8] = 4,  [DATATYPE_UINT16] = 4,
		[DATATYPE_UINT32] = 4, [DATATYPE_UINT64] = 5, [DATATYPE_INT8] = 2,
		[DATATYPE_INT16] = 2,  [DATATYPE_INT32] = 2,  [DATATYPE_INT64] = 3,
		[DATATYPE_FP32] = 6,   [DATATYPE_FP64] = 7,   [DATATYPE_BYTES] = 8,
	};

	return field[type];
}

#define TYPED_ELEMENTS 30000u

/* As many elements as fit, packed; of BYTES those of a byte. */
static void make_typed_contents(const struct text_kind *k)
{
	static char contents[1 << 20];
	uint32_t n = 0, each = k->datatype == DATATYPE_FP32   ? 4
			       : k->datatype == DATATYPE_FP64 ? 8
							      : 1;

	if (k->datatype == DATATYPE_BYTES) {
		for (uint32_t i = 0; i < TYPED_ELEMENTS; i++)
			n += sprintf(contents + n, "\x42\1x");
		return put_typed(k, TYPED_ELEMENTS, contents, n);
	}
	contents[n++] = (char)(field_of(k->datatype) << 3 | 2);
	n += text_varint(contents + n, TYPED_ELEMENTS * each);
	memset(contents + n, 1, TYPED_ELEMENTS * each);
	put_typed(k, TYPED_ELEMENTS, contents, n + TYPED_ELEMENTS * each);
}

/* Each element a field of its own, as writers of version 2 of the format have it. */
static void make_loose_contents(const struct text_kind *k)
{
	static char contents[1 << 20];
	uint32_t n = 0;

	for (uint32_t i = 0; i < TYPED_ELEMENTS; i++) {
		contents[n++] = (char)(field_of(k->datatype) << 3);
		contents[n++] = 1;
	}
	put_typed(k, TYPED_ELEMENTS, contents, n);
}

/* Packed numbers, each a field. */
static void make_short_fields(const struct text_kind *k)
{
	static char contents[1 << 20];
	uint32_t n = 0;

	for (uint32_t i = 0; i < TYPED_ELEMENTS; i++) {
		contents[n++] = (char)(field_of(k->datatype) << 3 | 2);
		contents[n++] = 1;
		contents[n++] = 1;
	}
	put_typed(k, TYPED_ELEMENTS, contents, n);
}

/* --- batches ------------------------------------------------------------------------------------
 */

/* Of 256 rows in JSON, and so is the reply. */
static void make_json_batches(const struct text_kind *k)
{
	static char json[8192];
	uint32_t n = sprintf(json, "{\"inputs\":[{\"name\":\"a\",\"shape\":[256],\"datatype\":"
				   "\"UINT16\",\"data\":[0");

	for (unsigned int i = 1; i < 256; i++)
		n += sprintf(json + n, ",%u", i % 10);
	n += sprintf(json + n, "]}]}");
	for (unsigned int i = 0; i < 60; i++)
		put_json(json, n);
}

/* Of 256 rows, binary; the reply is text. */
static void make_text_of_batches(const struct text_kind *k)
{
	static const char json[] = "{\"inputs\":[{\"name\":\"a\",\"shape\":[256],\"datatype\":"
				   "\"UINT16\",\"parameters\":{\"binary_data_size\":512}}]}";
	static char rows[512];

	memset(rows, 0x99, sizeof(rows));
	for (unsigned int i = 0; i < 60; i++)
		text_put_binary(json, sizeof(json) - 1, rows, sizeof(rows));
}

/* Of 256 rows by gRPC: raw, or typed. */
static void put_batch_calls(bool raw)
{
	static char message[2000];
	char input[64];
	uint32_t n = 5, i = sprintf(input, "\x0a\1a\x12\6UINT16\x1a\2\x80\2"),
		 typed = raw ? 0 : 1 + 2 + 1 + 2 + 256;

	n += sprintf(message + n, "\x0a\4echo\x2a");
	n += text_varint(message + n, i + typed);
	memcpy(message + n, input, i);
	n += i;
	n += sprintf(message + n, raw ? "\x3a\x80\4" : "\x2a\x83\2\x22\x80\2");
	memset(message + n, 1, raw ? 512 : 256);
	n += raw ? 512 : 256;
	message[0] = message[1] = message[2] = 0;
	message[3] = (char)((n - 5) >> 8);
	message[4] = (char)(n - 5);
	text_begin_http2();
	for (uint32_t call = 1; call < 120; call += 2) {
		text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, call, GRPC_HEAD,
			       sizeof(GRPC_HEAD) - 1);
		text_put_frame(FRAME_DATA, FRAME_END_STREAM, call, message, n);
	}
}

static void make_raw_batch_calls(const struct text_kind *k)
{
	put_batch_calls(true);
}

static void make_typed_batch_calls(const struct text_kind *k)
{
	put_batch_calls(false);
}

/* --- heads and documents ------------------------------------------------------------------------
 */

/* CONTINUATIONs as many as are taken, each as long as a frame may be, full of short fields. */
static void make_continuations(const struct text_kind *k)
{
	static char head[16384];

	text_begin_http2();
	for (uint32_t i = 0; i < sizeof(head); i += 4)
		memcpy(head + i, "\0\1x\0", 4);
	for (uint32_t call = 1; call < 20; call += 2) {
		text_put_frame(FRAME_HEADERS, 0, call, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
		for (unsigned int i = 0; i < 7; i++)
			text_put_frame(FRAME_CONTINUATION, i == 6 ? FRAME_END_HEADERS : 0, call,
				       head, sizeof(head));
	}
}

/* Strings of Huffman's code, which take longest for their length. */
static void make_huffman(const struct text_kind *k)
{
	static char head[8192];
	uint32_t n = sizeof(GRPC_HEAD) - 1;

	text_begin_http2();
	memcpy(head, GRPC_HEAD, n);
	for (unsigned int i = 0; i < 8; i++) {
		memcpy(head + n, "\0\1x\xff", 4);
		n += 4;
		n += text_varint(head + n, 900 - 127);
		memset(head + n, 0, 900); /* '0', of five bits */
		n += 900;
	}
	for (uint32_t call = 1; call < 120; call += 2)
		text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS | FRAME_END_STREAM, call, head, n);
}

/* A head of HTTP/1.1 at its limits. */
static void make_long_heads(const struct text_kind *k)
{
	for (unsigned int i = 0; i < 60; i++) {
		text_put("GET /v2 HTTP/1.1\r\nHost: h\r\n", 27);
		for (unsigned int f = 0; f < 60; f++)
			text_put("x: ,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\r\n",
				 59);
		text_put("\r\n", 2);
	}
}

static void put_gets(const char *path)
{
	char head[200];
	int n = sprintf(head, "GET %s HTTP/1.1\r\nHost:\r\n\r\n", path);

	for (unsigned int i = 0; i < 100; i++)
		text_put(head, n);
}

static void make_metadata(const struct text_kind *k)
{
	put_gets("/v2/models/echo");
}

static void make_config(const struct text_kind *k)
{
	put_gets("/v2/models/echo/config");
}

static void make_statistics(const struct text_kind *k)
{
	put_gets("/v2/models/stats");
}

static void make_ready(const struct text_kind *k)
{
	put_gets("/v2/health/ready");
}

static void make_index(const struct text_kind *k)
{
	static const char head[] = "POST /v2/repository/index HTTP/1.1\r\nHost:\r\n"
				   "Content-Length: 0\r\n\r\n";

	for (unsigned int i = 0; i < 100; i++)
		text_put(head, sizeof(head) - 1);
}

/* Calls without tensors, of <rpc>, with a message of <n> bytes. */
static void put_small_calls(const char *path, const char *message, uint32_t n)
{
	char head[300], prefixed[100] = {0, 0, 0, 0, (char)n};
	uint32_t length;

	length = sizeof(GRPC_FIELD("\7:method", "\4", "POST") GRPC_FIELD("\7:scheme", "\4", "http")
				GRPC_FIELD("\12:authority", "\1", "h")) -
		 1;
	memcpy(head, GRPC_HEAD, length);
	memcpy(head + length, "\0\5:path", 7);
	head[length + 7] = (char)strlen(path);
	strcpy(head + length + 8, path);
	length += 8 + strlen(path);
	memcpy(head + length,
	       GRPC_FIELD("\xc"
			  "content-type",
			  "\x10", "application/grpc"),
	       31);
	length += 31;
	memcpy(prefixed + 5, message, n);
	text_begin_http2();
	for (uint32_t call = 1; call < 200; call += 2) {
		text_put_frame(FRAME_HEADERS, FRAME_END_HEADERS, call, head, length);
		text_put_frame(FRAME_DATA, FRAME_END_STREAM, call, prefixed, 5 + n);
	}
}

#define SERVICE "/inference.GRPCInferenceService/"

static void make_metadata_calls(const struct text_kind *k)
{
	put_small_calls(SERVICE "ModelMetadata", "\x0a\4echo", 6);
}

static void make_index_calls(const struct text_kind *k)
{
	put_small_calls(SERVICE "RepositoryIndex", "", 0);
}

static void make_statistics_calls(const struct text_kind *k)
{
	put_small_calls(SERVICE "ModelStatistics", "", 0);
}

/* --- models ------------------------------------------------------------------------------------
 */

static void tensor_worker(struct walk *w, const struct text_kind *k)
{
	static const struct walk_worker_params roomy = {
		.max_request = 1 << 20, .max_reply = 1 << 20, .room = 4 << 20};
	static struct model_description one;

	one = kserve_one_tensor(k->datatype);
	kserve_worker_of(w, &roomy, workers_datatype_bytes(k->datatype), &one);
}

/* As many tensors as a model has, with names and shapes as long as may be. */
static void wide_worker(struct walk *w, const struct text_kind *k)
{
	static const struct walk_worker_params roomy = {.max_request = 32, .max_reply = 32};
	static struct model_description wide = {.version = "1", .n_inputs = 16, .n_outputs = 16};

	for (unsigned int i = 0; i < 16; i++) {
		struct model_tensor *t = &wide.input[i];

		memset(t->name, '"', DESCRIPTION_NAME_MAX - 1);
		t->name[0] = (char)('a' + i);
		t->datatype = DATATYPE_UINT16;
		t->rank = DESCRIPTION_RANK_MAX;
		for (unsigned int d = 0; d < t->rank; d++)
			t->shape[d] = 1;
		wide.output[i] = *t;
	}
	kserve_worker_of(w, &roomy, 32, &wide);
}

/* 32 services, as many as may be, of one address. */
static char many_services[65536];

static const struct walk_params many_params = {
	.services = many_services,
	.more = "tcp: {connections: 256, buffer_mb: 32}\n",
};

static void __attribute__((constructor)) write_services(void)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < 32; i++)
		n += sprintf(many_services + n,
			     "  - {name: s%u, protocol: tcp, framing: kserve, "
			     "address: " PACKET_DESTINATION4
			     ", port: 8000, model: %s%.*u, max_request: 64KiB, max_reply: 64KiB}\n",
			     i, i == 0 ? "echo" : "a-model-with-a-name-of-sixty-characters-",
			     i == 0 ? 0 : 20, i);
}

/* --- kinds -------------------------------------------------------------------------------------
 */

#define JSON_OF(name, type)                                                                        \
	{                                                                                          \
		"JSON of 1 MiB: " name, &text_large_params, tensor_worker, make_values,            \
			.datatype = type                                                           \
	}
#define TYPED_OF(name, type)                                                                       \
	{                                                                                          \
		"typed contents: " name, &text_large_params, tensor_worker, make_typed_contents,   \
			.datatype = type                                                           \
	}

const struct text_kind text_kinds[] = {
	{"batches of 256 rows", &row_params, rows_worker, make_batches},
	{"batches of 256 rows in JSON", &row_params, rows_worker, make_json_batches},
	{"batches of 256 rows, replies in JSON", &row_params, rows_worker, make_text_of_batches},
	{"batches of 256 rows by gRPC, raw", &row_params, rows_worker, make_raw_batch_calls},
	{"batches of 256 rows by gRPC, typed", &row_params, rows_worker, make_typed_batch_calls},
	{"JSON, numbers of a digit", &params, worker, make_json},
	{"JSON, empty lists", &params, worker, make_spaces},
	JSON_OF("BOOL", DATATYPE_BOOL),
	JSON_OF("UINT8", DATATYPE_UINT8),
	JSON_OF("UINT64", DATATYPE_UINT64),
	JSON_OF("FP32, ties", DATATYPE_FP32),
	JSON_OF("FP64, ties", DATATYPE_FP64),
	JSON_OF("BYTES", DATATYPE_BYTES),
	{"reply of 1 MiB in JSON: UINT8", &text_large_params, tensor_worker, make_long_answer,
	 .datatype = DATATYPE_UINT8},
	{"reply of 1 MiB in JSON: FP32", &text_large_params, tensor_worker, make_long_answer,
	 .datatype = DATATYPE_FP32},
	{"reply of 1 MiB in JSON: FP64", &text_large_params, tensor_worker, make_long_answer,
	 .datatype = DATATYPE_FP64},
	{"chunks of a byte", &params, worker, make_chunks},
	{"requests of 25 bytes", &params, worker, make_small_requests},
	{"heads with 60 fields", &params, worker, make_long_heads},
	{"calls", &params, worker, make_calls},
	{"calls without a message", &params, worker, make_refused_calls},
	{"typed contents", &params, worker, make_typed},
	TYPED_OF("BOOL", DATATYPE_BOOL),
	TYPED_OF("UINT8", DATATYPE_UINT8),
	TYPED_OF("UINT16", DATATYPE_UINT16),
	TYPED_OF("UINT32", DATATYPE_UINT32),
	TYPED_OF("UINT64", DATATYPE_UINT64),
	TYPED_OF("INT8", DATATYPE_INT8),
	TYPED_OF("INT16", DATATYPE_INT16),
	TYPED_OF("INT32", DATATYPE_INT32),
	TYPED_OF("INT64", DATATYPE_INT64),
	TYPED_OF("FP32", DATATYPE_FP32),
	TYPED_OF("FP64", DATATYPE_FP64),
	TYPED_OF("BYTES", DATATYPE_BYTES),
	{"contents that are not packed", &text_large_params, tensor_worker, make_loose_contents,
	 .datatype = DATATYPE_UINT8},
	{"contents packed one by one", &text_large_params, tensor_worker, make_short_fields,
	 .datatype = DATATYPE_UINT8},
	{"empty fields of a message", &params, worker, make_empty_fields},
	{"HPACK: a field of 4,000 bytes by reference", &params, worker, make_one_reference},
	{"HPACK: 16,000 of them in a head", &params, worker, make_many_references},
	{"HPACK: 200 fields of 128 bytes", &params, worker, make_short_references},
	{"HPACK: Huffman's code", &params, worker, make_huffman},
	{"CONTINUATION", &params, worker, make_continuations},
	{"PING", &params, worker, make_pings},
	{"SETTINGS", &params, worker, make_settings},
	{"PRIORITY", &params, worker, make_priorities},
	{"WINDOW_UPDATE", &params, worker, make_windows},
	{"empty DATA", &params, worker, make_empty_data},
	{"calls that are given up", &params, worker, make_resets},
	{"metadata of 32 tensors", &wide_params, wide_worker, make_metadata},
	{"configuration of 32 tensors", &wide_params, wide_worker, make_config},
	{"metadata of 32 tensors by gRPC", &wide_params, wide_worker, make_metadata_calls},
	{"statistics", &params, worker, make_statistics},
	{"statistics of 32 models", &many_params, worker, make_statistics},
	{"index of 32 models", &many_params, worker, make_index},
	{"readiness of 32 models", &many_params, worker, make_ready},
	{"statistics of 32 models by gRPC", &many_params, worker, make_statistics_calls},
	{"index of 32 models by gRPC", &many_params, worker, make_index_calls},
};
const unsigned int n_text_kinds = RTE_DIM(text_kinds);
