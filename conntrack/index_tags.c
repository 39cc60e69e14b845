/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our own index. A bucket is a cache line: 31 tags of 16 bits, one per flow, and a count of the
 * keys that found the bucket full and went on to the next. A lookup waits for two lines, tags and
 * flow, and a burst loads all its lines at once. Flows never move, because pointers, handles and
 * dumps name their places.
 */
#include <errno.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "internal.h"
#include "match.h"

#define BUCKET_FLOWS (MATCH_LANES - 1)
#define TAG_MASK     ((1u << BUCKET_FLOWS) - 1)
#define TAG_FREE     0

/* Above this load, buckets overflow often and lookups visit several. */
#define LOAD_MAX_PERCENT 90

/* A bucket's count of passed keys stops here and does not go down again. */
#define PASSED_MANY UINT16_MAX

struct bucket {
	uint16_t tag[MATCH_LANES]; /* the last is no tag: see tags_passed() */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct bucket) == 64, "a cache line");

struct index {
	uint32_t n;
	struct bucket bucket[];
};

static inline uint32_t tags_bucket_of(const struct index *index, uint32_t hash)
{
	return (uint64_t)hash * index->n >> 32;
}

/* The tag is the hash's low half, because its high bits choose the bucket. */
static inline uint16_t tags_tag_of(uint32_t hash)
{
	uint16_t tag = (uint16_t)hash;

	return tag == TAG_FREE ? 1 : tag;
}

static inline uint32_t tags_next_bucket(const struct index *index, uint32_t bucket)
{
	return bucket + 1 == index->n ? 0 : bucket + 1;
}

/* The count of keys that found this bucket full and are in a later one. */
static inline uint16_t *tags_passed(struct bucket *bucket)
{
	return &bucket->tag[BUCKET_FLOWS];
}

static inline uint32_t tags_match(const struct bucket *bucket, uint16_t tag)
{
	return match_lanes(bucket->tag, tag) & TAG_MASK;
}

/* The flow index of the lowest tag in <mask>. */
static inline uint32_t tags_flow_index(uint32_t bucket, uint32_t mask)
{
	return bucket * BUCKET_FLOWS + (uint32_t)__builtin_ctz(mask);
}

static inline bool tags_is_flow_of(const struct conntrack *ct, const struct flow *flow,
				   const struct flow_key *key)
{
	return key_is_of_flow(key, flow, &ct->locals->local[flow->local].end);
}

static int tags_create(struct conntrack *ct, const struct conntrack_params *params)
{
	uint64_t per_bucket = BUCKET_FLOWS * LOAD_MAX_PERCENT;
	uint32_t n = (uint32_t)((params->capacity * 100ull + per_bucket - 1) / per_bucket);
	size_t size = sizeof(struct index) + n * sizeof(struct bucket);

	ct->index = rte_zmalloc_socket("tags", size, RTE_CACHE_LINE_SIZE, params->socket);
	if (ct->index == NULL)
		return -ENOMEM;
	ct->index->n = n;
	ct->places = n * BUCKET_FLOWS;
	ct->memory += size;
	return 0;
}

static void tags_destroy(struct index *index)
{
	rte_free(index);
}

/* Search all buckets that may hold <key>, where the burst's first comparison missed. */
static struct flow *tags_find(const struct conntrack *ct, const struct flow_key *key, uint32_t hash)
{
	struct index *index = ct->index;
	uint32_t at = tags_bucket_of(index, hash);
	uint16_t tag = tags_tag_of(hash);

	for (uint32_t i = 0; i < index->n; i++) {
		struct bucket *bucket = &index->bucket[at];
		uint32_t mask = tags_match(bucket, tag);

		for (; mask != 0; mask &= mask - 1) {
			struct flow *flow = flow_at(ct, tags_flow_index(at, mask));

			if (tags_is_flow_of(ct, flow, key))
				return flow;
		}
		if (*tags_passed(bucket) == 0)
			return NULL;
		at = tags_next_bucket(index, at);
	}
	return NULL;
}

/* Prefetch the first free place of the key's own bucket, where a new flow nearly always goes. */
static void tags_prefetch_add(const struct conntrack *ct, uint32_t hash)
{
	uint32_t first = tags_bucket_of(ct->index, hash);
	uint32_t mask = tags_match(&ct->index->bucket[first], TAG_FREE);

	if (mask == 0)
		return;
	/* Prefetch for reading: without PRFCHW gcc drops a prefetch for writing. */
	rte_prefetch0(flow_at(ct, tags_flow_index(first, mask)));
	rte_prefetch0(&ct->cold[tags_flow_index(first, mask)]);
}

