/* SPDX-License-Identifier: BSD-3-Clause */
/* Private header of requester.c and requester_write.c: sending packets of the window. */
#ifndef RDMA_REQUESTER_PRIVATE_H
#define RDMA_REQUESTER_PRIVATE_H

#include <rte_cycles.h>

#include "rdma/requester.h"

#define REQUESTER_WINDOW_MASK (REQUESTER_WINDOW - 1)

/* Take one more reference to all segments of a packet. */
static inline void requester_hold(struct rte_mbuf *m)
{
	/* A chain's next pointer is in the second cache line, which nothing else has loaded yet. */
	if (likely(m->nb_segs == 1))
		rte_mbuf_refcnt_update(m, 1);
	else
		rte_pktmbuf_refcnt_update(m, 1);
}

/* TSC cycles: the time of the owner's iteration, or now. */
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

/* Hand the packet at send_psn to the port. */
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

/* Hand <m>, the packet at send_psn, to the port; it was just built and never sent. */
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

/* True when a packet may leave now. */
static inline bool requester_may_push(const struct requester *rq)
{
	return !rq->rate.limited && txq_room(rq->tx) > 0 && requester_under_way(rq) < rq->limit;
}

/* Like requester_pump(), but no faster than the rate allows. */
void requester_pump_paced(struct requester *rq, unsigned int burst);

/* Send or resend up to <burst> packets from send_psn on. */
static inline void requester_pump(struct requester *rq, unsigned int burst)
{
	if (unlikely(rq->rate.limited))
		return requester_pump_paced(rq, burst);
	while (burst-- > 0 && rq->send_psn != rq->next_psn && txq_room(rq->tx) > 0 &&
	       requester_under_way(rq) < rq->limit)
		requester_push(rq);
}

#endif
