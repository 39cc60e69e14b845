/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection tracking: the public header of this folder. One struct conntrack per lcore holds every
 * flow that this lcore owns, from its first packet to its expiry. It knows no workers, NICs or
 * RDMA: the load balancer stores what it wants to remember of a flow as plain integers in struct
 * flow.
 *
 * Threads: every call belongs to the lcore that owns the table, except conntrack_dump(),
 * conntrack_count() and conntrack_stats_read(), which any thread may call at any time.
 * Time is a caller-supplied count of milliseconds that never goes back and may start anywhere.
 */
#ifndef CONNTRACK_H
#define CONNTRACK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys per lookup burst: the limit of rte_hash's bulk lookup. */
#define CONNTRACK_BURST_MAX 64

#define CONNTRACK_CAPACITY_MAX (1u << 28)
/* 12 days: half the range of a signed 32-bit difference in ms. */
#define CONNTRACK_TIMEOUT_MAX_MS (1u << 30)
#define CONNTRACK_TCP_TIMEOUT_MS 600000
/* Service numbers are below this; see struct conntrack_params. */
#define CONNTRACK_SERVICES_MAX 256
/* Live flows have at most this many different destinations (address, port, protocol). */
#define CONNTRACK_LOCALS_MAX 4096

enum flow_family { FLOW_IPV4 = 4, FLOW_IPV6 = 6 };

/*
 * The 5-tuple of a client's packet and the zone that it came from. A zone is the caller's number
 * for a network, because two networks may use the same addresses. IPv4 addresses are mapped
 * (::ffff:a.b.c.d, RFC 4291 2.5.5.2), so that one lookup serves both families.
 * Addresses and ports are in network order; zero the whole struct before filling it.
 */
struct flow_key {
	struct in6_addr src, dst;
	uint16_t src_port, dst_port;
	uint8_t protocol; /* IPPROTO_* */
	uint8_t family;   /* enum flow_family: of the packet */
	uint16_t zone;    /* caller's number */
};
_Static_assert(sizeof(struct flow_key) == 40, "flow_key is hashed as a whole");

/* The service's end of a flow. */
struct flow_local {
	struct in6_addr address;
	uint16_t zero;
	uint16_t port; /* network order */
	uint8_t protocol;
	uint8_t family;
	uint16_t pad; /* zero */
};

enum flow_state {
	FLOW_FREE = 0,
	FLOW_UDP_ONE_WAY,     /* the client sent, and has no answer yet */
	FLOW_UDP_ANSWERED,    /* an answer left; the client's address may still be spoofed */
	FLOW_UDP_ESTABLISHED, /* the client sent again after an answer */
	/* A TCP connection, whose own state its owner keeps: no event changes these. */
	FLOW_TCP_OPENING, /* the client's SYN came */
	FLOW_TCP_OPEN,    /* the handshake is complete */
	FLOW_TCP_WAIT,    /* closed, and remembered for late segments */
	FLOW_STATES,
};

static inline bool flow_state_is_tcp(enum flow_state state)
{
	return state >= FLOW_TCP_OPENING;
}

/* Events that change a flow's state; see the table in state.c. */
enum flow_event {
	FLOW_EVENT_FROM_CLIENT, /* a packet of the client was accepted */
	FLOW_EVENT_TO_CLIENT,   /* a reply left for the client */
	FLOW_EVENT_UNREACHABLE, /* an ICMP error says that the client has gone */
	FLOW_EVENTS,
};

/*
 * One tracked flow: the key and all state that a request needs, in one cache line. The owning lcore
 * writes it; other threads see it only through conntrack_dump(). <generation> is odd while the flow
 * lives and grows at every insert and remove, so that an index plus a generation names one flow for
 * ever (see conntrack_handle()). Insert sets worker, connection and counters to zero, and a dump
 * may see the zeros before the owner fills them in.
 */
struct flow {
	uint32_t generation;
	uint32_t last_seen;         /* ms */
	struct in6_addr client;     /* the key: client, client_port, zone and conntrack_local() */
	uint16_t client_port;       /* network order */
	uint16_t local;             /* private: see conntrack_local() */
	uint8_t state;              /* enum flow_state */
	bool sums_left;             /* caller's: TCP segments come with checksums left out */
	uint8_t spare[2];           /* zero */
	uint32_t connection;        /* caller's number */
	uint16_t zone;              /* caller's number */
	uint16_t service;           /* caller's number; also the row of timeouts */
	uint16_t worker;            /* caller's number */
	uint16_t worker_generation; /* caller's number; differs when a worker number is reused */
	/* 48-bit counters in two parts: see conntrack_count_in(). */
	uint16_t packets_in_high, requests_high;
	uint64_t bytes_in; /* L4 payload bytes from the client */
	uint32_t packets_in_low, requests_low;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct flow) == 64, "one cache line");