static void tags_prefetch_remove(const struct conntrack *ct, uint32_t index)
{
	rte_prefetch0(&ct->index->bucket[index / BUCKET_FLOWS]);
}

/*
 * Three rounds over the burst, each over lines that the round before has prefetched: tags, then the
 * most likely flow of each key, then the keys. tags_find() handles the rare rest: two equal tags in
 * one bucket, or a bucket that was full.
 */
static void tags_lookup_burst(const struct conntrack *ct, const struct flow_key keys[],
			      const uint32_t hashes[], unsigned int n, struct flow *flows[])
{
	struct index *index = ct->index;
	uint64_t hits = 0, search = 0;

	for (unsigned int i = 0; i < n; i++)
		rte_prefetch0(&index->bucket[tags_bucket_of(index, hashes[i])]);
	for (unsigned int i = 0; i < n; i++) {
		uint32_t first = tags_bucket_of(index, hashes[i]);
		uint32_t mask = tags_match(&index->bucket[first], tags_tag_of(hashes[i]));

		if (mask != 0) {
			flows[i] = flow_at(ct, tags_flow_index(first, mask));
			rte_prefetch0(flows[i]);
			hits |= UINT64_C(1) << i;
		} else {
			flows[i] = NULL;
			search |= (uint64_t)(*tags_passed(&index->bucket[first]) != 0) << i;
		}
	}
	for (; hits != 0; hits &= hits - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(hits);

		search |= (uint64_t)!tags_is_flow_of(ct, flows[i], &keys[i]) << i;
	}
	for (; unlikely(search != 0); search &= search - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(search);

		flows[i] = tags_find(ct, &keys[i], hashes[i]);
	}
}

static struct flow *tags_add(struct conntrack *ct, const struct flow_key *key, uint32_t hash)
{
	struct index *index = ct->index;
	uint32_t at = tags_bucket_of(index, hash), lane;
	struct bucket *bucket = &index->bucket[at];
	uint32_t mask = tags_match(bucket, TAG_FREE);

	/* The loop ends, because there are more places than the capacity allows flows. */
	while (unlikely(mask == 0)) {
		stat_add(&ct->stats.detours, 1);
		if (*tags_passed(bucket) != PASSED_MANY)
			++*tags_passed(bucket);
		at = tags_next_bucket(index, at);
		bucket = &index->bucket[at];
		mask = tags_match(bucket, TAG_FREE);
	}
	lane = (uint32_t)__builtin_ctz(mask);
	__atomic_store_n(&bucket->tag[lane], tags_tag_of(hash), __ATOMIC_RELAXED);
	return flow_at(ct, tags_flow_index(at, mask));
}

static void tags_remove(struct conntrack *ct, struct flow *flow, const struct flow_key *key,
			uint32_t hash)
{
	struct index *index = ct->index;
	uint32_t place = flow_index(ct, flow), last = place / BUCKET_FLOWS;

	for (uint32_t at = tags_bucket_of(index, hash); at != last;
	     at = tags_next_bucket(index, at)) {
		struct bucket *bucket = &index->bucket[at];

		stat_add(&ct->stats.detours, -1);
		if (*tags_passed(bucket) != PASSED_MANY)
			--*tags_passed(bucket);
	}
	__atomic_store_n(&index->bucket[last].tag[place % BUCKET_FLOWS], TAG_FREE,
			 __ATOMIC_RELAXED);
}

/* Skips an empty place by its tag: two bytes to read, not the flow's cache line. */
static uint32_t tags_next(const struct conntrack *ct, uint32_t index, uint32_t end)
{
	for (; index < end; index++)
		if (__atomic_load_n(
			    &ct->index->bucket[index / BUCKET_FLOWS].tag[index % BUCKET_FLOWS],
			    __ATOMIC_RELAXED) != TAG_FREE)
			break;
	return index;
}

const struct index_ops index_tags = {
	.create = tags_create,
	.destroy = tags_destroy,
	.lookup_burst = tags_lookup_burst,
	.prefetch_add = tags_prefetch_add,
	.prefetch_remove = tags_prefetch_remove,
	.find = tags_find,
	.add = tags_add,
	.remove = tags_remove,
	.next = tags_next,
};
