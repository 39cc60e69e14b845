/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floors that the walk is compared with, in the same run on the same machine: forwarding without a load
 * balancer, a bare table lookup, and the sums over a packet's bytes alone.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "common/clients.h"
#include "common/turns.h"

#define FLOOR_LINKS 8

struct floors {
	struct rte_hash *hash;
	uint8_t (*keys)[16];
	uint8_t *bytes; /* of LB_BURST packets, as apart as in mbufs */
	uint8_t *lines; /* for floor_lines() */
	struct latency *service, *link[FLOOR_LINKS];
};

void floors_init(struct floors *f);
void floors_fini(struct floors *f);

/* Swap MACs, addresses and ports of each packet, and send it back where it came from. */
void floor_forward(struct clients *c, struct load *load, struct turns *turns);
/* rte_hash bulk lookup: RIG_FLOWS keys of 16 bytes, bursts of 32, random hits, hash known. */
void floor_hash(struct floors *f, struct clients *c, struct turns *turns);
/* ICRC and UDP checksum over packets with <payload> bytes that lie in the first-level cache. */
void floor_icrc(struct floors *f, uint32_t payload, struct turns *turns);
void floor_checksum(struct floors *f, uint32_t payload, struct turns *turns);
/* Count a reply of random times in the histograms of a service and of one of 8 links. */
void floor_latency(struct floors *f, struct clients *c, struct turns *turns);
/*
 * Fetch random ones of 8192 cache lines that fit the second-level cache, <scattered> over as many
 * 4-KiB pages or side by side. They should cost the same when all of them lie in a few hugepages.
 */
void floor_lines(struct floors *f, struct clients *c, bool scattered, struct turns *turns);

#endif