/* The index from keys to flows; README.md compares the two. */
enum conntrack_table {
	CONNTRACK_TABLE_TAGS = 0, /* our own: buckets of tags; a tag's place is its flow's place */
	CONNTRACK_TABLE_RTE_HASH, /* DPDK's librte_hash, for comparison */
	CONNTRACK_TABLES,
};

struct conntrack_params {
	const char *name;  /* unique in the process, 1 to 23 bytes: rte_hash's limit */
	uint32_t capacity; /* flows of both families together; inserts beyond it are refused */
	int socket;        /* NUMA node, SOCKET_ID_ANY allowed */
	enum conntrack_table table;
	uint64_t seed[2]; /* secret; from getrandom() in production */
	/*
	 * New flows per second that one source (an IPv4 address, an IPv6 /64) may open, and the
	 * size of its burst; 0 = no limit. The same address in another zone is another source.
	 * Each source has two counters, found by a keyed hash and shared with other sources; it is
	 * refused only when both are exhausted.
	 */
	uint32_t new_flows_per_source;
	/*
	 * ms. When the table is full, a new flow takes the place of a flow that was silent for this
	 * long and is not established; flows that were never answered go first. 0 = never.
	 */
	uint32_t reclaim_after_ms;
	/*
	 * ms that a silent flow lives, by service and state. Service 0 must be complete; a zero in
	 * any other service means the value of service 0. A state of TCP may be zero there: that
	 * is CONNTRACK_TCP_TIMEOUT_MS, as the connection's own timers come first.
	 */
	uint32_t timeout_ms[CONNTRACK_SERVICES_MAX][FLOW_STATES];
};

/* Each counter is exact; a reader on another thread may see them one insert or remove apart. */
struct conntrack_stats {
	uint64_t inserted, expired, removed;
	uint64_t reclaimed;      /* ended early for a new flow; see reclaim_after_ms */
	uint64_t refused;        /* the table was full */
	uint64_t refused_source; /* the source exceeded new_flows_per_source */
	uint64_t live;
	uint64_t capacity; /* flows; the value of conntrack_params */
	uint64_t places;  /* flows that the memory has room for; own table only: <live> are taken */
	uint64_t detours; /* own table only: full buckets passed, summed over all live flows */
	uint64_t lag_ms; /* age of the oldest deadline that the last conntrack_expire() left over */
};

struct conntrack;

/*
 * Create a table. NULL with errno after logging the reason. The caller owns the result and may free
 * <params>.
 */
struct conntrack *conntrack_create(const struct conntrack_params *params);
void conntrack_destroy(struct conntrack *ct);

/*
 * Set the timeouts of <service> in ms; a zero leaves that one unchanged. Flows in a queue of young
 * flows use the new timeout at once, others after their old deadline at the latest. 0, or -EINVAL
 * for a service that does not exist or a timeout above CONNTRACK_TIMEOUT_MAX_MS.
 */
int conntrack_timeouts_set(struct conntrack *ct, uint16_t service,
			   const uint32_t timeout_ms[FLOW_STATES]);

/*
 * Keyed hash of the whole key, as the calls below take it. Pure. Keys that collide under one seed
 * do not collide under another, so a sender without the seed cannot aim at a bucket.
 */
uint32_t conntrack_hash(const struct conntrack *ct, const struct flow_key *key);

/* Hash <n> keys; <n> has no limit. */
void conntrack_hash_burst(const struct conntrack *ct, const struct flow_key keys[], unsigned int n,
			  uint32_t hashes[]);

/* The secret of conntrack_flow_hash(); a table has a secret of its own. */
struct conntrack_secret {
	uint64_t word[8];
};
void conntrack_secret_init(struct conntrack_secret *secret, const uint64_t seed[2]);
/*
 * Keyed hash of a live flow's addresses, ports and protocol. Every process with the same seed gets
 * the same hash. It leaves out the zone, whose number is this process's own.
 */
uint32_t conntrack_flow_hash(const struct conntrack *ct, const struct flow *flow,
			     const struct conntrack_secret *secret);

/*
 * Look up <n> keys (at most CONNTRACK_BURST_MAX) of both families. flows[i] is the flow or NULL. A
 * found flow is in the cache on return. Does not touch timers: see conntrack_touch().
 */
void conntrack_lookup_burst(struct conntrack *ct, const struct flow_key keys[],
			    const uint32_t hashes[], unsigned int n, struct flow *flows[]);

/* After a miss: prefetch what conntrack_flow_insert() will write. */
void conntrack_insert_prefetch(const struct conntrack *ct, uint32_t hash);

/*
 * Start tracking <key> in state <state>, after a lookup that missed. A key that is there already
 * returns its flow, unchanged. NULL with ENOSPC when the table is full or has CONNTRACK_LOCALS_MAX
 * destinations, with EDQUOT when the source opens flows too fast (both are counted), and with
 * EINVAL for a family, state or service that does not exist.
 */
