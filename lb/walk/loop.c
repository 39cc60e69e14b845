/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The walk as one lcore runs it: burst by burst, each stage over the whole burst.
 *
 *   client  -> ingress -> track -> cut -> assign -> send -> fabric port
 *   worker  -> ingress -> fabric -> egress                -> client port
 */
#include "walk/loop.h"

#include "edge/edge.h"
#include "lcore/lcore.h"
#include "observe/flow_trace.h"
#include "packet/fragment.h"
#include "ports/verbs_port.h"
#include "walk/cancel.h"
#include "walk/cut.h"
#include "walk/egress.h"
#include "walk/fabric.h"
#include "walk/forward.h"
#include "walk/handover.h"
#include "walk/ingress.h"
#include "walk/overdue.h"
#include "walk/replay.h"
#include "walk/stopping.h"
#include "walk/track.h"
#include "walk/waiting.h"

/* Housekeeping runs this often while awake. */
#define HOUSEKEEPING_US 1000
/* Flows checked for expiry per iteration and port: more than the new flows of one burst. */
#define EXPIRE_BUDGET (2 * LB_BURST)
/* Packets of a port to clients that leave before requests. */
#define FEW_REPLIES 4

/* Charge the time since <*since> to a stage. */
static void loop_charge(struct lcore *lc, enum lb_stage stage, uint64_t *since, unsigned int items)
{
	uint64_t now = rte_rdtsc();

	lc->stats.stage_cycles[stage] += now - *since;
	lc->stats.stage_items[stage] += items;
	*since = now;
}

/* As loop_charge() for what is looked at in each iteration. Where it found nothing the time is no
 * stage's, as that of an idle poll: it would be divided by what the others handled. */
static void loop_charge_found(struct lcore *lc, enum lb_stage stage, uint64_t *since,
			      unsigned int items)
{
	if (items > 0)
		loop_charge(lc, stage, since, items);
	else
		*since = rte_rdtsc();
}

/* Send the clients' requests of the burst to workers. */
static void loop_requests(struct lcore *lc, struct burst *b, uint64_t *clock)
{
	unsigned int n = b->n;

	if (n == 0)
		return;
	if (unlikely(lc->trace != NULL))
		trace_arrived(lc, b);
	track_burst(lc, b);
	if (unlikely(lc->trace != NULL))
		trace_tracked(lc, b);
	cut_burst(lc, b);
	loop_charge(lc, LB_STAGE_CONNTRACK, clock, n);
	forward_assign(lc, b);
	if (unlikely(lc->trace != NULL))
		trace_assigned(lc, b);
	loop_charge(lc, LB_STAGE_ASSIGN, clock, b->n);
	forward_send(lc, b);
	forward_flush(lc);
	loop_charge(lc, LB_STAGE_SEND, clock, b->n);
}

/* Send the requests that came by TCP, and cancel those that their clients no longer want. */
static void loop_stream_requests(struct lcore *lc, struct burst *b, uint64_t *clock)
{
	uint64_t handle, tag;
	uint16_t service;
	bool told;

	if (b->n > 0) {
		unsigned int n = b->n;

		if (unlikely(lc->trace != NULL))
			trace_stream_requests(lc, b);
		forward_assign(lc, b);
		if (unlikely(lc->trace != NULL))
			trace_assigned(lc, b);
		loop_charge(lc, LB_STAGE_ASSIGN, clock, n);
		forward_send(lc, b);
		forward_flush(lc);
		b->n = 0;
		loop_charge(lc, LB_STAGE_SEND, clock, n);
	}
	while (edge_take_cancel(lc, &handle, &service, &tag, &told)) {
		struct flow *flow = conntrack_flow_get(lc->ct, handle);

		if (flow != NULL)
			(told ? cancel_told : cancel_request)(lc, flow, service, handle, tag);
	}
}

