/* SPDX-License-Identifier: BSD-3-Clause */
/* The mix of requests: targets with their shares, and the sizes of each with their weights. */
#ifndef BENCH_MIX_H
#define BENCH_MIX_H

#include "cli/bench/arrivals.h"
#include "runtime/endpoint.h"

#include <stdbool.h>
#include <stdint.h>

#define MIX_TARGETS      16
#define MIX_SIZES        32
#define MIX_SIZE_MIN     8 /* bytes; the id */
#define MIX_SIZE_MAX     (64 << 20)
#define MIX_DATAGRAM_MAX 65507
#define MIX_SIZE_DEFAULT 64

struct mix_target {
	struct endpoint_address to;
	char name[64]; /* as given on the command line */
	double share;
	uint64_t deadline_ns; /* from being due to the reply; 0: none */
	unsigned int n_sizes;
	uint32_t size[MIX_SIZES];
	double weight[MIX_SIZES];
};

/*
 * Filled by mix_to(), mix_share(), mix_deadline() and mix_sizes(), which are OPTION_CALLs. The
 * latter three apply to the target before them; sizes before any target apply to all targets
 * without sizes.
 */
struct mix {
	struct mix_target target[MIX_TARGETS];
	unsigned int n_targets;
	struct mix_target rest; /* sizes for targets without their own */
	double shares;          /* sum of the shares, once complete */
};

/* <mix> is a struct mix. Returns 0, or -EINVAL with a sentence in <error>. */
int mix_to(void *mix, const char *text, char *error, size_t size);
int mix_share(void *mix, const char *text, char *error, size_t size);
int mix_deadline(void *mix, const char *text, char *error, size_t size);
/* <text> is "64" or "64:9,1024:1". */
int mix_sizes(void *mix, const char *text, char *error, size_t size);

/* Call when all options were read. */
void mix_complete(struct mix *mix);

unsigned int mix_draw_target(const struct mix *mix, struct draw *draw);
uint32_t mix_draw_size(const struct mix_target *target, struct draw *draw);
uint32_t mix_largest(const struct mix *mix);
bool mix_has_deadlines(const struct mix *mix);

#endif
