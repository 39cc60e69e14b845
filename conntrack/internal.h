/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of this folder share: the body of struct conntrack, how a flow becomes visible to
 * other threads, and what each file offers the others. For this folder and its unit tests.
 */
#ifndef CONNTRACK_INTERNAL_H
#define CONNTRACK_INTERNAL_H

#include "conntrack.h"

struct rte_hash;

/*
 * The wheel: 8192 slots of 32 ms are 262 s, one lap. A deadline further away waits in the last slot
 * and moves on when that comes due, so hours cost a flow one visit per 262 s. Both are powers of
 * two, so slot numbers stay continuous where the 32-bit clock wraps.
 */
#define WHEEL_TICK_MS 32u
#define WHEEL_SLOTS   8192u
#define WHEEL_LAP_MS  (WHEEL_TICK_MS * WHEEL_SLOTS)

/*
 * Links are indices of flows. A list's first flow has the number of its slot as <wheel_prev>,
 * marked by the top bit, which no index has: so a flow unlinks itself without knowing where it
 * waits.
 */
#define WHEEL_END  UINT32_MAX
#define WHEEL_SLOT (1u << 31)
_Static_assert(CONNTRACK_CAPACITY_MAX < WHEEL_SLOT, "the mark is not part of an index");

#define SECRET_WORDS 8
#define KEY4_LEN     16
#define KEY6_LEN     sizeof(struct flow_key)

/* Owned by one lcore, which alone writes it; <used> and <stats> are read by any thread. */
struct conntrack {
	struct rte_hash *v4, *v6; /* key → struct flow * */
	struct flow *flows;       /* one array for both families */
	uint32_t capacity;
	uint32_t used;       /* flows from here on were never live: neither written nor dumped */
	uint32_t free_first; /* ended flows, linked by wheel_next, last ended first */
	uint32_t wheel_time; /* ms: start of the first tick whose slot is not known to be empty */
	uint64_t secret[SECRET_WORDS];
	struct conntrack_stats stats;
	size_t memory;
	uint32_t timeout_ms[CONNTRACK_CLASSES_MAX][FLOW_STATES];
	uint32_t slot[WHEEL_SLOTS]; /* first flow of each slot's list, or WHEEL_END */
};

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

static inline size_t key_length(const struct flow_key *key)
{
	return key->family == FLOW_IPV6 ? KEY6_LEN : KEY4_LEN;
}

/* As many words as the hash needs out of what the caller chose. */
void key_secret_expand(uint64_t secret[SECRET_WORDS], const uint64_t seed[2]);
/*
 * For rte_hash_create() only, which would put CRC32 there. Every lookup and insert brings its own
 * hash, because this prototype has no room for a table's seed.
 */
uint32_t key_hash_unseeded(const void *key, uint32_t length, uint32_t init);

/* table.c */

/* End a live flow: stale for other threads first, then out of the wheel, the hash and use. */
void flow_release(struct conntrack *ct, struct flow *flow);

/* expire.c */

/* Nothing waits in the wheel: set it to <now_ms>. */
void wheel_restart(struct conntrack *ct, uint32_t now_ms);
/* Let a flow wait for its deadline. It must not be waiting already. */
void wheel_arm(struct conntrack *ct, struct flow *flow);
void wheel_disarm(struct conntrack *ct, struct flow *flow);

#endif