/* Clients' segments to their connections. */
static void loop_segments(struct lcore *lc, uint64_t *clock)
{
	unsigned int n = lc->segments.n;

	if (n == 0)
		return;
	lc->burst.n = 0;
	for (unsigned int at = 0; at < n;) {
		at = edge_receive(lc, at);
		loop_charge(lc, LB_STAGE_CONNTRACK, clock, at == n ? n : 0);
		loop_stream_requests(lc, &lc->burst, clock);
	}
}

/* Timers of connections, and those that had to wait for room. */
static void loop_resume_connections(struct lcore *lc, uint64_t *clock)
{
	bool more = true;

	lc->burst.n = 0;
	while (more) {
		unsigned int visits = 0;

		more = edge_resume(lc, &visits);
		loop_charge_found(lc, LB_STAGE_HOUSEKEEPING, clock, visits);
		if (more)
			loop_stream_requests(lc, &lc->burst, clock);
	}
	loop_charge_found(lc, LB_STAGE_SEND, clock, edge_write(lc));
}

/* Send the workers' replies of the burst to clients. */
static void loop_replies(struct lcore *lc, struct fabric_burst *f, uint64_t *clock)
{
	if (f->n + f->n_replies == 0)
		return;
	fabric_receive(lc, f);
	if (unlikely(lc->trace != NULL))
		trace_replies(lc, f);
	forward_flush(lc); /* acknowledgements */
	loop_charge(lc, LB_STAGE_FABRIC, clock, f->n);
	if (f->n_replies == 0)
		return;
	egress_send(lc, f);
	if (unlikely(lc->trace != NULL))
		trace_answered(lc, f);
	loop_charge(lc, LB_STAGE_EGRESS, clock, f->n_replies);
}

static void loop_walk(struct lcore *lc, unsigned int received, uint64_t *clock)
{
	if (received == 0)
		return;
	loop_charge(lc, LB_STAGE_INGRESS, clock, received);
	loop_replies(lc, &lc->fabric, clock);
	loop_requests(lc, &lc->burst, clock);
	if (lc->edge != NULL)
		loop_segments(lc, clock);
}

/* Returns the packets that were handed to other lcores. */
static unsigned int loop_flush(struct lcore *lc, unsigned int port, unsigned int *sent)
{
	if (unlikely(lc->queue[port] == LCORE_NO_QUEUE))
		return handover_transmit(lc, port);
	*sent += txq_flush(&lc->tx[port]);
	return 0;
}

/* Requests leave before many replies: where the kernel takes packets, those of long replies take as
 * long as a request at its worker. But few replies leave before all else: what goes to workers
 * beside a reply that comes alone is its acknowledgement. */
static unsigned int loop_turn_of(const struct lcore *lc, unsigned int port)
{
	if (lc->lb->config.port[port].fabric)
		return 1;
	return lc->tx[port].n <= FEW_REPLIES ? 0 : 2;
}

static unsigned int loop_transmit(struct lcore *lc)
{
	unsigned int sent = 0, carried = 0;

	if (unlikely(lc->carries))
		handover_carry(lc);
	for (unsigned int turn = 0; turn < 3; turn++)
		for (unsigned int i = 0; i < lc->lb->config.n_ports; i++)
			if (lc->tx[i].n > 0 && loop_turn_of(lc, i) == turn)
				carried += loop_flush(lc, i, &sent);
	lc->stats.packets_out += sent;
	return sent + carried;
}

/* Run the timers of the active links. Links without work leave the list. */
static void loop_poll_links(struct lcore *lc)
{
	unsigned int i = 0;

	while (i < lc->n_active) {
		struct link *link = lc->active[i];

		requester_poll(&link->requester, lc->now);
		if (link_has_work(link)) {
			i++;
		} else {
			link->active = false;
			lc->active[i] = lc->active[--lc->n_active];
		}
	}
}

/* Sum the ports' counters. The control thread reads them at any time, so each is stored once. */
static void loop_count_sent(struct lcore *lc)
{
	uint64_t bytes = 0, refused = 0;

	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++) {
		if (lc->queue[i] == LCORE_NO_QUEUE)
			continue;
		bytes += lc->tx[i].bytes;
		refused += lc->tx[i].refused;
	}
	__atomic_store_n(&lc->stats.bytes_out, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&lc->stats.drop[LB_DROP_TX_REFUSED], refused, __ATOMIC_RELAXED);
}

