/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of each flow in sending order, to find the request of a reply without an id. Skips
 * requests that have ended, so the memory per flow follows the outstanding requests. One thread
 * owns it.
 */
#ifndef BENCH_ORDER_H
#define BENCH_ORDER_H

#include "cli/bench/ledger.h"

struct order_flow {
	uint64_t *id; /* request n is at n modulo <room>, a power of two */
	uint64_t first, end, room;
	uint64_t lost; /* requests that were given up, and whose reply may still come */
};

struct order {
	struct order_flow *flow;
	uint32_t flows;
};

/* Returns -ENOMEM on failure. */
int order_init(struct order *order, uint32_t flows);
void order_fini(struct order *order);

/* Returns -ENOMEM on failure. */
int order_sent(struct order *order, const struct ledger *ledger, uint32_t flow, uint64_t id);

/* Get the oldest outstanding request of <flow>; false when it has none. */
bool order_oldest(struct order *order, const struct ledger *ledger, uint32_t flow, uint64_t *id);

void order_lost(struct order *order, uint32_t flow);
/*
 * True when a reply without an outstanding request answers one that was given up; true once for
 * each such request.
 */
bool order_is_late(struct order *order, uint32_t flow);

#endif
