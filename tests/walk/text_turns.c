/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long one turn of an lcore takes at most while a client of the framing kserve sends what costs
 * most: its thread's CPU time, of the longest turn of a row; the least of some rounds, as a machine
 * has other work. A turn has 16 segments of 1,000 bytes.
 *
 *   walk-text-turns [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "edge/edge.h"
#include "grpc_text.h"

#define TURN_BYTES 16000u
#define STREAM_MAX (4u << 20)

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
	.more = "tcp: {connections: 256, buffer_mb: 32}\n",
};

/* Of rows of two bytes. */
static const struct walk_params row_params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 2, max_reply: 2}\n",
	.more = "tcp: {connections: 256, buffer_mb: 32}\n",
};

struct bytes {
	uint32_t n;
	char at[STREAM_MAX];
};

static struct bytes stream;

static void put(const void *bytes, uint32_t n)
{
	walk_need(stream.n + n <= STREAM_MAX, "too long");
	memcpy(stream.at + stream.n, bytes, n);
	stream.n += n;
}

static void put_text(const struct text *t)
{
	put(t->at, t->n);
}

/* --- what is sent ------------------------------------------------------------------------------
 */

static void begin_http2(void)
{
	static struct text t;

	text_preface(&t);
	put_text(&t);
}

static void put_frame(uint8_t type, uint8_t flags, uint32_t id, const void *bytes, uint32_t n)
{
	static struct text t;

	t.n = 0;
	text_frame(&t, type, flags, id, bytes, n);
	put_text(&t);
}

static void make_json(void)
{
	static char json[200000];
	uint32_t n =
		sprintf(json, "{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\","
			      "\"data\":[0,0]},{\"name\":\"b\",\"shape\":[60000],\"datatype\":"
			      "\"UINT8\",\"data\":[");

	for (unsigned int i = 0; i < 60000; i++)
		n += sprintf(json + n, "%s%u", i > 0 ? "," : "", i % 10);
	n += sprintf(json + n, "]}]}");
	for (unsigned int i = 0; i < 4; i++) {
		char head[200];

		put(head, sprintf(head,
				  "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
				  "Content-Length: %u\r\n\r\n",
				  n));
		put(json, n);
	}
}

/* Of 256 rows of two bytes. */
static void make_batches(void)
{
	static const char json[] = "{\"inputs\":[{\"name\":\"a\",\"shape\":[256],\"datatype\":"
				   "\"UINT16\",\"parameters\":{\"binary_data_size\":512}}],"
				   "\"parameters\":{\"binary_data_output\":true}}";
	static const char rows[512];

	for (unsigned int i = 0; i < 200; i++) {
		char head[200];

		put(head, sprintf(head,
				  "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
				  "Content-Length: %zu\r\n"
				  "Inference-Header-Content-Length: %zu\r\n\r\n",
				  sizeof(json) - 1 + sizeof(rows), sizeof(json) - 1));
		put(json, sizeof(json) - 1);
		put(rows, sizeof(rows));
	}
}

static void make_spaces(void)
{
	static const char head[] = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
				   "Content-Length: 1000000\r\n\r\n";

	put(head, sizeof(head) - 1);
	put("{\"x\":[", 6);
	for (unsigned int i = 0; i < 300000; i++)
		put("[],", 3);
}

static void make_chunks(void)
{
	static const char head[] = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n";

	put(head, sizeof(head) - 1);
	put("1\r\n{\r\n", 6);
	for (unsigned int i = 0; i < 60000; i++)
		put("1\r\n \r\n", 6);
}

static void make_small_requests(void)
{
	for (unsigned int i = 0; i < 20000; i++)
		put("GET / HTTP/1.1\r\nHost:\r\n\r\n", 25);
}

static void make_statistics(void)
{
	for (unsigned int i = 0; i < 10000; i++)
		put("GET /v2/models/stats HTTP/1.1\r\nHost:\r\n\r\n", 40);
}

