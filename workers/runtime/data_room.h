/* SPDX-License-Identifier: BSD-3-Clause */
/* The size of packet buffers. Needs DPDK's headers, none of its libraries. */
#ifndef RUNTIME_DATA_ROOM_H
#define RUNTIME_DATA_ROOM_H

#include <stdint.h>

/* mbuf data room in bytes for a frame of <mtu>, with headroom for all headers that may be
 * prepended. */
uint16_t port_data_room(uint16_t mtu);

#endif
