/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which lcore owns a client's flow; README.md explains the three rules. Pure.
 */
#ifndef LB_OWNER_H
#define LB_OWNER_H

#include "conntrack.h"
#include "runtime/port.h"

enum owner_rule {
	OWNER_RECEIVER, /* the lcore whose queue its packets come to, by a rule that is not known */
	OWNER_RSS,      /* the same, and the rule is the NIC's hash, which we can compute */
	OWNER_HASH,     /* by our own hash: the port has fewer queues than there are lcores */
};

/*
 * One of <n> lcores for a keyed hash. The hash is mixed once more, because flow tables choose
 * buckets by its low and high bits and would otherwise use only a part of their buckets.
 */
static inline unsigned int owner_by_hash(uint32_t hash, unsigned int n)
{
	return (uint64_t)(hash * 0x9e3779b1u) * n >> 32;
}

/* The queue that the NIC puts this flow's packets in. */
uint16_t owner_queue_by_rss(const struct port_rss *rss, const struct flow_key *key);

/*
 * A UDP source port, at least 49152, whose packets to <to> come to <queue>; <random> chooses among
 * several. 0: the NIC does not hash ports, or has no such queue. <to> lacks the source port only.
 */
uint16_t owner_source_port(const struct port_rss *rss, const struct flow_key *to, uint16_t queue,
			   uint32_t random);

/*
 * The Toeplitz hash by which NICs spread packets: for each set bit of the input, XOR in the 32 bits
 * of the key that begin at its position.
 */
uint32_t owner_toeplitz(const uint8_t *key, const uint8_t *input, unsigned int length);

#endif
