/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A walk through all tables in steps that end by the clock. The time per flow depends on the
 * visitor, the caches and other users of the CPU, but health checks and registrations must wait for
 * one step at most.
 */

#include "runtime/clock.h"
#include "server/flows.h"

#define STEP_NS 1000000u /* ns per step, so that the control thread can do its other work */
#define CHUNK   128      /* flows copied at a time, on the stack */

static void walk_chunk(struct flow_walk *walk, const struct flow_filter *filter)
{
	struct flow_info flow[CHUNK];
	uint64_t left = walk->limit - walk->matched;
	unsigned int n;

	/* never copy a flow that could not be returned: the cursor would be past it */
	n = conntrack_dump(lb_conntrack(walk->lb, walk->lcore), &walk->at, flow,
			   left < CHUNK ? (unsigned int)left : CHUNK);
	for (unsigned int i = 0; i < n; i++) {
		if (!flow_filter_matches(filter, &flow[i]))
			continue;
		walk->matched++;
		walk->visit(walk->context, walk->lcore, &flow[i]);
	}
	if (walk->at == CONNTRACK_DUMP_END) {
		walk->lcore++;
		walk->at = 0;
	}
}

void flow_walk_step(struct flow_walk *walk, const struct flow_filter *filter)
{
	uint64_t end = clock_now_ns() + STEP_NS;

	while (walk->lcore < lb_lcores(walk->lb) && walk->matched < walk->limit) {
		walk_chunk(walk, filter);
		if (clock_now_ns() >= end)
			break;
	}
}

void flow_walk_from(struct flow_walk *walk, uint64_t cursor)
{
	walk->lcore = (unsigned int)(cursor >> 32);
	walk->at = (uint32_t)cursor;
}

void flow_walk_say(const struct flow_walk *walk, json_t *result)
{
	uint64_t cursor = (uint64_t)walk->lcore << 32 | walk->at;

	json_object_set_new(result, "cursor", json_integer((json_int_t)cursor));
	json_object_set_new(result, "done", json_boolean(walk->lcore >= lb_lcores(walk->lb)));
}
