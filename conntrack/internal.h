/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private header of this folder and its unit tests: the body of struct conntrack, the order in
 * which a flow becomes visible to other threads, and the private calls of every file.
 */
#ifndef CONNTRACK_INTERNAL_H
#define CONNTRACK_INTERNAL_H

#include <string.h>

#include "conntrack.h"
#include "locals.h"
#include "source.h"

/*
 * The wheel: 8192 slots of 32 ms are one lap of 262 s. A flow with a later deadline waits in the
 * last slot and moves on when that comes due: one visit per 262 s. Both numbers are powers of two,
 * so slot numbers stay continuous where the 32-bit clock wraps.
 */
#define WHEEL_TICK_MS 32u
#define WHEEL_SLOTS   8192u
#define WHEEL_LAP_MS  (WHEEL_TICK_MS * WHEEL_SLOTS)

/*
 * Lists per slot or queue. Visiting them alternately leaves time to prefetch each list's next flow.
 */
#define LIST_WAYS 4u

/*
 * Links are flow indices. The <prev> of a list's first flow is the list's number with the top bit
 * set, which no index has. So a flow can be unlinked without a search for its list.
 */
#define LIST_END  UINT32_MAX
#define LIST_MARK (1u << 31)
_Static_assert(CONNTRACK_CAPACITY_MAX < LIST_MARK / 2, "the mark is not part of an index");

/* Lists: first those of the wheel's slots, then each service's queues of young flows. */
#define QUEUES      (CONNTRACK_SERVICES_MAX * LIST_WAYS)
#define LISTS_YOUNG (WHEEL_SLOTS * LIST_WAYS)
#define LISTS       (LISTS_YOUNG + QUEUES)

#define SECRET_WORDS 8

/* The part of a flow that only replies, timers and dumps need. Same index as its struct flow. */
struct flow_cold {
	uint64_t packets_out; /* to the client */
	uint64_t bytes_out;
	uint32_t created;    /* ms */
	uint32_t next, prev; /* in the flow's timer list */
	bool young;          /* the list is a queue of young flows */
};
_Static_assert(sizeof(struct flow_cold) == 32, "two per cache line");

struct index;

/* The calls of an index from keys to flows. All belong to the owner thread except next(). */
struct index_ops {
	/* Set ct->places and ct->index, and add to ct->memory. 0 or -errno. */
	int (*create)(struct conntrack *ct, const struct conntrack_params *params);
	void (*destroy)(struct index *index);
	void (*lookup_burst)(const struct conntrack *ct, const struct flow_key keys[],
			     const uint32_t hashes[], unsigned int n, struct flow *flows[]);
	struct flow *(*find)(const struct conntrack *ct, const struct flow_key *key, uint32_t hash);
	/* Prefetch what adding a key with this hash would write, after its lookup. */
	void (*prefetch_add)(const struct conntrack *ct, uint32_t hash);
	/* Prefetch what removing the flow at <index> will write. */
	void (*prefetch_remove)(const struct conntrack *ct, uint32_t index);
	/* Take a place for a key that is not in the index; NULL when none is free. */
	struct flow *(*add)(struct conntrack *ct, const struct flow_key *key, uint32_t hash);
	void (*remove)(struct conntrack *ct, struct flow *flow, const struct flow_key *key,
		       uint32_t hash);
	/* Any thread: the first index from <index> on that may hold a flow, or <end>. */
	uint32_t (*next)(const struct conntrack *ct, uint32_t index, uint32_t end);
};
extern const struct index_ops index_tags, index_rte_hash;

/* Only the owning lcore writes it; any thread may read <stats>. */
struct conntrack {
	const struct index_ops *ops;
	struct index *index;
	struct flow *flows;     /* by index */
	struct flow_cold *cold; /* by index */
	struct locals *locals;
	uint32_t capacity;
	uint32_t places;     /* entries of flows and cold: somewhat more than the capacity */
	uint32_t wheel_time; /* ms: start of the first tick whose slot may hold flows */
	uint32_t expired_ms; /* time of the last conntrack_expire() */
	bool behind;         /* the last conntrack_expire() left due flows over */
	uint32_t queues;     /* one above the highest queue that ever had a flow */
	uint32_t reclaim_after_ms;
	uint32_t reclaim_queue;       /* where the next reclaim starts */
	struct source_limit *sources; /* NULL = no limit */
	uint64_t secret[SECRET_WORDS];
	struct conntrack_stats stats;
	size_t memory;
	uint32_t timeout_ms[CONNTRACK_SERVICES_MAX][FLOW_STATES];
	uint32_t queue_last[QUEUES];      /* last flow of each queue, or LIST_END */
	uint64_t queue_used[QUEUES / 64]; /* one bit per queue: set when it is not empty */
	uint32_t list[LISTS];             /* first flow of each list, or LIST_END */
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
 * Other threads copy flows while the owner works (conntrack_dump()). A generation that was odd
 * before the copy and is the same after it proves that the copy is of one flow.
 *
 * Publish a complete flow. A reader that sees the odd generation sees all that was stored before.
 */
static inline void flow_publish(struct flow *flow)
{
	__atomic_store_n(&flow->generation, flow->generation + 1, __ATOMIC_RELEASE);
}

/*
 * Unpublish a flow before any of it is reused. A reader that copied a byte of the next flow also
 * sees that the generation changed. Pairs with the fence in flow_copy_try(), dump.c.
 */
static inline void flow_unpublish(struct flow *flow)
{
	__atomic_store_n(&flow->generation, flow->generation + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* One writer, readers on any thread: no torn values and no lock prefix. */
static inline void stat_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* key.c */

/* Expand the caller's seed to the words that the hash needs. */
void key_secret_expand(uint64_t secret[SECRET_WORDS], const uint64_t seed[2]);

/*
 * Keys and flow ends as 64-bit words. They are compared, hashed and assembled in registers, because
 * a wide load of bytes that were just stored in narrow pieces waits for all earlier stores, and
 * those go to flows that are not in the cache.
 */
_Static_assert(offsetof(struct flow_key, dst) == 16 && offsetof(struct flow_key, src_port) == 32 &&
		       offsetof(struct flow_key, zone) == 38 &&
		       offsetof(struct flow_local, zero) == 16 && sizeof(struct flow_local) == 24 &&
		       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the ports and what follows are one word, the client's port its low half");

/* The local end's part of that word: without the client's port (low 16 bits) and the zone (high
 * 16). */
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

/* Rebuild a flow's key from the flow and its local end. */
static inline void key_of_flow(struct flow_key *key, const struct flow *flow,
			       const struct flow_local *local)
{
	uint64_t words[5];

	memcpy(words, &flow->client, 16);
	memcpy(words + 2, local, sizeof(*local));
	words[4] |= key_flow_word(flow);
	memcpy(key, words, sizeof(words));
}

/* True when <flow> and <local> have this key. The flow need not be live. */
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

/* End a live flow: unpublish it, then remove it from the timers and the index. */
void flow_release(struct conntrack *ct, struct flow *flow);

/* expire.c */

void timers_init(struct conntrack *ct);
/* Set the wheel to <now_ms>; the table has no flows. */
void timers_restart(struct conntrack *ct, uint32_t now_ms);
/* Start and stop a flow's timer. */
void timers_arm(struct conntrack *ct, struct flow *flow);
void timers_disarm(struct conntrack *ct, struct flow *flow);
/* End a flow to make room for a new one (see reclaim_after_ms). False when no flow may be ended. */
bool timers_reclaim(struct conntrack *ct, uint32_t now_ms);

#endif
