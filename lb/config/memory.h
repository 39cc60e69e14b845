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

/* Packet buffers of one lcore: ports' descriptors, waiting requests, windows, replays and
 * what TCP connections hold. */
uint32_t lb_packets_per_lcore(const struct lb_config *config);

/* Small mbufs of one lcore's indirect pool: a packet of a larger message has at most a header, an
 * indirect mbuf and a trailer of its own. */
uint32_t lb_indirect_per_lcore(const struct lb_config *config);

/* Bytes of a connection with the state of its framing, and of what the pools below hold. */
#define LB_TCP_CONNECTION_BYTES 384
#define LB_TCP_ACTIVE_BYTES     192
#define LB_TCP_CHUNK_BYTES      512
#define LB_TCP_HELD_BYTES       1088
#define LB_TCP_TIME_WAIT_BYTES  128
/* Bytes beside a connection while something is under way, and beside a packet that it holds: a
 * request, a piece, two parts, and half of a large request. */
/* Per lcore: readers of HTTP and JSON, requests by it, and replies that are rewritten; sessions of
 * HTTP/2. */
#define LB_TCP_TEXT_BYTES   ((16u << 20) + (128u << 10))
#define LB_TCP_BUSY_BYTES   384
/* Beside it, if services have TLS. Keys are apart, in the heap: some 2 KiB per connection. */
#define LB_TLS_BUSY_BYTES   384
#define LB_TCP_PACKET_BYTES 512
/* Segments that one chunk records: TCP_CHUNK_SENT of tcp/connection.h. */
#define LB_TCP_CHUNK_SEGMENTS 41

/* The memory of one lcore for TCP connections; all 0 when no service has protocol tcp. */
struct lb_tcp_pools {
	uint32_t packets;                /* of tcp.buffer_mb; part of lb_packets_per_lcore() */
	uint32_t connections;            /* an equal share of tcp.connections */
	uint32_t time_waits;             /* connections that have ended */
	uint32_t actives, chunks, helds; /* for tcp_stack_init() */
};
struct lb_tcp_pools lb_tcp_pools_per_lcore(const struct lb_config *config);

/* MiB of memory for the EAL: memory.mb, or the sum for flows, ports and connections. */
unsigned int lb_memory_mb(const struct lb_config *config);

/* The keys to lower where a machine has too little memory: those of connections if they take more
 * than flows, with commas between. */
const char *lb_memory_keys(const struct lb_config *config);

#endif
