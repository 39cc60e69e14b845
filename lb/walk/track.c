/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to flows: look up the flows of a burst, start tracking new flows whose service exists,
 * count, and note the path by which each reply goes back.
 */
#include "walk/track.h"

#include <errno.h>

#include "lcore/lcore.h"
#include "packet/parse.h"
#include "observe/drop_packet.h"

/* Start tracking a flow with its first packet. NULL with <*reason>: no service, or no room. */
static struct flow *track_admit(struct lcore *lc, const struct flow_key *key, uint32_t hash,
				enum lb_drop *reason)
{
	uint16_t service = service_lookup(&lc->services->table, key);
	struct flow *flow;

	/* The source is an address of ours: the replies would come back to us, for ever. */
	if (lb_owns_address(lc->lb, &key->src)) {
		*reason = LB_DROP_BAD_SOURCE;
		return NULL;
	}
	/* echo (7), chargen (19) and similar services would answer the replies. */
	if (ntohs(key->src_port) < lc->lb->config.min_source_port) {
		*reason = LB_DROP_SOURCE_PORT;
		return NULL;
	}
	if (service >= SERVICE_NOT_OURS) {
		*reason =
			service == SERVICE_NONE ? LB_DROP_UNKNOWN_SERVICE : LB_DROP_NOT_OUR_ADDRESS;
		return NULL;
	}
	flow = conntrack_flow_insert(lc->ct, key, hash, FLOW_UDP_ONE_WAY, service, lc->now_ms);
	if (flow == NULL) {
		*reason = errno == EDQUOT ? LB_DROP_SOURCE_LIMIT : LB_DROP_FLOW_TABLE_FULL;
		return NULL;
	}
	flow->worker = WORKER_NONE;
	return flow;
}

void track_burst(struct lcore *lc, struct burst *b)
{
	unsigned int n = b->n, kept = 0;

	conntrack_hash_burst(lc->ct, b->key, n, b->hash);
	conntrack_lookup_burst(lc->ct, b->key, b->hash, n, b->flow);
	/* Touch all flows before the first insert, which may end idle flows to make room. */
	for (unsigned int i = 0; i < n; i++) {
		if (likely(b->flow[i] != NULL))
			conntrack_touch(b->flow[i], lc->now_ms);
		else
			conntrack_insert_prefetch(lc->ct, b->hash[i]);
	}
	for (unsigned int i = 0; i < n; i++) {
		enum lb_drop reason = LB_DROP_LOOP;
		struct flow *flow = b->flow[i];

		if (unlikely(b->parsed[i].hops <= 1))
			flow = NULL;
		else if (unlikely(flow == NULL))
			flow = track_admit(lc, &b->key[i], b->hash[i], &reason);
		if (unlikely(flow == NULL)) {
			lcore_drop(lc, b->packet[i], reason);
			continue;
		}
		conntrack_count_in(flow, b->parsed[i].payload_length);
		parsed_path(&b->parsed[i], rte_pktmbuf_mtod(b->packet[i], const uint8_t *),
			    &b->path[kept]);
		if (unlikely(kept != i)) {
			b->packet[kept] = b->packet[i];
			b->parsed[kept] = b->parsed[i];
			b->hash[kept] = b->hash[i];
		}
		b->handle[kept] = conntrack_handle(lc->ct, flow);
		b->flow[kept++] = flow;
	}
	b->n = kept;
}
