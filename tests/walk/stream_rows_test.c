/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of clients that want to harm others, and what is held of them. A row has two bytes; the
 * worker echoes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "grpc_text.h"

#define OTHER "198.51.100.9"

static const struct walk_params params = {
	.services = "  - {name: rows, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 2, max_reply: 2, queue: 4096, "
		    "queue_timeout_ms: 60000, request_timeout_ms: 60000}\n",
	.more = "tcp: {connections: 512, buffer_mb: 32}\n",
	.packets = 8192,
};

/* As many rows as three clients may have take all of these requests. */
static const struct walk_params small = {
	.services = "  - {name: rows, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 2, max_reply: 2}\n",
	.more = "tcp: {connections: 512, buffer_mb: 8}\n",
	.packets = 8192,
};

static const struct walk_params replaying = {
	.services = "  - {name: rows, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 2, max_reply: 2, replay: 1}\n",
	.more = "tcp: {connections: 512, buffer_mb: 8}\n",
};

static struct walk_worker *worker(struct walk *w)
{
	return kserve_rows_worker(w, NULL, 256);
}

/* A batch of binary rows. Returns its length without the rows' bytes, which are behind it. */
static uint32_t write_rows(char *at, uint32_t rows, bool binary_reply)
{
	char json[256];
	uint32_t n = sprintf(json,
			     "{\"inputs\":[{\"name\":\"a\",\"shape\":[%u],\"datatype\":\"UINT16\","
			     "\"parameters\":{\"binary_data_size\":%u}}],\"parameters\":{"
			     "\"binary_data_output\":%s}}",
			     rows, 2 * rows, binary_reply ? "true" : "false");

	n = sprintf(at,
		    "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n"
		    "Inference-Header-Content-Length: %u\r\n\r\n%s",
		    n + 2 * rows, n, json);
	for (uint32_t i = 0; i < 2 * rows; i++)
		at[n + i] = (char)i;
	return n;
}

/* Sends a batch of which so many bytes of rows come. */
static void say_rows(struct http_client *c, uint32_t rows, uint32_t bytes)
{
	static char text[2048];
	uint32_t n = write_rows(text, rows, true);

	http_say(c, text, n + bytes);
}

/* A client of another address has a batch and a row answered. */
static void expect_other(struct walk *w, uint16_t port)
{
	struct http_client *c = http_dial_from(w, OTHER, port);

	say_rows(c, 3, 6);
	http_wait(c);
	walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "its batch: %s", c->got);
	c->n = 0;
	say_rows(c, 1, 2);
	http_wait(c);
	walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "its row: %s", c->got);
	http_abort(c);
}

static const struct walk_params late = {
	.services = "  - {name: rows, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 2, max_reply: 2, deadline_ms: 20}\n",
	.more = "tcp: {connections: 512, buffer_mb: 8}\n",
};

/* Its worker is told of each row, and nothing else is looked for. */
WALK(rows_whose_deadline_passes_end_at_once)
{
	struct walk *w = walk_create(&late);
	struct walk_worker *v = worker(w);
	struct http_client *c;

	v->answers = false;
	c = http_dial(w, 3000);
	say_rows(c, 40, 80);
	walk_settle(w);
	walk_need(v->n_requests == 40);
	walk_pass(w, 24);
	http_take_all(c);
	walk_expect(strstr(c->got, "HTTP/1.1 504 ") == c->got, "%s", c->got);
	for (unsigned int i = 0; i < 40; i++)
		walk_expect(v->request[i].cancelled, "row %u is not cancelled", i);
	walk_expect_drops(w, {LB_DROP_DEADLINE, 40});
	walk_answer_all(v);
	walk_settle(w);
	walk_expect_drops(w, {LB_DROP_REPLY_STALE, 40});
	http_hang_up(c);
	walk_destroy(w);
}

/* --- memory -------------------------------------------------------------------------------------
 */

