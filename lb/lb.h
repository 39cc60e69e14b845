/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load balancer as the control plane sees it. Every call here runs on the control thread and
 * never waits for the packet path longer than one of its turns.
 */
#ifndef LB_H
#define LB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "conntrack.h"
#include "packet/drop.h"
#include "lcore/latency.h"
#include "packet/notice.h"
#include "settings.h"
#include "workers.h"

struct lb;

/* Stages of the walk that are timed; see loop.c. */
#define LB_STAGE_LIST(X)                                                                           \
	X(INGRESS, "ingress")     /* receive, parse, classify */                                   \
	X(CONNTRACK, "conntrack") /* look up, insert, count */                                     \
	X(ASSIGN, "assign")       /* choose a worker, take a credit */                             \
	X(SEND, "send")           /* payload and descriptors to WRITEs */                          \
	X(FABRIC, "fabric")       /* ACKs retired, replies accepted */                             \
	X(EGRESS, "egress")       /* replies to client packets */                                  \
	X(TRANSMIT, "transmit")   /* hand packets to the ports */                                  \
	X(HOUSEKEEPING, "housekeeping")

enum lb_stage {
#define LB_STAGE_ENUM(symbol, name) LB_STAGE_##symbol,
	LB_STAGE_LIST(LB_STAGE_ENUM)
#undef LB_STAGE_ENUM
		LB_STAGES,
};
const char *lb_stage_name(enum lb_stage stage);

/* Counters of one lcore, of one service on one lcore, of one link. Only the lcore writes them. */
struct lb_lcore_stats {
	uint64_t packets_in, bytes_in;   /* from clients' and fabric ports, as received */
	uint64_t packets_out, bytes_out; /* handed to the ports */
	uint64_t reassembled;            /* datagrams that came in fragments */
	uint64_t handed_over;            /* received, and given to the lcore that owns them */
	uint64_t requests, replies;      /* requests sent to workers; last chunks sent to clients */
	uint64_t notices;                /* busy, timeout and error replies to clients */
	uint64_t notice[LB_NOTICE_CODES]; /* the same by code */
	uint64_t payload_copies;          /* payloads that had to be copied; 0 on the normal path */
	uint64_t drop[LB_DROPS];
	uint64_t stage_cycles[LB_STAGES];
	uint64_t stage_items[LB_STAGES]; /* packets, requests or replies it handled */
	uint64_t turns, idle_turns, sleeps;
	/* now, and at most: packets that workers have not acknowledged, requests that wait */
	uint64_t window_held, window_packets, queued, queue_packets;
};

struct lb_service_stats {
	uint64_t requests, replies, notices, drops;
	uint64_t queued;  /* waiting now */
	uint64_t queue_places; /* how many may, all lcores together; nobody else's */
	uint64_t replays; /* requests sent again, to another worker */
	/* affinity sticky: requests that went to their flow's home, those that went elsewhere, and
	 * flows that got another home as theirs had gone */
	uint64_t went_home, spilled, moved;
	uint64_t bytes_in, bytes_out;
};

struct lb_link_stats {
	uint64_t requests, replies, errors; /* errors: replies with a status other than OK */
	uint64_t faults; /* of these, those that are the worker's: the model failed or refused */
	uint64_t lost;   /* in flight when the link went down */
	uint64_t outstanding, credits; /* now */
	uint64_t unacked;              /* packets that it has not acknowledged, now */
	uint64_t packets_sent, packets_resent, acks_received, naks_received, timeouts;
	uint64_t packets_received, naks_sent, rnr_naks_received;
	uint64_t duplicates, out_of_order; /* received; out of order: behind a gap */
	uint64_t ecn_marked, cnps_sent;    /* received with a switch's mark; what we told of it */
	uint64_t cnps_received;            /* what the worker told of our packets */
	uint64_t
		rate; /* of its slowest link that congestion limits, bytes per second; 0: none is */
	/* of all replies, as latency.h says */
	uint64_t wait_ns, run_ns, total_ns;
	uint64_t heartbeats;
};