struct flow *conntrack_flow_insert(struct conntrack *ct, const struct flow_key *key, uint32_t hash,
				   enum flow_state state, uint16_t service, uint32_t now_ms);

/* End a flow now. Its handle turns stale; ending a flow that has ended changes nothing. */
void conntrack_flow_remove(struct conntrack *ct, struct flow *flow);

/* The service's end of a live flow. Valid until the flow ends. */
const struct flow_local *conntrack_local(const struct conntrack *ct, const struct flow *flow);

/*
 * A packet of the flow arrived or left: restart its timeout. One store; the timer reads it when the
 * old deadline comes due.
 */
static inline void conntrack_touch(struct flow *flow, uint32_t now_ms)
{
	flow->last_seen = now_ms;
}

/* Next state by state and event; state.c. */
extern const uint8_t conntrack_transition[FLOW_STATES][FLOW_EVENTS];

/*
 * Apply <event> to a live flow's state. A shorter timeout of the new state takes effect when the
 * old deadline comes due, at the latest.
 */
static inline void conntrack_event(struct flow *flow, enum flow_event event)
{
	flow->state = conntrack_transition[flow->state][event];
}

/* Count a client's packet with <bytes> of payload, or a request cut from its packets. */
static inline void conntrack_count_in(struct flow *flow, uint32_t bytes)
{
	flow->bytes_in += bytes;
	flow->packets_in_high +=
		__builtin_add_overflow(flow->packets_in_low, 1, &flow->packets_in_low);
}

static inline void conntrack_count_request(struct flow *flow)
{
	flow->requests_high += __builtin_add_overflow(flow->requests_low, 1, &flow->requests_low);
}

/* Count a packet for the client. These counters are in another cache line than the flow. */
void conntrack_count_out(struct conntrack *ct, const struct flow *flow, uint32_t bytes);

/* The flow's handle: generation and index. It turns stale when the flow ends. */
uint64_t conntrack_handle(const struct conntrack *ct, const struct flow *flow);

/* The flow behind a handle, or NULL if it has ended. Safe for any 64-bit value. */
struct flow *conntrack_flow_get(struct conntrack *ct, uint64_t handle);

/* The table's memory, in which flows never move. For the call below. */
struct flow *conntrack_flows(struct conntrack *ct);

/* As conntrack_flow_get(), for a handle that this table gave. <flows>: the table's memory. */
static inline struct flow *conntrack_flow_of(struct flow *flows, uint64_t handle)
{
	struct flow *flow = &flows[(uint32_t)handle];

	return flow->generation == handle >> 32 ? flow : NULL;
}

/* Prefetch all of the flow behind a handle without reading it. Safe for any 64-bit value. */
void conntrack_flow_prefetch(const struct conntrack *ct, uint64_t handle);

/*
 * Advance the timers to <now_ms> and end the flows that are due; visits at most <budget> flows.
 * Returns the number ended. A flow ends within 32 ms after its deadline if this is called at least
 * that often; flows that the budget left over come first next time. A call in the same millisecond
 * as the last one, with nothing left over, costs a few cycles.
 */
unsigned int conntrack_expire(struct conntrack *ct, uint32_t now_ms, unsigned int budget);

/* True when the last conntrack_expire() left due flows over: call it again soon. */
bool conntrack_is_behind(const struct conntrack *ct);

/* One flow of a dump. */
struct flow_info {
	uint64_t handle;
	struct flow_key key;
	enum flow_state state;
	uint16_t service, worker, worker_generation;
	uint32_t created, last_seen; /* ms */
	uint64_t packets_in, bytes_in, requests;
	uint64_t packets_out, bytes_out;
};

/* Value of *<cursor> at the end of a dump. */
#define CONNTRACK_DUMP_END UINT32_MAX
/* Places visited per call at most. */
#define CONNTRACK_DUMP_SCAN 65536u

/*
 * Copy up to <n> live flows starting at *<cursor> (0 to begin) and advance the cursor; returns the
 * number copied. Only the cursor says whether the dump is complete, not the number. Any thread;
 * takes no lock: a flow that ends while being copied is skipped, and counters may be a packet
 * apart. Every flow that lives from the first call to the last is copied exactly once.
 */
unsigned int conntrack_dump(const struct conntrack *ct, uint32_t *cursor, struct flow_info *out,
			    unsigned int n);
uint64_t conntrack_count(const struct conntrack *ct);
void conntrack_stats_read(const struct conntrack *ct, struct conntrack_stats *out);

/* Bytes of memory that the table takes, rte_hash's included. The number of flows does not change
 * it. */
size_t conntrack_memory(const struct conntrack *ct);

/* The state's name for the CLI and JSON: "udp-one-way"; "unknown" when <state> is out of range. */
const char *conntrack_state_name(enum flow_state state);

#endif
