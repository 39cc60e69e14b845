/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_ether.h>
#include <rte_mbuf_core.h>

#include "runtime/data_room.h"

uint16_t port_data_room(uint16_t mtu)
{
	uint32_t frame = mtu + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN;

	return RTE_PKTMBUF_HEADROOM + RTE_MAX(frame + 64, (uint32_t)RTE_MBUF_DEFAULT_DATAROOM);
}
