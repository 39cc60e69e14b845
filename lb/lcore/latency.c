/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "lcore/latency.h"

static const char *const part_names[LATENCY_PARTS] = {
#define ROW(symbol, name) [LATENCY_##symbol] = name,
	LATENCY_PART_LIST(ROW)
#undef ROW
};

const char *latency_part_name(enum latency_part part)
{
	return part_names[part];
}

/*
 * The memory is the C library's, because the EAL's is sized for packets and flows. Small pages cost
 * little here: only few cache lines of a set are used.
 */
struct latency *latency_create(size_t n, size_t size)
{
	size_t bytes = (n * size + 63) / 64 * 64;
	struct latency *l = aligned_alloc(64, bytes);

	/* Touch the pages now: a page fault on the packet path costs as much as 20 requests. */
	if (l != NULL)
		memset(l, 0, bytes);
	return l;
}

/* Readers race with the lcore that writes, by design; see latency.h. */
#define RACING __attribute__((no_sanitize("thread")))

RACING static void latency_merge_parts(struct latency *to, const struct latency *from,
				       unsigned int n)
{
	for (unsigned int p = 0; p < n; p++) {
		to->sum_ns[p] += from->sum_ns[p];
		for (unsigned int i = 0; i < LATENCY_BUCKETS; i++)
			to->bucket[p][i] += from->bucket[p][i];
	}
	to->unsplit_ns += from->unsplit_ns;
}

static uint64_t latency_less(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

RACING void latency_merge_link(struct latency *to, const struct latency *from)
{
	latency_merge_parts(to, from, LATENCY_LINK_PARTS);
	to->sum_ns[LATENCY_WIRE] += latency_less(from->sum_ns[LATENCY_TOTAL],
						 from->unsplit_ns + from->sum_ns[LATENCY_WAIT] +
							 from->sum_ns[LATENCY_RUN]);
}

RACING static uint64_t latency_wire_of_service(const struct latency *from)
{
	return latency_less(from->sum_ns[LATENCY_TOTAL],
			    from->unsplit_ns + from->sum_ns[LATENCY_QUEUE] +
				    from->sum_ns[LATENCY_WAIT] + from->sum_ns[LATENCY_RUN] +
				    from->sum_ns[LATENCY_REPLY]);
}

RACING void latency_add_sums(uint64_t sum_ns[LATENCY_PARTS], const struct latency *from)
{
	for (unsigned int p = 0; p < LATENCY_PARTS; p++)
		sum_ns[p] += from->sum_ns[p];
	sum_ns[LATENCY_WIRE] += latency_wire_of_service(from);
}

RACING void latency_merge_service(struct latency *to, const struct latency *from)
{
	uint64_t waited = latency_count(from->bucket[LATENCY_QUEUE]);

	latency_merge_parts(to, from, LATENCY_PARTS);
	to->bucket[LATENCY_QUEUE][0] +=
		latency_less(latency_count(from->bucket[LATENCY_TOTAL]), waited);
	to->sum_ns[LATENCY_WIRE] += latency_wire_of_service(from);
}

void latency_since(struct latency *to, const struct latency *from)
{
	for (unsigned int p = 0; p < LATENCY_PARTS; p++) {
		to->sum_ns[p] = latency_less(to->sum_ns[p], from->sum_ns[p]);
		for (unsigned int i = 0; i < LATENCY_BUCKETS; i++)
			to->bucket[p][i] = latency_less(to->bucket[p][i], from->bucket[p][i]);
	}
}

RACING uint64_t latency_count(const uint64_t bucket[LATENCY_BUCKETS])
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++)
		n += bucket[i];
	return n;
}

uint64_t latency_lower_ns(unsigned int bucket)
{
	const unsigned int ones = 1u << LATENCY_SUB_BITS;
	unsigned int shift = bucket < 2 * ones ? 0 : bucket / ones - 1;

	return (uint64_t)(bucket - shift * ones) << shift << LATENCY_UNIT_BITS;
}

uint64_t latency_upper_ns(unsigned int bucket)
{
	return latency_lower_ns(bucket + 1);
}

double latency_quantile_us(const uint64_t bucket[LATENCY_BUCKETS], double q)
{
	uint64_t n = latency_count(bucket), seen = 0, rank;

	if (n == 0)
		return 0;
	rank = (uint64_t)(q * (double)n);
	rank = rank < n ? rank : n - 1;
	for (unsigned int i = 0; i < LATENCY_BUCKETS; i++) {
		seen += bucket[i];
		if (seen > rank)
			return (double)(latency_lower_ns(i) + latency_upper_ns(i)) / 2000;
	}
	return 0;
}
