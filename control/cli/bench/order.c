/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/bench/order.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_FIRST 4

int order_init(struct order *order, uint32_t flows)
{
	*order = (struct order){.flow = calloc(flows, sizeof(*order->flow)), .flows = flows};
	return order->flow != NULL ? 0 : -ENOMEM;
}

void order_fini(struct order *order)
{
	for (uint32_t i = 0; i < order->flows && order->flow != NULL; i++)
		free(order->flow[i].id);
	free(order->flow);
}

static int flow_grow(struct order_flow *flow)
{
	uint64_t room = flow->room != 0 ? flow->room * 2 : ROOM_FIRST;
	uint64_t *grown = calloc(room, sizeof(*grown));

	if (grown == NULL)
		return -ENOMEM;
	for (uint64_t i = flow->first; i < flow->end; i++)
		grown[i & (room - 1)] = flow->id[i & (flow->room - 1)];
	free(flow->id);
	flow->id = grown;
	flow->room = room;
	return 0;
}

/* Skip the requests at the front that have ended. */
static void pass_over(struct order_flow *flow, const struct ledger *ledger)
{
	while (flow->first < flow->end &&
	       ledger_find(ledger, flow->id[flow->first & (flow->room - 1)]) == NULL)
		flow->first++;
}

int order_sent(struct order *order, const struct ledger *ledger, uint32_t number, uint64_t id)
{
	struct order_flow *flow = &order->flow[number];

	if (flow->end - flow->first == flow->room)
		pass_over(flow, ledger);
	if (flow->end - flow->first == flow->room && flow_grow(flow) != 0)
		return -ENOMEM;
	flow->id[flow->end++ & (flow->room - 1)] = id;
	return 0;
}

bool order_oldest(struct order *order, const struct ledger *ledger, uint32_t number, uint64_t *id)
{
	struct order_flow *flow = &order->flow[number];

	pass_over(flow, ledger);
	if (flow->first == flow->end)
		return false;
	*id = flow->id[flow->first & (flow->room - 1)];
	return true;
}

void order_lost(struct order *order, uint32_t flow)
{
	order->flow[flow].lost++;
}

bool order_is_late(struct order *order, uint32_t flow)
{
	if (order->flow[flow].lost == 0)
		return false;
	order->flow[flow].lost--;
	return true;
}
