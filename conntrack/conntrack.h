/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection tracking: who is talking to us. One struct conntrack per lcore holds every flow that
 * this lcore owns, from its first packet to its expiry. It knows no workers, NICs or RDMA: what the
 * load balancer wants to remember about a flow it stores as plain integers in struct flow.
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

/* rte_hash's bulk lookup takes at most 64 keys; so do we. */
#define CONNTRACK_BURST_MAX 64

#define CONNTRACK_CAPACITY_MAX (1u << 28)
/* 12 days: half of what the sign of a 32-bit difference can tell. */
#define CONNTRACK_TIMEOUT_MAX_MS (1u << 30)
/* Services are numbered below this, see struct conntrack_params. */
#define CONNTRACK_SERVICES_MAX 256
/* Different destinations (address, port, protocol) that live flows have at one time. */
#define CONNTRACK_LOCALS_MAX 4096

enum flow_family { FLOW_IPV4 = 4, FLOW_IPV6 = 6 };

/*
 * The 5-tuple of a packet from the client, and the zone that it came from: a number of the caller's
 * for a network with addresses of its own, as two networks may use the same ones. IPv4 addresses
 * are mapped (::ffff:a.b.c.d, RFC 4291 2.5.5.2), so that both families are looked up alike.
 * Addresses and ports are in network order; zero the whole struct before filling it.
 */
struct flow_key {
	struct in6_addr src, dst;
	uint16_t src_port, dst_port;
	uint8_t protocol; /* IPPROTO_* */
	uint8_t family;   /* enum flow_family: what the packet was */
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
	FLOW_UDP_ONE_WAY,     /* the client spoke, nobody answered yet */
	FLOW_UDP_ANSWERED,    /* it was answered; the source could be spoofed still */
	FLOW_UDP_ESTABLISHED, /* and it spoke again */
	FLOW_STATES,
};

/* What moves a flow from state to state; see the table in state.c. */
enum flow_event {
	FLOW_EVENT_FROM_CLIENT, /* a packet of the client was accepted */
	FLOW_EVENT_TO_CLIENT,   /* a reply left for the client */
	FLOW_EVENT_UNREACHABLE, /* somebody says that the client has gone */
	FLOW_EVENTS,
};

/*
 * One tracked flow, all that a request needs of it: key and state in one cache line. The owning
 * lcore writes, other threads see it only through conntrack_dump(). <generation> is odd while the
 * flow lives and grows at every insert and remove, so that an index plus a generation names one
 * flow for ever (see conntrack_handle()). What insert does not know (worker, path, counters) starts
 * as zero, and a dump may see it so for a moment.
 */
struct flow {
	uint32_t generation;
	uint32_t last_seen;     /* ms */
	struct in6_addr client; /* the key: this, the port, the zone and what <local> stands for */
	uint16_t client_port;   /* network order */
	uint16_t local;         /* private: see conntrack_local() */
	uint8_t state;          /* enum flow_state */
	uint8_t spare[7];       /* zero */
	uint16_t zone;          /* caller's number */
	uint16_t service;       /* caller's number, also the row of timeouts */
	uint16_t worker;        /* caller's number */
	uint16_t worker_generation; /* caller's number; tells a reused worker number from the old */
	/* Counters of 48 bits, in two parts: see conntrack_count_in(). */
	uint16_t packets_in_high, requests_high;
	uint64_t bytes_in; /* L4 payload bytes from the client */
	uint32_t packets_in_low, requests_low;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct flow) == 64, "one cache line");

/* How keys find their flows; README.md says what each is good for. */
enum conntrack_table {
	CONNTRACK_TABLE_TAGS = 0, /* our own: tag buckets, the place of a tag is the flow's place */
	CONNTRACK_TABLE_RTE_HASH, /* DPDK's, for comparison */
	CONNTRACK_TABLES,
};

