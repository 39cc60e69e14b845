/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that end, or are ended, with everything open. */
#include <stdio.h>
#include <string.h>

#include "text_turns.h"

#define ROW_BYTES 2000u
/* Batches that a client may have with this memory. */
#define BATCHES   24u

/* Requests are not answered, and do not time out. */
#define SERVICE(bytes)                                                                             \
	"  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4           \
	", port: 8000, model: echo, max_request: " bytes ", max_reply: " bytes ", queue: 4096, "   \
	"queue_timeout_ms: 60000, request_timeout_ms: 60000}\n"

static const struct walk_params row_params = {
	.services = SERVICE("2000"),
	.more = "tcp: {connections: 256, buffer_mb: 64}\n",
	.packets = 16384,
};

static const struct walk_params params = {
	.services = SERVICE("64KiB"),
	.more = "tcp: {connections: 256, buffer_mb: 64}\n",
	.packets = 16384,
};

static void silent_worker(struct walk *w, const struct text_kind *k)
{
	kserve_worker(w)->answers = false;
}

static void large_rows_worker(struct walk *w, const struct text_kind *k)
{
	static const struct walk_worker_params many = {.max_request = ROW_BYTES,
						       .max_reply = ROW_BYTES,
						       .slots = 256,
						       .max_batch = 256,
						       .room = 4 << 20};
	static struct model_description described;

	described = kserve_one_tensor(DATATYPE_UINT8);
	described.batch = true;
	described.input[0].rank = described.output[0].rank = 2;
	described.input[0].shape[1] = described.output[0].shape[1] = ROW_BYTES;
	kserve_worker_of(w, &many, ROW_BYTES, &described)->answers = false;
}

static void say_all(struct http_client *c, const struct text *t)
{
	http_say(c, t->at, t->n);
	walk_pass(c->w, 1);
	http_take_all(c);
	http_acknowledge(c);
}

/* --- batches ------------------------------------------------------------------------------------
 */

/* The beginning of a batch of 256 large rows, without a byte of them. */
static void write_batch(struct text *t)
{
	static const char json[] = "{\"inputs\":[{\"name\":\"a\",\"shape\":[256,2000],\"datatype\":"
				   "\"UINT8\",\"parameters\":{\"binary_data_size\":512000}}]}";

	t->n = sprintf(t->at,
		       "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n"
		       "Inference-Header-Content-Length: %zu\r\n\r\n%s",
		       sizeof(json) - 1 + 512000, sizeof(json) - 1, json);
}

/* A connection for each batch. All are reset in one turn. */
static void end_batches(struct walk *w)
{
	struct http_client *c[BATCHES];
	static struct text t;

	for (unsigned int i = 0; i < BATCHES; i++) {
		c[i] = http_dial(w, 3000 + i);
		write_batch(&t);
		t.n += sprintf(t.at + t.n, "%0500u", 1);
		say_all(c[i], &t);
	}
	walk_expect_eq(walk_service_stats(w, 0).notices, 0);
	for (unsigned int i = 0; i < BATCHES; i++)
		http_put_reset(c[i]);
	text_turns_pass(w, c[0], 300);
	for (unsigned int i = 0; i < BATCHES; i++)
		http_forget(c[i]);
}

/* All batches are calls of one connection. */
static void end_batch_calls(struct walk *w)
{
	/* 256 rows of 2,000 bytes: 512,000 */
	static const char message[] =
		"\0\0\x7\xd0\x22\xa\4echo\x2a\x12\xa\1a\x12\5UINT8\x1a\4\x80\2\xd0\xf\x3a\x80\xa0\x1f";
	struct http_client *c = http_dial(w, 3000);
	static struct text t;

	text_preface(&t);
	for (uint32_t call = 0; call < BATCHES; call++) {
		text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 2 * call + 1, GRPC_HEAD,
			   sizeof(GRPC_HEAD) - 1);
		text_frame(&t, FRAME_DATA, 0, 2 * call + 1, message, sizeof(message) - 1);
	}
	say_all(c, &t);
	http_put_reset(c);
	text_turns_pass(w, c, 300);
	http_forget(c);
}

/* --- everything else ----------------------------------------------------------------------------
 */

/* 60 calls that worker and client have not ended, on each of some connections. */
static void end_calls(struct walk *w)
{
	struct http_client *c[8];
	static struct text t;

	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		text_preface(&t);
		for (uint32_t call = 0; call < 60; call++)
			text_call(&t, 2 * call + 1);
		say_all(c[i], &t);
	}
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_put_reset(c[i]);
	text_turns_pass(w, c[0], 300);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_forget(c[i]);
}

/* Replies of megabytes that the client does not take. */
static void end_replies(struct walk *w)
{
	static const char json[] = "{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\","
				   "\"data\":[0,0]},{\"name\":\"b\",\"shape\":[60000],\"datatype\":"
				   "\"UINT8\",\"parameters\":{\"binary_data_size\":60000}}]}";
	struct http_client *c[16];
	static char request[65536];
	uint32_t n;

	w->worker[0]->answers = true;
	n = sprintf(request,
		    "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n"
		    "Inference-Header-Content-Length: %zu\r\n\r\n%s",
		    sizeof(json) - 1 + 60000, sizeof(json) - 1, json);
	memset(request + n, 199, 60000);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		c[i]->window = 1;
		for (unsigned int k = 0; k < 8; k++)
			http_say(c[i], request, n + 60000);
	}
	text_turns_pass(w, c[0], 1000);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_put_reset(c[i]);
	text_turns_pass(w, c[0], 300);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_forget(c[i]);
}

/* Bytes out of order: what is missing does not come. */
static void end_holes(struct walk *w)
{
	struct http_client *c[8];
	static char bytes[1000];

	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		c[i]->seq += 100;
		for (unsigned int k = 0; k < 60; k++) {
			http_put(c[i], bytes, sizeof(bytes));
			text_turn(w);
		}
		c[i]->seq -= 60100;
	}
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_put_reset(c[i]);
	text_turns_pass(w, c[0], 100);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_forget(c[i]);
}

const struct text_kind text_ends[] = {
	{"ends with 24 batches of large rows", &row_params, large_rows_worker, .run = end_batches},
	{"the same, in one connection", &row_params, large_rows_worker, .run = end_batch_calls},
	{"ends with 480 open calls", &params, silent_worker, .run = end_calls},
	{"ends with replies that are not taken", &params, silent_worker, .run = end_replies},
	{"ends with bytes out of order", &params, silent_worker, .run = end_holes},
};
const unsigned int n_text_ends = RTE_DIM(text_ends);
