/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which lcore owns a client's flow? README.md says why there are three answers. Pure.
 */
#ifndef LB_OWNER_H
#define LB_OWNER_H

#include "conntrack.h"
#include "runtime/port.h"

enum owner_rule {
	OWNER_RECEIVER, /* the one whose queue its packets come to, by whatever rule */
	OWNER_RSS,      /* the same, and the rule is the NIC's hash, which we can compute */
	OWNER_HASH,     /* a hash of ours says: the port has fewer queues than there are lcores */
};

/*
 * One of <n>, for a keyed hash. Not by its own low or high bits: flow tables take their buckets
 * from them, and would use a part only.
 */
static inline unsigned int owner_by_hash(uint32_t hash, unsigned int n)
{
	return (uint64_t)(hash * 0x9e3779b1u) * n >> 32;
}

/* The queue that the NIC puts this flow's packets in. */
uint16_t owner_queue_by_rss(const struct port_rss *rss, const struct flow_key *key);

/*
 * A UDP source port from 49152 up, one of several and <random> which, whose packets to <to> come to
 * <queue>; 0: the NIC does not look at ports, or has no such queue. <to> has all but that port.
 */
uint16_t owner_source_port(const struct port_rss *rss, const struct flow_key *to, uint16_t queue,
			   uint32_t random);

/* The hash that NICs spread packets by: the key's bits from each set bit on, added up. */
uint32_t owner_toeplitz(const uint8_t *key, const uint8_t *input, unsigned int length);

#endif
