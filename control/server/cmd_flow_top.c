/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flows.top: the largest flows of one bounded step. The caller keeps the best of all steps and says
 * with each call how much a flow must exceed to be among them. So few rows travel, and nothing is
 * kept here between calls.
 */
#include <stdlib.h>

#include "server/flows.h"

#define TOP_DEFAULT 20
#define TOP_MAX     1000
#define NO_FLOOR    UINT64_MAX

struct top_query {
	struct flow_query query;
	uint32_t limit;
	uint64_t above;
	char by[16];
};

static const struct control_param params[] = {
	FLOW_QUERY_PARAMS(top_query),
	{CONTROL_PARAM(top_query, limit), CONTROL_INTEGER, .min = 1, .max = TOP_MAX},
	{CONTROL_PARAM(top_query, above), CONTROL_INTEGER, .max = INT64_MAX},
	{CONTROL_PARAM(top_query, by), CONTROL_TEXT},
};

static uint64_t bytes(const struct flow_info *flow)
{
	return flow->bytes_in + flow->bytes_out;
}

static uint64_t packets(const struct flow_info *flow)
{
	return flow->packets_in + flow->packets_out;
}

static uint64_t requests(const struct flow_info *flow)
{
	return flow->requests;
}

static const struct ranking {
	const char *name;
	uint64_t (*value)(const struct flow_info *flow);
} rankings[] = {{"bytes", bytes}, {"packets", packets}, {"requests", requests}};

struct ranked {
	uint64_t value;
	unsigned int lcore;
	struct flow_info flow;
};

/* A heap with the smallest flow first, which a larger one replaces. */
struct top {
	uint64_t (*value)(const struct flow_info *flow);
	uint64_t floor; /* or NO_FLOOR */
	unsigned int n, limit;
	struct ranked *heap;
};

static void ranked_swap(struct ranked *a, struct ranked *b)
{
	struct ranked old = *a;

	*a = *b;
	*b = old;
}

static void sift_up(struct ranked *heap, unsigned int at)
{
	for (; at > 0 && heap[at].value < heap[(at - 1) / 2].value; at = (at - 1) / 2)
		ranked_swap(&heap[at], &heap[(at - 1) / 2]);
}

static void sift_down(struct ranked *heap, unsigned int n)
{
	unsigned int at = 0, child;

	while ((child = 2 * at + 1) < n) {
		if (child + 1 < n && heap[child + 1].value < heap[child].value)
			child++;
		if (heap[at].value <= heap[child].value)
			return;
		ranked_swap(&heap[at], &heap[child]);
		at = child;
	}
}

static void top_add(void *context, unsigned int lcore, const struct flow_info *flow)
{
	struct top *top = context;
	uint64_t value = top->value(flow);

	if (top->floor != NO_FLOOR && value <= top->floor)
		return;
	if (top->n < top->limit) {
		top->heap[top->n] = (struct ranked){value, lcore, *flow};
		sift_up(top->heap, top->n++);
	} else if (value > top->heap[0].value) {
		top->heap[0] = (struct ranked){value, lcore, *flow};
		sift_down(top->heap, top->n);
	}
}

static int ranked_compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return (x->value < y->value) - (x->value > y->value);
}

static void write_rows(struct control_call *call, struct top *top)
{
	struct flow_rows rows = {.lb = call->c->lb, .text = &call->written};

	qsort(top->heap, top->n, sizeof(*top->heap), ranked_compare);
	flow_rows_begin(&rows);
	for (unsigned int i = 0; i < top->n; i++)
		flow_rows_add_ranked(&rows, top->heap[i].lcore, &top->heap[i].flow,
				     top->heap[i].value);
	flow_rows_end(&rows);
	call->written_name = "flows";
}

static bool ranking_read(struct control_call *call, const char *name, struct top *top)
{
	for (size_t i = 0; i < CONTROL_COUNT_OF(rankings); i++)
		if (strcmp(rankings[i].name, name) == 0)
			top->value = rankings[i].value;
	if (top->value == NULL)
		control_fail(call, CONTROL_ERROR_PARAMS,
			     "params.by: cannot use '%s'; give bytes, packets or requests", name);
	return top->value != NULL;
}

json_t *control_flows_top(struct control_call *call)
{
	struct top_query q = {.limit = TOP_DEFAULT, .above = NO_FLOOR, .by = "bytes"};
	struct top top = {0};
	struct flow_walk walk = {
		.lb = call->c->lb, .limit = UINT64_MAX, .visit = top_add, .context = &top};
	struct flow_filter filter;
	json_t *result;

	if (!control_params_read(call, "params", call->params, params, CONTROL_COUNT_OF(params),
				 &q) ||
	    !flow_filter_read(call, &q.query, &filter) || !ranking_read(call, q.by, &top))
		return NULL;
	top.floor = q.above;
	top.limit = q.limit;
	top.heap = calloc(top.limit, sizeof(*top.heap));
	if (top.heap == NULL)
		return NULL;
	flow_walk_from(&walk, q.query.cursor);
	flow_walk_step(&walk, &filter);
	write_rows(call, &top);
	free(top.heap);
	result = json_object();
	flow_walk_say(&walk, result);
	return result;
}
