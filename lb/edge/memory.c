/* SPDX-License-Identifier: BSD-3-Clause */
/* All memory of an lcore's connections, made when it begins. */
#include <errno.h>
#include <stdalign.h>

#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>

#include "config/memory.h"
#include "edge/edge_private.h"

int edge_mark_offset = -1;

#define SEED_WORD 0x7463702d65646765 /* keys differ from those of the flow table */

static void *memory_alloc(const char *what, size_t n, size_t size)
{
	return rte_zmalloc(what, n * size, RTE_CACHE_LINE_SIZE);
}

static int memory_alloc_all(struct edge *e, const struct lb_tcp_pools *pools)
{
	/* A connection with a request holds a packet, most often; so does a piece. */
	uint32_t busy = RTE_MIN(pools->connections, pools->packets);
	uint32_t requests = pools->packets, pieces = pools->packets + EDGE_PIECES;
	/* A packet may have the end of a large request and the beginning of another. */
	uint32_t parts = 2 * pools->packets, larges = pools->packets / 2;

	e->connection = memory_alloc("connections", e->connections + 1, sizeof(*e->connection));
	e->free_connection =
		memory_alloc("free_connections", e->connections, sizeof(*e->free_connection));
	e->wait = memory_alloc("time_wait", e->waits, sizeof(*e->wait));
	e->busy_memory = memory_alloc("busy_connections", busy, sizeof(*e->busy_memory));
	e->request_memory = memory_alloc("stream_requests", requests, sizeof(*e->request_memory));
	e->piece_memory = memory_alloc("stream_pieces", pieces, sizeof(*e->piece_memory));
	e->large_memory = memory_alloc("large_requests", larges, sizeof(*e->large_memory));
	e->part_memory = memory_alloc("stream_parts", parts, sizeof(*e->part_memory));
	e->stack_memory = memory_alloc(
		"tcp_stack", 1, tcp_stack_bytes(pools->actives, pools->chunks, pools->helds));
	e->wheel_memory = memory_alloc("timers", 1, tcp_wheel_bytes(e->connections));
	if (e->connection == NULL || e->wheel_memory == NULL || e->free_connection == NULL ||
	    e->wait == NULL || e->busy_memory == NULL || e->request_memory == NULL ||
	    e->piece_memory == NULL || e->stack_memory == NULL || e->large_memory == NULL ||
	    e->part_memory == NULL)
		return -ENOMEM;
	tcp_wheel_init(&e->wheel, e->connections, e->stack.now_ms, e->wheel_memory);
	if (edge_clients_init(e, busy, pools->packets) < 0 || edge_openers_init(e) < 0 ||
	    edge_rewrite_init(e) < 0 || edge_rows_init(e) < 0 || edge_tls_init(e) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->connections; i++)
		e->free_connection[i] = e->connections - i; /* 0 means none */
	e->n_free = e->connections;
	for (uint32_t i = 0; i < busy; i++) {
		e->busy_memory[i].next = e->free_busy;
		e->free_busy = &e->busy_memory[i];
	}
	for (uint32_t i = 0; i < requests; i++) {
		e->request_memory[i].next = e->free_request;
		e->free_request = &e->request_memory[i];
	}
	for (uint32_t i = 0; i < pieces; i++) {
		e->piece_memory[i].piece.next = (struct placement_piece *)e->free_piece;
		e->free_piece = &e->piece_memory[i];
	}
	e->n_pieces = e->pieces = pieces;
	for (uint32_t i = 0; i < larges; i++) {
		e->large_memory[i].next_free = e->free_large;
		e->free_large = &e->large_memory[i];
	}
	for (uint32_t i = 0; i < parts; i++) {
		STAILQ_NEXT(&e->part_memory[i], next) = e->free_part;
		e->free_part = &e->part_memory[i];
	}
	tcp_stack_init(&e->stack, e->known->tcp_settings, pools->actives, pools->chunks,
		       pools->helds, e->stack_memory);
	return 0;
}

/* The place of marks in mbufs, the same for all lcores. -1: there is none. */
static int memory_add_mark(void)
{
	static const struct rte_mbuf_dynfield field = {
		.name = "doorbell_edge_mark",
		.size = sizeof(struct edge_mark),
		.align = alignof(struct edge_mark),
	};

	return rte_mbuf_dynfield_register(&field);
}

int edge_create(struct lcore *lc, const uint64_t seed[2])
{
	const struct lb_config *config = &lc->lb->config;
	struct edge *e = memory_alloc("edge", 1, sizeof(*e));
	struct lb_tcp_pools pools = lb_tcp_pools_per_lcore(config);

	if (e == NULL)
		return -ENOMEM;
	lc->edge = e;
	e->lc = lc;
	edge_mark_offset = memory_add_mark();
	if (edge_mark_offset < 0)
		return -ENOMEM;
	e->flows = conntrack_flows(lc->ct);
	e->timers_turn = UINT32_MAX;
	e->secret = (struct tcp_secret){{seed[0] ^ SEED_WORD, seed[1] ^ lc->index}};
	e->connections = pools.connections;
	e->waits = pools.time_waits;
	e->gather_max =
		rte_pktmbuf_data_room_size(lc->packets) - RTE_PKTMBUF_HEADROOM - ROCE_TRAILER_MAX;
	STAILQ_INIT(&e->due);
	TAILQ_INIT(&e->due_more);
	TAILQ_INIT(&e->owing);
	TAILQ_INIT(&e->answered);
	TAILQ_INIT(&e->others);
	TAILQ_INIT(&e->turns);
	TAILQ_INIT(&e->narrow);
	TAILQ_INIT(&e->freeing);
	TAILQ_INIT(&e->wanting);
	TAILQ_INIT(&e->filling);
	TAILQ_INIT(&e->ready);
	TAILQ_INIT(&e->writing);
	TAILQ_INIT(&e->sending);
	edge_begin_turn(e);
	return memory_alloc_all(e, &pools);
}

void edge_destroy(struct lcore *lc)
{
	struct edge *e = lc->edge;

	if (e == NULL)
		return;
	edge_tls_fini(e);
	rte_free(e->connection);
	rte_free(e->free_connection);
	rte_free(e->wait);
	rte_free(e->busy_memory);
	rte_free(e->request_memory);
	rte_free(e->piece_memory);
	rte_free(e->large_memory);
	rte_free(e->part_memory);
	rte_free(e->stack_memory);
	edge_rewrite_fini(e);
	edge_rows_fini(e);
	rte_free(e->wheel_memory);
	rte_free(e->client_chain);
	rte_free(e->client_memory);
	rte_free(e->opener_chain);
	rte_free(e->opener);
	rte_free(e);
	lc->edge = NULL;
}