/* Look at both clocks at once. Tests have a clock of their own. */
static void loop_compare_clocks(struct lcore *lc)
{
	if (lc->lb->clock != NULL) {
		lc->clock_tsc = lc->now;
		lc->clock_us = lc->now * 1000 / lc->lb->tsc_per_ms;
		return;
	}
	lc->clock_tsc = rte_rdtsc();
	lc->clock_us = clock_now_us();
}

static void loop_housekeeping(struct lcore *lc)
{
	loop_compare_clocks(lc);
	loop_poll_links(lc);
	overdue_check(lc);
	if (lc->n_suspect > 0)
		replay_suspects(lc);
	cancel_housekeeping(lc);
	if (lc->edge != NULL)
		edge_housekeeping(lc);
	if (lc->n_waiting > 0)
		waiting_expire(lc);
	if (unlikely(lc->stop == STOP_NOTIFYING))
		stopping_notify(lc);
	if (lc->detached != NULL)
		overdue_reap(lc);
	if (lc->now >= lc->next_relax) {
		lc->next_relax = lc->now + lc->lb->tsc_per_ms * LOAD_RELAX_MS;
		workers_load_relax(&lc->load);
	}
	fragment_expire(lc->fragments, lc->now_ms, lc->stats.drop);
	lc->errors_passed = 0;
	loop_count_sent(lc);
	lc->next_housekeeping = lc->now + lc->lb->tsc_per_ms * HOUSEKEEPING_US / 1000;
}

bool lb_poll(struct lcore *lc)
{
	unsigned int work = 0, n, again;
	uint64_t clock = rte_rdtsc();
	bool caught_up = true;

	lc->now = likely(lc->lb->clock == NULL) ? clock : *lc->lb->clock;
	lc->now_ms = lb_tsc_to_ms(lc->lb, lc->now);
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++) {
		n = ingress_receive(lc, i);
		work += n;
		caught_up &= n < LB_BURST || !lc->lb->config.port[i].fabric;
		loop_walk(lc, n, &clock);
	}
	/* Each port of each other lcore may have sent a burst. */
	for (unsigned int i = 0; i < lc->lb->config.n_ports && !rte_ring_empty(lc->handover); i++) {
		n = ingress_handover(lc);
		work += n;
		loop_walk(lc, n, &clock);
	}
	caught_up &= rte_ring_empty(lc->handover);
	drained_poll(&lc->drained, lc->now, caught_up);
	/* Before younger requests in the queues. */
	if (lc->edge != NULL && (n = forward_place(lc)) > 0)
		loop_charge(lc, LB_STAGE_ASSIGN, &clock, n);
	if (lc->n_waiting > 0) {
		n = waiting_send(lc);
		work += n;
		loop_charge(lc, LB_STAGE_SEND, &clock, n);
	}
	if (lc->edge != NULL)
		loop_resume_connections(lc, &clock);
	if (lc->n_dirty > 0)
		forward_flush(lc);
	if (unlikely(!LIST_EMPTY(&lc->paced)))
		requester_poll_waiting(&lc->paced, lc->now);
	if (unlikely(!mailbox_empty(&lc->mailbox)))
		mailbox_run(&lc->mailbox);
	n = conntrack_expire(lc->ct, lc->now_ms, EXPIRE_BUDGET * lc->lb->config.n_ports);
	work += n;
	if (n > 0)
		loop_charge(lc, LB_STAGE_HOUSEKEEPING, &clock, n);
	if (lc->now >= lc->next_housekeeping) {
		again = lc->n_again;
		loop_housekeeping(lc);
		work += lc->n_again > again; /* they are sent in the next iteration */
		loop_charge(lc, LB_STAGE_HOUSEKEEPING, &clock, 1);
	}
	/* Nothing is left to receive: a heartbeat that is missing now was not delivered. */
	if (caught_up)
		__atomic_store_n(&lc->caught_up_ms, lc->now_ms, __ATOMIC_RELAXED);
	if (lc->edge != NULL) {
		n = edge_transmit(lc);
		work += n;
		loop_charge_found(lc, LB_STAGE_EGRESS, &clock, n);
	}
	n = loop_transmit(lc);
	if (n > 0)
		loop_charge(lc, LB_STAGE_TRANSMIT, &clock, n);
	rte_rcu_qsbr_quiescent(lc->lb->qsbr, lc->index);
	lc->stats.polls++;
	return work + n > 0;
}

