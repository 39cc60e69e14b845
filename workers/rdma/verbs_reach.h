/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the kernel know a peer's MAC address, or learn it at once? Connecting a queue pair waits for
 * a second when nobody answers: too long for a thread that has other peers to look after.
 */
#ifndef RDMA_VERBS_REACH_H
#define RDMA_VERBS_REACH_H

#include <netinet/in.h>
#include <stdint.h>

/*
 * 0 when it does, or when that cannot be told (the peer is behind a router). -ETIMEDOUT: nobody has
 * answered within some milliseconds; the kernel goes on asking, so that another try may succeed.
 * <ours> is an address of interface <ifindex>.
 */
int verbs_reach(uint32_t ifindex, const struct in6_addr *ours, const struct in6_addr *peer);

#endif
