/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow table: creation, memory, handles, and insert and remove over either index. */
#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "internal.h"

RTE_LOG_REGISTER(conntrack_logtype, conntrack, INFO)

#define NAME_MAX_LEN 23

/* --- create and destroy ---------------------------------------------------------------------- */

static const struct index_ops *const tables[CONNTRACK_TABLES] = {
	[CONNTRACK_TABLE_TAGS] = &index_tags,
	[CONNTRACK_TABLE_RTE_HASH] = &index_rte_hash,
};

static int params_check(const struct conntrack_params *params)
{
	size_t name_len = params->name != NULL ? strlen(params->name) : 0;

	if (name_len == 0 || name_len > NAME_MAX_LEN || params->capacity == 0 ||
	    params->capacity > CONNTRACK_CAPACITY_MAX ||
	    (unsigned int)params->table >= CONNTRACK_TABLES)
		return -EINVAL;
	for (unsigned int row = 0; row < CONNTRACK_SERVICES_MAX; row++)
		for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++) {
			uint32_t timeout = params->timeout_ms[row][state];

			if (timeout > CONNTRACK_TIMEOUT_MAX_MS ||
			    (row == 0 && timeout == 0 && !flow_state_is_tcp(state)))
				return -EINVAL;
		}
	return 0;
}

static void timeouts_fill(struct conntrack *ct, const struct conntrack_params *params)
{
	for (unsigned int row = 0; row < CONNTRACK_SERVICES_MAX; row++)
		for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++) {
			uint32_t timeout = params->timeout_ms[row][state];

			if (timeout == 0)
				timeout = params->timeout_ms[0][state];
			ct->timeout_ms[row][state] =
				timeout != 0 ? timeout : CONNTRACK_TCP_TIMEOUT_MS;
		}
}

int conntrack_timeouts_set(struct conntrack *ct, uint16_t service,
			   const uint32_t timeout_ms[FLOW_STATES])
{
	if (service >= CONNTRACK_SERVICES_MAX)
		return -EINVAL;
	for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++)
		if (timeout_ms[state] > CONNTRACK_TIMEOUT_MAX_MS)
			return -EINVAL;
	for (unsigned int state = FLOW_FREE + 1; state < FLOW_STATES; state++)
		if (timeout_ms[state] != 0)
			ct->timeout_ms[service][state] = timeout_ms[state];
	return 0;
}

static void *table_alloc(struct conntrack *ct, const char *what, size_t size, int socket)
{
	ct->memory += size;
	return rte_zmalloc_socket(what, size, RTE_CACHE_LINE_SIZE, socket);
}

static int tables_create(struct conntrack *ct, const struct conntrack_params *params)
{
	int ret = ct->ops->create(ct, params);

	if (ret < 0)
		return ret;
	ct->locals = table_alloc(ct, "locals", sizeof(*ct->locals), params->socket);
	ct->flows = table_alloc(ct, "flows", ct->places * sizeof(*ct->flows), params->socket);
	ct->cold = table_alloc(ct, "cold", ct->places * sizeof(*ct->cold), params->socket);
	if (ct->locals == NULL || ct->flows == NULL || ct->cold == NULL)
		return -ENOMEM;
	locals_init(ct->locals);
	ct->stats.capacity = ct->capacity;
	ct->stats.places = ct->places;
	if (params->new_flows_per_source == 0)
		return 0;
	ct->sources = table_alloc(ct, "sources", sizeof(*ct->sources), params->socket);
	if (ct->sources == NULL)
		return -ENOMEM;
	source_limit_init(ct->sources, params->new_flows_per_source, ct->secret);
	return 0;
}

struct conntrack *conntrack_create(const struct conntrack_params *params)
{
	struct conntrack *ct = NULL;
	int ret = params_check(params);

	if (ret < 0)
		goto fail;
	ct = rte_zmalloc_socket("conntrack", sizeof(*ct), RTE_CACHE_LINE_SIZE, params->socket);
	if (ct == NULL) {
		ret = -ENOMEM;
		goto fail;
	}
	ct->ops = tables[params->table];
	ct->capacity = params->capacity;
	ct->reclaim_after_ms = params->reclaim_after_ms;
	ct->memory = sizeof(*ct);
	key_secret_expand(ct->secret, params->seed);
	timeouts_fill(ct, params);
	timers_init(ct);
	ret = tables_create(ct, params);
	if (ret == 0)
		return ct;
fail:
	conntrack_destroy(ct);
	rte_log(RTE_LOG_ERR, conntrack_logtype,
		"conntrack: cannot create table name=%s capacity=%u error=\"%s\"\n",
		params->name != NULL ? params->name : "", params->capacity, strerror(-ret));
	errno = -ret;
	return NULL;
}

void conntrack_destroy(struct conntrack *ct)
{
	if (ct == NULL)
		return;
	rte_free(ct->sources);
	rte_free(ct->cold);
	rte_free(ct->flows);
	rte_free(ct->locals);
	ct->ops->destroy(ct->index);
	rte_free(ct);
}

bool conntrack_is_behind(const struct conntrack *ct)
{
	return ct->behind;
}

