/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that each client has open, idle ones included, and its share of them. A client exists
 * here from its first connection to the end of its last: there are never more than connections, and
 * SYNs that open none leave nothing. Those in TIME-WAIT do not count.
 */
#include <errno.h>

#include <rte_malloc.h>

#include "edge/edge_private.h"

static uint32_t *openers_chain(const struct edge *e, uint64_t key, uint16_t zone)
{
	return &e->opener_chain[edge_client_hash(e, key, zone) & e->opener_mask];
}

/* 0: it has no connection. */
static uint32_t openers_find(const struct edge *e, uint32_t at, uint64_t key, uint16_t zone)
{
	while (at != 0 && (e->opener[at].key != key || e->opener[at].zone != zone))
		at = e->opener[at].next;
	return at;
}

void edge_opener_join(struct edge *e, struct edge_connection *c, const struct flow *flow)
{
	uint64_t key = lcore_client_address(flow);
	uint32_t *chain = openers_chain(e, key, flow->zone);
	uint32_t number = openers_find(e, *chain, key, flow->zone);

	if (number == 0) {
		number = e->free_opener; /* there are as many as connections */
		e->free_opener = e->opener[number].next;
		e->opener[number] =
			(struct edge_opener){.next = *chain, .key = key, .zone = flow->zone};
		*chain = number;
	}
	e->opener[number].open++;
	c->opener = number;
}

void edge_opener_leave(struct edge *e, const struct edge_connection *c)
{
	struct edge_opener *o = &e->opener[c->opener];
	uint32_t *at;

	if (--o->open > 0)
		return;
	at = openers_chain(e, o->key, o->zone);
	while (*at != c->opener)
		at = &e->opener[*at].next;
	*at = o->next;
	o->next = e->free_opener;
	e->free_opener = c->opener;
}

void edge_set_opening(struct edge *e, struct edge_connection *c, bool opening)
{
	uint32_t n = opening - c->opening;

	e->backlog[c->service] += n;
	e->opener[c->opener].half_open += n;
	c->opening = opening;
}

enum edge_may_open edge_may_open(const struct edge *e, const struct flow_key *key)
{
	uint64_t client = lcore_address_key(&key->src);
	const struct edge_opener *o;

	if (likely(e->n_open < e->openers_share))
		return EDGE_MAY_OPEN;
	o = &e->opener[openers_find(e, *openers_chain(e, client, key->zone), client, key->zone)];
	if (o->open < e->openers_share)
		return EDGE_MAY_OPEN;
	return o->open - o->half_open < e->openers_share ? EDGE_MAY_OPEN_BY_COOKIE
							 : EDGE_MAY_NOT_OPEN;
}

void edge_openers_share(struct edge *e)
{
	uint32_t percent = e->known->tcp.connections_percent;

	e->openers_share =
		percent == 100 ? UINT32_MAX : RTE_MAX((uint64_t)e->connections * percent / 100, 1u);
}

int edge_openers_init(struct edge *e)
{
	uint32_t chains = rte_align32pow2(e->connections);

	e->opener_mask = chains - 1;
	e->opener_chain = rte_zmalloc("opener_chains", chains * sizeof(*e->opener_chain), 0);
	e->opener = rte_zmalloc("openers", (e->connections + 1) * sizeof(*e->opener), 0);
	if (e->opener_chain == NULL || e->opener == NULL)
		return -ENOMEM;
	/* 0 means none, and has no connections. */
	for (uint32_t i = e->connections; i > 0; i--) {
		e->opener[i].next = e->free_opener;
		e->free_opener = i;
	}
	return 0;
}
