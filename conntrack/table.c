/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow table: keys to flows by rte_hash, handles to flows by index. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "internal.h"

RTE_LOG_REGISTER(conntrack_logtype, conntrack, INFO)

#define NAME_MAX_LEN     23
#define LOAD_MAX_PERCENT 80
/* Cuckoo hashing needs some buckets to move keys between; smaller tables are for tests only. */
#define SLOTS_MIN 1024u

/* What rte_hash allocates per bucket, key and free slot; conntrack_memory() counts it. */
#define BUCKET_SLOTS  8
#define BUCKET_SIZE   64
#define KEY_OVERHEAD  8
#define KEY_ALIGN     16
#define FREE_KEY_SIZE sizeof(uint32_t)

/* --- create and destroy ---------------------------------------------------------------------- */

/*
 * rte_hash rounds its slots up to a power of two, but keeps room for exactly <entries> keys. So ask
 * for one more than half the slots wanted: a full table fills 40 to 80 % of them, and keys cost
 * nothing extra.
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
		.hash_func = key_hash_unseeded,
		.socket_id = params->socket,
	};

	snprintf(name, sizeof(name), "%s_%c", params->name, suffix);
	ct->memory += (size_t)rte_align32pow2(entries) / BUCKET_SLOTS * BUCKET_SIZE +
		      (size_t)(entries + 1) * RTE_ALIGN(key_len + KEY_OVERHEAD, KEY_ALIGN) +
		      (size_t)rte_align32pow2(entries + 1) * FREE_KEY_SIZE;
	return rte_hash_create(&hash);
}

static int params_check(const struct conntrack_params *params)
{
	size_t name_len = params->name != NULL ? strlen(params->name) : 0;

	if (name_len == 0 || name_len > NAME_MAX_LEN || params->capacity == 0 ||
	    params->capacity > CONNTRACK_CAPACITY_MAX)
		return -EINVAL;
	for (unsigned int row = 0; row < CONNTRACK_CLASSES_MAX; row++)
		for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++) {
			uint32_t timeout = params->timeout_ms[row][state];

			if (timeout > CONNTRACK_TIMEOUT_MAX_MS || (row == 0 && timeout == 0))
				return -EINVAL;
		}
	return 0;
}

static void timeouts_fill(struct conntrack *ct, const struct conntrack_params *params)
{
	for (unsigned int row = 0; row < CONNTRACK_CLASSES_MAX; row++)
		for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++) {
			uint32_t timeout = params->timeout_ms[row][state];

			ct->timeout_ms[row][state] =
				timeout != 0 ? timeout : params->timeout_ms[0][state];
		}
}

struct conntrack *conntrack_create(const struct conntrack_params *params)
{
	size_t flows_size = (size_t)params->capacity * sizeof(struct flow);
	struct conntrack *ct;
	int err;

	err = -params_check(params);
	if (err != 0)
		goto err_log;
	ct = rte_zmalloc_socket("conntrack", sizeof(*ct), RTE_CACHE_LINE_SIZE, params->socket);
	if (ct == NULL) {
		err = ENOMEM;
		goto err_log;
	}
	ct->capacity = params->capacity;
	ct->free_first = WHEEL_END;
	ct->memory = sizeof(*ct) + flows_size;
	key_secret_expand(ct->secret, params->seed);
	timeouts_fill(ct, params);
	memset(ct->slot, 0xff, sizeof(ct->slot)); /* WHEEL_END */

	ct->v4 = hash_create(ct, params, '4', KEY4_LEN);
	if (ct->v4 == NULL)
		goto err_hash;
	ct->v6 = hash_create(ct, params, '6', KEY6_LEN);
	if (ct->v6 == NULL)
		goto err_hash;
	ct->flows = rte_zmalloc_socket("flows", flows_size, RTE_CACHE_LINE_SIZE, params->socket);
	if (ct->flows == NULL) {
		err = ENOMEM;
		goto err_destroy;
	}
	return ct;

