/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_hash.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "conntrack/hash_peer.h"

struct hash_peer {
	struct rte_hash *hash;
	struct flow *flows;
	uint32_t *free; /* stack of the free flows */
	uint32_t n_free;
	uint32_t key_length;
};

struct hash_peer *hash_peer_create(uint32_t capacity, enum flow_family family)
{
	struct hash_peer *peer = rte_zmalloc("peer", sizeof(*peer), 0);
	struct rte_hash_parameters p = {
		.name = "peer",
		.entries = capacity,
		.key_len = family == FLOW_IPV4 ? 16 : 48,
		.socket_id = SOCKET_ID_ANY,
	};

	if (peer == NULL)
		return NULL;
	peer->key_length = p.key_len;
	peer->hash = rte_hash_create(&p);
	peer->flows = rte_zmalloc("peer flows", capacity * sizeof(*peer->flows), 64);
	peer->free = rte_malloc("peer free", capacity * sizeof(*peer->free), 0);
	if (peer->hash == NULL || peer->flows == NULL || peer->free == NULL) {
		hash_peer_destroy(peer);
		return NULL;
	}
	for (peer->n_free = 0; peer->n_free < capacity; peer->n_free++)
		peer->free[peer->n_free] = capacity - 1 - peer->n_free;
	return peer;
}

void hash_peer_destroy(struct hash_peer *peer)
{
	rte_free(peer->free);
	rte_free(peer->flows);
	rte_hash_free(peer->hash);
	rte_free(peer);
}

void hash_peer_keys(const struct hash_peer *peer, const struct flow_key keys[], unsigned int n,
		    struct hash_peer_keys *out)
{
	memset(out->bytes, 0, sizeof(out->bytes));
	for (unsigned int i = 0; i < n; i++) {
		uint8_t *to = out->bytes[i];

		out->at[i] = to;
		if (peer->key_length == 16) {
			memcpy(to, &keys[i].src.s6_addr32[3], 4);
			memcpy(to + 4, &keys[i].dst.s6_addr32[3], 4);
			memcpy(to + 8, &keys[i].src_port, 8);
		} else {
			memcpy(to, &keys[i], sizeof(keys[i]));
		}
	}
}

void hash_peer_lookup(struct hash_peer *peer, struct hash_peer_keys *keys, uint32_t hashes[],
		      unsigned int n, struct flow *flows[])
{
	void *found[CONNTRACK_BURST_MAX];
	uint64_t hits = 0;

	rte_hash_lookup_with_hash_bulk_data(peer->hash, keys->at, hashes, n, &hits, found);
	for (unsigned int i = 0; i < n; i++) {
		flows[i] = hits >> i & 1 ? found[i] : NULL;
		rte_prefetch0(flows[i]);
	}
}

bool hash_peer_insert(struct hash_peer *peer, const struct hash_peer_keys *keys, unsigned int i,
		      uint32_t hash)
{
	struct flow *flow;

	if (peer->n_free == 0)
		return false;
	flow = &peer->flows[peer->free[--peer->n_free]];
	memset(flow, 0, sizeof(*flow));
	flow->state = FLOW_UDP_ONE_WAY;
	return rte_hash_add_key_with_hash_data(peer->hash, keys->at[i], hash, flow) == 0;
}

bool hash_peer_remove(struct hash_peer *peer, const struct hash_peer_keys *keys, unsigned int i,
		      uint32_t hash, const struct flow *flow)
{
	peer->free[peer->n_free++] = (uint32_t)(flow - peer->flows);
	return rte_hash_del_key_with_hash(peer->hash, keys->at[i], hash) >= 0;
}
