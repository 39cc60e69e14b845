/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits how fast one source may open flows. There are two rows of token buckets; a source has one
 * bucket in each, found by a keyed hash, and may open a flow while either has a token. So memory is
 * bounded for any number of sources, and a source that shares one bucket with a flood still has the
 * other. Private to this folder and to lb/walk/refuse.c, which limits notices with it.
 */
#ifndef CONNTRACK_SOURCE_H
#define CONNTRACK_SOURCE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define SOURCE_ROWS    2
#define SOURCE_BUCKETS 16384

/* Thousandths of a flow that were used and not refilled yet; zero is a full bucket. */
struct source_bucket {
	uint32_t used;
	uint32_t updated_ms;
};

struct source_limit {
	uint32_t per_second; /* also the burst size */
	uint64_t secret[2];
	struct source_bucket bucket[SOURCE_ROWS][SOURCE_BUCKETS];
};

/* Largest rate in flows per second: thousandths of it fit 32 bits. */
#define SOURCE_PER_SECOND_MAX 4000000u

void source_limit_init(struct source_limit *limit, uint32_t per_second, const uint64_t secret[2]);
/*
 * Take a token for one more flow of <source> in <zone>. An IPv4 address is mapped; of an IPv6
 * address the first 64 bits count. False when neither bucket has a token.
 */
bool source_limit_take(struct source_limit *limit, const struct in6_addr *source, uint16_t zone,
		       uint32_t now_ms);

#endif
