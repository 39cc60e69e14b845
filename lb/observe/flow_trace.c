/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/flow_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lcore/lcore.h"
#include "observe/stats.h"
#include "tcp/header.h"

#define EVENTS  1024 /* a power of two */
#define FLOWS   4    /* of the same client port, with different services */
#define PENDING 16   /* requests whose packets wait for an acknowledgement */
#define WATCHED (2 * LB_BURST)

/* A packet of the flow in the current burst. The pointer is only compared, never followed. */
struct watched {
	const struct rte_mbuf *packet;
	uint64_t tag;
	bool tcp;     /* a request or a reply of a TCP connection */
	bool segment; /* a segment that was received */
};

struct pending {
	const struct link *link; /* NULL: free. Only compared, until it is known to be alive. */
	uint16_t worker;
	uint32_t psn;
	uint64_t tag;
};

/* The trace of one lcore, which writes all members but <tail>. */
struct trace {
	struct flow_key key;
	bool any_service, any_zone, any_protocol;
	uint64_t start; /* TSC */
	uint64_t flow[FLOWS];
	unsigned int n_flows, n_watched, next_pending;
	struct watched watched[WATCHED];
	struct pending pending[PENDING];
	uint64_t lost;       /* atomic */
	uint32_t head, tail; /* atomic: events ever written, ever read */
	struct trace_event event[EVENTS];
};

static const char *const names[TRACE_STEPS] = {
#define ROW(symbol, name) [TRACE_##symbol] = name,
	TRACE_STEP_LIST(ROW)
#undef ROW
};

const char *lb_trace_step_name(enum trace_step step)
{
	return (unsigned int)step < TRACE_STEPS ? names[step] : "unknown";
}

/* --- on the lcore ------------------------------------------------------------------------------
 */

static void trace_add(struct lcore *lc, enum trace_step step, uint64_t tag, uint32_t a, uint32_t b,
		      uint32_t c, uint32_t d)
{
	struct trace *t = lc->trace;

	if (t->head - __atomic_load_n(&t->tail, __ATOMIC_ACQUIRE) == EVENTS) {
		__atomic_store_n(&t->lost, t->lost + 1, __ATOMIC_RELAXED);
		return;
	}
	t->event[t->head % EVENTS] = (struct trace_event){
		.at_ns = lb_tsc_to_ns(lc->lb, lb_tsc(lc->lb) - t->start),
		.tag = tag,
		.step = step,
		.lcore = lc->index,
		.a = a,
		.b = b,
		.c = c,
		.d = d,
	};
	/* Release: a reader that sees the new head sees the event. */
	__atomic_store_n(&t->head, t->head + 1, __ATOMIC_RELEASE);
}

static void trace_watch(struct trace *t, struct watched watched)
{
	if (t->n_watched < WATCHED)
		t->watched[t->n_watched++] = watched;
}

static struct watched *find_watched(struct trace *t, const struct rte_mbuf *m)
{
	for (unsigned int i = 0; i < t->n_watched; i++)
		if (t->watched[i].packet == m)
			return &t->watched[i];
	return NULL;
}

static bool trace_is_ours(const struct trace *t, const struct flow_key *key)
{
	if (memcmp(&key->src, &t->key.src, sizeof(key->src)) != 0 ||
	    key->src_port != t->key.src_port || (!t->any_zone && key->zone != t->key.zone) ||
	    (!t->any_protocol && key->protocol != t->key.protocol))
		return false;
	return t->any_service || (memcmp(&key->dst, &t->key.dst, sizeof(key->dst)) == 0 &&
				  key->dst_port == t->key.dst_port);
}

static bool trace_is_our_flow(const struct trace *t, uint64_t handle)
{
	for (unsigned int i = 0; i < RTE_MIN(t->n_flows, (unsigned int)FLOWS); i++)
		if (t->flow[i] == handle)
			return true;
	return false;
}

/* The flow is one of ours from now on. */
static void trace_know(struct trace *t, uint64_t handle)
{
	if (!trace_is_our_flow(t, handle))
		t->flow[t->n_flows++ % FLOWS] = handle;
}

