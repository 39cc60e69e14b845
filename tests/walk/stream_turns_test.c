/* SPDX-License-Identifier: BSD-3-Clause */
/* Work that is done in one go, and takes most of a turn, waits for a turn that has time for it. */
#include <stdio.h>
#include <string.h>

#include "edge/edge_private.h"
#include "grpc_text.h"

#define ROWS 256u

static const struct walk_params of_bytes = {
	.services = "  - {name: rows, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 16, max_reply: 16}\n",
	.more = "tcp: {connections: 256, buffer_mb: 32}\n",
};

static struct walk_worker *bytes_worker(struct walk *w)
{
	static struct model_description described;
	const struct walk_worker_params limits = {
		.max_request = 16, .max_reply = 16, .slots = 512, .max_batch = ROWS};

	described = kserve_one_tensor(DATATYPE_BYTES);
	described.batch = true;
	described.input[0].rank = described.output[0].rank = 2;
	described.input[0].shape[1] = described.output[0].shape[1] = 1;
	return kserve_worker_of(w, &limits, 4, &described);
}

enum form { BINARY, IN_JSON, IN_CHUNKS, BY_GRPC, FORMS };

static uint32_t write_values(char *to, uint32_t rows)
{
	for (uint32_t i = 0; i < rows; i++)
		memcpy(to + 5 * i, "\1\0\0\0a", 5);
	return 5 * rows;
}

