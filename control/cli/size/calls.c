/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/size/calls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The state after a call: when it ended, and until when what is busy. */
struct replay {
	double end, queue;
	double server, link; /* with queues only */
};

static double bytes_us(const struct calls_network *n, uint64_t bytes)
{
	return (double)bytes * 8 / (n->gbps * 1e3);
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

/* The call itself, begun at <start>: when it is done; the GPU's queue grows. */
static double replay_run(struct replay *r, const struct trace_call *c, double start)
{
	double done = start + c->call_us;

	if (c->gpu_us > 0 || c->kind == TRACE_WAIT)
		r->queue = later(done, r->queue) + c->gpu_us;
	return c->kind == TRACE_WAIT ? r->queue : done;
}

static void replay_beside(struct replay *r, const struct trace_call *c)
{
	r->end = replay_run(r, c, r->end + c->gap_us);
}

static void replay_remote(struct replay *r, const struct trace_call *c,
			  const struct calls_network *n, double *began)
{
	double issued = r->end + c->gap_us, carried = bytes_us(n, c->sent), leaves, start, done;

	if (c->kind == TRACE_LOCAL) {
		r->end = issued;
		return;
	}
	/* As many are outstanding as may be: the oldest must have been taken, and we must know. */
	if (began != NULL && *began > 0)
		issued = later(issued, *began + n->rtt_us / 2);
	leaves = issued + n->send_us;
	if (n->queues)
		r->link = leaves = later(leaves, r->link) + carried;
	else
		leaves += carried;
	start = leaves + n->rtt_us / 2;
	if (n->queues)
		start = later(start, r->server);
	if (began != NULL)
		*began = start;
	done = replay_run(r, c, start + n->receive_us);
	r->server = done;
	r->end = issued + n->send_us;
	if (c->kind != TRACE_ASYNC)
		r->end = done + n->send_us + n->rtt_us / 2 + bytes_us(n, c->received) +
			 n->receive_us;
}

int size_calls_cost(const struct trace *trace, const struct calls_network *network,
		    struct calls_cost *cost)
{
	struct replay beside = {0}, remote = {0};
	double *began = NULL;
	size_t sent = 0;

	memset(cost, 0, sizeof(*cost));
	if (network->queues && network->outstanding > 0) {
		began = calloc(network->outstanding, sizeof(*began));
		if (began == NULL)
			return -ENOMEM;
	}
	for (size_t i = 0; i < trace->n; i++) {
		const struct trace_call *c = &trace->call[i];

		cost->calls[c->kind]++;
		cost->sent += (double)c->sent;
		cost->received += (double)c->received;
		replay_beside(&beside, c);
		replay_remote(&remote, c, network,
			      began != NULL && c->kind != TRACE_LOCAL
				      ? &began[sent++ % network->outstanding]
				      : NULL);
	}
	free(began);
	/* The program is over when its work is. */
	cost->local_us = later(beside.end, beside.queue);
	cost->remote_us = later(remote.end, remote.queue);
	cost->cost = cost->local_us > 0 ? cost->remote_us / cost->local_us - 1 : INFINITY;
	return 0;
}

int size_calls_rtt_us(const struct trace *trace, const struct calls_network *network,
		      double epsilon, double most_us, double *rtt_us)
{
	struct calls_network n = *network;
	double low = 0, high = most_us;
	struct calls_cost cost;
	int ret;

	*rtt_us = 0;
	n.rtt_us = 0;
	ret = size_calls_cost(trace, &n, &cost);
	if (ret != 0 || cost.cost > epsilon)
		return ret;
	while (high - low > 0.001 * high && high > 0.01) {
		n.rtt_us = (low + high) / 2;
		ret = size_calls_cost(trace, &n, &cost);
		if (ret != 0)
			return ret;
		if (cost.cost <= epsilon)
			low = n.rtt_us;
		else
			high = n.rtt_us;
	}
	*rtt_us = low;
	return 0;
}