/* Its rows end in one turn, and there is no memory to say so: the connection ends for the first. */
WALK(rows_that_end_without_memory_for_an_answer)
{
	struct walk *w = walk_create(&late);
	struct walk_worker *v = worker(w);
	struct http_client *c;

	v->answers = false;
	c = http_dial(w, 3000);
	say_rows(c, 3, 6);
	walk_settle(w);
	walk_need(v->n_requests == 3);
	walk_jump(w, 30);
	walk_take_memory(w);
	walk_turns(w, 3);
	walk_give_memory(w);
	walk_settle(w);
	walk_expect(conntrack_count(w->lb->lcore[0]->ct) == 0, "the connection goes on");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_DEADLINE], 3);
	http_forget(c);
	walk_destroy(w);
}

/* Few rows each, which never come whole. */
WALK(one_client_does_not_have_all_batches)
{
	struct walk *w = walk_create(&params);
	struct http_client *c[80];

	worker(w);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		say_rows(c[i], 3, 5);
		walk_pass(w, 1);
	}
	expect_other(w, 4000);
	/* Beyond its share it is told so. */
	http_wait(c[79]);
	walk_expect(strstr(c[79]->got, "HTTP/1.1 503 ") == c[79]->got, "%s", c[79]->got);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_pass(w, 20);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	/* All of them were given back. */
	for (unsigned int i = 0; i < 280; i++) {
		struct http_client *again = http_dial(w, 5000 + i);

		say_rows(again, 3, 6);
		http_wait(again);
		walk_expect(strstr(again->got, "HTTP/1.1 200 OK") == again->got, "%s", again->got);
		http_hang_up(again);
	}
	walk_destroy(w);
}

/* As many rows as may be, of which no byte comes: they hold no packets. */
WALK(rows_without_bytes_leave_requests_for_others)
{
	struct walk *w = walk_create(&small);
	struct http_client *c[64];

	worker(w);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		say_rows(c[i], 256, 0);
		walk_pass(w, 1);
	}
	expect_other(w, 4000);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_pass(w, 200);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* From many addresses: those that have stopped in the middle make room. */
WALK(batches_that_stop_in_the_middle_make_room)
{
	static char source[256][16];
	struct walk *w = walk_create(&params);
	struct http_client *c[256], *other;
	unsigned int reset = 0;

	worker(w);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		sprintf(source[i], "198.51.%u.%u", 101 + i / 128, 1 + i % 128);
		c[i] = http_dial_from(w, source[i], 3000 + i);
		say_rows(c[i], 3, 5);
		walk_pass(w, 1);
	}
	other = http_dial_from(w, OTHER, 4000);
	say_rows(other, 3, 6);
	http_wait(other);
	walk_expect(strstr(other->got, "HTTP/1.1 503 ") == other->got, "%s", other->got);
	walk_pass(w, 1000);
	other->n = 0;
	say_rows(other, 3, 6);
	http_wait(other);
	walk_expect(strstr(other->got, "HTTP/1.1 503 ") == other->got, "%s", other->got);
	walk_pass(w, 20);
	expect_other(w, 4001);
	http_take_all(other);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		reset += c[i]->reset;
	walk_expect_eq(reset, 1);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 1);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	http_abort(other);
	walk_destroy(w);
}

/* --- time ---------------------------------------------------------------------------------------
 */

/* However many rows are complete at once: what one turn sends of them is bounded, and all are
 * answered. */
WALK(a_turn_sends_some_rows)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = worker(w);
	struct http_client *c[2];
	uint64_t most = 0, before = 0, now;
	static char text[2048];

	v->answers = false;
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		c[i] = http_dial(w, 3000 + i);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_put(c[i], text, write_rows(text, 200, true) + 400);
	for (unsigned int i = 0; i < 200 && v->n_requests < 400; i++) {
		walk_turn(w);
		now = walk_service_stats(w, 0).bytes_in / 2;
		most = RTE_MAX(most, now - before);
		before = now;
	}
	walk_expect_eq(v->n_requests, 400);
	walk_expect(most <= 64, "%" PRIu64 " rows in a turn", most);
	while (v->n_requests > 0)
		walk_answer(v, 0, &(struct walk_reply){0});
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_wait(c[i]);
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		walk_expect(c[i]->n > 400 && memcmp(c[i]->got + c[i]->n - 400,
						    text + write_rows(text, 200, true), 400) == 0,
			    "%s", c[i]->got);
		http_hang_up(c[i]);
	}
	walk_destroy(w);
}