err_hash:
	err = rte_errno != 0 ? rte_errno : ENOMEM;
err_destroy:
	conntrack_destroy(ct);
err_log:
	rte_log(RTE_LOG_ERR, conntrack_logtype,
		"conntrack: cannot create table name=%s capacity=%u error=\"%s\"\n",
		params->name != NULL ? params->name : "", params->capacity, strerror(err));
	errno = err;
	return NULL;
}

void conntrack_destroy(struct conntrack *ct)
{
	if (ct == NULL)
		return;
	rte_free(ct->flows);
	rte_hash_free(ct->v6);
	rte_hash_free(ct->v4);
	rte_free(ct);
}

size_t conntrack_memory(const struct conntrack *ct)
{
	return ct->memory;
}

/* --- look up --------------------------------------------------------------------------------- */

static void lookup_family(const struct rte_hash *hash, const void *keys[], hash_sig_t hashes[],
			  unsigned int n, struct flow *flows[])
{
	void *found[CONNTRACK_BURST_MAX];
	uint64_t hits = 0;

	rte_hash_lookup_with_hash_bulk_data(hash, keys, hashes, n, &hits, found);
	for (unsigned int i = 0; i < n; i++) {
		flows[i] = hits >> i & 1 ? found[i] : NULL;
		rte_prefetch0(flows[i]);
	}
}

/* One family's share of a mixed burst. */
struct part {
	unsigned int n;
	const void *keys[CONNTRACK_BURST_MAX];
	hash_sig_t hashes[CONNTRACK_BURST_MAX];
	uint8_t place[CONNTRACK_BURST_MAX]; /* in the whole burst */
};

static void lookup_part(const struct rte_hash *hash, struct part *part, struct flow *flows[])
{
	struct flow *found[CONNTRACK_BURST_MAX];

	lookup_family(hash, part->keys, part->hashes, part->n, found);
	for (unsigned int i = 0; i < part->n; i++)
		flows[part->place[i]] = found[i];
}

static void lookup_mixed(struct conntrack *ct, const struct flow_key *const keys[],
			 const uint32_t hashes[], unsigned int n, struct flow *flows[])
{
	struct part parts[2];

	parts[0].n = parts[1].n = 0;
	/* An index, not a branch: nothing predicts which family comes next. */
	for (unsigned int i = 0; i < n; i++) {
		struct part *part = &parts[keys[i]->family == FLOW_IPV6];

		part->keys[part->n] = keys[i];
		part->hashes[part->n] = hashes[i];
		part->place[part->n++] = (uint8_t)i;
	}
	lookup_part(ct->v4, &parts[0], flows);
	lookup_part(ct->v6, &parts[1], flows);
}

void conntrack_lookup_burst(struct conntrack *ct, const struct flow_key *const keys[],
			    const uint32_t hashes[], unsigned int n, struct flow *flows[])
{
	unsigned int ipv6 = 0;

	if (n == 0)
		return;
	for (unsigned int i = 0; i < n; i++)
		ipv6 += keys[i]->family == FLOW_IPV6;
	if (ipv6 != 0 && ipv6 != n) {
		lookup_mixed(ct, keys, hashes, n, flows);
		return;
	}
	/* rte_hash writes to neither array; only its prototype says so. */
	lookup_family(ipv6 != 0 ? ct->v6 : ct->v4, (const void **)(uintptr_t)keys,
		      (hash_sig_t *)(uintptr_t)hashes, n, flows);
}

/* --- insert and remove ----------------------------------------------------------------------- */

static struct rte_hash *hash_of(const struct conntrack *ct, const struct flow_key *key)
{
	return key->family == FLOW_IPV6 ? ct->v6 : ct->v4;
}

static struct flow *flow_alloc(struct conntrack *ct)
{
	struct flow *flow;

	if (ct->free_first != WHEEL_END) {
		flow = &ct->flows[ct->free_first];
		ct->free_first = flow->wheel_next;
		return flow;
	}
	if (ct->used == ct->capacity)
		return NULL;
	flow = &ct->flows[ct->used];
	__atomic_store_n(&ct->used, ct->used + 1, __ATOMIC_RELAXED);
	return flow;
}

