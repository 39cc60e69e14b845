/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one data-plane core owns (private to lb/). Nothing here is shared on the packet path but the
 * read-only pick tables and the configuration of the services.
 */
#ifndef LB_LCORE_H
#define LB_LCORE_H

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "schedule/home.h"
#include "lcore/burst.h"
#include "lcore/counters.h"
#include "lcore/latency.h"
#include "lcore/lb_private.h"
#include "lcore/link.h"
#include "lcore/queue.h"
#include "runtime/drained.h"
#include "runtime/mailbox.h"
#include "runtime/sleeper.h"
#include "runtime/txq.h"

struct fragment_table;
struct source_limit;
struct trace;

/* One service on one lcore. */
struct lcore_service {
	struct pick_state pick;
	struct home_load all; /* of affinity sticky */
	struct queue queue;
	uint32_t kept; /* packets kept for a replay, and those that wait to be sent again */
	/* what its cancels have looked at, since housekeeping number <cancel_window> */
	uint32_t cancel_looks;
	uint64_t cancel_window;
	/* how fast the queue moves: TSC between requests that leave it, and what it is from */
	uint64_t interval, window_start, measured;
	uint32_t window_sent;
	struct lb_service_stats stats;
};

#define LCORE_NO_QUEUE UINT16_MAX

struct lcore {
	unsigned int index;
	struct lb *lb;
	struct conntrack *ct;
	struct trace *trace; /* of a flow, or NULL: flow_trace.c; changes between turns only */
	const struct service_view *services; /* changes between polls only: reload/apply.c */
	uint64_t now;                        /* TSC at the turn's start */
	uint32_t now_ms;
	struct rte_mempool *packets; /* what the NIC receives into; descriptors; joined replies */
	struct rte_mempool *control; /* ACKs, notices, ARP: never short because data is held */
	struct rte_mempool *cancels; /* words for workers: held until they are acknowledged */
	struct rte_mempool *pieces;  /* headers and trailers of messages of several packets */
	uint32_t sharers;            /* lcores that hold packets of one pool, itself included */
	uint32_t held;               /* packets that wait for a worker's acknowledgement */
	uint32_t window_max;         /* of those */
	uint32_t window_least;       /* of those, what each link may have in any case */
	uint32_t link_max;           /* of those, what each link may have now */
	uint32_t kept, kept_max;     /* packets kept for a replay (replay.c) */
	uint32_t kept_least;         /* of those, what each service may have in any case */
	uint32_t kept_shared, kept_shared_max; /* those beyond it, all services together */
	uint32_t caught_up_ms;       /* when nothing was left to receive (atomic) */
	struct drained drained;      /* the same for timers of its own, which must run on */
	uint16_t n_suspect;          /* links of workers that may have gone */
	uint8_t stop;                /* enum stop_stage; changes between turns only */
	uint32_t cancel_budget; /* slots that cancels may look at until the next housekeeping */
	uint64_t cancel_window; /* number of the last */
	uint16_t first_swept;   /* active link whose flows are asked for first */
	uint64_t lane_seed;     /* which clients share a lane of the queues */
	struct requester_list paced; /* links whose packets wait for their rate (dcqcn.h) */
	struct rte_mempool *wholes;  /* datagrams that came in fragments */
	struct fragment_table *fragments;
	struct source_limit *notices; /* about requests that were not admitted */
	uint32_t errors_passed;    /* ICMP errors, since the last housekeeping */
	struct rte_ring *handover; /* frames that came to the wrong lcore */
	struct mailbox mailbox;    /* what the control thread wants done */
	struct sleeper sleeper;
	uint64_t next_housekeeping, next_relax; /* TSC */
	unsigned int idle_turns;
	uint16_t n_links, n_dirty, n_active;
	uint16_t first_waiting;          /* service whose queue is looked at first */
	uint32_t n_waiting;              /* requests in the queues of all services */
	uint32_t n_again;                /* those of them that were sent before */
	uint32_t waiting_max;            /* of the others */
	uint32_t waiting_least;          /* that it is, however short the queues are */
	uint64_t waiting[LB_SERVICES_MAX / 64]; /* a bit per service with requests in its queue */
	struct link *links[WORKERS_MAX]; /* those that exist, in no order */
	struct link *dirty[WORKERS_MAX];
	struct link *active[WORKERS_MAX]; /* those with work: see link_has_work() */
	struct link *link[WORKERS_MAX]; /* by worker number */
	struct link *by_qpn[LINK_PLACES]; /* those with queue pairs of our own, by LINK_QPN_PLACE */
	struct link *dying;             /* detached; their clients are being told */
	struct pick_load load;
	struct lcore_service service[LB_SERVICES_MAX];
	struct latency *latency; /* by service number; see latency.h */
	uint64_t reply_ns;       /* from the turn's start to its replies being written */
	unsigned int reply_bucket;
	struct lb_lcore_stats stats;
	struct burst burst;
	struct fabric_burst fabric;
	unsigned int n_outbound;
	struct outbound *outbound;      /* by lcore */
	uint16_t queue[LB_PORTS_MAX];   /* of each port, or LCORE_NO_QUEUE */
	uint16_t carrier[LB_PORTS_MAX]; /* the lcore that sends there for one without a queue */
	struct rte_ring
		*outgoing[LB_PORTS_MAX]; /* from those it carries for; NULL: there are none */
	bool carries;
	struct txq tx[LB_PORTS_MAX];
} __rte_cache_aligned;

/* The TCI of a packet's VLAN tag, which is in the frame (<parsed>) or was taken off by the port. */
static inline uint16_t lcore_vlan(const struct rte_mbuf *m, uint16_t parsed)
{
	return m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED && parsed == 0 ? m->vlan_tci : parsed;
}

static inline const struct lb_service_config *lcore_service_config(const struct lcore *lc,
								   uint16_t service)
{
	return &lc->services->config[service];
}

/* NULL: nobody serves it. Valid for this turn. */
static inline const struct pick_table *lcore_pick_table(const struct lcore *lc, uint16_t service)
{
	return __atomic_load_n(&lc->lb->pick[service], __ATOMIC_ACQUIRE);
}

static inline void lcore_mark_dirty(struct lcore *lc, struct link *link)
{
	if (!link->dirty) {
		link->dirty = true;
		lc->dirty[lc->n_dirty++] = link;
	}
}

/* Housekeeping looks after it until it has no work any more. */
static inline void lcore_mark_active(struct lcore *lc, struct link *link)
{
	if (unlikely(!link->active) && link_has_work(link)) {
		link->active = true;
		lc->active[lc->n_active++] = link;
	}
}

/*
 * Packets that wait for acknowledgements are bounded, so that receiving never starves. A quarter of
 * them is divided among the links. Of what is left of the rest each link may have a quarter: with
 * few links each may fill its window, and however many are not acknowledged, the others have their
 * part.
 */
#define LCORE_LINKS_FEW 4

/* After links came or went. */
static inline void lcore_share_windows(struct lcore *lc)
{
	lc->window_least = lc->window_max / 4 / RTE_MAX(lc->n_links, LCORE_LINKS_FEW);
}

/* Before a burst is assigned. */
static inline void lcore_limit_links(struct lcore *lc)
{
	int32_t left = (int32_t)(lc->window_max - lc->window_max / 4 - lc->held);

	lc->link_max = RTE_MIN((uint32_t)RTE_MAX(left / 4, (int32_t)lc->window_least),
			       (uint32_t)REQUESTER_WINDOW);
}

#endif
