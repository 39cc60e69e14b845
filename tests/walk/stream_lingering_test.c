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