/* Turns until a client has the answer to a row. */
static unsigned int turns_of(struct walk *w, struct http_client *c)
{
	static char text[2048];
	unsigned int turns = 0;

	http_put(c, text, write_rows(text, 1, true) + 2);
	for (; turns < 1000 && c->n == 0; turns++) {
		walk_turn(w);
		http_take_all(c);
	}
	walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
	http_abort(c);
	return turns;
}

/* Many large batches become complete in one turn: a client with one row waits a turn or two. */
WALK(a_client_beside_many_batches)
{
	struct walk *w = walk_create(&params);
	struct http_client *c[64], *other;
	unsigned int alone, beside;

	worker(w);
	alone = turns_of(w, http_dial_from(w, OTHER, 4000));
	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		c[i] = http_dial(w, 3000 + i);
		say_rows(c[i], 256, 511);
	}
	other = http_dial_from(w, OTHER, 4001);
	walk_pass(w, 10);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_put(c[i], "\xff", 1);
	beside = turns_of(w, other);
	walk_expect(beside <= 2 * alone, "%u turns, alone %u", beside, alone);
	for (unsigned int i = 0; i < RTE_DIM(c); i++)
		http_abort(c[i]);
	walk_pass(w, 200);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* --- what is held -------------------------------------------------------------------------------
 */

/* While another request keeps the connection busy: answers in JSON and binary, of rows and of one
 * row, and one that fails. */
WALK(what_was_sent_of_batches_is_not_held)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = worker(w);
	struct http_client *c = http_dial(w, 3000);
	static char text[2048];

	v->answers = false;
	for (unsigned int i = 0; i < 6; i++) {
		uint32_t rows = i % 3 == 2 ? 1 : 3;

		walk_context("%u", i);
		http_say(c, text, write_rows(text, rows, i % 2) + 2 * rows);
		http_say(c, text, write_rows(text, 1, true) + 2);
		http_wait(c);
		walk_need(v->n_requests == rows + 1);
		if (i == 4) {
			walk_answer(v, 1,
				    &(struct walk_reply){
					    .status = RING_ERROR, .bytes = "", .n_bytes = 0});
			http_wait(c);
			while (v->n_requests > 1)
				walk_answer(v, 0,
					    &(struct walk_reply){.status = RING_CANCELLED,
								 .bytes = "",
								 .n_bytes = 0});
			v->answers = false;
		} else {
			for (uint32_t k = 0; k < rows; k++)
				walk_answer(v, 0, &(struct walk_reply){0});
		}
		http_wait(c);
		walk_expect(c->n > 0, "no answer");
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
		c->n = 0;
		walk_answer(v, 0, &(struct walk_reply){0});
		http_wait(c);
		walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
		c->n = 0;
	}
	walk_context("%s", "");
	http_hang_up(c);
	walk_destroy(w);
}

/* A request whose body does not come, when its client ends: 100 Continue has waited for its turn.
 */
WALK(what_was_to_be_sent_of_an_incomplete_request_is_not_held)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = worker(w);
	struct http_client *c = http_dial(w, 3000);
	static char text[2048];
	static const char expects[] =
		"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 200\r\n"
		"Expect: 100-continue\r\n\r\n";

	v->answers = false;
	http_say(c, text, write_rows(text, 1, true) + 2);
	http_say(c, expects, sizeof(expects) - 1);
	http_wait(c);
	walk_need(v->n_requests == 1);
	http_finish(c);
	walk_pass(w, 2);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_answer(v, 0, &(struct walk_reply){0});
	http_wait(c);
	walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
	http_abort(c);
	walk_destroy(w);
}

/* A client that ends in the middle of a batch: the rows that a worker has are cancelled. */
WALK(rows_of_a_batch_that_never_comes_whole_are_cancelled)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = worker(w);
	struct http_client *c = http_dial(w, 3000);
	static char text[2048];

	v->answers = false;
	http_say(c, text, write_rows(text, 1, true) + 2);
	say_rows(c, 5, 7);
	http_wait(c);
	walk_need(v->n_requests == 4);
	http_finish(c);
	walk_pass(w, 2);
	for (unsigned int i = 1; i < 4; i++)
		walk_expect(v->request[i].cancelled, "row %u is not cancelled", i - 1);
	walk_expect(!v->request[0].cancelled, "the request before it is");
	http_abort(c);
	walk_destroy(w);
}

