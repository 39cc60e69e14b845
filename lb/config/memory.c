/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/memory.h"

#include "conntrack.h"
#include "runtime/data_room.h"
#include "runtime/port.h"
#include "runtime/txq.h"

#define PAGE_BYTES 4096 /* without hugepages */
#define MBUF_BYTES 192  /* of one mbuf beside its data: struct, pool header, alignment */

/* Bytes of a buffer for the largest packet that any port receives. */
static uint32_t buffer_bytes(const struct lb_config *config)
{
	uint32_t bytes = 0;

	for (unsigned int i = 0; i < config->n_ports; i++)
		if (port_data_room(config->port[i].mtu) > bytes)
			bytes = port_data_room(config->port[i].mtu);
	return bytes + MBUF_BYTES;
}

/* Bytes that a buffer takes: DPDK lays none across the end of a page. */
static uint32_t buffer_bytes_paged(const struct lb_config *config)
{
	uint32_t bytes = buffer_bytes(config);

	if (config->hugepages)
		return bytes;
	if (bytes <= PAGE_BYTES)
		return PAGE_BYTES / (PAGE_BYTES / bytes);
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

uint32_t lb_replays_per_lcore(const struct lb_config *config)
{
	uint64_t bytes = (uint64_t)config->replay_mb << 20;
	bool any = false;

	for (unsigned int i = 0; i < config->n_services; i++)
		any |= config->service[i].replay > 0;
	return any ? bytes / buffer_bytes(config) / config->n_lcores : 0;
}

static uint32_t share_up(uint64_t n, uint32_t lcores)
{
	return (n + lcores - 1) / lcores;
}

struct lb_tcp_pools lb_tcp_pools_per_lcore(const struct lb_config *config)
{
	uint64_t bytes = (uint64_t)config->tcp.buffer_mb << 20;
	struct lb_tcp_pools p;

	if (!config->tcp.used)
		return (struct lb_tcp_pools){0};
	p.packets = share_up(bytes / buffer_bytes(config), config->n_lcores);
	p.connections = share_up(config->tcp.connections, config->n_lcores);
	p.time_waits = p.connections;
	/* Those with bytes or a FIN under way. Each of the former has a packet; the others wait. */
	p.actives = p.connections < p.packets ? p.connections : p.packets;
	/* Each of them has a chunk, which is rarely full. */
	p.chunks = p.actives + p.packets / LB_TCP_CHUNK_SEGMENTS;
	/* Bytes out of order are rare, and each range of them is in a packet. */
	p.helds = p.connections / 8 < p.packets ? p.connections / 8 + 1 : p.packets;
	return p;
}

static uint64_t tcp_bytes_per_lcore(const struct lb_config *config)
{
	struct lb_tcp_pools p = lb_tcp_pools_per_lcore(config);

	return (config->tcp.used ? LB_TCP_TEXT_BYTES : 0) +
	       (uint64_t)p.connections * LB_TCP_CONNECTION_BYTES +
	       (uint64_t)p.time_waits * LB_TCP_TIME_WAIT_BYTES +
	       (uint64_t)p.actives * LB_TCP_ACTIVE_BYTES + (uint64_t)p.chunks * LB_TCP_CHUNK_BYTES +
	       (uint64_t)p.helds * LB_TCP_HELD_BYTES +
	       (uint64_t)p.actives *
		       (LB_TCP_BUSY_BYTES + (config->tcp.secured ? LB_TLS_BUSY_BYTES : 0)) +
	       (uint64_t)p.connections * (config->tcp.secured ? sizeof(void *) : 0) +
	       (uint64_t)p.packets * LB_TCP_PACKET_BYTES;
}

uint32_t lb_packets_per_lcore(const struct lb_config *config)
{
	/* 3072: bursts in progress, pool caches, the hand-over ring */
	uint32_t n = config->queue_packets + config->window_packets + 3072 +
		     lb_replays_per_lcore(config) + lb_tcp_pools_per_lcore(config).packets;

	/* Every other lcore may hold some in its cache for this pool. */
	n += (config->n_lcores - 1) * LB_POOL_CACHE * 3 / 2;
	for (unsigned int i = 0; i < config->n_ports; i++)
		n += config->port[i].rx_descriptors + config->port[i].tx_descriptors + TXQ_SIZE;
	return n;
}

uint32_t lb_indirect_per_lcore(const struct lb_config *config)
{
	return 3 * config->window_packets;
}

static uint64_t flow_bytes(const struct lb_config *config)
{
	return config->flows * (config->flow_table == CONNTRACK_TABLE_TAGS ? 148ull : 352ull);
}

const char *lb_memory_keys(const struct lb_config *config)
{
	uint64_t packets = lb_tcp_pools_per_lcore(config).packets;
	uint64_t tcp = config->n_lcores *
		       (tcp_bytes_per_lcore(config) + packets * buffer_bytes_paged(config));

	return tcp > flow_bytes(config) ? "tcp.buffer_mb, tcp.connections" : "flows";
}

/*
 * An estimate of what lb_create() allocates. A third is added to the measured sum, as allocations
 * leave gaps.
 */
unsigned int lb_memory_mb(const struct lb_config *config)
{
	uint64_t lcore;

	if (config->memory_mb != 0)
		return config->memory_mb;
	/* Buffers for control frames and indirect mbufs are small: 512 bytes. */
	lcore = (lb_packets_per_lcore(config) + LB_REASSEMBLED_PER_LCORE) *
			(uint64_t)buffer_bytes_paged(config) +
		(LB_CONTROL_PER_LCORE + LB_CANCELS_PER_LCORE + lb_indirect_per_lcore(config)) *
			512ull +
		tcp_bytes_per_lcore(config);
	return 64 + (flow_bytes(config) + lcore * config->n_lcores * 4 / 3) / (1024 * 1024);
}
