/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of this folder share: the body of struct conntrack, how a flow becomes visible to
 * other threads, and what each file offers the others. For this folder and its unit tests.
 */
#ifndef CONNTRACK_INTERNAL_H
#define CONNTRACK_INTERNAL_H

#include <string.h>

#include "conntrack.h"
#include "locals.h"
#include "source.h"

/*
 * The wheel: 8192 slots of 32 ms are 262 s, one lap. A deadline further away waits in the last slot
 * and moves on when that comes due, so hours cost a flow one visit per 262 s. Both are powers of
 * two, so slot numbers stay continuous where the 32-bit clock wraps.
 */
#define WHEEL_TICK_MS 32u
#define WHEEL_SLOTS   8192u
#define WHEEL_LAP_MS  (WHEEL_TICK_MS * WHEEL_SLOTS)

/* Lists of one slot or queue, emptied in turns: one's next flow is on its way while others work. */
#define LIST_WAYS 4u

/*
 * Links are indices of flows. A list's first flow has the number of its list as <prev>, marked by
 * the top bit, which no index has: so a flow unlinks itself without knowing where it waits.
 */
#define LIST_END  UINT32_MAX
#define LIST_MARK (1u << 31)
_Static_assert(CONNTRACK_CAPACITY_MAX < LIST_MARK / 2, "the mark is not part of an index");

/* Lists: of the wheel's slots, then queues of young flows, of each service. */
#define QUEUES      (CONNTRACK_SERVICES_MAX * LIST_WAYS)
#define LISTS_YOUNG (WHEEL_SLOTS * LIST_WAYS)
#define LISTS       (LISTS_YOUNG + QUEUES)

#define SECRET_WORDS 8

/* What only replies, timers and dumps need of a flow; beside struct flow, same index. */
struct flow_cold {
	uint64_t packets_out; /* to the client */
	uint64_t bytes_out;
	uint32_t created;    /* ms */
	uint32_t next, prev; /* of the list that the flow waits in */
	bool young;          /* that list is one of young flows */
};
_Static_assert(sizeof(struct flow_cold) == 32, "two per cache line");

struct index;

/* How keys find flows: one of the two below. All calls are the owner's but index_next. */
struct index_ops {
	/* Sets ct->places, ct->index and adds to ct->memory. 0 or -errno. */
	int (*create)(struct conntrack *ct, const struct conntrack_params *params);
	void (*destroy)(struct index *index);
	void (*lookup_burst)(const struct conntrack *ct, const struct flow_key keys[],
			     const uint32_t hashes[], unsigned int n, struct flow *flows[]);
	struct flow *(*find)(const struct conntrack *ct, const struct flow_key *key, uint32_t hash);
	/* Load what adding such a key would write; it was just looked up. */
	void (*prefetch_add)(const struct conntrack *ct, uint32_t hash);
	/* Load what removing the flow at <index> will write. */
	void (*prefetch_remove)(const struct conntrack *ct, uint32_t index);
	/* A place for a key that is not there; NULL when there is none. */
	struct flow *(*add)(struct conntrack *ct, const struct flow_key *key, uint32_t hash);
	void (*remove)(struct conntrack *ct, struct flow *flow, const struct flow_key *key,
		       uint32_t hash);
	/* Any thread: the first index from <index> on that may be a flow's, or <end>. */
	uint32_t (*next)(const struct conntrack *ct, uint32_t index, uint32_t end);
};
extern const struct index_ops index_tags, index_rte_hash;

/* Owned by one lcore, which alone writes it; <stats> is read by any thread. */
struct conntrack {
	const struct index_ops *ops;
	struct index *index;
	struct flow *flows;     /* by index */
	struct flow_cold *cold; /* by index */
	struct locals *locals;
	uint32_t capacity;
	uint32_t places;     /* in those two: somewhat more than the capacity */
	uint32_t wheel_time; /* ms: start of the first tick whose slot is not known to be empty */
	uint32_t expired_ms; /* of the last conntrack_expire() */
	bool behind;         /* it left something over */
	uint32_t queues;     /* above the highest that ever had a flow */
	uint32_t reclaim_after_ms;
	uint32_t reclaim_queue;       /* looked at next */
	struct source_limit *sources; /* NULL = no limit */
	uint64_t secret[SECRET_WORDS];
	struct conntrack_stats stats;
	size_t memory;
	uint32_t timeout_ms[CONNTRACK_SERVICES_MAX][FLOW_STATES];
	uint32_t queue_last[QUEUES];      /* or LIST_END */
	uint64_t queue_used[QUEUES / 64]; /* one bit per queue: it is not empty */
	uint32_t list[LISTS];             /* first flow of each, or LIST_END */
};