size_t conntrack_memory(const struct conntrack *ct)
{
	return ct->memory;
}

/* --- look up, insert, remove ----------------------------------------------------------------- */

void conntrack_lookup_burst(struct conntrack *ct, const struct flow_key keys[],
			    const uint32_t hashes[], unsigned int n, struct flow *flows[])
{
	ct->ops->lookup_burst(ct, keys, hashes, n, flows);
}

void conntrack_insert_prefetch(const struct conntrack *ct, uint32_t hash)
{
	ct->ops->prefetch_add(ct, hash);
}

static void flow_fill(struct flow *flow, struct flow_cold *cold, const struct flow_key *key,
		      enum flow_state state, uint16_t service, uint32_t now_ms)
{
	/* Clear all but the generation, which readers of other threads check. */
	memset(&flow->last_seen, 0, sizeof(*flow) - offsetof(struct flow, last_seen));
	flow->last_seen = now_ms;
	flow->client = key->src;
	flow->client_port = key->src_port;
	flow->zone = key->zone;
	flow->state = (uint8_t)state;
	flow->service = service;
	*cold = (struct flow_cold){.created = now_ms};
}

static bool insert_is_valid(const struct flow_key *key, enum flow_state state, uint16_t service)
{
	return (key->family == FLOW_IPV4 || key->family == FLOW_IPV6) && state > FLOW_FREE &&
	       state < FLOW_STATES && service < CONNTRACK_SERVICES_MAX;
}

static struct flow *insert_refuse(uint64_t *counter, int reason)
{
	stat_add(counter, 1);
	errno = reason;
	return NULL;
}

struct flow *conntrack_flow_insert(struct conntrack *ct, const struct flow_key *key, uint32_t hash,
				   enum flow_state state, uint16_t service, uint32_t now_ms)
{
	struct flow *flow;
	uint16_t local;

	if (!insert_is_valid(key, state, service)) {
		errno = EINVAL;
		return NULL;
	}
	flow = ct->ops->find(ct, key, hash);
	if (flow != NULL)
		return flow;
	if (ct->sources != NULL && !source_limit_take(ct->sources, &key->src, key->zone, now_ms))
		return insert_refuse(&ct->stats.refused_source, EDQUOT);
	if (ct->stats.live == ct->capacity && !timers_reclaim(ct, now_ms))
		return insert_refuse(&ct->stats.refused, ENOSPC);
	local = locals_get(ct->locals, key);
	if (local == LOCAL_NONE)
		return insert_refuse(&ct->stats.refused, ENOSPC);
	flow = ct->ops->add(ct, key, hash);
	if (flow == NULL) {
		locals_put(ct->locals, local);
		return insert_refuse(&ct->stats.refused, ENOSPC);
	}
	flow_fill(flow, &ct->cold[flow_index(ct, flow)], key, state, service, now_ms);
	flow->local = local;
	if (ct->stats.live == 0)
		timers_restart(ct, now_ms);
	timers_arm(ct, flow);
	flow_publish(flow);
	stat_add(&ct->stats.inserted, 1);
	stat_add(&ct->stats.live, 1);
	return flow;
}

void flow_release(struct conntrack *ct, struct flow *flow)
{
	struct flow_key key;

	flow_unpublish(flow);
	timers_disarm(ct, flow);
	key_of_flow(&key, flow, conntrack_local(ct, flow));
	ct->ops->remove(ct, flow, &key, conntrack_hash(ct, &key));
	locals_put(ct->locals, flow->local);
	flow->state = FLOW_FREE;
	stat_add(&ct->stats.live, -1);
}

void conntrack_flow_remove(struct conntrack *ct, struct flow *flow)
{
	if (!generation_live(flow->generation))
		return;
	flow_release(ct, flow);
	stat_add(&ct->stats.removed, 1);
}

/* --- parts of a flow -------------------------------------------------------------------------- */

const struct flow_local *conntrack_local(const struct conntrack *ct, const struct flow *flow)
{
	return &ct->locals->local[flow->local].end;
}

void conntrack_count_out(struct conntrack *ct, const struct flow *flow, uint32_t bytes)
{
	struct flow_cold *cold = &ct->cold[flow_index(ct, flow)];

	cold->packets_out++;
	cold->bytes_out += bytes;
}

uint64_t conntrack_handle(const struct conntrack *ct, const struct flow *flow)
{
	return (uint64_t)flow->generation << 32 | flow_index(ct, flow);
}

struct flow *conntrack_flow_get(struct conntrack *ct, uint64_t handle)
{
	uint32_t generation = (uint32_t)(handle >> 32), index = (uint32_t)handle;

	if (index >= ct->places || !generation_live(generation) ||
	    flow_at(ct, index)->generation != generation)
		return NULL;
	return flow_at(ct, index);
}

struct flow *conntrack_flows(struct conntrack *ct)
{
	return ct->flows;
}

void conntrack_flow_prefetch(const struct conntrack *ct, uint64_t handle)
{
	uint32_t index = (uint32_t)handle;

	if (index >= ct->places)
		return;
	rte_prefetch0(flow_at(ct, index));
	rte_prefetch0(&ct->cold[index]);
}