void trace_arrived(struct lcore *lc, const struct burst *b)
{
	lc->trace->n_watched = 0;
	for (unsigned int i = 0; i < b->n; i++) {
		if (!trace_is_ours(lc->trace, &b->key[i]))
			continue;
		trace_watch(lc->trace, (struct watched){.packet = b->packet[i]});
		trace_add(lc, TRACE_ARRIVED, 0, b->parsed[i].payload_length,
			  lc->lb->port_index[b->packet[i]->port], b->key[i].zone, 0);
	}
}

void trace_tracked(struct lcore *lc, const struct burst *b)
{
	struct trace *t = lc->trace;

	for (unsigned int i = 0; i < b->n; i++) {
		const struct flow *flow = b->flow[i];

		if (find_watched(t, b->packet[i]) == NULL)
			continue;
		trace_know(t, b->handle[i]);
		trace_add(lc, TRACE_FLOW, 0,
			  flow->packets_in_low == 1 && flow->packets_in_high == 0, flow->state,
			  flow->service, 0);
	}
}

static uint32_t trace_candidates(const struct lcore *lc, uint16_t service)
{
	const struct pick_table *table = lcore_pick_table(lc, service);

	return table == NULL ? 0 : table->n;
}

static void trace_chosen(struct lcore *lc, uint16_t service, uint64_t tag, const struct link *link)
{
	trace_add(lc, TRACE_CHOSEN, tag, link->worker, lc->load.credits[link->worker],
		  lc->load.outstanding[link->worker], trace_candidates(lc, service));
}

void trace_assigned(struct lcore *lc, const struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct watched *w = find_watched(lc->trace, b->packet[i]);
		uint16_t service;

		/* A dropped packet is not watched any more. */
		if (w == NULL)
			continue;
		service = b->flow[i]->service;
		w->tag = b->tag[i];
		trace_add(lc, TRACE_REQUEST, b->tag[i], b->packet[i]->data_len,
			  b->priority[i].level,
			  b->deadline[i] > lc->now
				  ? lb_tsc_to_ns(lc->lb, b->deadline[i] - lc->now) / 1000
				  : 0,
			  0);
		if (b->link[i] == NULL)
			trace_add(lc, TRACE_WAITING, b->tag[i], lc->service[service].queue.count,
				  trace_candidates(lc, service), 0, 0);
		else
			trace_chosen(lc, service, b->tag[i], b->link[i]);
	}
}

static void expect_ack(struct trace *t, const struct link *link, uint64_t tag)
{
	t->pending[t->next_pending++ % PENDING] = (struct pending){
		.link = link,
		.worker = link->worker,
		.psn = link->requester.next_psn,
		.tag = tag,
	};
}

void trace_sent(struct lcore *lc, const struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		const struct link *link = b->link[i];
		uint32_t number;

		if (link == NULL || !trace_is_our_flow(lc->trace, b->handle[i]))
			continue;
		/* From the newest on: the slots of this burst. */
		for (number = link->busy.newest; number != SLOT_NONE;
		     number = link->slot[number].older)
			if (link->slot[number].flow == b->handle[i] &&
			    link->slot[number].tag == b->tag[i])
				break;
		if (number == SLOT_NONE || link->slot[number].sent != lc->now)
			continue;
		trace_add(lc, TRACE_SENT, b->tag[i], link->worker, number, link->requester.next_psn,
			  lb_tsc_to_ns(lc->lb, lc->now - b->arrived[i]) / 1000);
		expect_ack(lc->trace, link, b->tag[i]);
	}
}

static void look_for_acks(struct lcore *lc)
{
	for (unsigned int i = 0; i < PENDING; i++) {
		struct pending *p = &lc->trace->pending[i];

		if (p->link == NULL)
			continue;
		if (lc->link[p->worker] != p->link) {
			p->link = NULL; /* the worker has gone, and its link may be freed */
			continue;
		}
		if (roce_psn_diff(p->link->requester.una_psn, p->psn) < 0)
			continue;
		trace_add(lc, TRACE_ACKED, p->tag, p->worker, 0, p->link->requester.una_psn, 0);
		p->link = NULL;
	}
}

static bool trace_is_tcp(const struct lcore *lc, uint64_t handle)
{
	const struct flow *flow = conntrack_flow_get(lc->ct, handle);

	return flow != NULL && flow_state_is_tcp(flow->state);
}