static uint32_t write_http(char *to, enum form form, uint32_t rows)
{
	char json[4000], head[100];
	uint32_t n = sprintf(
			 json,
			 "{\"inputs\":[{\"name\":\"a\",\"shape\":[%u,1],\"datatype\":\"BYTES\",",
			 rows),
		 length, at;

	if (form == BINARY)
		n += sprintf(json + n, "\"parameters\":{\"binary_data_size\":%u}}]}", 5 * rows);
	for (uint32_t i = 0; form != BINARY && i < rows; i++)
		n += sprintf(json + n, i == 0 ? "\"data\":[\"a\"" : ",\"a\"");
	n += form == BINARY ? 0 : sprintf(json + n, "]}]}");
	length = n + (form == BINARY ? 5 * rows : 0);
	sprintf(head, form == IN_CHUNKS ? "Transfer-Encoding: chunked" : "Content-Length: %u",
		length);
	at = sprintf(to, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n%s\r\n", head);
	if (form == BINARY)
		at += sprintf(to + at, "Inference-Header-Content-Length: %u\r\n", n);
	at += sprintf(to + at, "\r\n");
	if (form == IN_CHUNKS)
		at += sprintf(to + at, "%x\r\n", n);
	memcpy(to + at, json, n);
	at += n;
	if (form == BINARY)
		at += write_values(to + at, rows);
	if (form == IN_CHUNKS)
		at += sprintf(to + at, "\r\n0\r\n\r\n");
	return at;
}

static uint32_t write_call(char *to, uint32_t rows)
{
	static char message[4000];
	static struct text t;
	uint32_t bytes = 5 * rows, n = 5;

	n += sprintf(message + n, "\x0a\4echo\x2a%c\x0a\1a\x12\5BYTES\x1a", rows > 127 ? 15 : 14);
	message[n++] = rows > 127 ? 3 : 2;
	if (rows > 127)
		message[n++] = (char)(rows | 0x80);
	message[n++] = (char)(rows > 127 ? rows >> 7 : rows);
	message[n++] = 1;
	message[n++] = 0x3a;
	if (bytes > 127)
		message[n++] = (char)(bytes | 0x80);
	message[n++] = (char)(bytes > 127 ? bytes >> 7 : bytes);
	n += write_values(message + n, rows);
	message[3] = (char)((n - 5) >> 8);
	message[4] = (char)(n - 5);
	text_preface(&t);
	text_frame(&t, FRAME_HEADERS, FRAME_END_HEADERS, 1, GRPC_HEAD, sizeof(GRPC_HEAD) - 1);
	text_frame(&t, FRAME_DATA, FRAME_END_STREAM, 1, message, n);
	memcpy(to, t.at, t.n);
	return t.n;
}

/* The last byte of a batch comes when <left> of the turn's text is left. Expects it to begin then,
 * or in the next turn. */
static void expect_beginning(enum form form, uint32_t rows, int32_t left, bool waits)
{
	static char text[8000];
	uint32_t n = form == BY_GRPC ? write_call(text, rows) : write_http(text, form, rows);
	struct walk *w = walk_create(&of_bytes);
	struct walk_worker *v = bytes_worker(w);
	struct edge *e = w->lb->lcore[0]->edge;
	struct http_client *c = http_dial(w, 3000);

	walk_context("form %d, %u rows, %d left", form, rows, left);
	http_say(c, text, n - 1);
	http_wait(c);
	walk_expect_eq(e->n_batches, 0);
	e->text_used = true;
	e->kserve->text_left = left;
	http_put(c, text + n - 1, 1);
	walk_turn(w);
	walk_expect_eq(e->n_batches, !waits);
	walk_turn(w);
	walk_expect_eq(v->answered > 0 || e->n_batches == 1, true);
	http_wait(c);
	walk_expect_eq(v->answered, rows);
	if (form != BY_GRPC)
		walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
	walk_expect_no_drops(w);
	if (form == BY_GRPC)
		http_abort(c);
	else
		http_hang_up(c);
	walk_destroy(w);
	walk_context("%s", "");
}

WALK(a_large_batch_of_bytes_begins_in_a_turn_that_has_time_for_it)
{
	for (enum form form = BINARY; form < FORMS; form++) {
		expect_beginning(form, ROWS, EDGE_WORK, false);
		expect_beginning(form, ROWS, EDGE_WORK / 2, true);
		expect_beginning(form, ROWS, 1, true);
		expect_beginning(form, 3, EDGE_WORK / 2, false);
	}
}

/* A batch waits for a turn that has time for it, and its client is gone before that turn comes: the
 * turn has nothing to wait for, and the lcore may sleep. */
WALK(a_batch_that_waits_for_a_whole_turn_and_ends_leaves_nothing_to_do)
{
	static char text[8000];
	uint32_t n = write_http(text, BINARY, ROWS);
	struct walk *w = walk_create(&of_bytes);
	struct lcore *lc = w->lb->lcore[0];
	struct edge *e = lc->edge;
	struct http_client *c;

	bytes_worker(w);
	c = http_dial(w, 3000);
	http_say(c, text, n - 1);
	http_wait(c);
	e->text_used = true;
	e->kserve->text_left = EDGE_WORK / 2;
	http_put(c, text + n - 1, 1);
	c->acked = c->seq;
	http_put_reset(c);
	walk_turn(w);
	walk_expect_eq(e->n_open, 0);
	for (unsigned int i = 0; i < 10; i++)
		walk_turn(w);
	walk_expect(edge_deadline(lc) > lc->now, "the lcore does not sleep");
	walk_expect_eq(e->kserve->text_left, EDGE_WORK);
	http_forget(c);
	walk_destroy(w);
}

#define OTHERS  64u
#define AT_ONCE 8u /* of them send in a turn: less than a turn has time for */

static const char small[] =
	"GET /v2/models/echo HTTP/1.1\r\nHost: h\r\nAccept: text/plain, application/json;q=0.9\r\n"
	"User-Agent: one that says much of itself, for nothing\r\n\r\n";

enum flood { OF_HEADS, OF_BATCHES, OF_BOTH };

/* One of the others sends in a turn as far as its window goes. */
static void flood_turn(struct http_client *c, bool heads, const char *batch, uint32_t n)
{
	int32_t room = (int32_t)(c->offered - c->seq);

	http_acknowledge(c);
	c->n = 0;
	if (heads && room > (int32_t)sizeof(small))
		http_put(c, small, sizeof(small) - 1);
	else if (!heads && room > (int32_t)n)
		for (uint32_t at = 0; at < n; at += 1000)
			http_put(c, batch + at, RTE_MIN(n - at, 1000u));
}

/* The turns after which a batch is answered while other clients, some in each turn, keep the lcore
 * busy with text to read, or with batches as large and their replies. */
static unsigned int turns_of_a_batch(enum flood flood)
{
	static char text[8000], source[OTHERS][16];
	uint32_t n = write_http(text, IN_JSON, ROWS), next = 0;
	struct walk *w = walk_create(&of_bytes);
	struct http_client *c = http_dial(w, 3000), *others[OTHERS];
	unsigned int turns;

	bytes_worker(w);
	for (unsigned int i = 0; i < OTHERS; i++) {
		sprintf(source[i], "198.51.101.%u", 1 + i);
		others[i] = http_dial_from(w, source[i], 3001 + i);
	}
	for (turns = 0; c->n == 0 && turns < 1000; turns++) {
		uint32_t at = turns < 20 ? n : (turns - 20) * 1000;

		/* Only a few have batches: these take many turns each. */
		for (unsigned int i = 0; flood != OF_BATCHES && i < AT_ONCE; i++, next++)
			flood_turn(others[AT_ONCE + next % (OTHERS - AT_ONCE)], true, NULL, 0);
		for (unsigned int i = 0; flood != OF_HEADS && i < AT_ONCE; i++)
			flood_turn(others[i], false, text, n);
		if (at < n)
			http_put(c, text + at, RTE_MIN(n - at, 1000u));
		walk_turn(w);
		walk_jump_us(w, 50);
		http_take_all(c);
	}
	walk_expect(strstr(c->got, "HTTP/1.1 200 OK") == c->got, "%s", c->got);
	for (unsigned int i = 0; i < OTHERS; i++)
		http_abort(others[i]);
	http_abort(c);
	walk_settle(w);
	walk_destroy(w);
	return turns - 20;
}

/* It wants most of a turn, and is not put off for ever. */
WALK(a_large_batch_has_its_turn_beside_clients_that_keep_the_lcore_busy)
{
	static const unsigned int most[] = {[OF_HEADS] = 100, [OF_BATCHES] = 120, [OF_BOTH] = 200};

	for (enum flood flood = OF_HEADS; flood <= OF_BOTH; flood++) {
		unsigned int turns = turns_of_a_batch(flood);

		walk_expect(turns <= most[flood], "flood %d: it took %u turns", flood, turns);
	}
}
