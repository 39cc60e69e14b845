/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests without a credit wait here: one bounded queue per service and lcore. A request leaves it
 * for a worker, or with a busy notice when it has waited too long.
 */
#include "lcore.h"

void waiting_add(struct lcore *lc, struct burst *b, unsigned int i)
{
	struct flow *flow = b->flow[i];
	struct lcore_service *s = &lc->service[flow->service];
	uint32_t size = lcore_service_config(lc, flow->service)->queue;

	/* The packets that wait must not be those that the NIC needs to receive with. */
	if (s->count >= size || lcore_holds_enough(lc))
		return forward_refuse(lc, b->packet[i], flow, b->tag[i], LB_DROP_QUEUE_FULL);
	s->queue[(s->head + s->count) % size] = (struct waiting){
		.packet = b->packet[i],
		.flow = b->handle[i],
		.since = lc->now,
		.hash = b->hash[i],
	};
	s->count++;
	lc->n_waiting++;
}

static struct waiting take(struct lcore *lc, uint16_t service)
{
	struct lcore_service *s = &lc->service[service];
	struct waiting w = s->queue[s->head];

	s->head = (s->head + 1) % lcore_service_config(lc, service)->queue;
	s->count--;
	lc->n_waiting--;
	return w;
}

/* Back where it was, or behind the others. */
static void put_back(struct lcore *lc, uint16_t service, const struct waiting *w, bool first)
{
	struct lcore_service *s = &lc->service[service];
	uint32_t size = lcore_service_config(lc, service)->queue;

	if (first)
		s->head = (s->head + size - 1) % size;
	s->queue[first ? s->head : (s->head + s->count) % size] = *w;
	s->count++;
	lc->n_waiting++;
}

static uint64_t tag_of(const struct rte_mbuf *m)
{
	uint64_t tag = 0;

	memcpy(&tag, rte_pktmbuf_mtod(m, void *), RTE_MIN(m->data_len, (uint16_t)sizeof(tag)));
	return tag;
}

/* Look at a service's first request: send it, end it, or put it back. False: no use going on. */
static bool try_first(struct lcore *lc, uint16_t service, struct burst *b)
{
	const struct lb_service_config *config = lcore_service_config(lc, service);
	struct waiting w = take(lc, service);
	struct flow *flow = conntrack_flow_get(lc->ct, w.flow);
	bool pinned = config->affinity == LB_AFFINITY_FLOW;
	struct link *link;

	if (flow == NULL) {
		/* The configuration lets no flow end before its requests do; count it all the same.
		 */
		lcore_drop(lc, w.packet, LB_DROP_QUEUE_TIMEOUT);
		return true;
	}
	if (!forward_has_workers(lc, service)) {
		forward_refuse(lc, w.packet, flow, tag_of(w.packet), LB_DROP_NO_WORKER);
		return true;
	}
	if (lc->now - w.since > config->queue_timeout_ms * lc->lb->tsc_per_ms) {
		forward_refuse(lc, w.packet, flow, tag_of(w.packet), LB_DROP_QUEUE_TIMEOUT);
		return true;
	}
	link = forward_choose(lc, flow, w.hash, w.packet);
	if (link == NULL) {
		/* Without affinity nobody can take any; with it, others may have better luck. */
		put_back(lc, service, &w, !pinned);
		return pinned;
	}
	b->packet[b->n] = w.packet;
	b->flow[b->n] = flow;
	b->handle[b->n] = w.flow;
	b->hash[b->n] = w.hash;
	b->tag[b->n] = tag_of(w.packet);
	b->link[b->n++] = link;
	return true;
}

unsigned int waiting_send(struct lcore *lc)
{
	unsigned int before = lc->n_waiting, n = lc->services->n;
	struct burst *b = &lc->burst;

	b->n = 0;
	/* Services take turns at being first, as a turn sends no more than a burst. */
	for (unsigned int i = 0; i < n && lc->n_waiting > 0; i++) {
		uint16_t service = (lc->first_waiting + i) % n;
		unsigned int tries = RTE_MIN(lc->service[service].count, (uint32_t)LB_BURST);

		while (tries-- > 0 && b->n < LB_BURST)
			if (!try_first(lc, service, b))
				break;
	}
	lc->first_waiting = (lc->first_waiting + 1) % n;
	forward_send(lc, b);
	return before - lc->n_waiting;
}

struct waiting *waiting_move(struct lcore *lc, uint16_t service, struct waiting *queue,
			     uint32_t size)
{
	struct lcore_service *s = &lc->service[service];
	struct waiting *old = s->queue;
	uint32_t kept = 0;

	for (uint32_t n = s->count; n > 0; n--) {
		struct waiting w = take(lc, service);
		struct flow *flow = conntrack_flow_get(lc->ct, w.flow);

		if (kept < size)
			queue[kept++] = w;
		else if (flow != NULL)
			forward_refuse(lc, w.packet, flow, tag_of(w.packet), LB_DROP_QUEUE_FULL);
		else
			lcore_drop(lc, w.packet, LB_DROP_QUEUE_FULL);
	}
	s->queue = queue;
	s->head = 0;
	s->count = kept;
	lc->n_waiting += kept;
	return old;
}
