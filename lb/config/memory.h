/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much memory a configuration takes. Makes no DPDK call, so that an operator can ask before the
 * daemon starts.
 */
#ifndef LB_MEMORY_H
#define LB_MEMORY_H

#include "config/config.h"

/* Packets for reassembled datagrams, in progress or waiting. */
#define LB_REASSEMBLED_PER_LCORE 1023
/* Packets of each pool that an lcore caches to free them together; up to half more. */
#define LB_POOL_CACHE 256

/* Packets for ACKs, notices and ARP, and for cancel words. */
#define LB_CONTROL_PER_LCORE 4096
#define LB_CANCELS_PER_LCORE 2047

/* Packets that one lcore may keep for replays: its share of workers.replay_mb. */
uint32_t lb_replays_per_lcore(const struct lb_config *config);

/* Packet buffers of one lcore: ports' descriptors, waiting requests, windows and replays. */
uint32_t lb_packets_per_lcore(const struct lb_config *config);

/* Small mbufs of one lcore's indirect pool: a packet of a larger message has at most a header, an
 * indirect mbuf and a trailer of its own. */
uint32_t lb_indirect_per_lcore(const struct lb_config *config);

/* MiB of memory for the EAL: memory.mb, or the sum for flows and ports. */
unsigned int lb_memory_mb(const struct lb_config *config);

#endif
