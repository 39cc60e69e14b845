/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer of the flow table: bare rte_hash, its bulk calls, and an array of flows that
 * its data points at. The best that can be done with it for one family: keys of 16 bytes for IPv4,
 * 48 for IPv6 (it compares these by SIMD), the same hash of each key as the other side's, and no
 * timers, counters or checks that the flow table has besides.
 */
#ifndef BENCH_HASH_PEER_H
#define BENCH_HASH_PEER_H

#include "conntrack.h"

struct hash_peer;

/* Room for <capacity> flows. NULL when memory is out. */
struct hash_peer *hash_peer_create(uint32_t capacity, enum flow_family family);
void hash_peer_destroy(struct hash_peer *peer);

/* Keys in the form that the hash wants; a packet parser would write them so. */
struct hash_peer_keys {
	uint8_t bytes[CONNTRACK_BURST_MAX][48];
	const void *at[CONNTRACK_BURST_MAX];
};
void hash_peer_keys(const struct hash_peer *peer, const struct flow_key keys[], unsigned int n,
		    struct hash_peer_keys *out);

/* flows[i] is the flow or NULL. */
void hash_peer_lookup(struct hash_peer *peer, struct hash_peer_keys *keys, uint32_t hashes[],
		      unsigned int n, struct flow *flows[]);
/* Returns true when there was room. */
bool hash_peer_insert(struct hash_peer *peer, const struct hash_peer_keys *keys, unsigned int i,
		      uint32_t hash);
bool hash_peer_remove(struct hash_peer *peer, const struct hash_peer_keys *keys, unsigned int i,
		      uint32_t hash, const struct flow *flow);

#endif