static inline struct flow *flow_at(const struct conntrack *ct, uint32_t index)
{
	return &ct->flows[index];
}

static inline uint32_t flow_index(const struct conntrack *ct, const struct flow *flow)
{
	return (uint32_t)(flow - ct->flows);
}

static inline bool generation_live(uint32_t generation)
{
	return generation & 1;
}

/*
 * Other threads copy flows while the owner works (conntrack_dump()). <generation> tells them what
 * they caught: odd before and the same after means that the copy is one flow.
 *
 * A complete flow becomes visible: whoever sees the odd generation sees what was filled in before.
 */
static inline void flow_publish(struct flow *flow)
{
	__atomic_store_n(&flow->generation, flow->generation + 1, __ATOMIC_RELEASE);
}

/*
 * A flow ends before any of it is reused: whoever copied a byte that the next flow wrote also sees
 * that the generation moved. Pairs with the fence in flow_copy_try(), dump.c.
 */
static inline void flow_unpublish(struct flow *flow)
{
	__atomic_store_n(&flow->generation, flow->generation + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* One writer, readers anywhere: no torn values, no lock prefix. */
static inline void stat_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* key.c */

/* As many words as the hash needs out of what the caller chose. */
void key_secret_expand(uint64_t secret[SECRET_WORDS], const uint64_t seed[2]);

/*
 * Keys and ends of flows as words. They are compared, hashed and put together so because a wide
 * load of what was just stored in narrow pieces waits until all stores before it, to flows that are
 * not in the cache, are done.
 */
_Static_assert(offsetof(struct flow_key, dst) == 16 && offsetof(struct flow_key, src_port) == 32 &&
		       offsetof(struct flow_key, zone) == 38 &&
		       offsetof(struct flow_local, zero) == 16 && sizeof(struct flow_local) == 24 &&
		       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the ports and what follows are one word, the client's port its low half");

/* Of that word: neither the client's port, the lowest 16 bits, nor the zone, the highest. */
#define KEY_LOCAL_MASK UINT64_C(0x0000ffffffff0000)

/* The flow's own part of that word. */
static inline uint64_t key_flow_word(const struct flow *flow)
{
	return (uint64_t)flow->zone << 48 | flow->client_port;
}

/* The local end of <key>: three words. */
static inline void key_local_words(const struct flow_key *key, uint64_t words[3])
{
	memcpy(words, &key->dst, 3 * sizeof(words[0]));
	words[2] &= KEY_LOCAL_MASK;
}

/* The key that a flow and its local end were made from. */
static inline void key_of_flow(struct flow_key *key, const struct flow *flow,
			       const struct flow_local *local)
{
	uint64_t words[5];

	memcpy(words, &flow->client, 16);
	memcpy(words + 2, local, sizeof(*local));
	words[4] |= key_flow_word(flow);
	memcpy(key, words, sizeof(words));
}

/* Is this the flow of <key>? The flow need not be live; its local end is any that there is. */
static inline bool key_is_of_flow(const struct flow_key *key, const struct flow *flow,
				  const struct flow_local *local)
{
	uint64_t k[5], src[2], dst[3];

	memcpy(k, key, sizeof(k));
	memcpy(src, &flow->client, sizeof(src));
	memcpy(dst, local, sizeof(dst));
	return ((k[0] ^ src[0]) | (k[1] ^ src[1]) | (k[2] ^ dst[0]) | (k[3] ^ dst[1]) |
		(k[4] ^ dst[2] ^ key_flow_word(flow))) == 0;
}

/* table.c */

/* End a live flow: stale for other threads first, then out of the wheel, the index and use. */
void flow_release(struct conntrack *ct, struct flow *flow);

/* expire.c */

void timers_init(struct conntrack *ct);
/* Nothing waits: set the wheel to <now_ms>. */
void timers_restart(struct conntrack *ct, uint32_t now_ms);
/* Let a new flow wait for its deadline. */
void timers_arm(struct conntrack *ct, struct flow *flow);
void timers_disarm(struct conntrack *ct, struct flow *flow);
/* End the oldest flow that may be ended for a new one. False: there is none. */
bool timers_reclaim(struct conntrack *ct, uint32_t now_ms);

#endif
