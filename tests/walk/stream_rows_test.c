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

/* --- memory -------------------------------------------------------------------------------------
 */

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
