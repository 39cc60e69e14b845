/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to workers: choose one, take a credit, WRITE the payload where it lies and announce it
 * with a descriptor. Without a credit a request waits in its service's bounded queue; a client that
 * cannot be served is told so.
 */
#include <isa-l/crc.h>

#include "lcore.h"

static struct pick_table *pick_table(const struct lb *lb, uint16_t service)
{
	return __atomic_load_n(&lb->pick[service], __ATOMIC_ACQUIRE);
}

static bool keeps_worker(const struct lcore *lc, const struct pick_table *table,
			 const struct flow *flow)
{
	const struct link *link;

	if (flow->worker == WORKER_NONE || !workers_pick_table_has(table, flow->worker))
		return false;
	link = lc->link[flow->worker];
	return link != NULL && link->worker_generation == flow->worker_generation;
}

/* A link with a credit for this request, taken; or NULL. */
static struct link *choose(struct lcore *lc, const struct pick_table *table, struct flow *flow,
			   uint32_t hash, const struct rte_mbuf *m)
{
	uint16_t service = flow->service, worker;
	struct link *link;

	if (lc->lb->config.service[service].affinity == LB_AFFINITY_FLOW &&
	    keeps_worker(lc, table, flow))
		worker = lc->load.credits[flow->worker] > 0 ? flow->worker : WORKER_NONE;
	else
		worker = workers_pick(table, &lc->load, hash, &lc->service[service].turn);
	if (worker == WORKER_NONE)
		return NULL;
	link = lc->link[worker];
	if (!link_reserve(link, requester_packets(&link->requester, m->data_len)))
		return NULL;
	lc->load.credits[worker]--;
	lc->load.outstanding[worker]++;
	flow->worker = worker;
	flow->worker_generation = link->worker_generation;
	flow->requests++;
	return link;
}

static void refuse(struct lcore *lc, struct rte_mbuf *m, const struct flow *flow, uint64_t tag,
		   enum lb_drop reason)
{
	lc->service[flow->service].stats.drops++;
	egress_notice(lc, flow, LB_NOTICE_BUSY, tag);
	lcore_drop(lc, m, reason);
}

static void wait_for_credit(struct lcore *lc, struct burst *b, unsigned int i)
{
	struct flow *flow = b->flow[i];
	struct lcore_service *s = &lc->service[flow->service];
	uint32_t size = lc->lb->config.service[flow->service].queue;

	if (s->count >= size)
		return refuse(lc, b->packet[i], flow, b->tag[i], LB_DROP_QUEUE_FULL);
	s->queue[(s->head + s->count) % size] = (struct waiting){
		.packet = b->packet[i],
		.flow = b->handle[i],
		.since = lc->now,
		.hash = b->hash[i],
	};
	s->count++;
	lc->n_waiting++;
}

void forward_assign(struct lcore *lc, struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct flow *flow = b->flow[i];
		const struct lcore_service *s = &lc->service[flow->service];
		const struct pick_table *table = pick_table(lc->lb, flow->service);

		b->link[i] = NULL;
		if (unlikely(table == NULL || table->n == 0)) {
			refuse(lc, b->packet[i], flow, b->tag[i], LB_DROP_NO_WORKER);
			continue;
		}
		/* Who came first goes first, unless the flow is tied to a worker of its own. */
		if (s->count == 0 ||
		    lc->lb->config.service[flow->service].affinity == LB_AFFINITY_FLOW)
			b->link[i] = choose(lc, table, flow, b->hash[i], b->packet[i]);
		if (unlikely(b->link[i] == NULL))
			wait_for_credit(lc, b, i);
		else
			rte_prefetch0(b->link[i]->free_slot + b->link[i]->n_free - 1);
	}
}

