/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of one data-plane core (private to lb/). On the packet path an lcore shares nothing but
 * the read-only pick tables and the configuration of the services. Lcore and control thread share
 * what is marked atomic; mailbox calls change the rest between iterations of the loop.
 */
#ifndef LB_LCORE_H
#define LB_LCORE_H

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "schedule/preferred.h"
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

struct edge;
struct fragment_table;
struct source_limit;
struct trace;

/* One service on one lcore. */
struct lcore_service {
	struct pick_state pick;
	struct preferred_load all; /* of affinity sticky, near and spread: load of its workers */
	uint16_t last_worker;      /* of near and spread: the last request went to it */
	uint16_t place_turn;       /* see workers_pick_placed() */
	struct queue queue;
	uint32_t replay_copies; /* kept until the reply comes, and those that wait to be resent */
	/* slots and requests that its cancels have visited since housekeeping number
	 * <cancel_window> */
	uint32_t cancel_visits;
	uint64_t cancel_window;
	/* how fast the queue moves: TSC between requests that leave it, and the window in which
	 * this is measured (waiting.c) */
	uint64_t interval, window_start, measured;
	uint32_t window_sent;
	struct lb_service_stats stats;
};

/* The needs of a request whose payload comes in pieces, while a worker is chosen for it. */
struct placing {
	uint32_t bytes;
	bool may_wait;           /* also where others wait that are complete */
	struct link_place place; /* that was found */
};

#define LCORE_NO_QUEUE UINT16_MAX

struct lcore {
	unsigned int index;
	struct lb *lb;
	struct conntrack *ct;
	struct trace *trace; /* of a flow, or NULL; see observe/flow_trace.c; changes between
				iterations */
	const struct service_snapshot *services; /* changes between iterations: reload/apply.c */
	uint64_t now;                            /* TSC at the start of the iteration */
	uint32_t now_ms;
	struct rte_mempool *packets; /* what the NIC receives into; descriptors; joined replies */
	struct rte_mempool *control; /* ACKs, notices, ARP: a pool that held data cannot exhaust */
	struct rte_mempool
		*cancels; /* cancel words for workers: held until they are acknowledged */
	struct rte_mempool *indirect_pool; /* headers and trailers of messages of several packets */
	uint32_t sharers;      /* lcores that hold packets of one pool, this one included */
	uint32_t held;         /* packets that wait for a worker's acknowledgement */
	uint32_t window_max;   /* limit of <held> */
	uint32_t window_least; /* part of <window_max> that each link may have in any case */
	uint32_t link_max;     /* packets that each link may have unacknowledged now */
	/* packets kept for a replay, and their limit (replay.c); the part of the limit that each
	 * service may have in any case; those beyond that part, all services together, and their
	 * limit */
	uint32_t replay_copies, replay_copies_max;
	uint32_t replay_copies_least;
	uint32_t replay_copies_shared, replay_copies_shared_max;
	uint32_t replay_streams;     /* requests whose bytes their connections keep for a replay */
	uint32_t caught_up_ms;       /* when nothing was left to receive (atomic) */
	struct drained drained;      /* the same for the lcore's timers, which run on under load */
	uint16_t n_suspect;          /* links of workers that may have gone */
	uint8_t stop;                /* enum stop_stage; changes between iterations */
	uint32_t cancel_budget;      /* slots that cancels may visit until the next housekeeping */
	uint64_t cancel_window;      /* number of the last housekeeping */
	uint16_t first_swept;        /* active link whose flows are looked up first */
	uint64_t client_queue_seed;  /* of the hash that gives each client its queue */
	struct requester_list paced; /* links whose packets wait for their rate (dcqcn.h) */
	struct rte_mempool *reassembled_pool; /* datagrams that came in fragments */
	struct fragment_table *fragments;
	struct source_limit *notices; /* about requests that were not admitted */
	uint32_t errors_passed;       /* ICMP errors passed on since the last housekeeping */
	struct rte_ring *handover;    /* frames that other lcores received for this one */
	struct mailbox mailbox;       /* calls of the control thread */
	struct sleeper sleeper;
	uint64_t next_housekeeping, next_relax; /* TSC */
	uint64_t clock_tsc, clock_us; /* one instant, as the TSC and as CLOCK_MONOTONIC say it */
	unsigned int idle_polls;
	uint16_t n_links, n_dirty, n_active;
	uint16_t first_waiting; /* service whose queue is served first */
	uint32_t n_waiting;     /* requests in the queues of all services */
	uint32_t n_again;       /* of <n_waiting>, those that were sent before */
	uint32_t waiting_max;   /* limit of the others */
	uint32_t waiting_least; /* the least that <waiting_max> is, however short the queues are */
	uint64_t waiting[LB_SERVICES_MAX / 64]; /* a bit per service with requests in its queue */
	struct link *links[WORKERS_MAX];        /* all links, in no order */
	struct link *dirty[WORKERS_MAX];        /* those with descriptors or ACKs to send */
	struct link *active[WORKERS_MAX];       /* those with work: see link_has_work() */
	struct link *link[WORKERS_MAX];         /* by worker number */
	struct link *by_qpn[LINK_PLACES];       /* those of engine roce, by LINK_QPN_PLACE */
	struct link *detached; /* no longer in use; their clients are being notified */
	struct pick_load load;
	struct placing placing;
	/* While a worker is chosen for a replay: 1 + number of the worker that was lost; else 0. */
	uint32_t lost;
	struct lcore_service service[LB_SERVICES_MAX];
	struct latency *latency; /* by service number; see latency.h */
	uint64_t reply_ns;       /* from the start of the iteration until its replies are written */
	unsigned int reply_bucket;
	struct lb_lcore_stats stats;
	struct burst burst;
	struct fabric_burst fabric;
	struct segment_burst segments;
	struct edge *edge; /* TCP; NULL: no memory was set aside for connections */
	unsigned int n_outbound;
	struct outbound *outbound;    /* by lcore */
	uint16_t queue[LB_PORTS_MAX]; /* of each port, or LCORE_NO_QUEUE */
	uint16_t
		carrier[LB_PORTS_MAX]; /* the lcore that sends for this one where it has no queue */
	/* packets of the lcores that this one sends for; NULL: there are no such lcores */
	struct rte_ring *outgoing[LB_PORTS_MAX];
	bool carries; /* one of <outgoing> is not NULL */
	struct txq tx[LB_PORTS_MAX];
} __rte_cache_aligned;

