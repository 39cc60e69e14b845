/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the requester share: how a packet of the window leaves. */
#ifndef RDMA_REQUESTER_PRIVATE_H
#define RDMA_REQUESTER_PRIVATE_H

#include <rte_cycles.h>

#include "rdma/requester.h"

#define REQUESTER_WINDOW_MASK (REQUESTER_WINDOW - 1)

/* One more reference to all of a packet. */
static inline void requester_hold(struct rte_mbuf *m)
{
	/* Where a chain goes on is in the second cache line, which nothing else has touched yet. */
	if (likely(m->nb_segs == 1))
		rte_mbuf_refcnt_update(m, 1);
	else
		rte_pktmbuf_refcnt_update(m, 1);
}

/* Now, or when the owner's turn began. */
static inline uint64_t requester_clock(const struct requester *rq)
{
	return rq->clock != NULL ? *rq->clock : rte_rdtsc();
}

static inline void requester_time_packet(struct requester *rq, uint32_t psn)
{
	rq->timing = true;
	rq->timed_psn = psn;
	rq->timed_una = rq->una_psn;
	rq->timed_at = requester_clock(rq);
}

/* The packet at send_psn. */
static inline void requester_push(struct requester *rq)
{
	struct rte_mbuf *m = rq->window[rq->send_psn & REQUESTER_WINDOW_MASK];

	/* The peer may have moved since the packet was built; the ICRC does not cover this. */
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), rq->path->header, 6);
	/* The window keeps its reference; the port consumes this one. */
	requester_hold(m);
	txq_push(rq->tx, m);
	rq->send_psn = roce_psn_add(rq->send_psn, 1);
	if (likely(roce_psn_diff(rq->send_psn, rq->sent_psn) > 0)) {
		if (!rq->timing)
			requester_time_packet(rq, rq->sent_psn);
		rq->sent_psn = rq->send_psn;
	} else {
		rq->stats.resent++;
	}
	rq->stats.packets++;
}

/* The packet at send_psn, <m>, which was just built and never sent. */
static inline void requester_push_new(struct requester *rq, struct rte_mbuf *m)
{
	requester_hold(m);
	txq_push(rq->tx, m);
	if (!rq->timing)
		requester_time_packet(rq, rq->send_psn);
	rq->sent_psn = rq->send_psn = roce_psn_add(rq->send_psn, 1);
	rq->stats.packets++;
}

static inline uint32_t requester_under_way(const struct requester *rq)
{
	return roce_psn_diff(rq->send_psn, rq->una_psn);
}

/* May a packet leave now? */
static inline bool requester_may_push(const struct requester *rq)
{
	return !rq->rate.limited && txq_room(rq->tx) > 0 && requester_under_way(rq) < rq->limit;
}

/* requester.c: as much as the rate allows. */
void requester_pump_paced(struct requester *rq, unsigned int burst);

/* Send again, or for the first time, what lies between send_psn and next_psn. */
static inline void requester_pump(struct requester *rq, unsigned int burst)
{
	if (unlikely(rq->rate.limited))
		return requester_pump_paced(rq, burst);
	while (burst-- > 0 && rq->send_psn != rq->next_psn && txq_room(rq->tx) > 0 &&
	       requester_under_way(rq) < rq->limit)
		requester_push(rq);
}

#endif
