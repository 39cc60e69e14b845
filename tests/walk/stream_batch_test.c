/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches by framing kserve: rows are requests of their own, and one answer. The worker echoes. */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "grpc_text.h"

/* A service whose rows have so many bytes. */
static struct walk *create(uint32_t row)
{
	static char services[256];
	const struct walk_params params = {
		.services = services,
		.more = "tcp: {connections: 256, buffer_mb: 8}\n",
	};

	sprintf(services,
		"  - {name: rows, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		", port: 8000, model: echo, max_request: %u, max_reply: %u}\n",
		row, row);
	return walk_create(&params);
}

/* A row has 6 bytes of <a>, and then <wide> of <b>; a batch has up to 8. */
static struct walk_worker *row_worker(struct walk *w, int32_t wide)
{
	static struct model_description described = {
		.version = "1",
		.batch = true,
		.n_inputs = 2,
		.n_outputs = 2,
		.input = {{.name = "a", .datatype = DATATYPE_UINT16, .rank = 2, .shape = {-1, 3}},
			  {.name = "b", .datatype = DATATYPE_UINT8, .rank = 2}},
		.output = {{.name = "c", .datatype = DATATYPE_UINT16, .rank = 2, .shape = {-1, 3}},
			   {.name = "d", .datatype = DATATYPE_UINT8, .rank = 2}},
	};
	static const struct walk_worker_params roomy = {
		.max_request = 65536, .max_reply = 65536, .room = 1 << 20, .max_batch = 8};
	struct walk_worker_params fixed = roomy;
	struct lb_registration r;
	struct walk_worker *v;

	described.input[1].shape[0] = described.output[1].shape[0] = -1;
	described.input[1].shape[1] = described.output[1].shape[1] = wide;
	fixed.max_request = fixed.max_reply = 6 + (uint32_t)wide;
	walk_worker_registration(w, &fixed, &r);
	r.worker.min_request = 6 + (uint32_t)wide;
	r.worker.description = &described;
	v = walk_worker_register_as(w, &r);
	walk_need(v != NULL, "%s", w->error);
	walk_need(walk_worker_start(v), "not active");
	return v;
}

#define POST "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
#define JSON(rows, a, b)                                                                           \
	"{\"inputs\":[{\"name\":\"a\",\"shape\":[" rows ",3],\"datatype\":\"UINT16\",\"data\":[" a \
	"]},{\"name\":\"b\",\"shape\":[" rows ",4],\"datatype\":\"UINT8\",\"data\":[" b "]}]}"
#define BINARY                                                                                     \
	"{\"inputs\":[{\"name\":\"b\",\"shape\":[3,4],\"datatype\":\"UINT8\",\"parameters\":{"     \
	"\"binary_data_size\":12}},{\"name\":\"a\",\"shape\":[3,3],\"datatype\":\"UINT16\","       \
	"\"parameters\":{\"binary_data_size\":18}}],\"parameters\":{\"binary_data_output\":true}}"
#define A "1,2,3,4,5,6,7,8,9"
#define B "11,12,13,14,15,16,17,18,19,20,21,22"
static const uint8_t bytes_a[] = {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0},
		     bytes_b[] = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22};

static uint32_t write_json(char *at, const char *json)
{
	return sprintf(at, POST "Content-Length: %zu\r\n\r\n%s", strlen(json), json);
}

static uint32_t write_binary(char *at)
{
	uint32_t n = sprintf(at,
			     POST "Content-Length: %zu\r\nInference-Header-Content-Length: %zu\r\n"
				  "\r\n%s",
			     sizeof(BINARY) - 1 + 30, sizeof(BINARY) - 1, BINARY);

	memcpy(at + n, bytes_b, 12);
	memcpy(at + n + 12, bytes_a, 18);
	return n + 30;
}

static void expect_json(const struct http_client *c)
{
	walk_expect(strstr(c->got, "{\"name\":\"c\",\"datatype\":\"UINT16\",\"shape\":[3,3],"
				   "\"data\":[" A "]},{\"name\":\"d\",\"datatype\":\"UINT8\","
				   "\"shape\":[3,4],\"data\":[" B "]}]}") != NULL,
		    "%s", c->got);
}

/* Requests in JSON and in binary, cut at every byte. */
WALK(rows_that_are_cut_anywhere)
{
	struct walk *w = create(10);
	struct walk_worker *v = row_worker(w, 4);
	static char text[2048];

	for (unsigned int binary = 0; binary < 2; binary++) {
		uint32_t n = binary ? write_binary(text) : write_json(text, JSON("3", A, B));

		for (uint32_t cut = 1; cut <= n; cut++) {
			struct http_client *c = http_dial(w, 3000 + binary * 1000 + cut);

			walk_context("%s, cut at %u", binary ? "binary" : "JSON", cut);
			http_say(c, text, cut);
			http_say(c, text + cut, n - cut);
			http_wait(c);
			if (binary == 0)
				expect_json(c);
			else
				walk_expect(c->n > 30 &&
						    memcmp(c->got + c->n - 30, bytes_a, 18) == 0 &&
						    memcmp(c->got + c->n - 12, bytes_b, 12) == 0,
					    "other bytes");
			http_hang_up(c);
		}
	}
	walk_context("%s", "");
	walk_expect_eq(walk_service_stats(w, 0).replies, v->answered);
	walk_expect_no_drops(w);
	walk_destroy(w);
}