/* Is there work that a sleep would delay? Call after sleeper_prepare(). */
static bool loop_must_stay_awake(const struct lcore *lc)
{
	if (conntrack_is_behind(lc->ct) || handover_waits(lc) || !mailbox_empty(&lc->mailbox) ||
	    edge_must_stay_awake(lc) || __atomic_load_n(&lc->lb->stop, __ATOMIC_ACQUIRE))
		return true;
	for (unsigned int i = 0; i < lc->lb->config.n_ports; i++)
		if (lc->tx[i].n > 0 || (lc->lb->verbs[i] != NULL && verbs_port_arm(lc, i)))
			return true;
	return false;
}

/* ns until the next timer is due. Requests in flight and waiting ones have timers. */
static uint64_t loop_sleep_ns(const struct lcore *lc)
{
	uint64_t now = lb_tsc(lc->lb), ms = lc->lb->tsc_per_ms;
	/* Flows may expire a little late. */
	uint64_t until = now + 50 * HOUSEKEEPING_US * ms / 1000;

	if (lc->n_waiting > 0 || lc->detached != NULL)
		until = now + HOUSEKEEPING_US * ms / 1000;
	until = RTE_MIN(until, edge_deadline(lc));
	for (unsigned int i = 0; i < lc->n_active; i++) {
		const struct link *link = lc->active[i];

		if (requester_unacked(&link->requester) > 0 || link_outstanding(link) > 0)
			until = RTE_MIN(until, now + 5 * HOUSEKEEPING_US * ms / 1000);
		until = RTE_MIN(until, requester_deadline(&link->requester));
	}
	return until <= now ? 1 : (until - now) * 1000000 / ms;
}

static void loop_sleep(struct lcore *lc)
{
	rte_rcu_qsbr_thread_offline(lc->lb->qsbr, lc->index);
	sleeper_prepare(&lc->sleeper);
	if (loop_must_stay_awake(lc)) {
		sleeper_cancel(&lc->sleeper);
	} else {
		lc->stats.sleeps++;
		sleeper_wait(&lc->sleeper, loop_sleep_ns(lc));
		verbs_ports_awake(lc);
		lc->next_housekeeping = 0;
	}
	rte_rcu_qsbr_thread_online(lc->lb->qsbr, lc->index);
}

static void loop_back_off(struct lcore *lc)
{
	lc->stats.idle_polls++;
	lc->idle_polls++;
	if (!lc->lb->config.idle_sleep)
		return;
	switch (sleeper_step(&lc->sleeper, lc->idle_polls)) {
	case SLEEPER_SPIN:
		rte_pause();
		break;
	case SLEEPER_YIELD:
		sleeper_yield(&lc->sleeper);
		break;
	case SLEEPER_SLEEP:
		loop_sleep(lc);
		break;
	}
}

int lb_loop(void *lcore)
{
	struct lcore *lc = lcore;

	rte_rcu_qsbr_thread_register(lc->lb->qsbr, lc->index);
	rte_rcu_qsbr_thread_online(lc->lb->qsbr, lc->index);
	mailbox_open(&lc->mailbox);
	while (!__atomic_load_n(&lc->lb->stop, __ATOMIC_ACQUIRE)) {
		if (lb_poll(lc))
			lc->idle_polls = 0;
		else
			loop_back_off(lc);
	}
	mailbox_close(&lc->mailbox);
	rte_rcu_qsbr_thread_offline(lc->lb->qsbr, lc->index);
	rte_rcu_qsbr_thread_unregister(lc->lb->qsbr, lc->index);
	return 0;
}