void trace_replies(struct lcore *lc, const struct fabric_burst *f)
{
	lc->trace->n_watched = 0;
	look_for_acks(lc);
	for (unsigned int i = 0; i < f->n_replies; i++) {
		const struct link *link = f->reply[i].link;
		const struct rte_mbuf *m = f->reply[i].message;
		uint32_t number = ring_imm_slot(f->reply[i].imm);
		struct ring_reply header;

		if (number >= link->slots ||
		    !trace_is_our_flow(lc->trace, link->slot[number].flow) ||
		    m->data_len < sizeof(header))
			continue;
		memcpy(&header, rte_pktmbuf_mtod(m, void *), sizeof(header));
		trace_watch(lc->trace, (struct watched){
					       .packet = m,
					       .tag = link->slot[number].tag,
					       .tcp = trace_is_tcp(lc, link->slot[number].flow),
				       });
		trace_add(lc, TRACE_REPLY, link->slot[number].tag, link->worker, number,
			  ring_imm_status(f->reply[i].imm), m->pkt_len - sizeof(header));
		trace_add(lc, TRACE_TIMES, link->slot[number].tag,
			  (header.start_ns - header.seen_ns) / 1000,
			  (header.done_ns - header.start_ns) / 1000, 0, 0);
	}
}

void trace_answered(struct lcore *lc, const struct fabric_burst *f)
{
	for (unsigned int i = 0; i < f->n_replies; i++) {
		const struct watched *w = find_watched(lc->trace, f->reply[i].message);

		if (w != NULL && ring_imm_status(f->reply[i].imm) == RING_OK)
			trace_add(lc, TRACE_ANSWERED, w->tag, 0,
				  !!(f->reply[i].imm & RING_IMM_MORE), w->tcp, 0);
	}
}

void trace_notice(struct lcore *lc, const struct flow *flow, uint8_t code, uint64_t tag)
{
	if (trace_is_our_flow(lc->trace, conntrack_handle(lc->ct, flow)))
		trace_add(lc, TRACE_NOTICE, tag, code, 0, 0, 0);
}

void trace_dropped(struct lcore *lc, const struct rte_mbuf *m, unsigned int reason)
{
	struct watched *w = find_watched(lc->trace, m);

	if (w == NULL)
		return;
	trace_add(lc, w->segment ? TRACE_IGNORED : TRACE_DROPPED, w->tag, reason, 0, 0, 0);
	w->packet = NULL;
}

void trace_segment(struct lcore *lc, const struct rte_mbuf *m, const struct flow_key *key,
		   const struct flow *flow, const struct tcp_header *h)
{
	struct trace *t = lc->trace;

	t->n_watched = 0;
	if (!trace_is_ours(t, key))
		return;
	if (flow != NULL)
		trace_know(t, conntrack_handle(lc->ct, flow));
	trace_watch(t, (struct watched){.packet = m, .segment = true});
	trace_add(lc, TRACE_SEGMENT, 0, h->length, h->flags, h->seq, h->ack);
}

void trace_opened(struct lcore *lc, const struct flow_key *key, const struct flow *flow,
		  uint32_t mss)
{
	if (!trace_is_ours(lc->trace, key))
		return;
	trace_know(lc->trace, conntrack_handle(lc->ct, flow));
	trace_add(lc, TRACE_OPENED, 0, mss, 0, flow->service, 0);
}

void trace_stream_requests(struct lcore *lc, const struct burst *b)
{
	lc->trace->n_watched = 0;
	for (unsigned int i = 0; i < b->n; i++) {
		if (!trace_is_our_flow(lc->trace, b->handle[i]))
			continue;
		trace_watch(lc->trace, (struct watched){
					       .packet = b->packet[i], .tag = b->tag[i], .tcp = true});
		trace_add(lc, TRACE_READ, b->tag[i], b->packet[i]->pkt_len, 0, 0,
			  lb_tsc_to_ns(lc->lb, lc->now - b->arrived[i]) / 1000);
	}
}

void trace_placed(struct lcore *lc, const struct flow *flow, uint64_t tag, const struct link *link)
{
	if (trace_is_our_flow(lc->trace, conntrack_handle(lc->ct, flow)))
		trace_chosen(lc, flow->service, tag, link);
}