/* Many more rows than a burst has place for; one too many. */
WALK(as_many_rows_as_the_model_takes)
{
	struct walk *w = create(2);

	kserve_rows_worker(w, NULL, 200);
	for (unsigned int rows = 199; rows < 202; rows++) {
		struct http_client *c = http_dial(w, 3000 + rows);
		static char text[8192], values[4096], want[4200];
		uint32_t n = 0;

		walk_context("%u rows", rows);
		for (unsigned int i = 0; i < rows; i++)
			n += sprintf(values + n, "%s%u", i > 0 ? "," : "", i * 7);
		sprintf(want, "\"shape\":[%u],\"data\":[%s]}]}", rows, values);
		n = sprintf(text,
			    "{\"inputs\":[{\"name\":\"a\",\"shape\":[%u],\"datatype\":\"UINT16\","
			    "\"data\":[%s]}]}",
			    rows, values);
		http_say(c, text + 5000,
			 sprintf(text + 5000, POST "Content-Length: %u\r\n\r\n", n));
		http_say(c, text, n);
		http_wait(c);
		if (rows <= 200)
			walk_expect(strstr(c->got, want) != NULL, "%s", c->got);
		else
			walk_expect(strstr(c->got, "400 Bad Request") != NULL &&
					    strstr(c->got, "201 rows, the model takes 1 to 200") !=
						    NULL,
				    "%s", c->got);
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_expect_eq(walk_service_stats(w, 0).replies, 399);
	walk_destroy(w);
}

/* Three rows, whose requests the worker keeps. */
static struct http_client *ask_three(struct walk *w, struct walk_worker *v, uint16_t port)
{
	struct http_client *c = http_dial(w, port);
	static char text[1024];

	v->answers = false;
	http_say(c, text, write_json(text, JSON("3", A, B)));
	http_wait(c);
	walk_need(v->n_requests == 3, "%u requests: %s", v->n_requests, c->got);
	walk_expect_eq(c->n, 0);
	return c;
}

WALK(rows_are_answered_in_any_order)
{
	static const unsigned int orders[][3] = {{0, 0, 0}, {2, 1, 0}, {1, 1, 0}, {2, 0, 0}};
	struct walk *w = create(10);
	struct walk_worker *v = row_worker(w, 4);

	for (size_t i = 0; i < RTE_DIM(orders); i++) {
		struct http_client *c = ask_three(w, v, 3000 + i);

		walk_context("order %zu", i);
		walk_expect_eq(v->request[1].length, 10);
		walk_expect(memcmp(v->request[1].bytes, bytes_a + 6, 6) == 0 &&
				    memcmp(v->request[1].bytes + 6, bytes_b + 4, 4) == 0,
			    "another row");
		for (unsigned int k = 0; k < 3; k++) {
			walk_expect_eq(c->n, 0);
			walk_answer(v, orders[i][k], &(struct walk_reply){0});
			http_wait(c);
		}
		expect_json(c);
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* One that fails, first, in the middle or last: the others are cancelled, or were in vain. */
WALK(a_row_that_fails_fails_all)
{
	static const char want[] = "{\"error\":\"row 1: the model failed";
	struct walk *w = create(10);
	struct walk_worker *v = row_worker(w, 4);

	for (unsigned int before = 0; before < 3; before++) {
		struct http_client *c = ask_three(w, v, 3000 + before);
		unsigned int place = 1;

		walk_context("%u answered before", before);
		if (before > 0) {
			walk_answer(v, 0, &(struct walk_reply){0});
			place = 0;
		}
		if (before > 1)
			walk_answer(v, 1, &(struct walk_reply){0});
		walk_answer(v, place,
			    &(struct walk_reply){.status = RING_ERROR, .bytes = "", .n_bytes = 0});
		http_wait(c);
		walk_expect(strstr(c->got, "HTTP/1.1 500 ") == c->got, "%s", c->got);
		walk_expect(strstr(c->got, want) != NULL, "%s", c->got);
		for (unsigned int i = 0; i < v->n_requests; i++)
			walk_expect(v->request[i].cancelled, "row %u is not cancelled", i);
		while (v->n_requests > 0)
			walk_answer(v, 0,
				    &(struct walk_reply){
					    .status = RING_CANCELLED, .bytes = "", .n_bytes = 0});
		http_wait(c);
		walk_expect_eq(walk_worker_stats(v).outstanding, 0);
		/* The connection goes on. */
		v->answers = true;
		http_say(c, "GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n", 29);
		http_wait(c);
		walk_expect(strstr(c->got, "\"doorbell\"") != NULL, "%s", c->got);
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* A row of another length than the others; one that comes in pieces. */
WALK(rows_that_are_none_of_the_model)
{
	struct walk *w = create(10);
	struct walk_worker *v = row_worker(w, 4);

	for (unsigned int more = 0; more < 2; more++) {
		struct http_client *c = ask_three(w, v, 3000 + more);

		walk_answer(v, 0, &(struct walk_reply){.more = more});
		if (more == 0) {
			walk_answer(v, 0, &(struct walk_reply){.bytes = bytes_b, .n_bytes = 9});
			walk_answer(v, 0, &(struct walk_reply){.bytes = bytes_b, .n_bytes = 11});
		}
		http_wait(c);
		walk_expect(strstr(c->got, "HTTP/1.1 500 ") == c->got, "%s", c->got);
		while (v->n_requests > 0)
			walk_answer(v, 0,
				    &(struct walk_reply){
					    .status = RING_CANCELLED, .bytes = "", .n_bytes = 0});
		http_hang_up(c);
	}
	walk_destroy(w);
}

WALK(clients_of_batches_that_leave)
{
	struct walk *w = create(10);
	struct walk_worker *v = row_worker(w, 4);
	static char text[1024];
	uint32_t n;

	for (unsigned int i = 0; i < 3; i++) {
		struct http_client *c = ask_three(w, v, 3000 + i);

		walk_context("%u answered before", i);
		for (unsigned int k = 0; k < i; k++)
			walk_answer(v, 0, &(struct walk_reply){0});
		walk_pass(w, 5);
		http_abort(c);
		for (unsigned int k = 0; k < 20; k++)
			walk_pass(w, 1);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
		for (unsigned int k = 0; k < v->n_requests; k++)
			walk_expect(v->request[k].cancelled, "row %u is not cancelled", k);
		while (v->n_requests > 0)
			walk_answer(v, 0, &(struct walk_reply){0});
		for (unsigned int k = 0; k < 20; k++)
			walk_pass(w, 1);
		walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	}
	/* In the middle of the rows, and with a row too many. */
	n = write_binary(text);
	for (uint32_t cut = n - 31; cut < n; cut++) {
		struct http_client *c = http_dial(w, 4000 + cut);

		walk_context("cut at %u", cut);
		http_say(c, text, cut);
		walk_pass(w, 5);
		if (cut % 2)
			http_abort(c);
		else
			http_hang_up(c);
		for (unsigned int k = 0; k < 20; k++)
			walk_pass(w, 1);
		while (v->n_requests > 0)
			walk_answer(v, 0, &(struct walk_reply){0});
		for (unsigned int k = 0; k < 5; k++)
			walk_pass(w, 1);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* Rows that are larger than a packet have their places, and are not copied. */
WALK(large_rows)
{
	struct walk *w = create(20006);
	struct walk_worker *v = row_worker(w, 20000);
	static char text[80000];
	uint32_t n, head;
	struct http_client *c = http_dial(w, 3000);
	uint64_t copies;

	head = sprintf(text,
		       "{\"inputs\":[{\"name\":\"a\",\"shape\":[3,3],\"datatype\":\"UINT16\","
		       "\"parameters\":{\"binary_data_size\":18}},{\"name\":\"b\",\"shape\":"
		       "[3,20000],\"datatype\":\"UINT8\",\"parameters\":{\"binary_data_size\":"
		       "60000}}],\"parameters\":{\"binary_data_output\":true}}");
	n = sprintf(text + 70000,
		    POST "Content-Length: %u\r\nInference-Header-Content-Length: %u\r\n\r\n",
		    head + 60018, head);
	http_say(c, text + 70000, n);
	memcpy(text + head, bytes_a, 18);
	for (uint32_t i = 0; i < 60000; i++)
		text[head + 18 + i] = (char)(i * 2654435761u >> 24);
	copies = walk_stats(w).payload_copies;
	http_say(c, text, head + 60018);
	http_wait(c);
	walk_expect_eq(v->answered, 3);
	walk_expect(c->n > 60018 && memcmp(c->got + c->n - 60018, text + head, 60018) == 0,
		    "other bytes: %s", c->got);
	walk_expect(walk_stats(w).payload_copies - copies <= 6, "the tensor is copied");
	http_hang_up(c);
	/* A client that leaves in the middle of them. */
	for (uint32_t part = 1000; part < 60000; part += 7000) {
		c = http_dial(w, 3001 + part);
		walk_context("%u bytes", part);
		http_say(c, text + 70000, n);
		http_say(c, text, part);
		walk_pass(w, 5);
		http_abort(c);
		for (unsigned int k = 0; k < 20; k++)
			walk_pass(w, 1);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
		walk_expect_eq(walk_worker_stats(v).outstanding, 0);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* Their worker is lost while they are filled, or answered. */
WALK(rows_of_a_worker_that_is_lost)
{
	struct walk *w = create(10);
	struct walk_worker *v = row_worker(w, 4);
	struct http_client *c = ask_three(w, v, 3000);

	v->gone = true;
	walk_pass(w, 3000);
	http_wait(c);
	walk_expect(strstr(c->got, "HTTP/1.1 503 ") == c->got, "%s", c->got);
	walk_expect(strstr(c->got, "\"row 0: the worker that had") != NULL, "%s", c->got);
	http_hang_up(c);
	walk_destroy(w);
}
