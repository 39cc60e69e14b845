/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to workers: WRITE the payload out of the packet that it came in, and announce it with a
 * descriptor. A client whose request cannot be served gets a notice.
 */
#include "walk/forward.h"

#include <isa-l/crc.h>

#include "edge/edge.h"
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
	lc->service[b->service[i]].stats.drops++;
	egress_notice(lc, b->flow[i], &b->path[i], forward_notice_of(reason), b->tag[i]);
	lcore_drop(lc, b->packet[i], reason);
}

void forward_assign(struct lcore *lc, struct burst *b)
{
	if (unlikely(lc->stop != STOP_NOT))
		return stopping_refuse(lc, b);
	lcore_limit_links(lc);
	for (unsigned int i = 0; i < b->n; i++) {
		uint16_t service = b->service[i];
		bool late = false;

		b->link[i] = NULL;
		if (unlikely(!lcore_may_serve(lc, service))) {
			forward_refuse(lc, b, i, LB_DROP_NO_WORKER);
			continue;
		}
		/* Requests that wait go first, unless the flow is tied to a worker of its own. */
		if (lc->service[service].queue.count == 0 ||
		    lcore_service_config(lc, service)->affinity == LB_AFFINITY_FLOW)
			b->link[i] = choose_worker(lc, b->flow[i], service, b->hash[i],
						   b->packet[i]->data_len, b->deadline[i], &late);
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

static void forward_send_one(struct lcore *lc, struct burst *b, unsigned int i, uint32_t sent_us)
{
	struct rte_mbuf *m = b->packet[i];
	struct link *link = b->link[i];
	uint16_t service = b->service[i];
	const struct lb_service_config *config = lcore_service_config(lc, service);
	struct ring_descriptor request = {
		.length = m->data_len,
		.service = service,
		.flow = b->handle[i],
		.deadline_us = lcore_deadline_us(lc, config, b->deadline[i]),
		.sent_us = sent_us,
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
			replay_unkeep(lc, link, slot, service);
		workers_load_unsent(&lc->load, link->worker);
		return forward_refuse(lc, b, i, LB_DROP_NO_MBUF);
	}
	link->client_path[slot] = b->path[i];
	if (unlikely(b->deadline[i] != 0))
		link->slot[slot].deadline = b->deadline[i];
	conntrack_count_request(b->flow[i]);
	lc->stats.payload_copies += link->requester.stats.copies - copies;
	lc->service[service].stats.requests++;
	lc->stats.requests++;
}

void forward_send(struct lcore *lc, struct burst *b)
{
	uint32_t sent_us = b->n > 0 ? lcore_sent_us(lc) : 0; /* a division per burst */

	for (unsigned int i = 0; i < b->n; i++)
		if (likely(b->link[i] != NULL))
			forward_send_one(lc, b, i, sent_us);
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

/* --- places for large requests -----------------------------------------------------------------
 *
 * A large request gets a slot and a place for its bytes when its header is known. Until then its
 * client can send no more than its connection holds, so there is no queue of packets: the requests
 * wait where their connections are, in one list, and are served in its order.
 */

/* Requests looked at per iteration: the oldest, and as many others. */
#define BUDGET 512

/* The services of which a request found no place in this iteration: younger ones wait, too. */
struct blocked {
	uint64_t bits[LB_SERVICES_MAX / 64];
};

static bool forward_is_blocked(const struct blocked *b, uint16_t service)
{
	return b->bits[service / 64] >> service % 64 & 1;
}

/* The reason why the request should wait no longer, or LB_DROP_NONE. */
static enum lb_drop forward_expired_reason(const struct lcore *lc, const struct edge_wanting *at)
{
	const struct lb_service_config *config = lcore_service_config(lc, at->service);

	if (lc->stop != STOP_NOT)
		return LB_DROP_STOPPING;
	if (!lcore_may_serve(lc, at->service) && !at->again)
		return LB_DROP_NO_WORKER;
	if (at->deadline != 0 && lc->now > at->deadline)
		return LB_DROP_DEADLINE;
	if (lc->now - at->since > config->queue_timeout_ms * lc->lb->tsc_per_ms)
		return at->again ? LB_DROP_WORKER_LOST : LB_DROP_QUEUE_TIMEOUT;
	return LB_DROP_NONE;
}

/* Returns whether the request has got a place, or ended. */
static bool forward_try_place(struct lcore *lc, const struct edge_wanting *at)
{
	const struct placing placing = {.bytes = at->bytes, .may_wait = at->may_wait};
	enum lb_drop reason = forward_expired_reason(lc, at);
	struct link *link = NULL;
	struct link_place place;
	bool late = false;

	if (reason == LB_DROP_NONE && at->may && choose_has_workers(lc, at->service) &&
	    !waiting_is_older(lc, at->service, at->since)) {
		lc->lost = at->lost;
		link = choose_place(lc, at->flow, at->service, at->hash, &placing, at->deadline,
				    &place, &late);
		lc->lost = 0;
	}
	if (late)
		reason = LB_DROP_DEADLINE;
	if (link != NULL)
		edge_place(lc, at, link, &place);
	else if (reason != LB_DROP_NONE)
		edge_refuse_wanting(lc, at, forward_notice_of(reason), reason);
	else
		return false;
	return true;
}

/* Returns how many of those that want a place it has looked at. */
static unsigned int forward_place_some(struct lcore *lc, struct edge_wanting *at,
				       struct blocked *blocked)
{
	unsigned int n;

	for (n = 0; n < BUDGET && edge_next_wanting(lc, at); n++) {
		if (at->flow == NULL || forward_is_blocked(blocked, at->service) ||
		    forward_try_place(lc, at) || !at->may_wait ||
		    choose_is_pinned(lcore_service_config(lc, at->service)))
			continue;
		blocked->bits[at->service / 64] |= UINT64_C(1) << at->service % 64;
	}
	return n;
}

/* The oldest first; then, if there are more, some of the others in turn: those before them may be
 * of a client or a service that can get nothing now. */
unsigned int forward_place(struct lcore *lc)
{
	struct blocked blocked = {{0}};
	struct edge_wanting at = {0};
	unsigned int n = forward_place_some(lc, &at, &blocked);

	if (!edge_resume_wanting(lc))
		return n;
	n += forward_place_some(lc, &at, &blocked);
	edge_pause_wanting(lc);
	return n;
}
