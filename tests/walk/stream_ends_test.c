/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections whose end takes some turns, and what may happen meanwhile: nothing of them is found,
 * and nothing of them stays. */
#include <stdio.h>
#include <string.h>

#include "edge/edge.h"
#include "edge/edge_private.h"
#include "grpc_text.h"
#include "reload/reload.h"
#include "lb.h"

#define ROW_BYTES 2000u
#define BATCHES   12u

#define SERVICE(name, port)                                                                        \
	"  - {name: " name ", protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4       \
	", port: " port ", model: echo, max_request: 2000, max_reply: 2000, queue: 4096, "         \
	"queue_timeout_ms: 60000, request_timeout_ms: 60000, replay: 1}\n"

static const struct walk_params params = {
	.services = SERVICE("echo", "8000"),
	.more = "tcp: {connections: 256, buffer_mb: 64}\n",
	.packets = 16384,
};

static const char live[] = "GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n";

/* Its model takes 256 rows, each of more than a packet. */
static struct walk_worker *rows_worker(struct walk *w)
{
	static const struct walk_worker_params many = {.max_request = ROW_BYTES,
						       .max_reply = ROW_BYTES,
						       .slots = 256,
						       .max_batch = 256,
						       .room = 4 << 20};
	static struct model_description described;
	struct walk_worker *v;

	described = kserve_one_tensor(DATATYPE_UINT8);
	described.batch = true;
	described.input[0].rank = described.output[0].rank = 2;
	described.input[0].shape[1] = described.output[0].shape[1] = ROW_BYTES;
	v = kserve_worker_of(w, &many, ROW_BYTES, &described);
	v->answers = false;
	return v;
}

/* A batch of 256 rows, of which some have come. */
static void say_batch(struct http_client *c)
{
	static const char json[] = "{\"inputs\":[{\"name\":\"a\",\"shape\":[256,2000],\"datatype\":"
				   "\"UINT8\",\"parameters\":{\"binary_data_size\":512000}}]}";
	static char text[8192];
	int n = sprintf(text,
			"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n"
			"Inference-Header-Content-Length: %zu\r\n\r\n%s",
			sizeof(json) - 1 + 512000, sizeof(json) - 1, json);

	n += sprintf(text + n, "%06500u", 1);
	http_say(c, text, (uint32_t)n);
	walk_pass(c->w, 1);
	http_take_all(c);
	http_acknowledge(c);
}

static void nothing(struct walk *w)
{
}

/* The worker answers what it has, and cancels come. */
static void answers_come(struct walk *w)
{
	w->worker[0]->answers = true;
}

static void worker_dies(struct walk *w)
{
	w->worker[0]->gone = true;
	walk_remove_workers(w);
}

static void service_goes(struct walk *w)
{
	char text[8192];

	walk_yaml(&params, SERVICE("other", "8001"), text, sizeof(text));
	walk_need(walk_reload(w, text) == 0, "%s", w->error);
}

static void it_stops(struct walk *w)
{
	lb_stop_begin(w->lb);
	walk_tick(w);
}

/* The clients come back with the same addresses, and ask. */
static void clients_come_back(struct walk *w)
{
	for (uint16_t i = 0; i < BATCHES; i++) {
		struct http_client *c = http_dial(w, 3000 + i);

		http_say(c, live, sizeof(live) - 1);
		http_wait(c);
		walk_expect(strstr(c->got, "{\"live\":true}") != NULL, "%u got: %s", i, c->got);
		http_abort(c);
	}
}

static const struct event {
	const char *name;
	void (*happen)(struct walk *w);
	bool ends; /* nobody is served any more */
} events[] = {
	{"nothing", nothing},
	{"answers come", answers_come},
	{"the worker dies", worker_dies},
	{"the service goes", service_goes, .ends = true},
	{"it stops", it_stops, .ends = true},
	{"the clients come back", clients_come_back},
};