struct conntrack_params {
	const char *name;  /* unique in the process, 1 to 23 bytes: rte_hash's limit */
	uint32_t capacity; /* flows of both families together; inserts beyond it are refused */
	int socket;        /* NUMA node, SOCKET_ID_ANY allowed */
	enum conntrack_table table;
	uint64_t seed[2]; /* secret; from getrandom() in production */
	/*
	 * New flows that one source (an IPv4 address, an IPv6 /64) may open per second, with as
	 * many at once; 0 = no limit. The same address in another zone is another source. Sources
	 * share counters by a keyed hash, two each: one is hit by another's excess only if both
	 * are.
	 */
	uint32_t new_flows_per_source;
	/*
	 * When the table is full, a new flow takes the place of an old one that was silent for this
	 * long and whose client was never answered, or else has not spoken since; 0 = never.
	 */
	uint32_t reclaim_after_ms;
	/*
	 * How long a silent flow lives, by its service and state. Service 0 must be complete, a
	 * zero in any other means "as service 0".
	 */
	uint32_t timeout_ms[CONNTRACK_SERVICES_MAX][FLOW_STATES];
};

/* Each is exact; a reader on another thread may catch them an insert or remove apart. */
struct conntrack_stats {
	uint64_t inserted, expired, removed;
	uint64_t reclaimed;      /* ended early for a new flow, see reclaim_after_ms */
	uint64_t refused;        /* table full */
	uint64_t refused_source; /* over new_flows_per_source */
	uint64_t live;
	uint64_t capacity; /* of flows, as asked for */
	uint64_t places;   /* of the table; own table only: <live> of them are taken */
	uint64_t detours;  /* own table only: buckets that lookups of all live flows pass in vain */
	uint64_t lag_ms;   /* how late the last conntrack_expire() was with what it left over */
};

struct conntrack;

/* NULL with errno after logging why. The caller owns the result and may free <params>. */
struct conntrack *conntrack_create(const struct conntrack_params *params);
void conntrack_destroy(struct conntrack *ct);

/*
 * From now on flows of <service> live for so long; zero means as before. Flows of young clients
 * have it at once, others when what they wait for comes due: the old timeout, at the latest.
 * -EINVAL for a service that does not exist or more than CONNTRACK_TIMEOUT_MAX_MS.
 */
int conntrack_timeouts_set(struct conntrack *ct, uint16_t service,
			   const uint32_t timeout_ms[FLOW_STATES]);

/*
 * Keyed hash of the whole key; give it to the calls below. Pure. Flows that collide under one
 * seed are strangers under another, so who does not know the seed cannot aim at a bucket.
 */
uint32_t conntrack_hash(const struct conntrack *ct, const struct flow_key *key);

/* The same for any number of keys. */
void conntrack_hash_burst(const struct conntrack *ct, const struct flow_key keys[], unsigned int n,
			  uint32_t hashes[]);

/* The key of a hash of flows, other than a table's own secret. */
struct conntrack_secret {
	uint64_t word[8];
};
void conntrack_secret_init(struct conntrack_secret *secret, const uint64_t seed[2]);
/*
 * Keyed hash of a live flow's addresses, ports and protocol: the same in every process that has the
 * seed. The zone is not in it, as its number is this process' own.
 */
uint32_t conntrack_flow_hash(const struct conntrack *ct, const struct flow *flow,
			     const struct conntrack_secret *secret);

/*
 * Look up <n> (at most CONNTRACK_BURST_MAX) keys, families mixed as they come. flows[i] is the flow
 * or NULL. A flow's line is in the cache when this returns. Does not touch timers: see
 * conntrack_touch().
 */
void conntrack_lookup_burst(struct conntrack *ct, const struct flow_key keys[],
			    const uint32_t hashes[], unsigned int n, struct flow *flows[]);

/* After a miss: hints the CPU to load what conntrack_flow_insert() will write. */
void conntrack_insert_prefetch(const struct conntrack *ct, uint32_t hash);

