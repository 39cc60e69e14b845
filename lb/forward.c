/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to workers: choose one, take a credit, WRITE the payload where it lies and announce it
 * with a descriptor. A client that cannot be served is told so.
 */
#include <isa-l/crc.h>

#include "lcore.h"

static const struct pick_table *pick_table(const struct lcore *lc, uint16_t service)
{
	return __atomic_load_n(&lc->lb->pick[service], __ATOMIC_ACQUIRE);
}

bool forward_may_wait(const struct lcore *lc, uint16_t service)
{
	const struct pick_table *table = pick_table(lc, service);

	return table != NULL && table->n + table->soon > 0;
}

bool forward_has_workers(const struct lcore *lc, uint16_t service)
{
	const struct pick_table *table = pick_table(lc, service);

	return table != NULL && table->n > 0;
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

struct choice {
	uint16_t service;
	uint64_t deadline; /* TSC; 0: none */
	bool late;         /* out: there are credits, and nobody would be done in time */
};

/* Take a credit of <worker> for a request of <packets>. NULL when it cannot have another now. */
static struct link *claim(struct lcore *lc, uint16_t worker, uint32_t length)
{
	struct link *link = lc->link[worker];

	/* Longer than its slots: a reload may have brought it to another model. */
	if (lc->load.credits[worker] == 0 || length > link->stride ||
	    !link_reserve(link, requester_packets(&link->requester, length)))
		return NULL;
	workers_load_sent(&lc->load, worker, lc->now);
	return link;
}

/* So many are asked at most when the policy's choice will not do: requests must not cost more, the
 * more workers there are. */
#define TRIES 32

/* The policy's choice cannot take it: whoever can. */
static struct link *claim_any(struct lcore *lc, const struct pick_table *table, uint32_t hash,
			      uint32_t length)
{
	uint16_t tries = RTE_MIN(table->n, TRIES);
	struct link *link = NULL;

	for (uint16_t i = 0; i < tries && link == NULL; i++)
		link = claim(lc, table->worker[(hash + i) % table->n], length);
	return link;
}

/*
 * Is <worker> expected to be done with one more by then, with a quarter to spare? What is admitted
 * up to the last moment is late whenever something takes longer than usual.
 */
static bool in_time(const struct lcore *lc, uint16_t worker, uint64_t deadline)
{
	uint64_t ns = workers_expected_finish_ns(&lc->load, worker);

	return lc->now + ns * lc->lb->tsc_per_ms / 800000 <= deadline;
}

/* The policy's choice would be late: one who would not be. */
static uint16_t pick_in_time(const struct lcore *lc, const struct pick_table *table, uint32_t hash,
			     uint64_t deadline)
{
	uint16_t tries = RTE_MIN(table->n, TRIES);

	/* It has asked that of all. */
	if (table->policy == PICK_EARLIEST_FINISH)
		return WORKER_NONE;
	for (uint16_t i = 0; i < tries; i++) {
		uint16_t worker = table->worker[(hash + i) % table->n];

		if (lc->load.credits[worker] != 0 && in_time(lc, worker, deadline))
			return worker;
	}
	return WORKER_NONE;
}

static struct link *choose(struct lcore *lc, const struct pick_table *table, uint32_t hash,
			   uint32_t length, struct choice *choice)
{
	uint16_t worker = workers_pick(table, &lc->load, hash, &lc->service[choice->service].pick);
	struct link *link;

	if (unlikely(choice->deadline != 0) && worker != WORKER_NONE &&
	    !in_time(lc, worker, choice->deadline)) {
		worker = pick_in_time(lc, table, hash, choice->deadline);
		choice->late = worker == WORKER_NONE;
		return choice->late ? NULL : claim(lc, worker, length);
	}
	link = worker == WORKER_NONE ? NULL : claim(lc, worker, length);
	if (likely(link != NULL))
		return link;
	/* Others than maglev have looked at all, and nobody has a credit. With a deadline, better
	 * wait than go to just anybody. */
	if ((worker == WORKER_NONE && table->policy != PICK_MAGLEV) || choice->deadline != 0)
		return NULL;
	return claim_any(lc, table, hash, length);
}

struct link *forward_choose(struct lcore *lc, struct flow *flow, uint32_t hash,
			    const struct rte_mbuf *m, uint64_t deadline, bool *late)
{
	struct choice choice = {.service = flow->service, .deadline = deadline};
	const struct pick_table *table = pick_table(lc, flow->service);
	bool pinned = lcore_service_config(lc, flow->service)->affinity == LB_AFFINITY_FLOW;
	struct link *link;

	*late = false;
	if (pinned && keeps_worker(lc, table, flow)) {
		*late = deadline != 0 && !in_time(lc, flow->worker, deadline);
		return *late ? NULL : claim(lc, flow->worker, m->data_len);
	}
	link = choose(lc, table, hash, m->data_len, &choice);
	*late = choice.late;
	if (link != NULL) {
		flow->worker = link->worker;
		flow->worker_generation = link->worker_generation;
	}
	return link;
}

enum lb_notice forward_notice_of(enum lb_drop reason)
{
	switch (reason) {
	case LB_DROP_DEADLINE:
		return LB_NOTICE_DEADLINE;
	case LB_DROP_CANCELLED:
		return LB_NOTICE_CANCELLED;
	case LB_DROP_WORKER_LOST:
		return LB_NOTICE_WORKER_LOST;
	default:
		return LB_NOTICE_BUSY;
	}
}

void forward_refuse(struct lcore *lc, struct rte_mbuf *m, const struct flow *flow, uint64_t tag,
		    enum lb_drop reason)
{
	lc->service[flow->service].stats.drops++;
	egress_notice(lc, flow, forward_notice_of(reason), tag);
	lcore_drop(lc, m, reason);
}

void forward_assign(struct lcore *lc, struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		struct flow *flow = b->flow[i];
		bool late = false;

		b->link[i] = NULL;
		if (unlikely(!forward_may_wait(lc, flow->service))) {
			forward_refuse(lc, b->packet[i], flow, b->tag[i], LB_DROP_NO_WORKER);
			continue;
		}
		/* Who came first goes first, unless the flow is tied to a worker of its own. */
		if (likely(!lcore_holds_enough(lc)) &&
		    (lc->service[flow->service].queue.count == 0 ||
		     lcore_service_config(lc, flow->service)->affinity == LB_AFFINITY_FLOW))
			b->link[i] = forward_choose(lc, flow, b->hash[i], b->packet[i],
						    b->deadline[i], &late);
		if (unlikely(late))
			forward_refuse(lc, b->packet[i], flow, b->tag[i], LB_DROP_DEADLINE);
		else if (unlikely(b->link[i] == NULL))
			waiting_add(lc, b, i);
		else
			/* The headers go in front of the payload, where the NIC has not written. */
			rte_prefetch0(rte_pktmbuf_mtod_offset(b->packet[i], uint8_t *,
							      -RTE_CACHE_LINE_SIZE));
	}
}