static void flow_free(struct conntrack *ct, struct flow *flow)
{
	flow->wheel_next = ct->free_first;
	ct->free_first = flow_index(ct, flow);
}

static void flow_fill(struct flow *flow, const struct flow_key *key, enum flow_state state,
		      uint16_t timeout_class, uint32_t now_ms)
{
	/* All but the generation, which readers watch. */
	memset(&flow->last_seen, 0, sizeof(*flow) - offsetof(struct flow, last_seen));
	flow->last_seen = now_ms;
	flow->created = now_ms;
	flow->state = (uint8_t)state;
	flow->family = key->family;
	flow->timeout_class = timeout_class;
	memcpy(&flow->key, key, key_length(key));
}

static bool insert_valid(const struct flow_key *key, enum flow_state state, uint16_t timeout_class)
{
	return (key->family == FLOW_IPV4 || key->family == FLOW_IPV6) && state > FLOW_FREE &&
	       state < FLOW_STATES && timeout_class < CONNTRACK_CLASSES_MAX;
}

struct flow *conntrack_flow_insert(struct conntrack *ct, const struct flow_key *key, uint32_t hash,
				   enum flow_state state, uint16_t timeout_class, uint32_t now_ms)
{
	struct rte_hash *keys = hash_of(ct, key);
	struct flow *flow;
	void *present;

	if (!insert_valid(key, state, timeout_class)) {
		errno = EINVAL;
		return NULL;
	}
	/* rte_hash would replace the pointer and leave the old flow behind. */
	if (rte_hash_lookup_with_hash_data(keys, key, hash, &present) >= 0)
		return present;

	flow = flow_alloc(ct);
	if (flow == NULL)
		goto refuse;
	if (rte_hash_add_key_with_hash_data(keys, key, hash, flow) < 0) {
		flow_free(ct, flow);
		goto refuse;
	}
	flow_fill(flow, key, state, timeout_class, now_ms);
	if (ct->stats.live == 0)
		wheel_restart(ct, now_ms);
	wheel_arm(ct, flow);
	flow_publish(flow);
	stat_add(&ct->stats.inserted, 1);
	stat_add(&ct->stats.live, 1);
	return flow;

refuse:
	stat_add(&ct->stats.refused, 1);
	errno = ENOSPC;
	return NULL;
}

void flow_release(struct conntrack *ct, struct flow *flow)
{
	flow_unpublish(flow);
	wheel_disarm(ct, flow);
	rte_hash_del_key_with_hash(hash_of(ct, &flow->key), &flow->key,
				   conntrack_hash(ct, &flow->key));
	flow->state = FLOW_FREE;
	flow_free(ct, flow);
	stat_add(&ct->stats.live, -1);
}

void conntrack_flow_remove(struct conntrack *ct, struct flow *flow)
{
	if (!generation_live(flow->generation))
		return;
	flow_release(ct, flow);
	stat_add(&ct->stats.removed, 1);
}

/* --- handles --------------------------------------------------------------------------------- */

uint64_t conntrack_handle(const struct conntrack *ct, const struct flow *flow)
{
	return (uint64_t)flow->generation << 32 | flow_index(ct, flow);
}

struct flow *conntrack_flow_get(struct conntrack *ct, uint64_t handle)
{
	uint32_t generation = (uint32_t)(handle >> 32), index = (uint32_t)handle;

	if (index >= ct->capacity || !generation_live(generation) ||
	    ct->flows[index].generation != generation)
		return NULL;
	return &ct->flows[index];
}

void conntrack_flow_prefetch(const struct conntrack *ct, uint64_t handle)
{
	uint32_t index = (uint32_t)handle;

	if (index >= ct->capacity)
		return;
	rte_prefetch0(&ct->flows[index]);
	rte_prefetch0(&ct->flows[index].packets_out);
}