/* Build everything from <config> (EAL is up): ports, tables, lcores. NULL after logging why. */
struct lb *lb_create(const struct lb_config *config);
int lb_start(struct lb *lb);
/*
 * Stop as a good server does: from now on new requests are refused with a notice, and so are
 * registrations and changes of the configuration; what is here is served for up to stop_timeout_ms,
 * then whoever is left is told. lb_tick() sees to it; lb_stop_over() says when there is nothing
 * more to do. Workers stay until then.
 */
void lb_stop_begin(struct lb *lb);
bool lb_is_stopping(const struct lb *lb);
bool lb_stop_over(const struct lb *lb);
/* End the lcores' loops, over or not. */
void lb_stop(struct lb *lb);
void lb_destroy(struct lb *lb);

const struct lb_config *lb_config_get(const struct lb *lb);
struct worker_pool *lb_pool(struct lb *lb);

/* Regular work of the control thread: health, address resolution. Call every 10 to 50 ms. */
void lb_tick(struct lb *lb);

/* A worker changed state; runs on the control thread, inside lb_tick() or an lb_worker_* call. */
typedef void (*lb_worker_event)(struct worker *worker, void *context);
void lb_on_worker_event(struct lb *lb, lb_worker_event event, void *context);

/* --- registration: what an agent says and gets --------------------------------------------- */

/* The agent's half of one link. */
struct lb_link_spec {
	uint16_t lcore;
	uint32_t qpn, psn; /* the agent's queue pair and the first PSN it sends */
	uint32_t rkey;     /* of the memory below */
	uint64_t descriptors, slots, cancels; /* addresses */
	uint32_t stride;                      /* bytes from slot to slot */
};

/* The load balancer's half of one link. */
struct lb_link_info {
	uint16_t lcore;
	uint32_t qpn, psn;
	uint32_t reply_rkey;
	uint64_t reply_address; /* slot s's reply goes to reply_address + s * reply_stride */
	uint32_t reply_stride;
	/* Packets from this UDP source port come to the lcore's own queue; 0: none that we know. */
	uint16_t udp_source;
};

struct lb_registration {
	struct worker_spec worker;
	struct lb_address address; /* of the agent's RoCEv2 endpoint */
	uint32_t path_mtu;         /* largest the agent can take: 256..4096 */
	unsigned int n_links;      /* one per lcore */
	struct lb_link_spec link[LB_LCORES_MAX];
};

/* What an agent needs to know before it allocates. */
struct lb_hello {
	unsigned int n_lcores;
	uint32_t path_mtu;               /* of the fabric port that reaches <address> */
	struct lb_address address;       /* the load balancer's own on that port */
	uint32_t max_request, max_reply; /* largest over the services of the model */
	uint32_t worker_timeout_ms;
	uint8_t ack_timeout, retry_count;
};

/* 0, or -errno with a sentence in <error> that tells the agent's operator what to change. */
int lb_hello(struct lb *lb, const char *model, const struct lb_address *agent,
	     struct lb_hello *hello, char *error, size_t error_size);

/*
 * Can every service of the model carry what it takes: requests of <min_request> bytes or more? 0, or
 * -EINVAL with a sentence in <error> that names both sizes. For agents, before they make memory.
 */
int lb_request_check(const struct lb *lb, const char *model, uint32_t min_request, char *error,
		     size_t error_size);

/*
 * Could <registration> become a worker, if its name were free and there was room? 0, or -errno with
 * a sentence in <error>. Changes nothing: for whoever has to make room first.
 */
int lb_registration_check(const struct lb *lb, const struct lb_registration *registration,
			  char *error, size_t error_size);
/*
 * Register a worker and set up its links: state joining. NULL with a sentence in <error>.
 * <info> has room for one entry per lcore; <path_mtu> is what both ends will use.
 */
struct worker *lb_worker_register(struct lb *lb, const struct lb_registration *registration,
				  struct lb_link_info *info, uint32_t *path_mtu, char *error,
				  size_t error_size);
