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
 * thousands of requests that wait for room. Then the reader is gone. */
WALK(requests_that_have_room_at_once_are_read_in_some_turns)
{
	struct walk *w = walk_create(&params);
	struct walk_worker *v =
		walk_worker(w, &(struct walk_worker_params){
				       .slots = 512, .max_request = LARGE, .max_reply = LARGE});
	struct http_client *reader = http_dial(w, 3000), *c[WAITING];
	struct edge *e = w->lb->lcore[0]->edge;
	uint64_t before, most = 0, read = 0;
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
	http_forget(reader);
	for (unsigned int i = 0; i < WAITING; i++)
		http_abort(c[i]);
	walk_settle(w);
	walk_expect(v->n_requests == 0, "the worker has some");
	walk_destroy(w);
}
