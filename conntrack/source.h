/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast one source may open flows. Two rows of token buckets, a source has one in each, found by
 * a keyed hash; it may go on while either has a token. So memory is bounded however many sources
 * there are, and who shares one bucket with a flood still has the other. Private to this folder, and
 * lb/walk/refuse.c, which limits notices by it.
 */
#ifndef CONNTRACK_SOURCE_H
#define CONNTRACK_SOURCE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define SOURCE_ROWS    2
#define SOURCE_BUCKETS 16384

/* In thousandths of a flow, what was used and not given back by time; zero is a full bucket. */
struct source_bucket {
	uint32_t used;
	uint32_t updated_ms;
};

struct source_limit {
	uint32_t per_second; /* also the most at once */
	uint64_t secret[2];
	struct source_bucket bucket[SOURCE_ROWS][SOURCE_BUCKETS];
};

/* No more than this per second: thousandths of it fit 32 bits. */
#define SOURCE_PER_SECOND_MAX 4000000u

void source_limit_init(struct source_limit *limit, uint32_t per_second, const uint64_t secret[2]);
/* One more flow of <source> (an IPv4 address is mapped; of others the first half counts) in <zone>?
 */
bool source_limit_take(struct source_limit *limit, const struct in6_addr *source, uint16_t zone,
		       uint32_t now_ms);

#endif
