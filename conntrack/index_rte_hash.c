/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's librte_hash as the index: one hash per family, because 16-byte keys are faster than longer
 * ones. Both point into the array of flows. Selectable for comparison; see README.md.
 */
#include <errno.h>
#include <stdio.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "internal.h"

#define LOAD_MAX_PERCENT 80
/* Cuckoo hashing needs buckets to move keys between. Only tests have smaller tables. */
#define SLOTS_MIN 1024u

/* Bytes that rte_hash allocates per bucket, key and free slot, for conntrack_memory(). */
#define BUCKET_SLOTS  8
#define BUCKET_SIZE   64
#define KEY_OVERHEAD  8
#define KEY_ALIGN     16
#define FREE_KEY_SIZE sizeof(uint32_t)

/* rte_hash compares 16 and 48 bytes by SIMD, but not 40. */
struct key4 {
	uint32_t src, dst;
	uint64_t ports;
};
struct key6 {
	struct flow_key key;
	uint64_t zero;
};
_Static_assert(sizeof(struct key4) == 16 && sizeof(struct key6) == 48, "hashed as a whole");

struct index {
	struct rte_hash *v4, *v6; /* key → struct flow * */
	uint32_t used;            /* indices from here on were never used; any thread reads it */
	uint32_t free_first;      /* head of the free indices, linked by flow_cold.next */
};

/* Never called: this prototype has no room for a table's secret, so every call passes its hash. */
static uint32_t hash_unused(const void *key, uint32_t length, uint32_t init)
{
	return init;
}

static inline struct key4 key4_of(const struct flow_key *key)
{
	struct key4 key4 = {.src = key->src.s6_addr32[3], .dst = key->dst.s6_addr32[3]};

	memcpy(&key4.ports, &key->src_port, sizeof(key4.ports));
	return key4;
}

static inline struct key6 key6_of(const struct flow_key *key)
{
	return (struct key6){.key = *key};
}

/*
 * Entries to ask for. rte_hash rounds its slots up to a power of two but allocates exactly
 * <entries> keys, so half the wanted slots plus one gives them without extra keys. A full table
 * fills 40 to 80 % of the slots.
 */
static uint32_t hash_entries(uint32_t capacity)
{
	uint32_t slots = RTE_MAX(rte_align32pow2(capacity), SLOTS_MIN);

	if ((uint64_t)capacity * 100 > (uint64_t)slots * LOAD_MAX_PERCENT)
		slots *= 2;
	return RTE_MAX(capacity, slots / 2 + 1);
}

static struct rte_hash *hash_create(struct conntrack *ct, const struct conntrack_params *params,
				    char suffix, uint32_t key_len)
{
	uint32_t entries = hash_entries(params->capacity);
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters hash = {
		.name = name,
		.entries = entries,
		.key_len = key_len,
		.hash_func = hash_unused,
		.socket_id = params->socket,
	};

	snprintf(name, sizeof(name), "%s_%c", params->name, suffix);
	ct->memory += (size_t)rte_align32pow2(entries) / BUCKET_SLOTS * BUCKET_SIZE +
		      (size_t)(entries + 1) * RTE_ALIGN(key_len + KEY_OVERHEAD, KEY_ALIGN) +
		      (size_t)rte_align32pow2(entries + 1) * FREE_KEY_SIZE;
	return rte_hash_create(&hash);
}

static void hash_index_destroy(struct index *index)
{
	if (index == NULL)
		return;
	rte_hash_free(index->v6);
	rte_hash_free(index->v4);
	rte_free(index);
}

static int hash_index_create(struct conntrack *ct, const struct conntrack_params *params)
{
	struct index *index =
		rte_zmalloc_socket("hashes", sizeof(*index), RTE_CACHE_LINE_SIZE, params->socket);

	if (index == NULL)
		return -ENOMEM;
	ct->index = index;
	ct->places = params->capacity;
	ct->memory += sizeof(*index);
	index->free_first = LIST_END;
	index->v4 = hash_create(ct, params, '4', sizeof(struct key4));
	index->v6 = hash_create(ct, params, '6', sizeof(struct key6));
	if (index->v4 == NULL || index->v6 == NULL)
		return rte_errno != 0 ? -rte_errno : -ENOMEM;
	return 0;
}

/* One family's share of a mixed burst. */
struct part {
	unsigned int n;
	const void *keys[CONNTRACK_BURST_MAX];
	hash_sig_t hashes[CONNTRACK_BURST_MAX];
	uint8_t place[CONNTRACK_BURST_MAX]; /* in the whole burst */
	void *found[CONNTRACK_BURST_MAX];
};

static void hash_index_lookup_part(const struct rte_hash *hash, struct part *part,
				   struct flow *flows[])
{
	uint64_t hits = 0;