void trace_announced(struct lcore *lc, const struct flow *flow, uint64_t tag,
		     const struct link *link, uint32_t slot, uint32_t bytes, uint64_t arrived)
{
	uint64_t us = lb_tsc_to_ns(lc->lb, lc->now - arrived) / 1000;

	if (!trace_is_our_flow(lc->trace, conntrack_handle(lc->ct, flow)))
		return;
	trace_add(lc, TRACE_READ, tag, bytes, 0, 0, us);
	trace_add(lc, TRACE_SENT, tag, link->worker, slot, link->requester.next_psn, us);
	expect_ack(lc->trace, link, tag);
}

void trace_connection(struct lcore *lc, uint64_t handle, enum trace_step step, uint32_t a,
		      uint32_t b)
{
	if (trace_is_our_flow(lc->trace, handle))
		trace_add(lc, step, 0, a, b, 0, 0);
}

/* --- on the control thread ---------------------------------------------------------------------
 */

static void trace_attach(void *lcore, void *trace)
{
	struct lcore *lc = lcore;

	lc->trace = trace;
}

/* Where a call has no room, the trace stays, and trace_tick() comes again. */
static void trace_end(struct lb *lb)
{
	for (unsigned int i = 0; i < lb->n_lcores; i++)
		if (mailbox_waiting(&lb->lcore[i]->mailbox) >= MAILBOX_SIZE)
			return;
	for (unsigned int i = 0; lb->tracing && i < lb->n_lcores; i++) {
		lcores_tell(lb, i, trace_attach, NULL, 0);
		lcores_free_later(lb, free, lb->trace[i]);
		lb->trace[i] = NULL;
	}
	lcores_settle(lb);
	lb->tracing = false;
}

int lb_trace_start(struct lb *lb, const struct trace_flow *flow, uint32_t *id, char *error,
		   size_t size)
{
	struct trace *t[LB_LCORES_MAX];
	unsigned int n = 0;

	if (lcores_check(lb, error, size) < 0)
		return -EBUSY;
	trace_end(lb);
	snprintf(error, size, "no memory for a trace");
	while (n < lb->n_lcores && (t[n] = calloc(1, sizeof(*t[n]))) != NULL)
		n++;
	if (n < lb->n_lcores) {
		while (n > 0)
			free(t[--n]);
		return -ENOMEM;
	}
	*id = ++lb->trace_id;
	lb->tracing = true;
	lb->trace_read_ms = lb_now_ms(lb);
	for (unsigned int i = 0; i < n; i++) {
		t[i]->key.src = flow->client.addr;
		t[i]->key.dst = flow->vip.addr;
		t[i]->key.src_port = htons(flow->client_port);
		t[i]->key.dst_port = htons(flow->vip_port);
		t[i]->key.protocol = flow->protocol;
		t[i]->any_protocol = flow->protocol == 0;
		t[i]->any_service = flow->vip_port == 0;
		t[i]->key.zone = flow->zone;
		t[i]->any_zone = !flow->in_zone;
		t[i]->start = lb_tsc(lb);
		lb->trace[i] = t[i];
		lcores_tell(lb, i, trace_attach, t[i], 0);
	}
	return 0;
}

int lb_trace_read(struct lb *lb, uint32_t id, struct trace_event *out, unsigned int n,
		  uint64_t *lost)
{
	unsigned int got = 0;

	if (!lb->tracing || id != lb->trace_id)
		return -ENOENT;
	lb->trace_read_ms = lb_now_ms(lb);
	*lost = 0;
	for (unsigned int i = 0; i < lb->n_lcores; i++) {
		struct trace *t = lb->trace[i];
		uint32_t head = __atomic_load_n(&t->head, __ATOMIC_ACQUIRE);

		while (got < n && t->tail != head) {
			out[got++] = t->event[t->tail % EVENTS];
			/* Release: the lcore may write the place again. */
			__atomic_store_n(&t->tail, t->tail + 1, __ATOMIC_RELEASE);
		}
		*lost += __atomic_load_n(&t->lost, __ATOMIC_RELAXED);
	}
	return (int)got;
}

void lb_trace_stop(struct lb *lb, uint32_t id)
{
	if (lb->tracing && id == lb->trace_id)
		trace_end(lb);
}

void trace_tick(struct lb *lb)
{
	if (lb->tracing && lb_now_ms(lb) - lb->trace_read_ms > LB_TRACE_IDLE_MS)
		trace_end(lb);
}
