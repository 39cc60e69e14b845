/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our own table. A bucket is one cache line: 31 tags of 16 bits, and a count of the keys that found
 * the bucket full and went on to the next. A tag's place is the place of its flow, so a lookup
 * waits for two lines, the bucket and the flow, and a burst has all of its lines on their way at
 * once. Flows never move, as pointers, handles and dumps name their places.
 */
#include <errno.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "internal.h"
#include "match.h"

#define BUCKET_TAGS (MATCH_LANES - 1u)
#define TAG_MASK    ((1u << BUCKET_TAGS) - 1)
#define TAG_FREE    0

/* Fuller than this, buckets overflow often and lookups go from one to the next. */
#define LOAD_MAX_PERCENT 90

/* So many keys have passed by that the count stopped; it will not go down again. */
#define PASSED_MANY UINT16_MAX

struct bucket {
	uint16_t tag[MATCH_LANES]; /* the last is no tag but <passed>, see below */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct bucket) == 64, "one cache line");

struct index {
	uint32_t n;
	struct bucket bucket[];
};

static inline uint32_t home_of(const struct index *index, uint32_t hash)
{
	return (uint64_t)hash * index->n >> 32;
}

/* The low half: a home comes from the high bits. */
static inline uint16_t tag_of(uint32_t hash)
{
	uint16_t tag = (uint16_t)hash;

	return tag == TAG_FREE ? 1 : tag;
}

static inline uint32_t next_bucket(const struct index *index, uint32_t bucket)
{
	return bucket + 1 == index->n ? 0 : bucket + 1;
}

/* Keys that found this bucket full and are further on. */
static inline uint16_t *passed(struct bucket *bucket)
{
	return &bucket->tag[BUCKET_TAGS];
}

static inline bool nobody_passed(const struct bucket *bucket)
{
	return bucket->tag[BUCKET_TAGS] == 0;
}

static inline uint32_t match_tags(const struct bucket *bucket, uint16_t tag)
{
	return match_lanes(bucket->tag, tag) & TAG_MASK;
}

static inline uint32_t place(uint32_t bucket, uint32_t mask)
{
	return bucket * BUCKET_TAGS + (uint32_t)__builtin_ctz(mask);
}

static inline bool is_flow_of(const struct conntrack *ct, const struct flow *flow,
			      const struct flow_key *key)
{
	return key_is_of_flow(key, flow, &ct->locals->local[flow->local].end);
}

static int tags_create(struct conntrack *ct, const struct conntrack_params *params)
{
	uint64_t per_bucket = BUCKET_TAGS * LOAD_MAX_PERCENT;
	uint32_t n = (uint32_t)((params->capacity * 100ull + per_bucket - 1) / per_bucket);
	size_t size = sizeof(struct index) + n * sizeof(struct bucket);

	ct->index = rte_zmalloc_socket("tags", size, RTE_CACHE_LINE_SIZE, params->socket);
	if (ct->index == NULL)
		return -ENOMEM;
	ct->index->n = n;
	ct->places = n * BUCKET_TAGS;
	ct->memory += size;
	return 0;
}

static void tags_destroy(struct index *index)
{
	rte_free(index);
}

/* The whole search, for what the burst's first look did not settle. */
static struct flow *tags_find(const struct conntrack *ct, const struct flow_key *key, uint32_t hash)
{
	const struct index *index = ct->index;
	uint32_t bucket = home_of(index, hash);
	uint16_t tag = tag_of(hash);

	for (uint32_t i = 0; i < index->n; i++) {
		uint32_t mask = match_tags(&index->bucket[bucket], tag);

		for (; mask != 0; mask &= mask - 1) {
			struct flow *flow = &ct->flows[place(bucket, mask)];

			if (is_flow_of(ct, flow, key))
				return flow;
		}
		if (nobody_passed(&index->bucket[bucket]))
			return NULL;
		bucket = next_bucket(index, bucket);
	}
	return NULL;
}

/* A new flow would most likely go here. */
static void prefetch_free(const struct conntrack *ct, uint32_t bucket)
{
	uint32_t mask = match_tags(&ct->index->bucket[bucket], TAG_FREE);

	if (mask == 0)
		return;
	rte_prefetch0_write(&ct->flows[place(bucket, mask)]);
	rte_prefetch0_write(&ct->cold[place(bucket, mask)]);
}