	if (part->n == 0)
		return;
	rte_hash_lookup_with_hash_bulk_data(hash, part->keys, part->hashes, part->n, &hits,
					    part->found);
	for (unsigned int i = 0; i < part->n; i++) {
		struct flow *flow = hits >> i & 1 ? part->found[i] : NULL;

		flows[part->place[i]] = flow;
		rte_prefetch0(flow);
	}
}

static void hash_index_lookup_burst(const struct conntrack *ct, const struct flow_key keys[],
				    const uint32_t hashes[], unsigned int n, struct flow *flows[])
{
	struct key4 key4[CONNTRACK_BURST_MAX];
	struct key6 key6[CONNTRACK_BURST_MAX];
	struct part parts[2];

	parts[0].n = parts[1].n = 0;
	for (unsigned int i = 0; i < n; i++) {
		bool v6 = keys[i].family == FLOW_IPV6;
		struct part *part = &parts[v6];

		if (v6) {
			key6[i] = key6_of(&keys[i]);
			part->keys[part->n] = &key6[i];
		} else {
			key4[i] = key4_of(&keys[i]);
			part->keys[part->n] = &key4[i];
		}
		part->hashes[part->n] = hashes[i];
		part->place[part->n++] = (uint8_t)i;
	}
	hash_index_lookup_part(ct->index->v4, &parts[0], flows);
	hash_index_lookup_part(ct->index->v6, &parts[1], flows);
}

static struct flow *hash_index_find(const struct conntrack *ct, const struct flow_key *key,
				    uint32_t hash)
{
	struct key4 key4 = key4_of(key);
	struct key6 key6 = key6_of(key);
	void *flow;
	int ret = key->family == FLOW_IPV6
			  ? rte_hash_lookup_with_hash_data(ct->index->v6, &key6, hash, &flow)
			  : rte_hash_lookup_with_hash_data(ct->index->v4, &key4, hash, &flow);

	return ret >= 0 ? flow : NULL;
}

static uint32_t hash_index_take(struct conntrack *ct)
{
	struct index *index = ct->index;
	uint32_t taken = index->free_first;

	if (taken != LIST_END) {
		index->free_first = ct->cold[taken].next;
		return taken;
	}
	taken = index->used;
	if (taken == ct->places)
		return LIST_END;
	__atomic_store_n(&index->used, taken + 1, __ATOMIC_RELAXED);
	return taken;
}

static void hash_index_give_back(struct conntrack *ct, uint32_t taken)
{
	ct->cold[taken].next = ct->index->free_first;
	ct->index->free_first = taken;
}

/* Both prefetches do nothing, because only rte_hash knows where its keys are. */
static void hash_index_prefetch_add(const struct conntrack *ct, uint32_t hash)
{
}

static void hash_index_prefetch_remove(const struct conntrack *ct, uint32_t index)
{
}

static struct flow *hash_index_add(struct conntrack *ct, const struct flow_key *key, uint32_t hash)
{
	struct key4 key4 = key4_of(key);
	struct key6 key6 = key6_of(key);
	uint32_t index = hash_index_take(ct);
	struct flow *flow;
	int ret;

	if (index == LIST_END)
		return NULL;
	flow = flow_at(ct, index);
	ret = key->family == FLOW_IPV6
		      ? rte_hash_add_key_with_hash_data(ct->index->v6, &key6, hash, flow)
		      : rte_hash_add_key_with_hash_data(ct->index->v4, &key4, hash, flow);
	if (ret < 0) {
		hash_index_give_back(ct, index);
		return NULL;
	}
	return flow;
}

static void hash_index_remove(struct conntrack *ct, struct flow *flow, const struct flow_key *key,
			      uint32_t hash)
{
	struct key4 key4 = key4_of(key);
	struct key6 key6 = key6_of(key);

	if (key->family == FLOW_IPV6)
		rte_hash_del_key_with_hash(ct->index->v6, &key6, hash);
	else
		rte_hash_del_key_with_hash(ct->index->v4, &key4, hash);
	hash_index_give_back(ct, flow_index(ct, flow));
}

static uint32_t hash_index_next(const struct conntrack *ct, uint32_t index, uint32_t end)
{
	uint32_t used = __atomic_load_n(&ct->index->used, __ATOMIC_RELAXED);

	return index < used && index < end ? index : end;
}

const struct index_ops index_rte_hash = {
	.create = hash_index_create,
	.destroy = hash_index_destroy,
	.lookup_burst = hash_index_lookup_burst,
	.prefetch_add = hash_index_prefetch_add,
	.prefetch_remove = hash_index_prefetch_remove,
	.find = hash_index_find,
	.add = hash_index_add,
	.remove = hash_index_remove,
	.next = hash_index_next,
};