/* The worker's time, of what is left. */
static uint32_t deadline_us(const struct lcore *lc, const struct lb_service_config *config,
			    uint64_t deadline)
{
	uint64_t limit = config->request_timeout_ms * UINT64_C(1000), left;

	if (likely(deadline == 0))
		return limit;
	left = deadline > lc->now ? (deadline - lc->now) * 1000 / lc->lb->tsc_per_ms : 1;
	return RTE_MAX(RTE_MIN(left, limit), UINT64_C(1));
}

static void send_one(struct lcore *lc, struct burst *b, unsigned int i)
{
	struct rte_mbuf *m = b->packet[i];
	struct link *link = b->link[i];
	struct flow *flow = b->flow[i];
	const struct lb_service_config *config = lcore_service_config(lc, flow->service);
	struct ring_descriptor request = {
		.length = m->data_len,
		.service = flow->service,
		.flow = b->handle[i],
		.deadline_us = deadline_us(lc, config, b->deadline[i]),
	};
	bool kept = config->replay != 0 && replay_keep(lc, link, b, i);
	uint32_t slot = link_next_slot(link);
	uint64_t copies = link->requester.stats.copies;

	if (config->payload_crc) {
		request.flags = RING_HAS_CRC;
		request.crc32 = crc32_gzip_refl(0, rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
	}
	lcore_mark_dirty(lc, link);
	if (unlikely(link_send(link, m, &request, b->tag[i], b->arrived[i], lc->now, lc->packets) <
		     0)) {
		if (kept)
			replay_unkeep(lc, link, slot);
		workers_load_unsent(&lc->load, link->worker);
		return forward_refuse(lc, m, flow, b->tag[i], LB_DROP_NO_MBUF);
	}
	if (unlikely(b->deadline[i] != 0))
		link->slot[slot].deadline = b->deadline[i];
	conntrack_count_request(flow);
	lc->stats.payload_copies += link->requester.stats.copies - copies;
	lc->service[flow->service].stats.requests++;
	lc->stats.requests++;
}

void forward_send(struct lcore *lc, struct burst *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		if (likely(b->link[i] != NULL))
			send_one(lc, b, i);
	if (unlikely(lc->trace != NULL))
		trace_sent(lc, b);
}

void forward_flush(struct lcore *lc)
{
	unsigned int n = lc->n_dirty;

	lc->n_dirty = 0;
	for (unsigned int i = 0; i < n; i++) {
		struct link *link = lc->dirty[i];

		link->dirty = false;
		link_batch_flush(link);
		link_acknowledge(link, &lc->tx[link->port], lc->control);
		/* What could not be said now is said next turn. */
		if (unlikely(link->responder.ack_due && roce_path_is_resolved(&link->path)))
			lcore_mark_dirty(lc, link);
	}
}