static void send_one(struct lcore *lc, struct burst *b, unsigned int i)
{
	struct rte_mbuf *m = b->packet[i];
	struct link *link = b->link[i];
	const struct flow *flow = b->flow[i];
	const struct lb_service_config *config = &lc->lb->config.service[flow->service];
	struct ring_descriptor request = {
		.length = m->data_len,
		.service = flow->service,
		.flow = b->handle[i],
		.deadline_us = config->request_timeout_ms * 1000,
	};
	uint64_t copies;

	if (config->payload_crc) {
		request.flags = RING_HAS_CRC;
		request.crc32 = crc32_gzip_refl(0, rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
	}
	copies = link->requester.stats.copies;
	lcore_mark_dirty(lc, link);
	if (unlikely(link_send(link, m, &request, b->tag[i], lc->now, lc->packets) < 0)) {
		lc->load.credits[link->worker]++;
		lc->load.outstanding[link->worker]--;
		return refuse(lc, m, flow, b->tag[i], LB_DROP_NO_MBUF);
	}
	lc->stats.payload_copies += link->requester.stats.copies - copies;
	lc->service[flow->service].stats.requests++;
	lc->stats.requests++;
}

void forward_send(struct lcore *lc, struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		if (likely(b->link[i] != NULL))
			send_one(lc, b, i);
}

static uint64_t tag_of(const struct rte_mbuf *m)
{
	uint64_t tag = 0;

	memcpy(&tag, rte_pktmbuf_mtod(m, void *), RTE_MIN(m->data_len, (uint16_t)sizeof(tag)));
	return tag;
}

/* Look at a service's first waiting request: send it, end it, or put it back. True: it is gone. */
static bool try_waiting(struct lcore *lc, uint16_t service, struct burst *b)
{
	const struct lb_service_config *config = &lc->lb->config.service[service];
	struct lcore_service *s = &lc->service[service];
	struct waiting w = s->queue[s->head];
	const struct pick_table *table = pick_table(lc->lb, service);
	struct flow *flow = conntrack_flow_get(lc->ct, w.flow);
	struct link *link;

	s->head = (s->head + 1) % config->queue;
	s->count--;
	lc->n_waiting--;
	if (flow == NULL) {
		lcore_drop(lc, w.packet, LB_DROP_QUEUE_TIMEOUT);
		return true;
	}
	if (table == NULL || table->n == 0 ||
	    lc->now - w.since > config->queue_timeout_ms * lc->lb->tsc_per_ms) {
		refuse(lc, w.packet, flow, tag_of(w.packet),
		       table == NULL || table->n == 0 ? LB_DROP_NO_WORKER : LB_DROP_QUEUE_TIMEOUT);
		return true;
	}
	link = choose(lc, table, flow, w.hash, w.packet);
	if (link == NULL) {
		/* Requests of any worker: keep its place. Of one worker: let others try first. */
		if (config->affinity == LB_AFFINITY_REQUEST) {
			s->head = (s->head + config->queue - 1) % config->queue;
			s->queue[s->head] = w;
		} else {
			s->queue[(s->head + s->count) % config->queue] = w;
		}
		s->count++;
		lc->n_waiting++;
		return false;
	}
	b->packet[b->n] = w.packet;
	b->flow[b->n] = flow;
	b->handle[b->n] = w.flow;
	b->hash[b->n] = w.hash;
	b->tag[b->n] = tag_of(w.packet);
	b->link[b->n++] = link;
	return true;
}

unsigned int forward_waiting(struct lcore *lc)
{
	struct burst *b = &lc->burst;
	unsigned int before = lc->n_waiting;

	b->n = 0;
	for (unsigned int i = 0; i < lc->lb->config.n_services && lc->n_waiting > 0; i++) {
		struct lcore_service *s = &lc->service[i];
		unsigned int tries = RTE_MIN(s->count, (uint32_t)LB_BURST);

		while (tries-- > 0 && b->n < LB_BURST)
			if (!try_waiting(lc, i, b) &&
			    lc->lb->config.service[i].affinity == LB_AFFINITY_REQUEST)
				break;
	}
	forward_send(lc, b);
	return before - lc->n_waiting;
}

/* One acknowledgement per queue pair and burst, however many packets asked for it. */
static void acknowledge(struct lcore *lc, struct link *link)
{
	uint32_t psn, msn;
	uint8_t syndrome;
	struct txq *tx = &lc->tx[link->port];
	struct rte_mbuf *m;

	if (!link->responder.ack_due || !roce_path_is_resolved(&link->path) || txq_room(tx) == 0)
		return; /* stays due */
	m = rte_pktmbuf_alloc(lc->small);
	if (m == NULL)
		return; /* stays due: the peer asks again after its timeout */
	responder_ack_due(&link->responder, &psn, &syndrome, &msn);
	m->data_len = m->pkt_len =
		roce_ack_build(rte_pktmbuf_mtod(m, uint8_t *), &link->path, psn, syndrome, msn);
	txq_push(tx, m);
}

void forward_flush(struct lcore *lc)
{
	for (unsigned int i = 0; i < lc->n_dirty; i++) {
		struct link *link = lc->dirty[i];

		link->dirty = false;
		link_batch_flush(link);
		acknowledge(lc, link);
	}
	lc->n_dirty = 0;
}