/*
 * A checksum that is the pseudo header's alone was left to hardware by a sender on the same
 * machine, and the packet stayed there; the port does not say so. It may as well be a wrong bit,
 * once in 65,536 times. So such a segment counts only if its connection's SYN was so, too: TCP
 * leaves all of them, or none. (Datagrams of one socket may be mixed: those with MSG_MORE come
 * whole.) The mark is on the packet, in the bits by which ports that know say the same.
 */
#define LCORE_SUM_LEFT RTE_MBUF_F_RX_L4_CKSUM_NONE

static inline bool lcore_sum_was_left(const struct rte_mbuf *m)
{
	return (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == LCORE_SUM_LEFT;
}

/* The TCI of a packet's VLAN tag: in the frame (<parsed>), or stripped by the port. 0: no tag. */
static inline uint16_t lcore_vlan(const struct rte_mbuf *m, uint16_t parsed)
{
	return m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED && parsed == 0 ? m->vlan_tci : parsed;
}

static inline const struct lb_service_config *lcore_service_config(const struct lcore *lc,
								   uint16_t service)
{
	return &lc->services->config[service];
}

/* A client's address, for what is shared out among clients: IPv4's with its prefix, or an IPv6 /64,
 * because a client may have all addresses of that. */
static inline uint64_t lcore_address_key(const struct in6_addr *client)
{
	bool mapped = IN6_IS_ADDR_V4MAPPED(client);
	uint64_t word;

	memcpy(&word, client->s6_addr + (mapped ? 8 : 0), sizeof(word));
	return word;
}

static inline uint64_t lcore_client_address(const struct flow *flow)
{
	return lcore_address_key(&flow->client);
}

/* us that the worker has: until the deadline (TSC; 0: none), at most request_timeout, at least 1. */
static inline uint32_t lcore_deadline_us(const struct lcore *lc,
					 const struct lb_service_config *config, uint64_t deadline)
{
	uint64_t limit = config->request_timeout_ms * UINT64_C(1000), left;

	if (likely(deadline == 0))
		return limit;
	left = deadline > lc->now ? (deadline - lc->now) * 1000 / lc->lb->tsc_per_ms : 1;
	return RTE_MAX(RTE_MIN(left, limit), UINT64_C(1));
}

/* The stamp of requests that are sent in this iteration: us of CLOCK_MONOTONIC, never 0. The TSC's
 * rate is known too roughly to count by it for long: workers compare stamps that are minutes apart.
 */
static inline uint32_t lcore_sent_us(const struct lcore *lc)
{
	int64_t ticks = (int64_t)(lc->now - lc->clock_tsc);

	return (uint32_t)(lc->clock_us + ticks * 1000 / (int64_t)lc->lb->tsc_per_ms) | 1;
}

/* The service's pick table, valid for this iteration. NULL: the service has had no workers yet; one
 * that has lost them has a table without members. */
static inline const struct pick_table *lcore_pick_table(const struct lcore *lc, uint16_t service)
{
	return __atomic_load_n(&lc->lb->pick[service], __ATOMIC_ACQUIRE);
}

/* Does the service have workers, or will it have some soon? */
static inline bool lcore_may_serve(const struct lcore *lc, uint16_t service)
{
	const struct pick_table *table = lcore_pick_table(lc, service);

	return table != NULL && table->n + table->soon > 0;
}

/*
 * The described model of this name that some service can ask, valid for this iteration; NULL: there
 * is none. <name> has <length> bytes and no NUL.
 */
static inline const struct model_entry *lcore_model(const struct lcore *lc, const char *name,
						    size_t length)
{
	return model_table_find(__atomic_load_n(&lc->lb->models, __ATOMIC_ACQUIRE), name, length);
}

/* Forget the requests, replies and segments of the poll before. */
static inline void lcore_begin_burst(struct lcore *lc)
{
	lc->burst.n = 0;
	lc->fabric.n = 0;
	lc->fabric.n_replies = 0;
	lc->segments.n = 0;
}

static inline void lcore_mark_dirty(struct lcore *lc, struct link *link)
{
	if (!link->dirty) {
		link->dirty = true;
		lc->dirty[lc->n_dirty++] = link;
	}
}

/* Put the link on the list that housekeeping visits, until it has no work any more. */
static inline void lcore_mark_active(struct lcore *lc, struct link *link)
{
	if (unlikely(!link->active) && link_has_work(link)) {
		link->active = true;
		lc->active[lc->n_active++] = link;
	}
}

/*
 * Packets that wait for acknowledgements are bounded, so that receiving never runs out of packets.
 * A quarter of the limit is divided among the links, at least LCORE_LINKS_FEW. Each link may also
 * have a quarter of what is unused of the rest. So with few links each may fill its window, and a
 * link always has its own part, however many packets of other links are not acknowledged.
 */
#define LCORE_LINKS_FEW 4

/* Work out the links' own parts again, after links came or went. */
static inline void lcore_share_windows(struct lcore *lc)
{
	lc->window_least = lc->window_max / 4 / RTE_MAX(lc->n_links, LCORE_LINKS_FEW);
}

/* Work out how many packets each link may have unacknowledged, before a burst is assigned. */
static inline void lcore_limit_links(struct lcore *lc)
{
	int32_t left = (int32_t)(lc->window_max - lc->window_max / 4 - lc->held);

	lc->link_max = RTE_MIN((uint32_t)RTE_MAX(left / 4, (int32_t)lc->window_least),
			       (uint32_t)REQUESTER_WINDOW);
}

#endif
