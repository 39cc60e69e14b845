/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments to a connection that has ended, or is about to: behind a reset, behind a refusal. */
#include <stdio.h>
#include <string.h>

#include "edge/edge_private.h"
#include "http_client.h"
#include "worker.h"

#define SERVICE(more)                                                                              \
	"  - {name: echo, protocol: tcp, address: " PACKET_DESTINATION4                            \
	", port: 8000, model: echo" more "}\n"

static const struct walk_params of_length = {
	.services = SERVICE(", max_request: 1000, max_reply: 1000"),
	.more = "tcp: {connections: 256, buffer_mb: 8}\n",
};

static const char request[] = "\5\0\0\0hello";

/* --- behind a reset ------------------------------------------------------------------------------
 */

WALK(a_request_behind_a_reset_in_the_same_burst_is_none)
{
	struct walk *w = walk_create(&of_length);
	struct walk_worker *v = walk_worker(w, NULL);
	struct http_client *c = http_dial(w, 3000);

	http_put_reset(c);
	http_put(c, request, sizeof(request) - 1);
	walk_settle(w);
	walk_expect_eq(v->n_requests, 0);
	walk_expect_eq(w->lb->lcore[0]->edge->n_open, 0);
	walk_expect_drops(w, {LB_DROP_TCP_REFUSED, 1});
	walk_expect_silence(w, 0);
	http_forget(c);
	walk_destroy(w);
}

WALK(what_a_connection_owes_does_not_follow_the_client_s_reset)
{
	struct walk *w = walk_create(&of_length);
	struct http_client *c = http_dial(w, 3000);

	http_put(c, request, 6);
	http_put_reset(c);
	walk_turn(w);
	walk_expect_eq(w->lb->lcore[0]->edge->n_open, 0);
	walk_expect_silence(w, 0);
	http_forget(c);
	walk_destroy(w);
}

/* --- behind a refusal ----------------------------------------------------------------------------
 */

#define MAX_REQUEST 65536u

static const struct walk_params of_kserve = {
	.services = SERVICE(", framing: kserve, max_request: 64KiB, max_reply: 64KiB"),
	.more = "tcp: {connections: 256, buffer_mb: 8}\n",
};

/* Sends as much as the window takes, for so long, <most> bytes at most. Returns the bytes that were
 * acknowledged. */
static uint32_t go_on(struct http_client *c, uint32_t each, uint32_t most, uint32_t ms)
{
	static const char bytes[1000];
	uint32_t from = c->acked;

	for (uint32_t i = 0; i < ms && !c->reset && c->acked - from < most; i++) {
		for (unsigned int k = 0; k < 16 && (int32_t)(c->offered - c->seq) >= (int32_t)each;
		     k++)
			http_put(c, bytes, each);
		walk_pass(c->w, 1);
		http_take_all(c);
	}
	return c->acked - from;
}

static struct http_client *refused(struct walk *w, uint16_t window)
{
	struct http_client *c = http_dial(w, 3000);

	c->window = window;
	http_say(c, "nonsense\r\n\r\n", 12);
	http_wait(c);
	walk_expect_eq(c->fin, window > 0);
	return c;
}

/* It may end the body that it has begun, and then read the refusal; no more. */
WALK(a_client_that_goes_on_after_a_refusal_is_reset_after_a_body_s_bytes)
{
	static const uint16_t windows[] = {65535, 0};

	for (size_t i = 0; i < RTE_DIM(windows); i++) {
		struct walk *w = walk_create(&of_kserve);
		struct http_client *c = refused(w, windows[i]);
		uint32_t n = go_on(c, 1000, 20000000, 9000);

		walk_context("window %u", windows[i]);
		walk_expect(n >= EDGE_LINGER_BYTES + MAX_REQUEST - 1000 &&
				    n < EDGE_LINGER_BYTES + MAX_REQUEST + 100000,
			    "%u bytes were taken", n);
		walk_expect(c->reset, "it goes on");
		walk_expect_eq(w->lb->lcore[0]->edge->n_open, 0);
		walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_LINGERED], 1);
		http_forget(c);
		walk_destroy(w);
	}
}

/* Segments of few bytes cost as much as others. */
WALK(a_client_that_goes_on_byte_by_byte_is_reset_sooner)
{
	struct walk *w = walk_create(&of_kserve);
	struct http_client *c = refused(w, 65535);
	uint32_t n = go_on(c, 1, 20000000, 9000);

	walk_expect(n < (EDGE_LINGER_BYTES + MAX_REQUEST) / 200, "%u bytes were taken", n);
	walk_expect(c->reset, "it goes on");
	http_forget(c);
	walk_destroy(w);
}

WALK(a_client_that_goes_on_after_a_refusal_is_heard_for_ten_seconds)
{
	struct walk *w = walk_create(&of_kserve);
	struct http_client *c = refused(w, 65535);

	for (unsigned int s = 0; s < 9; s++) {
		go_on(c, 100, 100, 10);
		walk_pass(w, 990);
	}
	walk_expect(!c->reset, "it ended sooner");
	walk_expect_eq(w->lb->lcore[0]->edge->n_open, 1);
	walk_pass(w, 1500);
	walk_expect_eq(w->lb->lcore[0]->edge->n_open, 0);
	walk_expect_eq(walk_stats(w).drop[LB_DROP_TCP_LINGERED], 0);
	http_forget(c);
	walk_destroy(w);
}
