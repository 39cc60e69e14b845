/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load balancer's own state (private to lb/): written by the control thread, read by lcores
 * where a comment says so.
 */
#ifndef LB_PRIVATE_H
#define LB_PRIVATE_H

#include <rte_cycles.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "assign.h"
#include "config/config.h"
#include "config/state_file.h"
#include "config/zone.h"
#include "lcore/model_table.h"
#include "lcore/service.h"
#include "lcore/lcores.h"
#include "packet/owner.h"
#include "runtime/neigh.h"
#include "runtime/port.h"

struct access_log;
struct capture;
struct lcore;
struct retire;
struct link;
struct tls_helper;
struct trace;
struct lcores_free;
struct verbs_port;
struct worker;

extern int lb_logtype;
#define LB_LOG(level, format, ...)                                                                 \
	rte_log(RTE_LOG_##level, lb_logtype, "lb: " format "\n", ##__VA_ARGS__)

/* The stages of stopping; see stop.c. */
enum stop_stage {
	STOP_NOT,
	STOP_REFUSING,  /* new requests are refused, those that are here are served */
	STOP_NOTIFYING, /* the time is over: clients whose requests are still here get a notice */
	STOP_RESETTING, /* TCP connections that are still open are reset */
	STOP_OVER,
};

/* How a worker's address is reached; an array by worker number. */
struct neighbour {
	bool used;
	bool resolved;
	uint8_t mac[6];
	uint16_t port;               /* index of the fabric port */
	struct lb_address address;   /* the worker's */
	struct lb_address next_hop;  /* the worker itself or the gateway */
	bool doubtful;               /* the address may have moved: ask again */
	uint64_t doubts;             /* its links' timeouts and strange packets at the last check */
	struct neigh_claim claim;    /* another MAC address claims the address; times in ms */
	uint32_t claim_lost;         /* the load balancer's punt_lost when the claim began */
	uint32_t told_ms;            /* when a denied claim was last logged; 0: never */
	uint32_t asked_ms, again_ms; /* when it was asked for, and ms until it is asked for again */
};

struct lb {
	struct lb_config config;
	unsigned int n_lcores;
	struct port port[LB_PORTS_MAX];
	struct verbs_port *verbs[LB_PORTS_MAX]; /* of ports with engine verbs, instead of <port> */
	uint16_t port_index[RTE_MAX_ETHPORTS];  /* DPDK port id to ours */
	/* Queue q of a port belongs to lcore (first + q) mod n: ports with few queues use different
	 * lcores. */
	uint16_t first_lcore[LB_PORTS_MAX];
	enum owner_rule owner_rule[LB_PORTS_MAX];
	bool tcp_by_hash[LB_PORTS_MAX]; /* owners of TCP flows: OWNER_HASH, whatever the rule is */
	bool has_cluster_secret;
	struct conntrack_secret cluster_secret; /* keys the hash that chooses workers */
	uint16_t *zones; /* by place, see zone.h; NULL: each place is a zone */
	const struct service_snapshot *services; /* atomic; what lcores use or are about to */
	struct lcore *lcore[LB_LCORES_MAX];
	/* published to the lcores; replaced under <qsbr> */
	struct pick_table *pick[LB_SERVICES_MAX];
	struct model_table *models; /* NULL until a worker serves */
	struct rte_rcu_qsbr *qsbr;
	struct rte_ring *punt; /* ARP and ND replies for the control thread */
	uint32_t punt_lost;    /* those that the ring had no room for (atomic) */
	int stop;              /* atomic; 1: the lcores leave their loops */
	uint64_t tsc_hz, tsc_start, tsc_per_ms;
	uint64_t ns_per_tsc;       /* x 2^32 */
	struct access_log *access; /* NULL: there is none; does not change while lcores run */
	const uint64_t *clock;     /* TSC that tests set; NULL: read the CPU's */
	uint64_t shortest_timeout; /* TSC; atomic; the shortest request_timeout of all services */
	/* control thread only */
	struct worker_pool *pool;
	struct link **link[LB_LCORES_MAX]; /* by worker number; an lcore has each of them later */
	struct worker_settings *settings; /* of operators, by worker name: operator_settings.c */
	struct state_file state_file;     /* where they are stored; without a path they are not */
	struct assign_result assigned[LB_SERVICES_MAX];
	struct neighbour neighbour[WORKERS_MAX];
	uint64_t lost[WORKERS_MAX]; /* requests in flight when this number's last worker went */
	uint32_t judged_ms;         /* when outliers were last looked for */
	uint32_t cables_ms;         /* when the ports' link state was last read */
	bool cable[LB_PORTS_MAX];   /* the port's link was up then */
	enum stop_stage stop_stage;
	uint32_t stop_begin_ms, stop_stage_ms; /* when stopping began, and when this stage did */
	bool stop_served;                      /* all has been answered since <stop_served_ms> */
	uint32_t stop_served_ms;
	struct capture *capture; /* the last one, running or over; NULL: there was none */
	uint32_t capture_id;
	struct trace *trace[LB_LCORES_MAX]; /* of the flow that is traced, or NULL */
	bool tracing;
	uint32_t trace_id, trace_read_ms;
	uint64_t service_seed; /* of the service tables */
	char *config_path;     /* of the file that it was started with, or NULL */
	struct tls_helper *tls; /* makes handshakes; NULL: no service had TLS at the start */
	struct retire *retire; /* services that a reload removed: retire.c */
	uint64_t turns_since;  /* QSBR's token: since then each lcore is to begin a turn; 0: none */
	struct lcore_seen
		seen[LB_LCORES_MAX]; /* which lcores go on, and what waits for them: lcores.c */
	uint32_t lcores_ms;          /* when that was last looked at */
	struct lcores_free *to_free, *to_free_end;
	unsigned int n_to_free;
	unsigned int n_changes; /* of the configuration, that some lcore may not have taken over */
	bool unsettled;         /* it took too long the last time */
	bool publish_due;       /* pick tables that could not be published yet */
	bool memifs_rest;      /* no lcore uses any: handlers of their driver may run */
	struct link *detached; /* links to free when their lcores have reaped them */
	void (*on_event)(struct worker *worker, void *context); /* see lb_on_worker_event() */
	void *on_event_context;
};

/* The zone of a packet that came by <port> (an index) with this VLAN tag. */
static inline uint16_t lcore_zone(const struct lb *lb, uint16_t port, uint16_t vlan)
{
	uint16_t place = zone_place(port, vlan);

	return likely(lb->zones == NULL) ? place : lb->zones[place];
}

/* True once stopping has begun: the control thread makes no more changes. */
static inline bool lb_is_winding_down(const struct lb *lb)
{
	return lb->stop_stage != STOP_NOT;
}

/* Is this address a VIP or the address of a fabric port? */
static inline bool lb_owns_address(const struct lb *lb, const struct in6_addr *address)
{
	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		if (lb->config.port[i].fabric &&
		    memcmp(&lb->config.port[i].address.addr, address, sizeof(*address)) == 0)
			return true;
	return service_has_address(&__atomic_load_n(&lb->services, __ATOMIC_ACQUIRE)->table,
				   address);
}

/* The time in TSC cycles. Lcores read it once per iteration into lcore.now. */
static inline uint64_t lb_tsc(const struct lb *lb)
{
	return unlikely(lb->clock != NULL) ? *lb->clock : rte_rdtsc();
}

static inline uint32_t lb_tsc_to_ms(const struct lb *lb, uint64_t tsc)
{
	return (tsc - lb->tsc_start) / lb->tsc_per_ms;
}

/* TSC cycles to ns by multiply and shift: a 64-bit division per reply is too slow. */
static inline uint64_t lb_tsc_to_ns(const struct lb *lb, uint64_t tsc)
{
	return (uint64_t)((unsigned __int128)tsc * lb->ns_per_tsc >> 32);
}

#endif
