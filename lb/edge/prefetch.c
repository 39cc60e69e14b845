/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the connections of a burst, asked for before the first is worked on. Of a million
 * connections nearly none is in the cache: one by one, each would wait for a dozen lines.
 */
#include "edge/edge_private.h"

/* The parts of a connection, when it is here itself. */
static void prefetch_parts(const struct edge_connection *c)
{
	if (c->busy != NULL)
		edge_prefetch_bytes(c->busy, EDGE_BUSY_HOT);
	if (c->tcp.active != NULL)
		edge_prefetch_bytes(c->tcp.active, sizeof(*c->tcp.active));
}

/* Their ends: the request that is answered or the reply that is acknowledged. Without a request the
 * connection is at rest, or soon will be. */
static void prefetch_ends(const struct edge *e, const struct edge_connection *c)
{
	const struct edge_busy *b = c->busy;
	const struct tcp_active *a = c->tcp.active;

	if (b != NULL && b->first != NULL) {
		edge_prefetch_bytes(b->first, sizeof(*b->first));
		/* After a pause congestion control begins anew. */
		if (e->stack.now_ms - c->tcp.sent_ms > c->tcp.rto_ms)
			rte_prefetch0(&c->tcp.control);
	} else {
		rte_prefetch0(&c->position);
		tcp_wheel_prefetch(&e->wheel, edge_number(e, c));
	}
	if (b != NULL && b->out != NULL)
		edge_prefetch_bytes(b->out, sizeof(*b->out));
	if (a != NULL && a->n_sent > 0)
		rte_prefetch0(&a->first.chunk->sent[a->first.index]);
}

void edge_prefetch(const struct lcore *lc, struct flow *const flow[], unsigned int n)
{
	const struct edge_connection *c[LB_BURST];
	unsigned int found = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (flow[i] == NULL || !flow_state_is_tcp(flow[i]->state) ||
		    flow[i]->state == FLOW_TCP_WAIT)
			continue;
		c[found] = edge_connection_of(lc->edge, flow[i]);
		edge_prefetch_bytes(c[found++], EDGE_CONNECTION_HOT);
	}
	for (unsigned int i = 0; i < found; i++)
		prefetch_parts(c[i]);
	for (unsigned int i = 0; i < found; i++)
		prefetch_ends(lc->edge, c[i]);
}