/*
 * Start tracking <key> in state <state>. The caller has just seen the lookup miss; inserting a key
 * twice returns the flow that is already there, unchanged. NULL with ENOSPC when the table is full
 * or has CONNTRACK_LOCALS_MAX destinations, with EDQUOT when the source opens flows too fast (both
 * counted), with EINVAL for a family, state or service that does not exist.
 */
struct flow *conntrack_flow_insert(struct conntrack *ct, const struct flow_key *key, uint32_t hash,
				   enum flow_state state, uint16_t service, uint32_t now_ms);

/* Forget a flow now. Its handle turns stale; forgetting a flow that has ended changes nothing. */
void conntrack_flow_remove(struct conntrack *ct, struct flow *flow);

/* The service's end of a live flow. Valid until the flow ends. */
const struct flow_local *conntrack_local(const struct conntrack *ct, const struct flow *flow);

/*
 * The flow's packet arrived or left: it lives for another timeout of its state from now on. Costs
 * one store; the timer finds out when the old deadline comes due.
 */
static inline void conntrack_touch(struct flow *flow, uint32_t now_ms)
{
	flow->last_seen = now_ms;
}

/* Next state by state and event; state.c. */
extern const uint8_t conntrack_transition[FLOW_STATES][FLOW_EVENTS];

/*
 * Something happened to a live flow: move its state. A state with a shorter timeout than the old
 * one takes effect when the old deadline comes due, at the latest.
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

/* Count a packet for the client. These counters lie in a line of their own. */
void conntrack_count_out(struct conntrack *ct, const struct flow *flow, uint32_t bytes);

/* A name for the flow that goes stale when the flow ends, even if its memory is used again. */
uint64_t conntrack_handle(const struct conntrack *ct, const struct flow *flow);

/* The flow behind a handle, or NULL if it has ended. Safe for any 64-bit value. */
struct flow *conntrack_flow_get(struct conntrack *ct, uint64_t handle);

/*
 * The same without reading the flow: hints the CPU to load all of it. Safe for any 64-bit value.
 */
void conntrack_flow_prefetch(const struct conntrack *ct, uint64_t handle);

/*
 * Advance the timers to <now_ms> and expire what is due, looking at no more than <budget> flows.
 * Returns the number expired. A flow ends within 32 ms after its deadline if this is called often
 * enough; what the budget left over comes first next time. Costs a few cycles when the millisecond
 * is the last call's and nothing was left over.
 */
unsigned int conntrack_expire(struct conntrack *ct, uint32_t now_ms, unsigned int budget);

/* Did the last conntrack_expire() leave something over? Then it should run again soon. */
bool conntrack_is_behind(const struct conntrack *ct);

/* What a dump returns: all that is known about one flow. */
struct flow_info {
	uint64_t handle;
	struct flow_key key;
	enum flow_state state;
	uint16_t service, worker, worker_generation;
	uint32_t created, last_seen; /* ms */
	uint64_t packets_in, bytes_in, requests;
	uint64_t packets_out, bytes_out;
};

/* *<cursor> when a dump is through. */
#define CONNTRACK_DUMP_END UINT32_MAX
/* Places that one call looks at, at most. */
#define CONNTRACK_DUMP_SCAN 65536u

/*
 * Copy up to <n> live flows starting at *<cursor> (0 to begin) and advance it; returns the number
 * copied. A call that found few may still not be the last: the cursor tells. Takes no lock: a flow
 * that changes identity while being copied is skipped, counters may be a packet apart. Every flow
 * that lives from the first call to the last is copied exactly once.
 */
unsigned int conntrack_dump(const struct conntrack *ct, uint32_t *cursor, struct flow_info *out,
			    unsigned int n);
uint64_t conntrack_count(const struct conntrack *ct);
void conntrack_stats_read(const struct conntrack *ct, struct conntrack_stats *out);

/* Bytes this table takes, rte_hash's included; the same for an idle and a full table. */
size_t conntrack_memory(const struct conntrack *ct);

/* For people and JSON: "udp-one-way"; "unknown" for what is no state. */
const char *conntrack_state_name(enum flow_state state);

#endif