static void make_typed(void)
{
	static char message[70000];
	uint32_t n = 5;

	begin_http2();
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
	for (uint32_t call = 1; call < 40; call += 2) {
		put_frame(FRAME_HEADERS, FRAME_END_HEADERS, call, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
		for (uint32_t at = 0; at < n; at += 16000)
			put_frame(FRAME_DATA, at + 16000 >= n, call, message + at,
				  RTE_MIN(n - at, 16000u));
	}
}

/* Fields of a message that say nothing. */
static void make_empty_fields(void)
{
	static char message[16000];

	begin_http2();
	put_frame(FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	put_frame(FRAME_DATA, 0, 1, "\0\0\xf\0\0", 5);
	for (unsigned int i = 0; i < sizeof(message); i += 2)
		memcpy(message + i, "\x22", 2);
	for (unsigned int i = 0; i < 60; i++)
		put_frame(FRAME_DATA, 0, 1, message, sizeof(message));
}

/* Heads of which each byte is a field that was sent before. <heads> fit: others are too long. */
static void make_references(uint32_t references, uint32_t length)
{
	static char first[8200], head[16384];
	uint32_t n = sizeof(GRPC_HEAD) - 1;

	begin_http2();
	memcpy(first, GRPC_HEAD, n);
	memcpy(first + n, "\x40\1x\x7f", 4);
	first[n + 4] = (char)((length - 127) % 128 | 0x80);
	first[n + 5] = (char)((length - 127) / 128);
	memset(first + n + 6, 'y', length);
	put_frame(FRAME_HEADERS, FRAME_END_HEADERS, 1, first, n + 6 + length);
	memcpy(head, GRPC_HEAD, n);
	memset(head + n, 0xbe, references);
	for (uint32_t call = 3; call < 400 && stream.n < 500000; call += 2) {
		put_frame(FRAME_HEADERS, FRAME_END_HEADERS, call, head, n + references);
		put_frame(FRAME_RST, 0, call, "\0\0\0\10", 4);
	}
}

static void make_one_reference(void)
{
	make_references(1, 4000);
}

static void make_many_references(void)
{
	make_references(16000, 4000);
}

static void make_short_references(void)
{
	make_references(200, 127);
}

static void make_frames(uint8_t type, uint32_t id, const void *bytes, uint32_t n)
{
	begin_http2();
	if (id > 0)
		put_frame(FRAME_HEADERS, FRAME_END_HEADERS, id, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	for (unsigned int i = 0; i < 20000; i++)
		put_frame(type, 0, id, bytes, n);
}

static void make_pings(void)
{
	make_frames(FRAME_PING, 0, "12345678", 8);
}

static void make_settings(void)
{
	make_frames(FRAME_SETTINGS, 0, "\0\4\0\1\0\0", 6);
}

static void make_priorities(void)
{
	begin_http2();
	for (uint32_t i = 0; i < 20000; i++) {
		uint8_t on[5] = {0, 0, (2 * i + 1) >> 8 & 255, (2 * i + 1) & 255, i};

		put_frame(2, 0, 2 * i + 3, on, 5);
	}
}

static void make_windows(void)
{
	make_frames(FRAME_WINDOW, 1, "\0\0\0\1", 4);
}

static void make_empty_data(void)
{
	make_frames(FRAME_DATA, 1, "", 0);
}

static void make_resets(void)
{
	begin_http2();
	for (uint32_t call = 1; call < 2000; call += 2) {
		put_frame(FRAME_HEADERS, FRAME_END_HEADERS, call, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
		put_frame(FRAME_RST, 0, call, "\0\0\0\10", 4);
	}
}

static void make_refused_calls(void)
{
	begin_http2();
	for (uint32_t call = 1; call < 8000; call += 2)
		put_frame(FRAME_HEADERS, FRAME_END_HEADERS | FRAME_END_STREAM, call, GRPC_HEAD,
			  sizeof(GRPC_HEAD) - 1);
}

static void make_calls(void)
{
	static struct text t;

	begin_http2();
	for (uint32_t call = 1; call < 8000; call += 2) {
		t.n = 0;
		text_call(&t, call);
		put_text(&t);
	}
}

/* --- rounds ------------------------------------------------------------------------------------
 */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* us of the longest turn. */
static double turns_run(void (*make)(void), bool batches)
{
	struct walk *w = walk_create(batches ? &row_params : &params);
	struct http_client *c;
	uint64_t longest = 0;

	if (batches)
		kserve_rows_worker(w, NULL, 256);
	else
		kserve_worker(w);
	stream.n = 0;
	make();
	c = http_dial(w, 3000);
	for (uint32_t at = 0, idle = 0; idle < 20 && !c->reset && !c->fin;) {
		uint64_t begin, ns;

		/* Not more than it is offered: the rest of the stream waits. */
		for (uint32_t n = 0; n < TURN_BYTES && at < stream.n && idle == 0; n += 1000) {
			http_put(c, stream.at + at, RTE_MIN(1000u, stream.n - at));
			at += RTE_MIN(1000u, stream.n - at);
		}
		do {
			begin = cpu_ns();
			walk_turn_lcore(w, 0);
			ns = cpu_ns() - begin;
			longest = RTE_MAX(longest, ns);
			walk_wire(w);
		} while (edge_deadline(w->lb->lcore[0]) <= w->lb->lcore[0]->now);
		c->n = 0;
		http_take_all(c);
		http_acknowledge(c);
		walk_jump_us(w, 100);
		idle += at >= stream.n;
	}
	http_abort(c);
	walk_destroy(w);
	return (double)longest / 1000;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(void);
		bool batches;
	} rows[] = {
		{"batches of 256 rows", make_batches, true},
		{"JSON, numbers of a digit", make_json},
		{"JSON, empty lists", make_spaces},
		{"chunks of a byte", make_chunks},
		{"requests of 25 bytes", make_small_requests},
		{"statistics", make_statistics},
		{"calls", make_calls},
		{"calls without a message", make_refused_calls},
		{"typed contents", make_typed},
		{"empty fields of a message", make_empty_fields},
		{"HPACK: a field of 4,000 bytes by reference", make_one_reference},
		{"HPACK: 16,000 of them in a head", make_many_references},
		{"HPACK: 200 fields of 128 bytes", make_short_references},
		{"PING", make_pings},
		{"SETTINGS", make_settings},
		{"PRIORITY", make_priorities},
		{"WINDOW_UPDATE", make_windows},
		{"empty DATA", make_empty_data},
		{"calls that are given up", make_resets},
	};
	unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 5;

	walk_start_eal();
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		double least = 1e9;

		for (unsigned int k = 0; k < rounds; k++) {
			double us = turns_run(rows[i].make, rows[i].batches);

			least = RTE_MIN(least, us);
		}
		printf("%-46s %6.1f us\n", rows[i].name, least);
		fflush(stdout);
	}
	return 0;
}
