/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads of flows and counters by other threads while the owner works. Neither side waits. */
#include <rte_common.h>

#include "internal.h"

/* Type of a read that may race with the owner's writes: eight bytes at a time. */
typedef uint64_t __attribute__((may_alias)) racing_word;

/*
 * Copy <size> bytes, whole words, while the owner may write them. The caller detects a torn copy by
 * the flow's generation.
 */
__attribute__((no_sanitize("thread"))) static void copy_racing(void *to, const void *from,
							       size_t size)
{
	const racing_word *source = from;
	racing_word *target = to;

	for (size_t i = 0; i < size / sizeof(*source); i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

/* Copies of all parts of one flow. */
struct flow_copy {
	struct flow flow;
	struct flow_cold cold;
	struct flow_local local;
};

static uint64_t join48(uint16_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static void info_fill(struct flow_info *out, uint64_t handle, const struct flow_copy *copy)
{
	const struct flow *flow = &copy->flow;

	*out = (struct flow_info){
		.handle = handle,
		.state = flow->state,
		.service = flow->service,
		.worker = flow->worker,
		.worker_generation = flow->worker_generation,
		.created = copy->cold.created,
		.last_seen = flow->last_seen,
		.packets_in = join48(flow->packets_in_high, flow->packets_in_low),
		.bytes_in = flow->bytes_in,
		.requests = join48(flow->requests_high, flow->requests_low),
		.packets_out = copy->cold.packets_out,
		.bytes_out = copy->cold.bytes_out,
	};
	key_of_flow(&out->key, flow, &copy->local);
}

/* Copy one flow. False if it is not live, or ended while it was copied. */
static bool flow_copy_try(const struct conntrack *ct, uint32_t index, struct flow_info *out)
{
	const struct flow *flow = flow_at(ct, index);
	uint32_t generation = __atomic_load_n(&flow->generation, __ATOMIC_ACQUIRE);
	struct flow_copy copy;

	if (!generation_live(generation))
		return false;
	copy_racing(&copy.flow, flow, sizeof(copy.flow));
	copy_racing(&copy.cold, &ct->cold[index], sizeof(copy.cold));
	/* Even a torn copy has <local> below the limit: no other value is ever stored there. */
	copy_racing(&copy.local, &ct->locals->local[copy.flow.local].end, sizeof(copy.local));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&flow->generation, __ATOMIC_RELAXED) != generation)
		return false;
	info_fill(out, (uint64_t)generation << 32 | index, &copy);
	return true;
}

unsigned int conntrack_dump(const struct conntrack *ct, uint32_t *cursor, struct flow_info *out,
			    unsigned int n)
{
	uint32_t at = *cursor, end = ct->places;
	unsigned int copied = 0;

	if (at >= end) {
		*cursor = CONNTRACK_DUMP_END;
		return 0;
	}
	end = RTE_MIN(end - at, CONNTRACK_DUMP_SCAN) + at;
	while (copied < n) {
		at = ct->ops->next(ct, at, end);
		if (at == end)
			break;
		copied += flow_copy_try(ct, at++, &out[copied]);
	}
	*cursor = at == ct->places ? CONNTRACK_DUMP_END : at;
	return copied;
}

uint64_t conntrack_count(const struct conntrack *ct)
{
	return __atomic_load_n(&ct->stats.live, __ATOMIC_RELAXED);
}

void conntrack_stats_read(const struct conntrack *ct, struct conntrack_stats *out)
{
	*out = (struct conntrack_stats){
		.inserted = __atomic_load_n(&ct->stats.inserted, __ATOMIC_RELAXED),
		.expired = __atomic_load_n(&ct->stats.expired, __ATOMIC_RELAXED),
		.removed = __atomic_load_n(&ct->stats.removed, __ATOMIC_RELAXED),
		.reclaimed = __atomic_load_n(&ct->stats.reclaimed, __ATOMIC_RELAXED),
		.refused = __atomic_load_n(&ct->stats.refused, __ATOMIC_RELAXED),
		.refused_source = __atomic_load_n(&ct->stats.refused_source, __ATOMIC_RELAXED),
		.live = __atomic_load_n(&ct->stats.live, __ATOMIC_RELAXED),
		.capacity = ct->stats.capacity,
		.places = ct->stats.places,
		.detours = __atomic_load_n(&ct->stats.detours, __ATOMIC_RELAXED),
		.lag_ms = __atomic_load_n(&ct->stats.lag_ms, __ATOMIC_RELAXED),
	};
}
