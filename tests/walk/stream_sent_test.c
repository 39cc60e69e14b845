/* SPDX-License-Identifier: BSD-3-Clause */
/* Long replies to many connections of a client: the turns that they leave to others, and packets
 * that are given back. */
#include <stdlib.h>
#include <string.h>

#include "edge/edge_private.h"
#include "http_client.h"
#include "worker.h"

#define READERS   60u
#define REPLY     60000u
#define PIPELINED 8u /* requests of each */

static const struct walk_params params = {
	.services = "  - {name: echo, protocol: tcp, framing: length, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64, max_reply: 64KiB}\n",
	.packets = 16384,
	.more = "tcp: {connections: 256, connections_percent: 100, client_percent: 100, buffer_mb: "
		"256, pipeline: 64}\n",
};

static const char request[] = "\5\0\0\0hello";
#define REQUEST (sizeof(request) - 1)

static struct walk *begin(void)
{
	struct walk *w = walk_create(&params);

	walk_worker(
		w,
		&(struct walk_worker_params){.slots = 1024, .max_request = 64, .max_reply = 65536})
		->answers = false;
	return w;
}

/* Takes what has come for all. */
static void answer_all(struct walk *w, struct http_client *any)
{
	static uint8_t reply[REPLY];

	while (w->worker[0]->n_requests > 0) {
		walk_answer(w->worker[0], 0,
			    &(struct walk_reply){.bytes = reply, .n_bytes = REPLY});
		walk_turns(w, 1 + REPLY / (LB_BURST * 1024));
		http_take_all(any);
	}
}

static void ask(struct http_client *c, unsigned int n)
{
	char requests[PIPELINED * REQUEST];

	for (unsigned int i = 0; i < n; i++)
		memcpy(requests + i * REQUEST, request, REQUEST);
	http_put(c, requests, n * REQUEST);
	walk_turn(c->w);
}

/* Takes what came for all, and those for which something did acknowledge it. */
static void read_all(struct http_client **c, unsigned int n)
{
	uint32_t before[READERS + 1];

	for (unsigned int i = 0; i < n; i++)
		before[i] = c[i]->ack;
	http_take_all(c[0]);
	for (unsigned int i = 0; i < n; i++) {
		if (c[i]->ack == before[i])
			continue;
		http_acknowledge(c[i]);
		c[i]->n = 0;
	}
}

static void acknowledge_all(struct http_client **c, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		http_acknowledge(c[i]);
		c[i]->n = 0;
	}
}

static void end(struct walk *w, struct http_client **c, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		http_abort(c[i]);
	walk_settle(w);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_destroy(w);
}

/* A client reads long replies by many connections as fast as they come: that of another one has its
 * turns beside them. */
WALK(connections_with_long_replies_delay_their_client)
{
	static const char other[] = "192.0.2.99";
	struct walk *w = begin();
	struct http_client *c[READERS + 1];
	unsigned int turns;
	uint32_t first;

	c[0] = http_dial_from(w, other, 2000);
	first = c[0]->ack;
	for (unsigned int i = 1; i <= READERS; i++) {
		c[i] = http_dial(w, 3000 + i);
		ask(c[i], PIPELINED);
	}
	answer_all(w, c[0]);
	acknowledge_all(c, READERS + 1);
	for (turns = 0; turns < 60; turns++) {
		read_all(c, READERS + 1);
		walk_turn(w);
		walk_jump_us(w, 20);
	}
	ask(c[0], 1);
	answer_all(w, c[0]);
	acknowledge_all(c, READERS + 1);
	for (turns = 0; turns < 400 && c[0]->ack - first < REPLY + 8; turns++) {
		read_all(c, READERS + 1);
		walk_turn(w);
		walk_jump_us(w, 20);
	}
	walk_expect(turns <= 20, "it took %u turns", turns);
	turns = 0;
	for (unsigned int i = 1; i <= READERS; i++)
		turns += w->lb->lcore[0]->edge->replies > READERS;
	walk_expect(turns == READERS, "the long replies were over before");
	end(w, c, READERS + 1);
}

/* Packets that come back to the pool in a turn, at most. */
static unsigned int most_freed(struct walk *w)
{
	const struct lcore *lc = w->lb->lcore[0];
	unsigned int most = 0, before = rte_mempool_avail_count(lc->packets), now;

	for (unsigned int i = 0; i < 100; i++, before = now) {
		walk_turn(w);
		now = rte_mempool_avail_count(lc->packets);
		if (now > before)
			most = RTE_MAX(most, now - before);
	}
	return most;
}

#define AT_ONCE LB_BURST /* connections */

/* All that the windows of all take comes, and is acknowledged then. */
static void read_window(struct http_client **c)
{
	for (unsigned int turns = 0; turns < 50; turns++) {
		walk_turn(c[0]->w);
		http_take_all(c[0]);
		walk_jump_us(c[0]->w, 20);
	}
	acknowledge_all(c, AT_ONCE);
}

/* Windows are opened for all of long replies, which are then acknowledged in one turn. */
WALK(what_is_acknowledged_at_once_is_freed_in_some_turns)
{
	struct walk *w = begin();
	struct edge *e = w->lb->lcore[0]->edge;
	struct http_client *c[AT_ONCE];
	unsigned int most, packets;

	for (unsigned int i = 0; i < AT_ONCE; i++)
		c[i] = http_dial(w, 3000 + i);
	/* Their windows grow with the first replies. */
	for (unsigned int replies = 0; replies < 6; replies++) {
		for (unsigned int i = 0; i < AT_ONCE; i++)
			ask(c[i], 1);
		answer_all(w, c[0]);
		while (e->replies > 0)
			read_window(c);
	}
	for (unsigned int i = 0; i < AT_ONCE; i++)
		ask(c[i], 1);
	answer_all(w, c[0]);
	for (unsigned int turns = 0; turns < 200; turns++) {
		walk_turn(w);
		http_take_all(c[0]);
	}
	packets = e->replies;
	walk_expect(packets > AT_ONCE * REPLY / 2048, "%u packets are held", packets);
	acknowledge_all(c, AT_ONCE);
	most = most_freed(w);
	walk_expect(e->replies < packets / 10, "%u of %u are left", e->replies, packets);
	walk_expect(most <= 32 * AT_ONCE + 512, "%u of %u in a turn", most, packets);
	end(w, c, AT_ONCE);
}

#define LARGE 1000000u

/* A reply of a thousand packets comes for a client that is gone. */
WALK(a_long_reply_to_a_connection_that_is_gone_is_freed_in_some_turns)
{
	static const struct walk_params large = {
		.services = "  - {name: echo, protocol: tcp, framing: length, address: "
			    "" PACKET_DESTINATION4 ", port: 8000, model: echo, max_request: 64, "
			    "max_reply: 1000000}\n",
		.packets = 16384,
		.more = "tcp: {connections: 256, buffer_mb: 64}\n",
	};
	static uint8_t reply[LARGE];
	struct walk *w = walk_create(&large);
	struct walk_worker *v =
		walk_worker(w, &(struct walk_worker_params){.max_request = 64, .max_reply = LARGE});
	struct http_client *c = http_dial(w, 3000);
	unsigned int most;

	v->answers = false;
	ask(c, 1);
	walk_need(v->n_requests == 1);
	http_abort(c);
	walk_answer(v, 0, &(struct walk_reply){.bytes = reply, .n_bytes = LARGE});
	most = most_freed(w);
	walk_expect(most > 0 && most <= 300, "%u in a turn", most);
	walk_destroy(w);
}
