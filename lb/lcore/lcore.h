/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one data-plane core owns, and the load balancer's own state (private to lb/). Nothing here
 * is shared on the packet path but the read-only pick tables and the view of the services.
 */
#ifndef LB_LCORE_H
#define LB_LCORE_H

#include <rte_cycles.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "assign.h"
#include "packet/client_path.h"
#include "runtime/drained.h"
#include "packet/fragment.h"
#include "home.h"
#include "lcore/latency.h"
#include "lb.h"
#include "lcore/link.h"
#include "runtime/mailbox.h"
#include "runtime/neigh.h"
#include "packet/notice.h"
#include "packet/owner.h"
#include "packet/parse.h"
#include "runtime/port.h"
#include "lcore/queue.h"
#include "lcore/service.h"
#include "runtime/sleeper.h"
#include "config/state_file.h"
#include "observe/flow_trace.h"
#include "runtime/txq.h"
#include "config/zone.h"

#define LB_BURST 32

struct lcore;

extern int lb_logtype;
#define LB_LOG(level, format, ...)                                                                 \
	rte_log(RTE_LOG_##level, lb_logtype, "lb: " format "\n", ##__VA_ARGS__)

/* How a request ranks, and how often it was sent to a worker that was lost. */
struct standing {
	uint8_t level; /* of the queue, see queue.h */
	uint8_t replays;
};

/* Client requests on their way through the stages. Index i is one packet everywhere. */
struct burst {
	unsigned int n;
	struct rte_mbuf *packet[LB_BURST];
	struct parsed parsed[LB_BURST];
	struct flow_key key[LB_BURST];
	uint32_t hash[LB_BURST];
	struct flow *flow[LB_BURST];
	uint64_t handle[LB_BURST]; /* of the flow */
	struct client_path path[LB_BURST];
	uint64_t tag[LB_BURST];      /* for notices: the request's id, or its first 8 bytes */
	uint64_t arrived[LB_BURST];  /* TSC */
	uint64_t deadline[LB_BURST]; /* TSC; 0: none */
	struct standing standing[LB_BURST];
	struct link *link[LB_BURST];
};

/* RoCE packets from the fabric, and the replies they complete. */
struct fabric_burst {
	unsigned int n;
	struct rte_mbuf *packet[LB_BURST];
	struct parsed parsed[LB_BURST];
	unsigned int n_replies;
	struct {
		struct rte_mbuf *message; /* chain: struct ring_reply, then the bytes */
		struct link *link;
		uint32_t imm;
	} reply[LB_BURST];
};

/* Packets that another lcore gets at the end of the burst. */
struct outbound {
	unsigned int n;
	struct rte_mbuf *packet[LB_BURST];
};

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

/* How far the end of the load balancer is; see stop.c. */
enum stop_stage {
	STOP_NOT,
	STOP_REFUSING, /* nothing new; what is here is served */
	STOP_TELLING,  /* its time is over: whoever is left is told */
	STOP_OVER,
};

struct lcore {
	unsigned int index;
	struct lb *lb;
	struct conntrack *ct;
	struct trace *trace; /* of a flow, or NULL: flow_trace.c; changes between turns only */
	const struct service_view *services; /* changes between turns only: adopt.c */
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

/* How a worker's address is reached; by worker number. */
struct neighbour {
	bool used;
	bool resolved;
	uint8_t mac[6];
	uint16_t port;               /* index of the fabric port */
	struct lb_address address;   /* the worker's */
	struct lb_address next_hop;  /* the worker itself or the gateway */
	bool doubtful;               /* it may have moved: ask again */
	uint64_t doubts;             /* of its links, when last looked at */
	struct neigh_claim claim;    /* of another MAC address, in ms */
	uint32_t claim_lost;         /* the load balancer's punt_lost when it began */
	uint32_t told_ms;            /* when a claim that was denied was logged last; 0: never */
	uint32_t asked_ms, again_ms; /* when, and how long an answer may take */
};

struct lb {
	struct lb_config config;
	unsigned int n_lcores;
	struct port port[LB_PORTS_MAX];
	struct verbs_port *verbs[LB_PORTS_MAX]; /* instead of it, for ports of engine verbs */
	uint16_t port_index[RTE_MAX_ETHPORTS];  /* DPDK port id to ours */
	/* Queue q of a port belongs to lcore (first + q) mod n: short ports keep different ones
	 * busy.
	 */
	uint16_t first_lcore[LB_PORTS_MAX];
	enum owner_rule owner_rule[LB_PORTS_MAX];
	bool has_cluster_secret;
	struct conntrack_secret cluster_secret; /* of the hash that workers are chosen by */
	uint16_t *zones;                     /* by place, see zone.h; NULL: each place is a zone */
	const struct service_view *services; /* atomic; as the lcores have it, or will at once */
	struct lcore *lcore[LB_LCORES_MAX];
	/* published to the lcores; replaced under <qsbr> */
	struct pick_table *pick[LB_SERVICES_MAX];
	struct rte_rcu_qsbr *qsbr;
	struct rte_ring *punt; /* ARP and ND replies for the control thread */
	uint32_t punt_lost;    /* those that the ring had no room for (atomic) */
	int stop;              /* atomic: the lcores' loops end */
	uint64_t tsc_hz, tsc_start, tsc_per_ms;
	uint64_t ns_per_tsc;       /* x 2^32 */
	const uint64_t *clock;     /* tests set the time by it; NULL: the TSC */
	uint64_t shortest_timeout; /* TSC; atomic; of any service's requests */
	/* control thread only */
	struct worker_pool *pool;
	struct worker_settings *settings; /* what operators set, by worker name: settings.c */
	struct state_file state_file;     /* where it is kept; without a path it is not */
	struct assign_result allot[LB_SERVICES_MAX];
	struct neighbour neighbour[WORKERS_MAX];
	uint64_t lost[WORKERS_MAX]; /* requests in flight when the last worker there went */
	uint32_t judged_ms;         /* when outliers were looked for */
	uint32_t cables_ms;         /* when ports were asked for their link */
	bool cable[LB_PORTS_MAX];   /* it had one then */
	enum stop_stage stop_stage;
	uint32_t stop_begin_ms, stop_stage_ms; /* when the end began, and this stage of it */
	struct capture *capture; /* or NULL; the last one also when it is over */
	uint32_t capture_id;
	bool tracing;
	uint32_t trace_id, trace_read_ms;
	uint64_t service_seed; /* of the service tables */
	char *config_path;     /* of the file that it was started with, or NULL */
	struct leave *leave;   /* services that were taken out: leave.c */
	struct link *dying;    /* detached links that their lcores have not buried yet */
	lb_worker_event on_event;
	void *on_event_context;
};

/* A VIP or a fabric address? */
bool lb_owns_address(const struct lb *lb, const struct in6_addr *address);

/* The TCI of a packet's VLAN tag, which is in the frame (<parsed>) or was taken off by the port. */
static inline uint16_t lcore_vlan(const struct rte_mbuf *m, uint16_t parsed)
{
	return m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED && parsed == 0 ? m->vlan_tci : parsed;
}

/* The zone that a packet of <port> (an index) comes from. */
static inline uint16_t lcore_zone(const struct lb *lb, uint16_t port, uint16_t vlan)
{
	uint16_t place = zone_place(port, vlan);

	return likely(lb->zones == NULL) ? place : lb->zones[place];
}

static inline void lcore_drop(struct lcore *lc, struct rte_mbuf *m, enum lb_drop reason)
{
	lc->stats.drop[reason]++;
	if (unlikely(lc->trace != NULL))
		trace_dropped(lc, m, reason);
	rte_pktmbuf_free(m);
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

/* Datagrams that came in fragments, on their way or held back. */
#define LB_WHOLES_PER_LCORE 1023
/* What an lcore keeps of each other's packets to free them together; half more in the worst case.
 */
#define LB_POOL_CACHE 256

/* ACKs, notices, ARP. */
#define LB_CONTROL_PER_LCORE 4096
#define LB_CANCELS_PER_LCORE 2047

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

/* What time it is, TSC. Lcores ask once per turn and then use <now>. */
static inline uint64_t lb_tsc(const struct lb *lb)
{
	return unlikely(lb->clock != NULL) ? *lb->clock : rte_rdtsc();
}

static inline uint32_t lb_tsc_to_ms(const struct lb *lb, uint64_t tsc)
{
	return (tsc - lb->tsc_start) / lb->tsc_per_ms;
}

/* A time. Multiplied, as it is asked for per reply and a division takes as long as much of one. */
static inline uint64_t lb_tsc_to_ns(const struct lb *lb, uint64_t tsc)
{
	return (uint64_t)((unsigned __int128)tsc * lb->ns_per_tsc >> 32);
}

/* ingress.c: receive and sort. */
unsigned int ingress_receive(struct lcore *lc, uint16_t port);
unsigned int ingress_handover(struct lcore *lc);
/* One more packet of this burst, which is this lcore's own. */
void ingress_sort(struct lcore *lc, struct rte_mbuf *m);
/* reassemble.c: fragments to frames, which then go their own way. Takes the packet. */
void reassemble_add(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p,
		    const struct flow_key *key, bool handed);
/* icmp.c: errors about replies. Takes the packet. */
void icmp_error(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p,
		const struct flow_key *key, bool handed);
/* handover.c: packets between lcores. Takes the packet; at most LB_BURST to one until the flush. */
void handover_add(struct lcore *lc, unsigned int owner, struct rte_mbuf *m);
void handover_flush(struct lcore *lc);
/* Who owns a flow, by a port that its client's packets come to. Best guess if that is the receiver.
 */
unsigned int handover_owner(const struct lcore *lc, uint16_t port, const struct flow_key *key);
/* Hand over what belongs to others, of packets that came to <port>; returns how many stay, first in
 * <packet>. */
unsigned int handover_spread(struct lcore *lc, uint16_t port, struct rte_mbuf **packet,
			     unsigned int n);
/* What goes out where this lcore has no queue; what others want sent; is anything there? */
unsigned int handover_transmit(struct lcore *lc, unsigned int port);
void handover_carry(struct lcore *lc);
bool handover_waits(const struct lcore *lc);
/* answer.c: what is answered on the spot: ARP, ND, ICMP echo. Takes the packet. */
void answer_neighbour(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p);
void answer_echo(struct lcore *lc, struct rte_mbuf *m, const struct parsed *p);
/* track.c: requests to flows. */
void track_burst(struct lcore *lc, struct burst *b);
/* framing/: flow payload to requests. */
void framing_cut(struct lcore *lc, struct burst *b);
/* choose.c: who takes a request. */
/* Are there workers, or may there be in a moment? */
static inline bool choose_may_wait(const struct lcore *lc, uint16_t service)
{
	const struct pick_table *table = lcore_pick_table(lc, service);

	return table != NULL && table->n + table->soon > 0;
}
bool choose_has_workers(const struct lcore *lc, uint16_t service);
/* A link with a credit for this request, taken; or NULL. <*late>: nobody would be done by its
 * deadline (TSC, 0: none). */
struct link *choose_worker(struct lcore *lc, struct flow *flow, uint32_t hash,
			   const struct rte_mbuf *m, uint64_t deadline, bool *late);
/*
 * May its requests wait here, in their order, instead of in workers' rings? Where the policy wants who
 * is least busy: who is free first takes them. The others promise turns, weights, a home, or count on
 * what workers have before them.
 */
bool choose_waits_here(const struct lcore *lc, uint16_t service);
/* For such a service: the same from workers that have as much before them as they should. NULL also
 * where nobody would be done in time. */
struct link *choose_deep(struct lcore *lc, struct flow *flow, uint32_t hash,
			 const struct rte_mbuf *m, uint64_t deadline);
/* How many of its slots are to be kept back from now on? */
void choose_look(const struct lcore *lc, struct link *link);
/* forward.c: requests to workers. */
void forward_assign(struct lcore *lc, struct burst *b);
void forward_send(struct lcore *lc, struct burst *b);
enum lb_notice forward_notice_of(enum lb_drop reason);
/* Drop a request of the burst and tell its client why. */
void forward_refuse(struct lcore *lc, const struct burst *b, unsigned int i, enum lb_drop reason);
void forward_flush(struct lcore *lc);
/* replay.c: requests whose worker was lost, to another. */
bool replay_keep(struct lcore *lc, struct link *link, const struct burst *b, unsigned int i);
void replay_unkeep(struct lcore *lc, struct link *link, uint32_t slot, uint16_t service);
/* The slot's request is over, one way or another. */
static inline void replay_forget(struct lcore *lc, struct link *link, uint32_t slot)
{
	if (unlikely(lc->kept > 0) && link->kept[slot].packet != NULL)
		replay_unkeep(lc, link, slot, link->slot[slot].service);
}
/* Send the slot's request again some time. False: it cannot be; its client is to be told, or (<gone>
 * is false) its worker may answer yet, and nobody else would. */
bool replay_slot(struct lcore *lc, struct link *link, uint32_t slot, bool gone);
/* Requests of suspect workers to others. */
void replay_suspects(struct lcore *lc);
/* Services that keep packets have come or gone. */
void replay_share(struct lcore *lc);
/* A request that was to be sent again leaves the queue. */
void replay_left(struct lcore *lc, uint16_t service);
/* waiting.c: requests without a credit. */
/* The queue that a service with this configuration has on this lcore. 0 or -ENOMEM. */
int waiting_init(const struct lcore *lc, const struct lb_service_config *config,
		 struct queue *queue);
/* Services have come or gone, or their queues are others. */
void waiting_share(struct lcore *lc);
void waiting_add(struct lcore *lc, struct burst *b, unsigned int i);
unsigned int waiting_send(struct lcore *lc);
/* False: no room. The packet stays the caller's then. */
bool waiting_push(struct lcore *lc, uint16_t service, const struct waiting *w);
/* End those that waited too long. */
void waiting_expire(struct lcore *lc);
/* End the flow's request with this tag, if it waits here. */
bool waiting_cancel(struct lcore *lc, const struct flow *flow, uint64_t handle, uint64_t tag,
		    uint32_t *budget);
/* From now on the service's requests wait in <*queue>, which then is the old one, empty. */
void waiting_move(struct lcore *lc, uint16_t service, struct queue *queue);
/* The load balancer ends: end <budget> of each service, as far as their clients can be told. */
void waiting_end(struct lcore *lc, unsigned int budget);
/* cancel.c: requests that nobody waits for any more. */
void cancel_request(struct lcore *lc, const struct flow *flow, uint64_t handle, uint64_t tag);
/* Its client has been told, or has gone: the worker need not run it, and the slot waits for it. */
void cancel_slot(struct lcore *lc, struct link *link, uint32_t slot);
void cancel_housekeeping(struct lcore *lc);
/* fabric.c: RoCE packets to acknowledgements and replies. */
void fabric_receive(struct lcore *lc, struct fabric_burst *f);
/* A message with immediate is in, whatever the engine. Takes it. */
void fabric_message(struct lcore *lc, struct link *link, struct rte_mbuf *message, uint32_t imm,
		    struct fabric_burst *f);
/* egress.c: replies to client packets. */
void egress_send(struct lcore *lc, struct fabric_burst *f);
/* A notice about a request of <flow> that came by <path>. False: it cannot be said now. */
bool egress_notice(struct lcore *lc, const struct flow *flow, const struct client_path *path,
		   uint8_t code, uint64_t tag);
/* The same to a client that has no flow; <key> is of what it sent. */
void egress_notice_stranger(struct lcore *lc, uint16_t service, const struct flow_key *key,
			    const struct client_path *path, uint8_t code, uint64_t tag);
/* refuse.c: requests that are never admitted. */
/* May this source have another notice about one? Counted if not. */
bool refuse_may_tell(struct lcore *lc, const struct in6_addr *source, uint16_t zone);
/* A datagram whose bytes were not all taken: tell its client, if that asked a service of ours. These
 * are the first <length> bytes of its payload. */
void refuse_stranger(struct lcore *lc, const struct flow_key *key, const struct client_path *path,
		     const uint8_t *payload, uint32_t length);
/* The same of a frame that parse_frame() dropped, as it is shorter than its headers say. */
void refuse_cut(struct lcore *lc, const struct rte_mbuf *m, struct parsed *p, uint16_t port);
/* overdue.c: requests that get no answer: too late, or their worker is gone. */
void overdue_check(struct lcore *lc);
void overdue_bury(struct lcore *lc);
/* stop.c: the load balancer ends. */
void stop_refuse(struct lcore *lc, struct burst *b);
/* Some of those that are here still, as their ports take notices. */
void stop_tell(struct lcore *lc);
/* loop.c */
bool lb_turn(struct lcore *lc);
int lb_loop(void *lcore);

#endif
