/* SPDX-License-Identifier: BSD-3-Clause */
/* Services with framing kserve: HTTP requests, cut anywhere, and their answers. The worker echoes.
 */
#include <stdlib.h>
#include <string.h>

#include "edge/edge.h"
#include "grpc_text.h"
#include "http_client.h"
#include "worker.h"

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB}\n",
	.more = "tcp: {connections: 256, buffer_mb: 8}\n",
};

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

/* The same with its body in chunks of <chunk> bytes, an extension and a trailer. */
static void add_chunked(struct text *t, const char *head, const char *json, bool length,
			const char *binary, uint32_t n_binary, uint32_t chunk)
{
	uint32_t n_json = strlen(json), n = n_json + n_binary;

	t->n += sprintf(t->at + t->n, "%sTransfer-Encoding: chunked\r\n", head);
	if (length)
		t->n += sprintf(t->at + t->n, "Inference-Header-Content-Length: %u\r\n", n_json);
	t->n += sprintf(t->at + t->n, "\r\n");
	for (uint32_t at = 0; at < n; at += chunk) {
		uint32_t end = RTE_MIN(at + chunk, n);

		t->n += sprintf(t->at + t->n, "%x%s\r\n", end - at, at == 0 ? " ;a=b" : "");
		for (uint32_t i = at; i < end; i++)
			t->at[t->n++] = i < n_json ? json[i] : binary[i - n_json];
		t->n += sprintf(t->at + t->n, "\r\n");
	}
	t->n += sprintf(t->at + t->n, "0\r\nX-Sum: 1\r\n\r\n");
}

#define BOTH_JSON                                                                                  \
	"{\"id\":\"x\",\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\",\"data\":"  \
	"[1.5,-2]},{\"name\":\"b\",\"shape\":[3],\"datatype\":\"UINT8\",\"data\":[7,8,9]}]}"
#define B_FIRST                                                                                    \
	"{\"inputs\":[{\"data\":[1,2],\"name\":\"b\",\"shape\":[2],\"datatype\":\"UINT8\"},"       \
	"{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\"" \
	":8}}],\"outputs\":[{\"name\":\"d\"}]}"
#define WITH_STRINGS                                                                               \
	"{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"BYTES\",\"data\":[\"\",\"\"]}," \
	"{\"name\":\"b\",\"shape\":[2],\"datatype\":\"UINT16\",\"data\":[7,8]},"                   \
	"{\"name\":\"c\",\"shape\":[],\"datatype\":\"BYTES\",\"data\":[\"\"]},"                    \
	"{\"name\":\"d\",\"shape\":[0],\"datatype\":\"UINT8\",\"data\":[]}]}"
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

/* Bytes of what converse() returned: those of tensors have zeros. */
static uint32_t converse_n;