/* Those that the lost one had go to the other one, and the client learns nothing of it. */
WALK(rows_of_a_worker_that_is_lost_are_replayed)
{
	struct walk *w = walk_create(&replaying);
	struct walk_worker *a = kserve_rows_worker(w, "a", 256),
			   *b = kserve_rows_worker(w, "b", 256);
	struct http_client *c = http_dial(w, 3000);
	static char text[2048];
	uint32_t n = write_rows(text, 40, true);

	a->answers = b->answers = false;
	http_say(c, text, n + 80);
	http_wait(c);
	walk_need(a->n_requests > 0 && b->n_requests > 0 && a->n_requests + b->n_requests == 40);
	a->gone = true;
	for (unsigned int i = 0; i < 200; i++) {
		walk_pass(w, 5);
		walk_answer_all(b);
	}
	http_wait(c);
	walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
	walk_expect(c->n > 80 && memcmp(c->got + c->n - 80, text + n, 80) == 0, "other bytes");
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	http_hang_up(c);
	walk_destroy(w);
}

/* --- rows that differ in length -----------------------------------------------------------------
 */

static const struct walk_params of_bytes = {
	.services = "  - {name: rows, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 4000, max_reply: 4000}\n",
};

/* Its rows have an element of BYTES, which it says again. */
static struct walk_worker *bytes_worker(struct walk *w)
{
	static struct model_description described;
	const struct walk_worker_params limits = {
		.max_request = 4000, .max_reply = 4000, .slots = 64, .max_batch = 8};

	described = kserve_one_tensor(DATATYPE_BYTES);
	described.batch = true;
	described.input[0].rank = described.output[0].rank = 2;
	described.input[0].shape[1] = described.output[0].shape[1] = 1;
	return kserve_worker_of(w, &limits, 4, &described);
}

/* Its rows have a number behind two elements of BYTES. A row's reply has a byte. */
static struct walk_worker *mixed_worker(struct walk *w)
{
	static struct model_description described = {
		.version = "1",
		.batch = true,
		.n_inputs = 2,
		.n_outputs = 1,
		.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 2}},
			  {.name = "n", .datatype = DATATYPE_UINT16, .rank = 1, .shape = {-1}}},
		.output = {{.name = "b", .datatype = DATATYPE_UINT8, .rank = 2, .shape = {-1, -1}}},
	};
	const struct walk_worker_params limits = {
		.max_request = 4000, .max_reply = 4000, .slots = 64, .max_batch = 8};

	return kserve_worker_of(w, &limits, 10, &described);
}

/* A request of this JSON, and binary tensors behind it; in chunks of three bytes, or in a row. */
static void say_infer(struct http_client *c, const char *json, const void *behind, uint32_t n,
		      bool chunked, bool cut)
{
	static char text[65536];
	uint32_t length = strlen(json), at;

	at = sprintf(text, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n%s: ",
		     chunked ? "Transfer-Encoding" : "Content-Length");
	at += chunked ? sprintf(text + at, "chunked") : sprintf(text + at, "%u", length + n);
	if (n > 0)
		at += sprintf(text + at, "\r\nInference-Header-Content-Length: %u", length);
	at += sprintf(text + at, "\r\n\r\n");
	for (uint32_t i = 0, most; i < length + n; i += most) {
		most = chunked ? RTE_MIN(3u, length + n - i) : length + n - i;
		if (chunked)
			at += sprintf(text + at, "%u\r\n", most);
		for (uint32_t k = i; k < i + most; k++)
			text[at++] = k < length ? json[k] : ((const char *)behind)[k - length];
		if (chunked)
			at += sprintf(text + at, "\r\n");
	}
	if (chunked)
		at += sprintf(text + at, "0\r\n\r\n");
	for (uint32_t i = 0; cut && i < at; i++)
		http_say(c, text + i, 1);
	if (!cut)
		http_say(c, text, at);
	http_wait(c);
}

#define BYTES_INPUT(shape, more)                                                                   \
	"{\"inputs\":[{\"name\":\"a\",\"shape\":" shape ",\"datatype\":\"BYTES\"," more "}]"
