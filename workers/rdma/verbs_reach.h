/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that the kernel knows a peer's MAC address, or learns it at once. Connecting a queue pair
 * to a silent peer blocks for a second, too long for a thread that serves other peers.
 */
#ifndef RDMA_VERBS_REACH_H
#define RDMA_VERBS_REACH_H

#include <netinet/in.h>
#include <stdint.h>

/*
 * Resolve <peer>; <ours> is an address of interface <ifindex>. 0 when the MAC address is known, or
 * cannot be known because the peer is behind a router. -ETIMEDOUT: no answer within some
 * milliseconds; the kernel keeps asking, so that another call may succeed.
 */
int verbs_reach(uint32_t ifindex, const struct in6_addr *ours, const struct in6_addr *peer);

#endif