/* Sends <t> cut at <cut>, waits for the end, and returns what came, to be freed. */
static char *converse(struct walk *w, uint16_t port, const struct text *t, uint32_t cut)
{
	struct http_client *c = http_dial(w, port);
	char *got;

	http_say(c, t->at, cut);
	http_say(c, t->at + cut, t->n - cut);
	http_wait(c);
	walk_expect(c->fin, "Connection: close, and it did not");
	blank_dates(c->got, c->n);
	converse_n = c->n;
	got = memcpy(malloc(c->n + 1), c->got, c->n + 1);
	http_hang_up(c);
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

	kserve_worker(w);
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

/* A chunked body is answered as one with a length, wherever it is cut into chunks and segments. */
WALK(chunks_that_are_cut_anywhere)
{
	struct walk *w = walk_create(&params);
	static const char four[] = "\0\0\x80\x3f\0\0\0\x40wxyz";
	static const uint32_t chunks[] = {1, 3, 40, 5000};
	static struct text t, plain;
	char *expected, *got;
	uint32_t n;

	kserve_worker(w);
	add(&plain, POST, BOTH_JSON, false, "", 0);
	add(&plain, POST, BINARY, true, four, 12);
	add(&plain, POST, B_FIRST, true, "\0\0\0\0\0\0\0\0", 8);
	add(&plain, "POST /v2/models/other/infer HTTP/1.1\r\nHost: h\r\n", BOTH_JSON, false, "", 0);
	add(&plain, POST, "{\"inputs\":7}", false, "", 0);
	plain.n += sprintf(plain.at + plain.n,
			   "GET /v2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
	expected = converse(w, 2999, &plain, 0);
	n = converse_n;
	for (unsigned int i = 0; i < 4; i++) {
		t.n = 0;
		add_chunked(&t, POST, BOTH_JSON, false, "", 0, chunks[i]);
		add_chunked(&t, POST, BINARY, true, four, 12, chunks[i]);
		add_chunked(&t, POST, B_FIRST, true, "\0\0\0\0\0\0\0\0", 8, chunks[i]);
		add_chunked(&t, "POST /v2/models/other/infer HTTP/1.1\r\nHost: h\r\n", BOTH_JSON,
			    false, "", 0, chunks[i]);
		add_chunked(&t, POST, "{\"inputs\":7}", false, "", 0, chunks[i]);
		t.n += sprintf(t.at + t.n,
			       "GET /v2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
		for (uint32_t cut = 0; cut < t.n; cut += i == 1 ? 1 : 23) {
			walk_context("chunks of %u, cut at %u", chunks[i], cut);
			got = converse(w, 3000 + 12000 * i + cut, &t, cut);
			walk_expect(converse_n == n && memcmp(got, expected, n) == 0, "%s", got);
			free(got);
		}
	}
	walk_context("%s", "");
	free(expected);
	walk_destroy(w);
}

/* Each with its status, and whether the connection lives. */
WALK(chunked_bodies_that_are_refused)
{
	static const struct {
		const char *json_length, *body;
		const char *status;
		bool lives;
	} rows[] = {
		{NULL, "g\r\n", "400", false},
		{NULL, "-1\r\n", "400", false},
		{NULL, "11111111111111111\r\n", "400", false},
		{NULL, "2\n{}", "400", false},
		{NULL, "2\r\n{}}", "400", false},
		{NULL, "ffffff\r\n", "413", false},
		{NULL, "0\r\n\r\n", "400", true},
		{NULL, "2\r\n{}\r\n0\r\n\r\n", "400", true},
		{NULL, "0\r\n x: folded\r\n\r\n", "400", false},
		{"3", "2\r\n{}\r\n0\r\n\r\n", "400", true},
		{"99999999", "2\r\n{}\r\n0\r\n\r\n", "413", true},
		{"BINARY", "8\r\n12345678\r\n0\r\n\r\n", "400", true},
		{"BINARY", "d\r\n1234567890123\r\n0\r\n\r\n", "400", true},
		{"BINARY", "8\r\n12345678\r\n5\r\n12345\r\n0\r\n\r\n", "400", true},
		{"BINARY", "8\r\n12345678\r\nx\r\n", "400", false},
	};
	struct walk *w = walk_create(&params);

	kserve_worker(w);
	for (unsigned int i = 0; i < RTE_DIM(rows); i++) {
		bool binary = rows[i].json_length != NULL && rows[i].json_length[0] == 'B';
		struct http_client *c = http_dial(w, 3000 + i);
		static struct text t;

		walk_context("row %u", i);
		t.n = sprintf(t.at, POST "Transfer-Encoding: chunked\r\n");
		if (binary)
			t.n += sprintf(t.at + t.n, "Inference-Header-Content-Length: %zu\r\n",
				       strlen(BINARY));
		else if (rows[i].json_length != NULL)
			t.n += sprintf(t.at + t.n, "Inference-Header-Content-Length: %s\r\n",
				       rows[i].json_length);
		t.n += sprintf(t.at + t.n, "\r\n");
		if (binary)
			t.n += sprintf(t.at + t.n, "%zx\r\n%s\r\n", strlen(BINARY), BINARY);
		t.n += sprintf(t.at + t.n, "%s", rows[i].body);
		http_say(c, t.at, t.n);
		http_wait(c);
		walk_expect(strncmp(c->got + 9, rows[i].status, 3) == 0, "%s", c->got);
		walk_expect_eq(c->fin, !rows[i].lives);
		if (rows[i].lives) {
			c->n = 0;
			http_say(c, "GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n", 29);
			http_wait(c);
			walk_expect(strncmp(c->got + 9, "200", 3) == 0, "%s", c->got);
		}
		http_hang_up(c);
	}
	walk_destroy(w);
}

/* Trailers without an end, behind a request that was refused long ago. */
WALK(trailers_are_bounded)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;

	kserve_worker(w);
	t.n = sprintf(t.at, "POST /nowhere HTTP/1.1\r\nHost: h\r\n"
			    "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n");
	http_say(c, t.at, t.n);
	for (unsigned int i = 0; i < 600 && !c->fin; i++)
		http_say(c, "a: 1234567890\r\n", 15);
	http_wait(c);
	walk_expect(strncmp(c->got, "HTTP/1.1 404", 12) == 0, "%s", c->got);
	walk_expect(c->fin, "they may go on");
	http_hang_up(c);
	walk_destroy(w);
}

/* Large bodies in chunks of any size, raw and behind a JSON, with a checksum: each chunk's bytes go
 * to the worker's memory as they come. */
WALK(large_bodies_in_chunks)
{
	static const struct walk_worker_params roomy = {
		.max_request = 65536, .max_reply = 65536, .room = 262144};
	static const uint32_t chunks[] = {1, 7, 100, 300, 1460, 9000, 60000};
	static struct model_description described_raw;
	static const uint32_t sizes[] = {2, 4096, 4098, 50000, 65536, 50001, 65538};
	struct walk_params sums = params;
	struct lb_registration r;
	struct walk_worker *v;
	struct walk *w;
	char *bytes = malloc(65538), *sent = malloc(1u << 20);

	sums.services =
		"  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB, "
		"payload_crc: true}\n";
	w = walk_create(&sums);
	walk_worker_registration(w, &roomy, &r);
	r.worker.min_request = 1;
	described_raw = kserve_one_tensor(DATATYPE_UINT16);
	r.worker.description = &described_raw;
	v = walk_worker_register_as(w, &r);
	walk_need(v != NULL && walk_worker_start(v), "%s", w->error);
	for (uint32_t i = 0; i < 65538; i++)
		bytes[i] = (char)(i * 7 + i / 251);
	for (unsigned int i = 0; i < RTE_DIM(chunks) * RTE_DIM(sizes); i++) {
		uint32_t chunk = chunks[i % RTE_DIM(chunks)], size = sizes[i / RTE_DIM(chunks)];
		const char *status = size == 65538 ? "413" : size % 2 ? "400" : "200";
		struct http_client *c = http_dial(w, 3000 + i);
		uint32_t n = sprintf(sent, POST "Transfer-Encoding: chunked\r\n"
						"Inference-Header-Content-Length: 0\r\n\r\n");

		walk_context("%u bytes in chunks of %u", size, chunk);
		for (uint32_t at = 0; at < size; at += chunk) {
			uint32_t part = RTE_MIN(chunk, size - at);

			n += sprintf(sent + n, "%x\r\n", part);
			memcpy(sent + n, bytes + at, part);
			n += part;
			n += sprintf(sent + n, "\r\n");
		}
		n += sprintf(sent + n, "0\r\n\r\n");
		for (uint32_t at = 0; at < n; at += 8000) {
			http_say(c, sent + at, RTE_MIN(n - at, 8000u));
			http_wait(c);
		}
		http_wait(c);
		walk_expect(strncmp(c->got + 9, status, 3) == 0, "%.100s", c->got);
		walk_expect(status[0] != '2' || memcmp(c->got + c->n - size, bytes, size) == 0,
			    "other bytes");
		http_hang_up(c);
	}
	free(bytes);
	free(sent);
	walk_destroy(w);
}

WALK(a_request_byte_by_byte)
{
	struct walk *w = walk_create(&params);
	struct http_client *c;
	static struct text t;

	kserve_worker(w);
	add(&t, POST, BOTH_JSON, false, "", 0);
	c = http_dial(w, 3000);
	for (uint32_t i = 0; i < t.n; i++)
		http_say(c, t.at + i, 1);
	http_wait(c);
	walk_expect(strstr(c->got, "\"data\":[7,8,9]}]}") != NULL, "%s", c->got);
	http_hang_up(c);
	walk_destroy(w);
}

/* 60,000 numbers: neither their text nor that of the answer is converted in one turn. */
WALK(much_text_takes_many_turns)
{
	struct walk *w = walk_create(&params);
	uint32_t n = 0, values = 60000;
	char *json = malloc(values * 4 + 300), head[200], end[40];
	struct http_client *c;
	const char *at;

	kserve_worker(w);
	n += sprintf(json,
		     "{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\","
		     "\"data\":[0,0]},{\"name\":\"b\",\"shape\":[%u],\"datatype\":\"UINT8\","
		     "\"data\":[",
		     values);
	for (uint32_t i = 0; i < values; i++)
		n += sprintf(json + n, "%s%u", i > 0 ? "," : "", i % 251);
	n += sprintf(json + n, "]}]}");
	snprintf(head, sizeof(head), POST "Content-Length: %u\r\n\r\n", n);
	c = http_dial(w, 3000);
	http_say(c, head, strlen(head));
	for (uint32_t sent = 0; sent < n; sent += 20000) {
		http_say(c, json + sent, RTE_MIN(n - sent, 20000u));
		http_wait(c);
	}
	http_wait(c);
	snprintf(end, sizeof(end), ",%u,%u]}]}", (values - 2) % 251, (values - 1) % 251);
	walk_expect(strncmp(c->got, "HTTP/1.1 200 OK\r\n", 17) == 0, "%.200s", c->got);
	at = strstr(c->got, "\"shape\":[60000],\"data\":[0,1,2,");
	walk_expect(at != NULL && strcmp(c->got + c->n - strlen(end), end) == 0, "%.300s", c->got);
	/* The text of the values comes back as it was sent. */
	walk_expect(at != NULL && memcmp(strstr(at, "[0,1"), strstr(json, "[0,1"), values * 3) == 0,
		    "other values");
	http_hang_up(c);
	free(json);
	walk_destroy(w);
}

/* Outputs of BYTES in front of others: where these begin is in the reply, which is cut into
 * packets. */
WALK(outputs_behind_strings)
{
	static struct model_description strings = {
		.version = "1",
		.n_inputs = 4,
		.n_outputs = 4,
		.input = {{.name = "a", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {2}},
			  {.name = "b", .datatype = DATATYPE_UINT16, .rank = 1, .shape = {2}},
			  {.name = "c", .datatype = DATATYPE_BYTES, .rank = 0},
			  {.name = "d", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
		.output = {{.name = "e", .datatype = DATATYPE_BYTES, .rank = 1, .shape = {2}},
			   {.name = "f", .datatype = DATATYPE_UINT16, .rank = 1, .shape = {2}},
			   {.name = "g", .datatype = DATATYPE_BYTES, .rank = 0},
			   {.name = "h", .datatype = DATATYPE_UINT8, .rank = 1, .shape = {-1}}},
	};
	static const struct walk_worker_params roomy = {
		.max_request = 65536, .max_reply = 65536, .room = 262144};
	static const struct {
		const char *bytes;
		uint32_t n;
	} wrong[] = {{"", 0},
		     {"\1\0\0\0a", 5},
		     {"\1\0\0\0a\xff\xff\xff\xff", 9},
		     {"\0\0\0\0\0\0\0\0ab", 10},
		     {"\0\0\0\0\0\0\0\0abcd\1\0\0\0", 16}};
	struct walk *w = walk_create(&params);
	struct walk_worker *v;
	struct lb_registration r;
	static char text[8192], long_text[3001];
	struct http_client *c;

	walk_worker_registration(w, &roomy, &r);
	r.worker.min_request = 16;
	r.worker.description = &strings;
	v = walk_worker_register_as(w, &r);
	walk_need(v != NULL && walk_worker_start(v), "%s", w->error);
	memset(long_text, 'x', sizeof(long_text) - 1);
	for (unsigned int i = 0; i < 30; i++) {
		static char body[4096];
		uint32_t n;

		walk_context("%u", i);
		n = sprintf(
			body,
			"{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"BYTES\","
			"\"data\":[\"%.*s\",\"\"]},{\"name\":\"b\",\"shape\":[2],\"datatype\":"
			"\"UINT16\",\"data\":[7,8]},{\"name\":\"c\",\"shape\":[],\"datatype\":"
			"\"BYTES\",\"data\":[\"yz\"]},{\"name\":\"d\",\"shape\":[3],\"datatype\":"
			"\"UINT8\",\"data\":[1,2,3]}]%s}",
			(int)i * 100, long_text,
			i % 2 ? ",\"outputs\":[{\"name\":\"h\"},{\"name\":\"g\"}]" : "");
		c = http_dial(w, 3000 + i);
		http_say(c, text, sprintf(text, POST "Content-Length: %u\r\n\r\n%s", n, body));
		http_wait(c);
		walk_expect(strstr(c->got, "{\"name\":\"h\",\"datatype\":\"UINT8\",\"shape\":[3],"
					   "\"data\":[1,2,3]}") != NULL &&
				    strstr(c->got, "{\"name\":\"g\",\"datatype\":\"BYTES\","
						   "\"shape\":[],\"data\":[\"yz\"]}") != NULL,
			    "%s", c->got);
		sprintf(text,
			"\"data\":[\"%.*s\",\"\"]},{\"name\":\"f\",\"datatype\":\"UINT16\","
			"\"shape\":[2],\"data\":[7,8]}",
			(int)i * 100, long_text);
		walk_expect(i % 2 || strstr(c->got, text) != NULL, "%s", c->got);
		http_hang_up(c);
	}
	/* Replies that are too short for their lengths. */
	v->answers = false;
	for (size_t i = 0; i < RTE_DIM(wrong); i++) {
		walk_context("reply %zu", i);
		c = http_dial(w, 4000 + i);
		http_say(c, text,
			 sprintf(text, POST "Content-Length: %zu\r\n\r\n%s", strlen(WITH_STRINGS),
				 WITH_STRINGS));
		http_wait(c);
		walk_need(v->n_requests == 1, "%s", c->got);
		walk_answer(v, 0,
			    &(struct walk_reply){.bytes = wrong[i].bytes, .n_bytes = wrong[i].n});
		http_wait(c);
		walk_expect(strncmp(c->got, "HTTP/1.1 500 ", 13) == 0, "%s", c->got);
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* The load balancer stops: of the requests that it has the last one's answer says so. */
WALK(answers_while_the_load_balancer_drains)
{
	static const char field[] = "\r\nConnection: close\r\n";
	struct walk *w = walk_create(&params);
	struct walk_worker *v = kserve_worker(w);
	struct http_client *c = http_dial(w, 3000);
	static struct text t;
	char *first, *second;

	v->answers = false;
	t.n = 0;
	add(&t, POST, BOTH_JSON, false, "", 0);
	add(&t, POST, BOTH_JSON, false, "", 0);
	http_say(c, t.at, t.n);
	http_wait(c);
	walk_need(v->n_requests == 2, "%u requests", v->n_requests);
	edge_close_all(w->lb->lcore[0]);
	/* In any order. */
	walk_answer(v, 1, &(struct walk_reply){0});
	http_wait(c);
	walk_answer(v, 0, &(struct walk_reply){0});
	http_wait(c);
	first = strstr(c->got, "HTTP/1.1 200 OK\r\n");
	walk_need(first != NULL, "%s", c->got);
	second = strstr(first + 1, "HTTP/1.1 200 OK\r\n");
	walk_need(second != NULL, "%s", c->got);
	walk_expect(strstr(c->got, field) > second, "%s", c->got);
	walk_expect(c->fin, "it does not close");
	http_hang_up(c);
	walk_destroy(w);
}

WALK(a_reply_that_is_none_of_the_model)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v = kserve_worker(w);
	struct http_client *c;
	static struct text t;

	add(&t, POST, BOTH_JSON, false, "", 0);
	v->answers = false;
	c = http_dial(w, 3000);
	for (unsigned int i = 0; i < 2; i++) {
		c->n = 0;
		http_say(c, t.at, t.n);
		walk_pass(w, 5);
		walk_need(v->n_requests == 1, "%u requests", v->n_requests);
		/* Too short; in two chunks. */
		walk_answer(v, 0,
			    &(struct walk_reply){.bytes = "abcd", .n_bytes = 4, .more = i == 1});
		http_wait(c);
		walk_expect(strncmp(c->got, i == 0 ? "HTTP/1.1 500 " : "HTTP/1.1 501 ", 13) == 0,
			    "%s", c->got);
	}
	walk_pass(w, 5);
	walk_expect(v->request[0].cancelled, "the worker is not told");
	http_hang_up(c);
	walk_destroy(w);
}

WALK(a_head_that_does_not_end)
{
	struct walk *w = walk_create(&params);
	struct http_client *c = http_dial(w, 3000);

	http_say(c, POST, strlen(POST));
	walk_pass(w, 9000);
	http_take_all(c);
	walk_expect(!c->reset, "too soon");
	walk_pass(w, 1100);
	http_take_all(c);
	walk_expect(c->reset, "it was let");
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_SLOW], 1);
	http_hang_up(c);
	walk_destroy(w);
}

/* Of more clients in the middle of a head than there are readers some wait, and go on when others
 * are done. */
WALK(more_heads_than_readers)
{
	static const char head[] = "GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n";
	struct walk *w = walk_create(&params);
	struct http_client *c[100];

	for (unsigned int i = 0; i < 100; i++) {
		c[i] = http_dial(w, 3000 + i);
		http_say(c[i], head, 20);
	}
	/* The last one cannot be read; the first one can. */
	http_say(c[99], head + 20, sizeof(head) - 21);
	http_wait(c[99]);
	walk_expect_eq(c[99]->n, 0);
	for (unsigned int i = 0; i < 99; i++)
		http_say(c[i], head + 20, sizeof(head) - 21);
	for (unsigned int i = 0; i < 100; i++) {
		http_wait(c[i]);
		walk_expect(strstr(c[i]->got, "\r\n\r\n{\"live\":true}") != NULL, "%u: %s", i,
			    c[i]->got);
	}
	for (unsigned int i = 0; i < 99; i++) {
		http_abort(c[i]);
	}
	http_hang_up(c[99]);
	walk_destroy(w);
}

/* Clients in the middle of a tensor in chunks hold no reader: all others are served. */
WALK(more_chunked_tensors_than_readers)
{
	static const char head[] = "GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n";
	struct walk *w = walk_create(&params);
	struct http_client *c[100], *other;
	static struct text t;

	kserve_worker(w);
	t.n = sprintf(t.at,
		      POST "Transfer-Encoding: chunked\r\nInference-Header-Content-Length: %zu\r\n"
			   "\r\n%zx\r\n%s\r\n6\r\n123456\r\n",
		      strlen(BINARY), strlen(BINARY), BINARY);
	for (unsigned int i = 0; i < 100; i++) {
		c[i] = http_dial(w, 3000 + i);
		http_say(c[i], t.at, t.n);
	}
	other = http_dial(w, 4000);
	http_say(other, head, sizeof(head) - 1);
	http_wait(other);
	walk_expect(strstr(other->got, "{\"live\":true}") != NULL, "%s", other->got);
	for (unsigned int i = 0; i < 100; i++) {
		http_say(c[i], "6\r\nabwxyz\r\n0\r\n\r\n", 16);
		http_wait(c[i]);
		walk_expect(strncmp(c[i]->got, "HTTP/1.1 200 OK\r\n", 17) == 0, "%u: %s", i,
			    c[i]->got);
		http_abort(c[i]);
	}
	http_hang_up(other);
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
	struct http_client *c = http_dial(w, 3000);

	http_say(c, bad, sizeof(bad) - 1);
	http_wait(c);
	expect_in_order(c->got, parts, 4);
	walk_expect(c->fin, "it was kept");
	walk_expect(strstr(strstr(c->got, "400"), "HTTP/1.1") == NULL, "%s", c->got);
	http_hang_up(c);
	walk_destroy(w);
}

/* --- gRPC --------------------------------------------------------------------------------------
 */

/* Two calls of gRPC over a connection, cut at every byte. */
WALK(calls_that_are_cut_anywhere)
{
	struct walk *w = walk_create(&params);
	static struct text t;

	kserve_worker(w);
	text_preface(&t);
	text_call(&t, 1);
	text_call(&t, 3);
	for (uint32_t cut = 0; cut < t.n; cut++) {
		struct http_client *c = http_dial(w, 3000 + cut);

		walk_context("cut at %u", cut);
		http_say(c, t.at, cut);
		http_say(c, t.at + cut, t.n - cut);
		http_wait(c);
		walk_expect_eq(text_count(c, "\x32\x8\0\0\x80\x3f\0\0\0\x40\x32\4wxyz", 16), 2);
		walk_expect(!c->fin && !c->reset, "the connection ended");
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* A client that goes while its calls are read or answered leaves nothing behind. */
WALK(calls_of_a_client_that_goes)
{
	struct walk *w = walk_create(&params);
	static struct text t;

	kserve_worker(w);
	text_preface(&t);
	text_call(&t, 1);
	for (uint32_t cut = 1; cut <= t.n; cut++) {
		struct http_client *c = http_dial(w, 3000 + cut);

		walk_context("cut at %u", cut);
		http_say(c, t.at, cut);
		if (cut % 2 == 0) {
			http_hang_up(c);
			continue;
		}
		http_abort(c);
		for (unsigned int i = 0; i < 20; i++)
			walk_pass(w, 1);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* The last frame of a large tensor has few bytes. None is copied, wherever its segments begin. */
WALK(an_end_of_a_tensor_that_is_cut_anywhere)
{
	static const char message[] =
		"\0\0\0\x0f\xd4\x0a\4echo\x1a\1x\x2a\xc\xa\1a\x12\4FP32\x1a\1\2"
		"\x2a\xe\xa\1b\x12\5UINT8\x1a\2\xa0\x1f\x3a\x8\0\0\x80\x3f\0\0\0\x40"
		"\x3a\xa0\x1f";
	enum { HEAD = sizeof(message) - 1, TENSOR = 4000, END = 39 };
	struct walk *w = walk_create(&params);
	uint8_t bytes[HEAD + TENSOR];
	static struct text t;

	kserve_worker(w);
	memcpy(bytes, message, HEAD);
	for (uint32_t i = 0; i < TENSOR; i++)
		bytes[HEAD + i] = i * 7 + i / 251;
	text_preface(&t);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	text_frame(&t, FRAME_DATA, 0, 1, bytes, sizeof(bytes) - END);
	text_frame(&t, FRAME_DATA, FRAME_END_STREAM, 1, bytes + sizeof(bytes) - END, END);
	for (uint32_t cut = t.n - END - 9; cut < t.n; cut++) {
		struct http_client *c = http_dial(w, 3000 + cut);

		walk_context("cut at %u", cut);
		http_say(c, t.at, cut);
		http_say(c, t.at + cut, t.n - cut);
		http_wait(c);
		walk_expect_eq(text_count(c, bytes + HEAD, TENSOR), 1);
		walk_expect_eq(walk_stats(w).payload_copies, 0);
		http_hang_up(c);
	}
	walk_context("%s", "");
	walk_destroy(w);
}
