/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much memory a configuration takes. Calls nothing of DPDK, so that an operator can ask before
 * the daemon starts.
 */
#ifndef LB_MEMORY_H
#define LB_MEMORY_H

#include "config/config.h"

/* Datagrams that came in fragments, on their way or held back. */
#define LB_WHOLES_PER_LCORE 1023
/* What an lcore keeps of each other's packets to free them together; half more in the worst case.
 */
#define LB_POOL_CACHE 256

/* ACKs, notices, ARP. */
#define LB_CONTROL_PER_LCORE 4096
#define LB_CANCELS_PER_LCORE 2047

/* Packets that one lcore keeps at most for a replay: workers.replay_mb. */
uint32_t lb_replays_per_lcore(const struct lb_config *config);

/* Packet buffers of one lcore: ports' rings and queues, what it may hold back, what it keeps. */
uint32_t lb_packets_per_lcore(const struct lb_config *config);

/* A packet of a message of several has at most a header, a piece and a trailer of its own. */
uint32_t lb_pieces_per_lcore(const struct lb_config *config);

/* MiB that the EAL gets: memory.mb, or what flows and ports take. */
unsigned int lb_memory_mb(const struct lb_config *config);

#endif
