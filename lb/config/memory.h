/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much memory a configuration takes. Calls nothing of DPDK, so that an operator can ask before
 * the daemon starts.
 */
#ifndef LB_MEMORY_H
#define LB_MEMORY_H

#include "config/config.h"

/* Packets that one lcore keeps at most for a replay: workers.replay_mb. */
uint32_t lb_replays_per_lcore(const struct lb_config *config);

/* Packet buffers of one lcore: ports' rings and queues, what it may hold back, what it keeps. */
uint32_t lb_packets_per_lcore(const struct lb_config *config);

/* A packet of a message of several has at most a header, a piece and a trailer of its own. */
uint32_t lb_pieces_per_lcore(const struct lb_config *config);

/* MiB that the EAL gets: memory.mb, or what flows and ports take. */
unsigned int lb_memory_mb(const struct lb_config *config);

#endif
