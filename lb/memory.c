/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore.h"
#include "memory.h"

uint32_t lb_packets_per_lcore(const struct lb_config *config)
{
	/* Bursts on their way, pool caches, the hand-over ring. */
	uint32_t n = LB_HOLD_MAX + 3072;

	/* Any other lcore may have them in its cache for this pool. */
	n += (config->n_lcores - 1) * LB_POOL_CACHE * 3 / 2;
	for (unsigned int i = 0; i < config->n_ports; i++)
		n += config->port[i].rx_descriptors + config->port[i].tx_descriptors + TXQ_SIZE;
	return n;
}

/* Estimated from what lb_create() allocates; a third more than measured, as blocks do not fit. */
unsigned int lb_memory_mb(const struct lb_config *config)
{
	uint64_t per_flow = config->flow_table == CONNTRACK_TABLE_TAGS ? 148 : 352;
	uint64_t flows = config->flows * per_flow, buffer = 0, lcore;

	if (config->memory_mb != 0)
		return config->memory_mb;
	for (unsigned int i = 0; i < config->n_ports; i++)
		if (port_data_room(config->port[i].mtu) > buffer)
			buffer = port_data_room(config->port[i].mtu);
	/* An mbuf has 192 bytes around its data; control frames and pieces are small ones. */
	lcore = (lb_packets_per_lcore(config) + LB_WHOLES_PER_LCORE) * (buffer + 192) +
		(4096 + 3 * LB_HOLD_MAX) * 512ull;
	return 64 + (flows + lcore * config->n_lcores * 4 / 3) / (1024 * 1024);
}
