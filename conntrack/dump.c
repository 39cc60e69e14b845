/* SPDX-License-Identifier: BSD-3-Clause */
/* What other threads may read while the owner works: flows and counters, never waiting for it. */
#include "internal.h"

/* A read that may race with the owner's writes, eight whole bytes at a time. */
typedef uint64_t __attribute__((may_alias)) flow_word;

/* Races with the owner by design; whether it did, the generation tells. */
__attribute__((no_sanitize("thread"))) static void flow_copy_words(struct flow *to,
								   const struct flow *from)
{
	const flow_word *source = (const flow_word *)from;
	flow_word *target = (flow_word *)to;

	for (size_t i = 0; i < sizeof(*from) / sizeof(*source); i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

/* False if the flow is not live or stopped being the same flow while being copied. */
static bool flow_copy_try(const struct conntrack *ct, uint32_t index, struct flow_copy *out)
{
	const struct flow *flow = &ct->flows[index];
	uint32_t generation = __atomic_load_n(&flow->generation, __ATOMIC_ACQUIRE);

	if (!generation_live(generation))
		return false;
	flow_copy_words(&out->flow, flow);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&flow->generation, __ATOMIC_RELAXED) != generation)
		return false;
	out->handle = (uint64_t)generation << 32 | index;
	return true;
}

unsigned int conntrack_dump(const struct conntrack *ct, uint32_t *cursor, struct flow_copy *out,
			    unsigned int n)
{
	uint32_t used = __atomic_load_n(&ct->used, __ATOMIC_RELAXED);
	unsigned int copied = 0;

	for (; copied < n && *cursor < used; ++*cursor)
		copied += flow_copy_try(ct, *cursor, &out[copied]);
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
		.refused = __atomic_load_n(&ct->stats.refused, __ATOMIC_RELAXED),
		.live = __atomic_load_n(&ct->stats.live, __ATOMIC_RELAXED),
	};
}
