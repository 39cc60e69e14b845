/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that end because the load balancer stops, or because their service was removed; and
 * packets of those that have ended. */
#include "edge/edge_private.h"

/* Packets of a chain that are freed without more ado. */
#define ENDING_AT_ONCE 8u

/* --- packets ------------------------------------------------------------------------------------
 */

/* Frees some packets of a chain. Returns the others. */
static struct rte_mbuf *ending_free(struct rte_mbuf *m, uint32_t *packets)
{
	for (; m != NULL && *packets > 0; (*packets)--) {
		struct rte_mbuf *next = m->next;

		rte_pktmbuf_free_seg(m);
		m = next;
	}
	return m;
}

/*
 * All graves are taken: the chain waits in a list whose links are in the chains' first packets, in
 * the member that only a packet to be sent needs. A packet that something else refers to, too,
 * cannot have one: to give up our reference costs little, and there are no more of them than
 * windows and ports hold.
 */
static void ending_bury_more(struct edge *e, struct rte_mbuf *m)
{
	uint32_t one = 1;

	for (; m != NULL && rte_mbuf_refcnt_read(m) > 1; one = 1)
		m = ending_free(m, &one);
	if (m == NULL)
		return;
	m->tx_offload = (uintptr_t)e->more_graves;
	e->more_graves = m;
}

void edge_bury(struct edge *e, struct rte_mbuf *m)
{
	uint32_t packets = ENDING_AT_ONCE;

	m = ending_free(m, &packets);
	if (m == NULL)
		return;
	if (unlikely(e->n_graves == EDGE_GRAVES))
		return ending_bury_more(e, m);
	e->grave[e->n_graves++] = m;
}

void edge_free_reply(struct lcore *lc, struct rte_mbuf *m)
{
	edge_bury(lc->edge, m);
}

/* One of those without a place has one now. */
static void ending_bury_again(struct edge *e)
{
	struct rte_mbuf *m = e->more_graves;

	e->more_graves = (struct rte_mbuf *)(uintptr_t)m->tx_offload;
	m->tx_offload = 0;
	e->grave[e->n_graves++] = m;
}

void edge_free_buried(struct edge *e, uint32_t packets)
{
	while (e->n_graves > 0 && packets > 0) {
		struct rte_mbuf **last = &e->grave[e->n_graves - 1];

		*last = ending_free(*last, &packets);
		e->n_graves -= *last == NULL;
		if (unlikely(e->n_graves == 0 && e->more_graves != NULL))
			ending_bury_again(e);
	}
}

/* --- connections --------------------------------------------------------------------------------
 */

static bool ending_is_of(const struct edge_connection *c, uint16_t service)
{
	return c->handle != 0 && (service == EDGE_ALL_SERVICES || c->service == service);
}

void edge_close_all(struct lcore *lc)
{
	struct edge *e = lc->edge;

	for (uint32_t i = 1; e != NULL && e->n_open > 0 && i <= e->connections; i++)
		if (e->connection[i].handle != 0 && !e->connection[i].closing)
			edge_close(e, &e->connection[i]);
}

void edge_reset(struct lcore *lc, uint16_t service)
{
	struct edge *e = lc->edge;

	for (uint32_t i = 1; e != NULL && e->n_open > 0 && i <= e->connections; i++) {
		struct edge_connection *c = &e->connection[i];

		if (!ending_is_of(c, service))
			continue;
		tcp_abort(&c->tcp);
		edge_touch(e, c);
	}
}

struct edge_left edge_left(const struct lcore *lc, uint16_t service)
{
	const struct edge *e = lc->edge;

	if (e == NULL)
		return (struct edge_left){0};
	return (struct edge_left){
		.connections = service == EDGE_ALL_SERVICES ? e->n_open : e->open[service],
		.busy = e->n_busy,
		.requests = service == EDGE_ALL_SERVICES ? e->n_requests : e->elsewhere[service],
	};
}
