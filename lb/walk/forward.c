/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to workers: WRITE the payload out of the packet that it came in, and announce it with a
 * descriptor. A client whose request cannot be served gets a notice.
 */
#include "walk/forward.h"

#include <isa-l/crc.h>

#include "lcore/lcore.h"
#include "observe/flow_trace.h"
#include "walk/choose.h"
#include "observe/drop_packet.h"
#include "walk/egress.h"
#include "walk/replay.h"
#include "walk/stopping.h"
#include "walk/waiting.h"

enum lb_notice forward_notice_of(enum lb_drop reason)
{
	switch (reason) {
	case LB_DROP_DEADLINE:
		return LB_NOTICE_DEADLINE;
	case LB_DROP_REQUEST_TOO_LARGE:
		return LB_NOTICE_TOO_LARGE;
	case LB_DROP_CANCELLED:
		return LB_NOTICE_CANCELLED;
	case LB_DROP_WORKER_LOST:
		return LB_NOTICE_WORKER_LOST;
	case LB_DROP_STOPPING:
		return LB_NOTICE_STOPPING;
	case LB_DROP_STOP_TIMEOUT:
		return LB_NOTICE_TIMEOUT;
	default:
		return LB_NOTICE_BUSY;
	}
}

void forward_refuse(struct lcore *lc, const struct burst *b, unsigned int i, enum lb_drop reason)
{
	const struct flow *flow = b->flow[i];

	lc->service[flow->service].stats.drops++;
	egress_notice(lc, flow, &b->path[i], forward_notice_of(reason), b->tag[i]);
	lcore_drop(lc, b->packet[i], reason);
}

void forward_assign(struct lcore *lc, struct burst *b)
{
	if (unlikely(lc->stop != STOP_NOT))
		return stopping_refuse(lc, b);
	lcore_limit_links(lc);
	for (unsigned int i = 0; i < b->n; i++) {
		struct flow *flow = b->flow[i];
		bool late = false;

		b->link[i] = NULL;
		if (unlikely(!choose_may_wait(lc, flow->service))) {
			forward_refuse(lc, b, i, LB_DROP_NO_WORKER);
			continue;
		}
		/* Requests that wait go first, unless the flow is tied to a worker of its own. */
		if (lc->service[flow->service].queue.count == 0 ||
		    lcore_service_config(lc, flow->service)->affinity == LB_AFFINITY_FLOW)
			b->link[i] = choose_worker(lc, flow, b->hash[i], b->packet[i],
						   b->deadline[i], &late);
		if (unlikely(late))
			forward_refuse(lc, b, i, LB_DROP_DEADLINE);
		else if (unlikely(b->link[i] == NULL))
			waiting_add(lc, b, i);
		else
			/* The RoCE headers go in front of the payload: that line is not cached. */
			rte_prefetch0(rte_pktmbuf_mtod_offset(b->packet[i], uint8_t *,
							      -RTE_CACHE_LINE_SIZE));
	}
}

/* us that the worker has: until the deadline, at most request_timeout, at least 1. */
static uint32_t forward_deadline_us(const struct lcore *lc, const struct lb_service_config *config,
				    uint64_t deadline)
{
	uint64_t limit = config->request_timeout_ms * UINT64_C(1000), left;

	if (likely(deadline == 0))
		return limit;
	left = deadline > lc->now ? (deadline - lc->now) * 1000 / lc->lb->tsc_per_ms : 1;
	return RTE_MAX(RTE_MIN(left, limit), UINT64_C(1));
}

static void forward_send_one(struct lcore *lc, struct burst *b, unsigned int i)
{
	struct rte_mbuf *m = b->packet[i];
	struct link *link = b->link[i];
	struct flow *flow = b->flow[i];
	const struct lb_service_config *config = lcore_service_config(lc, flow->service);
	struct ring_descriptor request = {
		.length = m->data_len,
		.service = flow->service,
		.flow = b->handle[i],
		.deadline_us = forward_deadline_us(lc, config, b->deadline[i]),
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
			replay_unkeep(lc, link, slot, flow->service);
		workers_load_unsent(&lc->load, link->worker);
		return forward_refuse(lc, b, i, LB_DROP_NO_MBUF);
	}
	link->client_path[slot] = b->path[i];
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
			forward_send_one(lc, b, i);
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
		lcore_mark_active(lc, link);
		link_acknowledge(link, &lc->tx[link->port], lc->control);
		/* An acknowledgement that found no room is sent in the next iteration. */
		if (unlikely(link->responder.ack_due && roce_path_is_resolved(&link->path)))
			lcore_mark_dirty(lc, link);
	}
}
