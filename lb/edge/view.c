/* SPDX-License-Identifier: BSD-3-Clause */
#include "edge/view.h"

#include "edge/tls.h"
#include "tcp/timers.h"

/* The lcore writes these words while they are read here, by design. */
#define RACING __attribute__((no_sanitize("thread")))

RACING bool lb_tcp_stats_read(const struct lb *lb, unsigned int lcore, struct lb_tcp_stats *out)
{
	const struct edge *e = lb->lcore[lcore]->edge;

	*out = (struct lb_tcp_stats){0};
	if (e == NULL)
		return false;
	out->connections = e->n_open;
	out->connections_max = e->connections;
	for (unsigned int i = 0; i < LB_SERVICES_MAX; i++)
		out->half_open += e->backlog[i];
	out->busy = e->n_busy;
	out->time_wait = e->n_wait;
	out->held_packets = e->held;
	out->held_packets_max = e->budget;
	out->requests = e->n_requests;
	out->large_requests = e->n_larges;
	out->pieces = e->pieces - e->n_pieces + e->n_parts;
	out->clients = e->n_clients;
	out->timers = e->wheel.n;
	out->events = e->stack.counters;
	if (e->tls != NULL) {
		out->tls = e->tls->counters;
		out->handshakes = e->tls->n_opening;
	}
	return true;
}

/* --- on the lcore ------------------------------------------------------------------------------
 */

static void view_busy(const struct edge_busy *b, struct lb_connection *out)
{
	out->send_bytes = b->out_bytes;
	out->held_bytes = b->placement.held_bytes + b->unwritten;
	out->requests = b->n_requests;
	if (b->tls != NULL) {
		out->send_bytes += b->tls->plain_bytes;
		out->held_bytes += edge_tls_held(b);
	}
	for (const struct edge_request *r = b->first; r != NULL; r = r->next) {
		out->send_bytes += r->answer_bytes;
		if (!r->sent && !r->answered && r->large == NULL)
			out->held_bytes += r->placed;
	}
}

static void view_tcp(const struct tcp_connection *t, struct lb_connection *out)
{
	out->state = t->state;
	out->phase = t->phase;
	out->cwnd = t->cwnd;
	out->ssthresh = t->ssthresh;
	out->in_flight = t->pipe;
	out->client_window = t->snd_wnd;
	out->offered_window = t->rcv_edge - t->rcv_nxt;
	out->srtt_us = t->srtt_us;
	out->rttvar_us = t->rttvar_us;
	out->rtt_min_us = t->rtt_min_us;
	out->retransmits = t->retransmits;
	out->mss = t->mss;
	out->sack = t->sack;
	out->timestamps = t->timestamps;
	out->scaling = t->scales;
	out->ecn = t->ecn;
}

struct view_question {
	uint64_t handle;
	struct lb_connection out;
	bool found;
};

static void view_answer(void *lcore, void *argument)
{
	struct view_question *q = argument;
	const struct lcore *lc = lcore;
	const struct flow *flow = conntrack_flow_get(lc->ct, q->handle);
	const struct edge_connection *c;

	if (lc->edge == NULL || flow == NULL || !flow_state_is_tcp(flow->state))
		return;
	q->found = true;
	if (flow->state == FLOW_TCP_WAIT) {
		q->out.state = TCP_TIME_WAIT;
		return;
	}
	c = edge_connection_of(lc->edge, flow);
	view_tcp(&c->tcp, &q->out);
	edge_select(lc->edge, c->service);
	q->out.rto_ms = tcp_timer_rto_ms(&lc->edge->stack, &c->tcp);
	q->out.closing = c->closing;
	q->out.secured = c->secured;
	if (c->secured && edge_session_of(lc->edge, c) != NULL)
		q->out.tls_version = edge_session_of(lc->edge, c)->version;
	if (c->busy != NULL)
		view_busy(c->busy, &q->out);
}

bool lb_connection_read(struct lb *lb, unsigned int lcore, uint64_t handle,
			struct lb_connection *out)
{
	struct view_question q = {.handle = handle};

	lcores_ask(lb, lcore, view_answer, &q, sizeof(q));
	*out = q.out;
	return q.found;
}
