/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load balancer's own state (private to lb/): written by the control thread, read by lcores where a
 * comment says so.
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
#include "lcore/service.h"
#include "packet/owner.h"
#include "runtime/neigh.h"
#include "runtime/port.h"

struct capture;
struct lcore;
struct retire;
struct link;
struct verbs_port;
struct worker;

extern int lb_logtype;
#define LB_LOG(level, format, ...)                                                                 \
	rte_log(RTE_LOG_##level, lb_logtype, "lb: " format "\n", ##__VA_ARGS__)

/* How far the end of the load balancer is; see stop.c. */
enum stop_stage {
	STOP_NOT,
	STOP_REFUSING, /* nothing new; what is here is served */
	STOP_TELLING,  /* its time is over: whoever is left is told */
	STOP_OVER,
};

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
	struct assign_result assigned[LB_SERVICES_MAX];
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
	struct retire *retire; /* removed services: reload/retire.c */
	struct link *dying;    /* detached links that their lcores have not buried yet */
	void (*on_event)(struct worker *worker, void *context); /* see lb_on_worker_event() */
	void *on_event_context;
};

/* The zone that a packet of <port> (an index) comes from. */
static inline uint16_t lcore_zone(const struct lb *lb, uint16_t port, uint16_t vlan)
{
	uint16_t place = zone_place(port, vlan);

	return likely(lb->zones == NULL) ? place : lb->zones[place];
}

/* Has stopping begun? Then nothing is to be changed any more. */
static inline bool lb_is_winding_down(const struct lb *lb)
{
	return lb->stop_stage != STOP_NOT;
}

/* A VIP or a fabric address? */
static inline bool lb_owns_address(const struct lb *lb, const struct in6_addr *address)
{
	for (unsigned int i = 0; i < lb->config.n_ports; i++)
		if (lb->config.port[i].fabric &&
		    memcmp(&lb->config.port[i].address.addr, address, sizeof(*address)) == 0)
			return true;
	return service_has_address(&__atomic_load_n(&lb->services, __ATOMIC_ACQUIRE)->table,
				   address);
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

#endif