#define BYTES_ROWS "\1\0\0\0a\0\0\0\0\3\0\0\0xyz"
#define BYTES_BINARY                                                                               \
	BYTES_INPUT("[3,1]", "\"parameters\":{\"binary_data_size\":16}")                           \
	",\"parameters\":{\"binary_data_output\":true}}"

/* The worker has got the rows of BYTES_ROWS; it answers them, the last one first. */
static void answer_bytes(struct walk_worker *v)
{
	static const struct {
		uint32_t length;
		const char *bytes;
	} row[] = {{5, "\1\0\0\0a"}, {4, "\0\0\0\0"}, {7, "\3\0\0\0xyz"}};

	walk_need(v->n_requests == 3, "%u rows", v->n_requests);
	for (unsigned int i = 0; i < 3; i++) {
		walk_expect_eq(v->request[i].length, row[i].length);
		walk_expect(memcmp(v->request[i].bytes, row[i].bytes, row[i].length) == 0,
			    "other bytes of row %u", i);
	}
	for (unsigned int i = 3; i-- > 0;)
		walk_answer(v, i, &(struct walk_reply){0});
}

WALK(rows_of_bytes_are_cut_by_their_lengths)
{
	struct walk *w = walk_create(&of_bytes);
	struct walk_worker *v = bytes_worker(w);
	struct http_client *c = http_dial(w, 3000);

	v->answers = false;
	for (unsigned int i = 0; i < 8; i++) {
		bool binary = i & 1;

		walk_context("%u", i);
		say_infer(c,
			  binary ? BYTES_BINARY
				 : BYTES_INPUT("[3,1]", "\"data\":[[\"a\"],[\"\"],[\"xyz\"]]") "}",
			  BYTES_ROWS, binary ? 16 : 0, i & 2, i & 4);
		answer_bytes(v);
		http_wait(c);
		walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
		walk_expect(strstr(c->got, "\"shape\":[3,1]") != NULL, "%s", c->got);
		if (binary)
			walk_expect(memcmp(c->got + c->n - 16, BYTES_ROWS, 16) == 0, "other bytes");
		else
			walk_expect(strstr(c->got, "\"data\":[\"a\",\"\",\"xyz\"]") != NULL, "%s",
				    c->got);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
		c->n = 0;
	}
	walk_context("%s", "");
	http_hang_up(c);
	walk_destroy(w);
}

/* Two outputs of BYTES. */
static struct walk_worker *pairs_worker(struct walk *w)
{
	static struct model_description described = {
		.version = "1",
		.batch = true,
		.n_inputs = 1,
		.n_outputs = 2,
		.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 1}}},
		.output = {{.name = "b", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 1}},
			   {.name = "c", .datatype = DATATYPE_BYTES, .rank = 2, .shape = {-1, 1}}},
	};
	const struct walk_worker_params limits = {
		.max_request = 4000, .max_reply = 4000, .slots = 64, .max_batch = 8};

	return kserve_worker_of(w, &limits, 4, &described);
}

struct row_answer {
	uint32_t n;
	const char *bytes;
};

/* Asks for <n> rows, which the worker answers so; in JSON, or with binary outputs. */
static void ask_for_answers(struct http_client *c, struct walk_worker *v, unsigned int n,
			    bool binary, const struct row_answer *row)
{
	static const char *const text[] = {
		BYTES_INPUT("[1,1]", "\"data\":[[\"a\"]]") "}",
		BYTES_INPUT("[3,1]", "\"data\":[[\"a\"],[\"\"],[\"xyz\"]]") "}"};
	static const char *const json[] = {
		BYTES_INPUT("[1,1]",
			    "\"parameters\":{\"binary_data_size\":5}") ",\"parameters\":{\"binary_"
								       "data_output\":true}}",
		BYTES_BINARY};

	say_infer(c, (binary ? json : text)[n > 1], BYTES_ROWS,
		  !binary ? 0
		  : n > 1 ? 16
			  : 5,
		  false, false);
	walk_need(v->n_requests == n, "%u rows: %s", v->n_requests, c->got);
	for (unsigned int i = n; i-- > 0;)
		walk_answer(v, i, &(struct walk_reply){.bytes = row[i].bytes, .n_bytes = row[i].n});
	http_wait(c);
	walk_expect_eq(edge_held_packets(c->w->lb->lcore[0]), 0);
}