static void tags_prefetch_burst(const struct index *index, const uint32_t hashes[], unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		rte_prefetch0(&index->bucket[home_of(index, hashes[i])]);
}

/*
 * Three rounds over the burst, so that each waits for lines that all are on their way: buckets,
 * then the flow that each key most likely is, then the keys. The rest is rare: two equal tags in
 * one bucket, or a bucket that was full.
 */
static void tags_lookup_burst(const struct conntrack *ct, const struct flow_key keys[],
			      const uint32_t hashes[], unsigned int n, struct flow *flows[])
{
	const struct index *index = ct->index;
	uint32_t home[CONNTRACK_BURST_MAX];

	for (unsigned int i = 0; i < n; i++) {
		home[i] = home_of(index, hashes[i]);
		rte_prefetch0(&index->bucket[home[i]]);
	}
	for (unsigned int i = 0; i < n; i++) {
		const struct bucket *bucket = &index->bucket[home[i]];
		uint32_t mask = match_tags(bucket, tag_of(hashes[i]));

		flows[i] = NULL;
		if (likely(mask != 0)) {
			flows[i] = &ct->flows[place(home[i], mask)];
			rte_prefetch0(flows[i]);
		} else if (nobody_passed(bucket)) {
			prefetch_free(ct, home[i]);
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		if (likely(flows[i] != NULL && is_flow_of(ct, flows[i], &keys[i])))
			continue;
		if (flows[i] == NULL && nobody_passed(&index->bucket[home[i]]))
			continue;
		flows[i] = tags_find(ct, &keys[i], hashes[i]);
	}
}

static struct flow *tags_add(struct conntrack *ct, const struct flow_key *key, uint32_t hash)
{
	struct index *index = ct->index;
	uint32_t bucket = home_of(index, hash), at;

	(void)key;
	/* Some bucket has room: there are more places than flows may be. */
	for (;; bucket = next_bucket(index, bucket)) {
		uint32_t mask = match_tags(&index->bucket[bucket], TAG_FREE);

		if (likely(mask != 0)) {
			at = place(bucket, mask);
			break;
		}
		stat_add(&ct->stats.detours, 1);
		if (*passed(&index->bucket[bucket]) != PASSED_MANY)
			++*passed(&index->bucket[bucket]);
	}
	__atomic_store_n(&index->bucket[bucket].tag[at - bucket * BUCKET_TAGS], tag_of(hash),
			 __ATOMIC_RELAXED);
	return &ct->flows[at];
}

static void tags_remove(struct conntrack *ct, struct flow *flow, const struct flow_key *key,
			uint32_t hash)
{
	struct index *index = ct->index;
	uint32_t at = flow_index(ct, flow), last = at / BUCKET_TAGS;

	(void)key;
	for (uint32_t bucket = home_of(index, hash); bucket != last;
	     bucket = next_bucket(index, bucket)) {
		stat_add(&ct->stats.detours, -1);
		if (*passed(&index->bucket[bucket]) != PASSED_MANY)
			--*passed(&index->bucket[bucket]);
	}
	__atomic_store_n(&index->bucket[last].tag[at % BUCKET_TAGS], TAG_FREE, __ATOMIC_RELAXED);
}

/* Empty places cost two bytes to skip and not a line each. */
static uint32_t tags_next(const struct conntrack *ct, uint32_t at, uint32_t end)
{
	const struct index *index = ct->index;

	for (; at < end; at++)
		if (__atomic_load_n(&index->bucket[at / BUCKET_TAGS].tag[at % BUCKET_TAGS],
				    __ATOMIC_RELAXED) != TAG_FREE)
			break;
	return at;
}

const struct index_ops index_tags = {
	.create = tags_create,
	.destroy = tags_destroy,
	.prefetch_burst = tags_prefetch_burst,
	.lookup_burst = tags_lookup_burst,
	.find = tags_find,
	.add = tags_add,
	.remove = tags_remove,
	.next = tags_next,
};