static void end_and(const struct event *event, unsigned int turns)
{
	struct walk *w = walk_create(&params);
	struct http_client *c[BATCHES];

	walk_context("%s, %u turns later", event->name, turns);
	rows_worker(w);
	for (uint16_t i = 0; i < BATCHES; i++) {
		c[i] = http_dial(w, 3000 + i);
		say_batch(c[i]);
	}
	for (unsigned int i = 0; i < BATCHES; i++)
		http_put_reset(c[i]);
	walk_turns(w, turns);
	for (unsigned int i = 0; i < BATCHES; i++)
		http_forget(c[i]);
	event->happen(w);
	for (unsigned int i = 0; i < 200; i++)
		walk_turn(w);
	walk_pass(w, 20);
	walk_expect_eq(edge_left(w->lb->lcore[0], EDGE_ALL_SERVICES).connections, 0);
	walk_expect_eq(edge_left(w->lb->lcore[0], EDGE_ALL_SERVICES).requests, 0);
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	if (!event->ends)
		clients_come_back(w);
	walk_forget(w, 0);
	walk_destroy(w);
}

WALK(what_happens_while_connections_end)
{
	static const unsigned int turns[] = {1, 2, 5, 12};

	for (size_t i = 0; i < RTE_DIM(events); i++)
		for (size_t k = 0; k < RTE_DIM(turns); k++)
			end_and(&events[i], turns[k]);
	walk_context("%s", "");
}

/* --- documents that are read in many turns ------------------------------------------------------
 */

#define NUMBERS 20000u

static const struct walk_params json_params = {
	.services = "  - {name: echo, protocol: tcp, framing: kserve, address: " PACKET_DESTINATION4
		    ", port: 8000, model: echo, max_request: 64KiB, max_reply: 64KiB, "
		    "deadline_ms: 20}\n",
	.more = "tcp: {connections: 64, buffer_mb: 64}\n",
	.packets = 4096,
};

/* A request of many numbers: it takes some turns to read. */
static void say_numbers(struct http_client *c)
{
	static char body[3 * NUMBERS], text[sizeof(body) + 256];
	uint32_t n = sprintf(body,
			     "{\"inputs\":[{\"name\":\"a\",\"shape\":[2],\"datatype\":\"FP32\","
			     "\"data\":[0,0]},{\"name\":\"b\",\"shape\":[%u],\"datatype\":"
			     "\"UINT8\",\"data\":[1",
			     NUMBERS);

	for (unsigned int i = 1; i < NUMBERS; i++) {
		body[n++] = ',';
		body[n++] = '1';
	}
	n += sprintf(body + n, "]}]}");
	n = sprintf(
		text,
		"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n\r\n%s", n,
		body);
	for (uint32_t at = 0; at < n; at += 1000)
		http_put(c, text + at, RTE_MIN(n - at, 1000u));
}

/* The client resets after any number of turns, and comes back; another one is served meanwhile. */
WALK(a_document_that_is_read_in_turns_ends_in_any_of_them)
{
	struct walk *w = walk_create(&json_params);

	kserve_worker(w);
	for (unsigned int turns = 1; turns < 64; turns += 3) {
		struct http_client *c = http_dial(w, 3000), *other;

		walk_context("%u turns", turns);
		say_numbers(c);
		walk_turns(w, turns);
		http_take_all(c);
		http_put_reset(c);
		other = http_dial(w, 4000);
		http_say(other, live, sizeof(live) - 1);
		http_wait(other);
		walk_expect(strstr(other->got, "{\"live\":true}") != NULL, "got: %s", other->got);
		http_forget(c);
		http_abort(other);
		walk_pass(w, 5);
		walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	}
	walk_context("%s", "");
	walk_destroy(w);
}

