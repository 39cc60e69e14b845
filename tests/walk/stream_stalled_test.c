/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of framings without text that wait for room for replies, and get it all at once. */
#include <string.h>

#include "edge/edge_private.h"
#include "http_client.h"
#include "worker.h"

#define WAITING 200u
#define EACH    100u /* requests of each of them */
#define LARGE   1000u

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 1000, max_reply: 1000}\n",
	.packets = 16384,
	.more = "tcp: {connections: 256, connections_percent: 100, client_percent: 50, buffer_mb: "
		"32, pipeline: 64}\n",
};

/* Sends <n> requests of <size> bytes, as far as its window goes. */
static void ask(struct http_client *c, uint32_t n, uint32_t size)
{
	char bytes[1400];
	uint32_t at = 0;

	for (; n > 0 && (int32_t)(c->offered - c->seq - at) >= (int32_t)(4 + size); n--) {
		memcpy(bytes + at, &size, 4);
		memset(bytes + at + 4, 'a', size);
		at += 4 + size;
		if (n > 1 && at + 4 + size <= 1200)
			continue;
		http_put(c, bytes, at);
		walk_turn(c->w);
		at = 0;
	}
	http_take_all(c);
}

/* A client's reader that takes nothing has all room for its replies; others of its connections have
 * thousands of requests that wait for room. */
static struct http_client *begin_waiting(struct walk *w, struct http_client **c)
{
	struct http_client *reader = http_dial(w, 3000);
	struct edge *e = w->lb->lcore[0]->edge;
	uint32_t held;

	reader->window = 0;
	http_acknowledge(reader);
	do {
		held = e->replies;
		ask(reader, 40, LARGE);
		walk_pass(w, 2);
	} while (e->replies > held);
	walk_expect(held > edge_half(e->share) / 2, "%u of %u packets", held, e->share);
	for (unsigned int i = 0; i < WAITING; i++) {
		c[i] = http_dial(w, 3001 + i);
		ask(c[i], EACH, 5);
	}
	walk_settle(w);
	return reader;
}

static struct walk_worker *begin_worker(struct walk *w)
{
	return walk_worker(w, &(struct walk_worker_params){
				      .slots = 512, .max_request = LARGE, .max_reply = LARGE});
}

static void end_waiting(struct walk *w, struct http_client *reader, struct http_client **c)
{
	http_forget(reader);
	for (unsigned int i = 0; i < WAITING; i++)
		http_abort(c[i]);
	walk_settle(w);
	walk_expect(w->worker[0]->n_requests == 0, "the worker has some");
}

/* Then the reader is gone. */
WALK(requests_that_have_room_at_once_are_read_in_some_turns)
{
	struct walk *w = walk_create(&params);
	struct edge *e = w->lb->lcore[0]->edge;
	struct http_client *c[WAITING], *reader;
	uint64_t before, most = 0, read = 0;

	begin_worker(w);
	reader = begin_waiting(w, c);
	http_put_reset(reader);
	for (unsigned int turns = 0; turns < 500; turns++) {
		before = e->n_requests;
		walk_turn(w);
		if (e->n_requests > before) {
			most = RTE_MAX(most, e->n_requests - before);
			read += e->n_requests - before;
		}
		http_take_all(reader);
	}
	walk_expect(read > 1000, "%lu were read", read);
	walk_expect(most <= 3 * LB_BURST, "%lu in a turn", most);
	end_waiting(w, reader, c);
	walk_destroy(w);
}

/* Another client has more requests than a burst in a segment: they wait for a turn of each client
 * that waits, and not for one of each connection. */
WALK(connections_that_wait_delay_their_client)
{
	static const char other[] = "192.0.2.99", request[] = "\5\0\0\0hello";
	struct walk *w = walk_create(&params);
	struct http_client *c[WAITING], *reader, *last;
	char requests[2 * LB_BURST * (sizeof(request) - 1)];
	unsigned int turns;

	begin_worker(w);
	last = http_dial_from(w, other, 2000);
	reader = begin_waiting(w, c);
	http_put_reset(reader);
	walk_turns(w, 3);
	for (unsigned int i = 0; i < 2 * LB_BURST; i++)
		memcpy(requests + i * (sizeof(request) - 1), request, sizeof(request) - 1);
	http_put(last, requests, sizeof(requests));
	for (turns = 0; turns < 100 && last->n < 2 * LB_BURST * (8 + 5); turns++) {
		walk_turn(w);
		http_take_all(last);
	}
	walk_expect(turns <= 10, "it waited for %u turns", turns);
	http_abort(last);
	end_waiting(w, reader, c);
	walk_destroy(w);
}

/* Each of a burst of segments has more requests than a burst. */
WALK(requests_that_come_at_once_are_read_in_some_turns)
{
	static const char request[] = "\5\0\0\0hello";
	struct walk *w = walk_create(&params);
	struct edge *e = w->lb->lcore[0]->edge;
	char requests[EACH * (sizeof(request) - 1)];
	unsigned int most = 0, before, turns;
	struct http_client *c[LB_BURST];

	begin_worker(w)->answers = false;
	for (unsigned int i = 0; i < EACH; i++)
		memcpy(requests + i * (sizeof(request) - 1), request, sizeof(request) - 1);
	for (unsigned int i = 0; i < LB_BURST; i++)
		c[i] = http_dial(w, 3001 + i);
	for (unsigned int i = 0; i < LB_BURST; i++)
		http_put(c[i], requests, sizeof(requests));
	for (turns = 0; turns < 100; turns++) {
		before = e->n_requests;
		walk_turn(w);
		most = RTE_MAX(most, e->n_requests - before);
	}
	/* As many as a connection may have open. */
	walk_expect_eq(e->n_requests, LB_BURST * 64);
	walk_expect(most <= 7 * LB_BURST, "%u in a turn", most);
	walk_answer_all(w->worker[0]);
	for (unsigned int i = 0; i < LB_BURST; i++)
		http_abort(c[i]);
	walk_settle(w);
	walk_destroy(w);
}