/* All but those that fit are not what the model's description says. */
WALK(answers_of_bytes_that_do_not_fit_their_rows_are_errors)
{
	static const struct {
		unsigned int n;
		bool pairs, fits;
		struct row_answer row[3];
	} rows[] = {
		{3, false, true, {{5, "\1\0\0\0a"}, {4, "\0\0\0\0"}, {6, "\2\0\0\0xy"}}},
		/* two elements in a row, and none in another one */
		{3, false, false, {{10, "\1\0\0\0a\1\0\0\0b"}, {1, "c"}, {5, "\1\0\0\0d"}}},
		/* an element that goes on in the next row */
		{3, false, false, {{5, "\5\0\0\0a"}, {4, "\0\0\0\0"}, {5, "\1\0\0\0c"}}},
		{3, false, false, {{5, "\1\0\0\0a"}, {5, "\0\0\0\0b"}, {5, "\1\0\0\0c"}}},
		{3, false, false, {{5, "\1\0\0\0a"}, {5, "\1\0\0\0b"}, {3, "\0\0\0"}}},
		{3, false, false, {{5, "\1\0\0\0a"}, {5, "\1\0\0\0b"}, {5, "\2\0\0\0c"}}},
		{3, false, false, {{5, "\1\0\0\0a"}, {5, "\1\0\0\0b"}, {5, "\xff\xff\xff\xff."}}},
		{1, false, true, {{5, "\1\0\0\0a"}}},
		{1, false, false, {{10, "\1\0\0\0a\1\0\0\0b"}}},
		{1, false, false, {{5, "\2\0\0\0a"}}},
		{1, true, true, {{11, "\1\0\0\0a\2\0\0\0bc"}}},
		{1, true, false, {{11, "\1\0\0\0a\3\0\0\0bc"}}},
		{1, true, false, {{11, "\1\0\0\0a\1\0\0\0bc"}}},
		{1, true, false, {{11, "\7\0\0\0abcdefg"}}},
	};

	for (unsigned int i = 0; i < 2 * RTE_DIM(rows); i++) {
		struct walk *w = walk_create(&of_bytes);
		struct walk_worker *v = rows[i / 2].pairs ? pairs_worker(w) : bytes_worker(w);
		struct http_client *c = http_dial(w, 3000);

		walk_context("%u", i);
		v->answers = false;
		ask_for_answers(c, v, rows[i / 2].n, i & 1, rows[i / 2].row);
		if (rows[i / 2].fits)
			walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
		else
			walk_expect(strstr(c->got, "does not fit its outputs") != NULL, "%s",
				    c->got);
		http_hang_up(c);
		walk_destroy(w);
	}
	walk_context("%s", "");
}