/* The time is over when the document has been read: no worker has to be asked. */
WALK(a_deadline_that_passes_while_the_document_is_read)
{
	struct walk *w = walk_create(&json_params);
	struct walk_worker *v = kserve_worker(w);

	for (unsigned int turns = 1; turns < 64; turns += 9) {
		struct http_client *c = http_dial(w, 3000);

		walk_context("%u turns", turns);
		say_numbers(c);
		walk_turns(w, turns);
		walk_jump(w, 100);
		http_wait(c);
		walk_expect(strstr(c->got, "HTTP/1.1 ") == c->got, "no answer: %s", c->got);
		walk_expect(v->answered > 0 || strstr(c->got, " 504 ") != NULL, "got: %.200s",
			    c->got);
		c->n = 0;
		http_say(c, live, sizeof(live) - 1);
		http_wait(c);
		walk_expect(strstr(c->got, "{\"live\":true}") != NULL, "got: %.200s", c->got);
		http_abort(c);
		walk_pass(w, 5);
	}
	walk_expect_eq(edge_held_packets(w->lb->lcore[0]), 0);
	walk_context("%s", "");
	walk_destroy(w);
}

/* --- the packets of what has ended ------------------------------------------------------------ */

#define LONG_CHAIN  5000u
#define SHORT_CHAIN 10u

static struct rte_mbuf *chain_of(struct rte_mempool *pool, unsigned int n)
{
	struct rte_mbuf *first = NULL, *m;

	for (; n > 0; n--) {
		m = rte_pktmbuf_alloc(pool);
		walk_need(m != NULL);
		m->next = first;
		first = m;
	}
	return first;
}

/* Frees what is buried as iterations do. Each frees what it may, as long as there is something. */
static void expect_freed_in_turns(struct edge *e, struct rte_mempool *pool)
{
	for (unsigned int left = rte_mempool_in_use_count(pool); left > 0;) {
		unsigned int next = left > 256 ? left - 256 : 0;

		walk_expect(e->n_graves > 0, "%u packets are left, and nothing is to be freed",
			    left);
		edge_free_buried(e, 256);
		left = rte_mempool_in_use_count(pool);
		walk_need(left == next, "%u and not %u are left", left, next);
	}
	walk_expect_eq(e->n_graves, 0);
}

WALK(chains_of_any_length_are_freed_in_turns_also_when_all_graves_are_taken)
{
	struct walk *w = walk_create(&params);
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("buried", 32767, 0, 0, 64, SOCKET_ID_ANY);
	struct edge *e = w->lb->lcore[0]->edge;
	struct rte_mbuf *shared[3];
	unsigned int used;

	walk_need(pool != NULL);
	for (unsigned int i = 0; i < EDGE_GRAVES; i++)
		edge_bury(e, chain_of(pool, SHORT_CHAIN));
	walk_expect_eq(e->n_graves, EDGE_GRAVES);
	for (unsigned int i = 0; i < 3; i++) {
		struct rte_mbuf *m = chain_of(pool, LONG_CHAIN), *at = m;

		/* The first that stay may be in a window or a port's ring, too. */
		for (unsigned int k = 0; k < 9; k++)
			at = at->next;
		shared[i] = at;
		rte_mbuf_refcnt_update(at, 1);
		used = rte_mempool_in_use_count(pool);
		edge_bury(e, m);
		walk_expect(used - rte_mempool_in_use_count(pool) <= 9, "%u were freed at once",
			    used - rte_mempool_in_use_count(pool));
	}
	for (unsigned int i = 0; i < 3; i++)
		rte_mbuf_refcnt_update(shared[i], -1);
	expect_freed_in_turns(e, pool);
	/* One whose packets are all referred to elsewhere. */
	for (unsigned int i = 0; i < EDGE_GRAVES; i++)
		edge_bury(e, chain_of(pool, SHORT_CHAIN));
	shared[0] = chain_of(pool, 9);
	shared[1] = rte_pktmbuf_lastseg(shared[0]);
	rte_mbuf_refcnt_update(shared[1], 1);
	edge_bury(e, shared[0]);
	walk_expect_eq(rte_mbuf_refcnt_read(shared[1]), 1);
	rte_pktmbuf_free(shared[1]);
	expect_freed_in_turns(e, pool);
	rte_mempool_free(pool);
	walk_destroy(w);
}
