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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* rte_hash's bulk lookup takes at most 64 keys. */
#define CONNTRACK_BURST_MAX 64

enum flow_family { FLOW_IPV4 = 4, FLOW_IPV6 = 6 };

/*
 * The 5-tuple. Its first 16 bytes are the whole key of an IPv4 flow, all 48 that of an IPv6 flow.
 * Addresses and ports are in network order; zero the whole struct before filling it.
 */
struct flow_key {
	uint32_t src4, dst4; /* zero for IPv6 */
	uint16_t src_port, dst_port;
	uint8_t protocol; /* IPPROTO_* */
	uint8_t family;	  /* enum flow_family */
	uint16_t zero;
	uint8_t src6[16], dst6[16]; /* zero for IPv4 */
};
_Static_assert(sizeof(struct flow_key) == 48, "flow_key is hashed as a whole");

enum flow_state {
	FLOW_FREE = 0,
	FLOW_UDP_ONE_WAY,     /* the client spoke, nobody answered yet */
	FLOW_UDP_ESTABLISHED, /* both directions seen */
	FLOW_STATES,
};

/* Where the client's last packet came from: replies leave by it. */
struct flow_path {
	uint8_t client_mac[6];
	uint16_t vlan; /* TCI in host order, 0 = untagged */
	uint16_t port; /* DPDK port id */
};

/*
 * One tracked flow. The owning lcore writes, other threads read it only through conntrack_dump().
 * <generation> is odd while the flow lives and grows at every insert and remove, so that an index
 * plus a generation names one flow for ever (see conntrack_handle()).
 */
struct flow {
	/* first cache line: what every packet touches */
	uint32_t generation;
	uint32_t last_seen; /* ms */
	uint8_t state;	    /* enum flow_state */
	uint8_t family;
	uint16_t service;	    /* caller's number */
	uint16_t worker;	    /* caller's number */
	uint16_t worker_generation; /* caller's number; tells a reused worker number from the old */
	struct flow_path path;
	uint16_t reserved;
	uint32_t created;		 /* ms */
	uint32_t wheel_next, wheel_prev; /* private to expire.c */
	uint64_t packets_in;		 /* from the client */
	uint64_t bytes_in;		 /* L4 payload bytes */
	uint64_t requests;
	/* second cache line: replies, dumps */
	uint64_t packets_out; /* to the client */
	uint64_t bytes_out;
	struct flow_key key;
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct flow, packets_out) == 64, "the hot half is one cache line");
_Static_assert(sizeof(struct flow) == 128, "two cache lines");

struct conntrack_params {
	const char *name;	    /* unique; rte_hash wants a name of under 24 bytes */
	uint32_t capacity;	    /* flows; inserts beyond it are refused */
	uint32_t timeout_ms[FLOW_STATES];
	int socket;		    /* NUMA node, SOCKET_ID_ANY allowed */
	uint64_t seed[2];	    /* secret; from getrandom() in production */
};

struct conntrack_stats {
	uint64_t inserted, expired, removed;
	uint64_t refused; /* table full */
	uint64_t live;
};

struct conntrack;

/* NULL with errno on bad parameters or lack of memory. The caller owns the result. */
struct conntrack *conntrack_create(const struct conntrack_params *params);
void conntrack_destroy(struct conntrack *ct);

/* Keyed hash of the whole key; give it to the calls below. Pure. */
uint32_t conntrack_hash(const struct conntrack *ct, const struct flow_key *key);

/*
 * Look up <n> (at most CONNTRACK_BURST_MAX) keys, families mixed as they come. flows[i] is the flow
 * or NULL. Prefetches the hot line of every hit. Does not touch timers: see conntrack_touch().
 */
void conntrack_lookup_burst(struct conntrack *ct, const struct flow_key *const keys[],
			    const uint32_t hashes[], unsigned int n, struct flow *flows[]);

/*
 * Start tracking <key> in state <state>. The caller has just seen the lookup miss; inserting a key
 * twice returns the flow that is already there. NULL with ENOSPC when the table is full (counted as
 * refused).
 */
struct flow *conntrack_flow_insert(struct conntrack *ct, const struct flow_key *key, uint32_t hash,
				   enum flow_state state, uint32_t now_ms);

/* Forget a flow now. Its handle turns stale. */
void conntrack_flow_remove(struct conntrack *ct, struct flow *flow);

/* The flow's packet arrived or left: it lives for another timeout of its state from now on. */
static inline void conntrack_touch(struct flow *flow, uint32_t now_ms)
{
	flow->last_seen = now_ms;
}

/* A name for the flow that goes stale when the flow ends, even if its memory is used again. */
uint64_t conntrack_handle(const struct conntrack *ct, const struct flow *flow);

/* The flow behind a handle, or NULL if it has ended. Safe for any 64-bit value. */
struct flow *conntrack_flow_get(struct conntrack *ct, uint64_t handle);

/* The same lookup without reading the flow: hints the CPU to load it. */
void conntrack_flow_prefetch(const struct conntrack *ct, uint64_t handle);

/*
 * Advance the timer wheel to <now_ms> and expire what is due, looking at no more than <budget>
 * flows. Returns the number expired. Call it often; what the budget left over comes first next time.
 */
unsigned int conntrack_expire(struct conntrack *ct, uint32_t now_ms, unsigned int budget);

/* What a dump returns: a consistent copy of one flow and its handle. */
struct flow_copy {
	uint64_t handle;
	struct flow flow;
};

/*
 * Copy up to <n> live flows starting at *<cursor> (0 to begin) and advance it; returns the number
 * copied, 0 when the table is through. Lock-free for the owner: a flow that changes identity while
 * being copied is skipped, counters may be a packet apart.
 */
unsigned int conntrack_dump(const struct conntrack *ct, uint32_t *cursor, struct flow_copy *out,
			    unsigned int n);
uint64_t conntrack_count(const struct conntrack *ct);
void conntrack_stats_read(const struct conntrack *ct, struct conntrack_stats *out);

/* Bytes this table takes, everything counted. */
size_t conntrack_memory(const struct conntrack *ct);

const char *conntrack_state_name(enum flow_state state);

#endif