static void say_call(struct http_client *c, struct text *t, const char *message, uint32_t n,
		     bool cut)
{
	text_preface(t);
	text_frame(t, FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	text_frame(t, FRAME_DATA, 0, 1, message, n / 2);
	text_frame(t, FRAME_DATA, FRAME_END_STREAM, 1, message + n / 2, n - n / 2);
	for (uint32_t i = 0; cut && i < t->n; i++)
		http_say(c, t->at + i, 1);
	if (!cut)
		http_say(c, t->at, t->n);
	http_wait(c);
}

#define CALL_INPUT  "\xa\1a\x12\5BYTES\x1a\2\3\1"
#define CALL_RAW    "\0\0\0\0\x28\xa\4echo\x2a\xe" CALL_INPUT "\x3a\x10" BYTES_ROWS
#define CALL_TYPED  "\0\0\0\0\x22\xa\4echo\x2a\x1a" CALL_INPUT "\x2a\xa\x42\1a\x42\0\x42\3xyz"
#define CALL_EARLY  "\0\0\0\0\x28\x3a\x10" BYTES_ROWS "\xa\4echo\x2a\xe" CALL_INPUT
#define CALL_ANSWER "\x32\x10" BYTES_ROWS

WALK(rows_of_bytes_come_by_grpc)
{
	static const struct {
		const char *message;
		uint32_t n;
	} calls[] = {{CALL_RAW, sizeof(CALL_RAW) - 1},
		     {CALL_TYPED, sizeof(CALL_TYPED) - 1},
		     {CALL_EARLY, sizeof(CALL_EARLY) - 1}};
	struct walk *w = walk_create(&of_bytes);
	struct walk_worker *v = bytes_worker(w);
	static struct text t;

	v->answers = false;
	for (unsigned int i = 0; i < 2 * RTE_DIM(calls); i++) {
		struct http_client *c = http_dial(w, 3000 + i);

		walk_context("%u", i);
		say_call(c, &t, calls[i / 2].message, calls[i / 2].n, i & 1);
		answer_bytes(v);
		http_wait(c);
		walk_expect_eq(text_count(c, CALL_ANSWER, sizeof(CALL_ANSWER) - 1), 1);
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

#define MIXED_A     "\"name\":\"a\",\"shape\":[2,2],\"datatype\":\"BYTES\""
#define MIXED_N     "{\"name\":\"n\",\"shape\":[2],\"datatype\":\"UINT16\""
#define MIXED_BYTES "\1\0\0\0p\0\0\0\0\0\0\0\0\2\0\0\0qr"

/* Both inputs of a row lie side by side, however they come. */
WALK(rows_of_bytes_and_numbers)
{
	static const struct {
		const char *json, *behind;
		uint32_t n;
	} asked[] = {
		{"{\"inputs\":[{" MIXED_A ",\"data\":[\"p\",\"\",\"\",\"qr\"]}," MIXED_N
		 ",\"data\":[258,772]}]}",
		 "", 0},
		{"{\"inputs\":[{" MIXED_A ",\"parameters\":{\"binary_data_size\":19}}," MIXED_N
		 ",\"data\":[258,772]}]}",
		 MIXED_BYTES, 19},
		{"{\"inputs\":[" MIXED_N ",\"parameters\":{\"binary_data_size\":4}},{" MIXED_A
		 ",\"parameters\":{\"binary_data_size\":19}}]}",
		 "\2\1\4\3" MIXED_BYTES, 23},
	};
	struct walk *w = walk_create(&of_bytes);
	struct walk_worker *v = mixed_worker(w);
	struct http_client *c = http_dial(w, 3000);

	v->answers = false;
	for (unsigned int i = 0; i < 2 * RTE_DIM(asked); i++) {
		walk_context("%u", i);
		say_infer(c, asked[i / 2].json, asked[i / 2].behind, asked[i / 2].n, false, i & 1);
		walk_need(v->n_requests == 2, "%s", c->got);
		walk_expect(v->request[0].length == 11 &&
				    memcmp(v->request[0].bytes, "\1\0\0\0p\0\0\0\0\2\1", 11) == 0,
			    "row 0");
		walk_expect(v->request[1].length == 12 &&
				    memcmp(v->request[1].bytes, "\0\0\0\0\2\0\0\0qr\4\3", 12) == 0,
			    "row 1");
		walk_answer(v, 1, &(struct walk_reply){.bytes = "\7", .n_bytes = 1});
		walk_answer(v, 0, &(struct walk_reply){.bytes = "\5", .n_bytes = 1});
		http_wait(c);
		walk_expect(strstr(c->got, "\"shape\":[2,1],\"data\":[5,7]") != NULL, "%s", c->got);
		c->n = 0;
	}
	walk_context("%s", "");
	http_hang_up(c);
	walk_destroy(w);
}

/* Lengths that are wrong, rows that are too many or too long: a worker gets nothing of them. */
WALK(rows_of_bytes_that_are_refused)
{
	static char many[5000];
	static const struct {
		const char *shape, *size, *bytes, *says;
		uint32_t n;
	} asked[] = {
		{"[3,1]", "16", "\1\0\0\0a\0\0\0\0\4\0\0\0xyz", "an element of row 2 ends behind",
		 16},
		{"[3,1]", "16",
		 "\xff\xff\xff\xff"
		 "a\0\0\0\0\3\0\0\0xyz",
		 "element of row 0 ends", 16},
		{"[3,1]", "15", "\1\0\0\0a\0\0\0\0\3\0\0\0xy", "an element of row 2 ends behind",
		 15},
		{"[3,1]", "10", "\1\0\0\0a\0\0\0\0\3",
		 "binary_data_size is 10, shape and datatype say 12", 10},
		{"[3,1]", "17", BYTES_ROWS "z", "bytes follow its last element, of 3 rows", 17},
		{"[2,1]", "16", BYTES_ROWS, "bytes follow its last element, of 2 rows", 16},
		{"[0,1]", "16", BYTES_ROWS, "0 rows, the model takes 1 to 8", 16},
		{"[9,1]", "36", many, "9 rows, the model takes 1 to 8", 36},
		{"[2,1]", "4010", many,
		 "the inputs have 4006 bytes, the service takes 4000, per row", 4010},
		{"[2,1]", "4097", many, "more than 4096 bytes of rows with BYTES", 4097},
	};
	struct walk *w = walk_create(&of_bytes);
	struct walk_worker *v = bytes_worker(w);
	struct http_client *c = http_dial(w, 3000);
	static char json[4400];
	static struct text t;

	v->answers = false;
	many[4] = (char)(4002 & 255);
	many[5] = (char)(4002 >> 8);
	for (unsigned int i = 0; i < RTE_DIM(asked); i++) {
		walk_context("%u", i);
		sprintf(json, BYTES_INPUT("%s", "\"parameters\":{\"binary_data_size\":%s}") "}",
			asked[i].shape, asked[i].size);
		say_infer(c, json, asked[i].bytes, asked[i].n, false, false);
		walk_expect(strstr(c->got, asked[i].says) != NULL, "%s", c->got);
		walk_expect_eq(v->n_requests, 0);
		c->n = 0;
	}
	/* The next request of the connection is none of their bytes. */
	say_infer(c, BYTES_BINARY, BYTES_ROWS, 16, false, false);
	answer_bytes(v);
	http_wait(c);
	c->n = 0;
	/* In JSON the sum is known late. */
	memset(many, 'x', 2100);
	sprintf(json, BYTES_INPUT("[2,1]", "\"data\":[\"%.2100s\",\"%.2100s\"]") "}", many, many);
	say_infer(c, json, NULL, 0, false, false);
	walk_expect(strstr(c->got, "more than 4096 bytes of rows with BYTES") != NULL, "%s",
		    c->got);
	http_hang_up(c);
	c = http_dial(w, 3001);
	say_call(c, &t,
		 "\0\0\0\0\x28\xa\4echo\x2a\xe" CALL_INPUT "\x3a\x10\1\0\0\0a\0\0\0\0\4\0\0\0xyz",
		 45, false);
	walk_expect_eq(text_frames(c, FRAME_HEADERS, 1), 1);
	walk_expect_eq(text_frames(c, FRAME_DATA, 1), 0);
	walk_expect_eq(v->n_requests, 0);
	http_hang_up(c);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* One of more than a packet among short ones, and a client that goes in the middle. */
WALK(rows_of_bytes_beside_one_of_more_than_a_packet)
{
	struct walk *w = walk_create(&of_bytes);
	struct walk_worker *v = bytes_worker(w);
	struct http_client *c = http_dial(w, 3000);
	static char rows[3012];

	memcpy(rows, "\1\0\0\0a", 5);
	rows[5] = (char)(2997 & 255);
	rows[6] = (char)(2997 >> 8);
	for (unsigned int i = 9; i < 3006; i++)
		rows[i] = (char)i;
	memcpy(rows + 3006, "\2\0\0\0yz", 6);
	for (unsigned int i = 0; i < 2; i++) {
		v->answers = i == 1;
		say_infer(
			c,
			BYTES_INPUT("[3,1]",
				    "\"parameters\":{\"binary_data_size\":3012}") ",\"parameters\":"
										  "{\"binary_data_"
										  "output\":true}}",
			rows, sizeof(rows), false, false);
		if (i == 0) {
			walk_need(v->n_requests == 3, "%s", c->got);
			http_finish(c);
			http_abort(c);
			walk_pass(w, 20);
			for (unsigned int k = 0; k < 3; k++)
				walk_expect(v->request[k].cancelled, "row %u is not", k);
			walk_answer_all(v);
			walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
			c = http_dial(w, 3001);
			continue;
		}
		walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
		walk_expect(memcmp(c->got + c->n - sizeof(rows), rows, sizeof(rows)) == 0,
			    "other bytes");
	}
	http_hang_up(c);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}