/* Its RoCEv2 endpoint, as it registered. As long as the worker. */
const struct lb_address *lb_worker_address(const struct lb *lb, const struct worker *worker);
/* The agent's queue pairs can receive; the worker turns active when its first heartbeat comes. */
void lb_worker_ready(struct lb *lb, struct worker *worker);
/* Its agent is about to end: no new requests. The event fires when nothing is outstanding: reason reads "drained". */
void lb_worker_drain(struct lb *lb, struct worker *worker);
/* True once a draining worker has answered everything. */
bool lb_worker_drained(struct lb *lb, const struct worker *worker);
/*
 * Its agent is not heard any more: the connection was <closed>, or nothing came for too long. A worker
 * that serves stays as long as its loop beats; one that was joining, was drained, or was about to
 * leave is removed.
 */
void lb_worker_control_lost(struct lb *lb, struct worker *worker, bool closed);
/* It is heard again. */
void lb_worker_control_back(struct lb *lb, struct worker *worker);
/* Take the links down and free the place; what is in flight is counted as lost. */
void lb_worker_remove(struct lb *lb, struct worker *worker, const char *reason);

/* --- what operators set ------------------------------------------------------------------------ */

/*
 * Kept by worker name (settings.h), in control.state_file if there is one: a setting holds when the
 * worker registers again, and when the load balancer starts again. A change returns 0, or -errno with a
 * sentence in <error>; then nothing has changed, in the file either.
 */

/* Read the file, before workers can register. */
int lb_settings_open(struct lb *lb, char *error, size_t error_size);
const struct worker_settings *lb_settings(const struct lb *lb);
/* No new requests for the worker of this name, also when it registers later; or again. */
int lb_settings_drain(struct lb *lb, const char *name, bool drain, char *error, size_t error_size);
/* Its share instead of what its agent says, 1 to WORKER_WEIGHT_MAX; 0: what its agent says. */
int lb_settings_weight(struct lb *lb, const char *name, uint32_t weight, char *error,
		       size_t error_size);
/* Nothing is set for this name any more, assignments included. -ENOENT: nothing was. */
int lb_settings_forget(struct lb *lb, const char *name, char *error, size_t error_size);
/* Requests that the last worker of this place had in flight when it went. */
uint64_t lb_worker_lost(const struct lb *lb, const struct worker *worker);

/* --- which workers serve which service -------------------------------------------------------- */

/*
 * Let a worker serve <n> services, by their numbers, or no longer: all of them or, after an error,
 * none. Kept under its name: it is the same when it registers again. 0, or -errno with a sentence in
 * <error>.
 */
int lb_worker_assign(struct lb *lb, const struct worker *worker, const unsigned int *service,
		     unsigned int n, char *error, size_t error_size);
int lb_worker_release(struct lb *lb, const struct worker *worker, const unsigned int *service,
		      unsigned int n, char *error, size_t error_size);
/* Is it active, and gets the service's requests? */
bool lb_worker_serves(const struct lb *lb, const struct worker *worker, unsigned int service);
/* How many do; <spares>, if not NULL: how many of them have stepped in by themselves. */
unsigned int lb_service_workers(const struct lb *lb, unsigned int service, unsigned int *spares);

/* --- seeing ---------------------------------------------------------------------------------- */

unsigned int lb_lcores(const struct lb *lb);

/* Did the port of this index of the configuration have a link, at most some 100 ms ago? */
bool lb_port_up(const struct lb *lb, unsigned int port);
void lb_lcore_stats_read(const struct lb *lb, unsigned int lcore, struct lb_lcore_stats *out);
void lb_service_stats_read(const struct lb *lb, unsigned int service, struct lb_service_stats *out);
/* Sum over the worker's links; zeroes when it has none. */
void lb_worker_stats_read(const struct lb *lb, const struct worker *worker,
			  struct lb_link_stats *out);
/* The histograms of a service, and of a worker's links: its first LATENCY_LINK_PARTS. */
void lb_service_latency_read(const struct lb *lb, unsigned int service, struct latency *out);
void lb_worker_latency_read(const struct lb *lb, const struct worker *worker, struct latency *out);
/* One lcore's flow table, for conntrack_dump(), conntrack_count() and conntrack_stats_read(). */
const struct conntrack *lb_conntrack(const struct lb *lb, unsigned int lcore);
/* The clock that flows' last_seen and created are in, ms. */
uint32_t lb_now_ms(const struct lb *lb);

#endif
