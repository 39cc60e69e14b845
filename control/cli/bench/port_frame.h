/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of DPDK mode: UDP over IPv4, with a source port per flow. Pure: bytes in, bytes out. */
#ifndef BENCH_PORT_FRAME_H
#define BENCH_PORT_FRAME_H

#include "cli/bench/transport.h"

#include <stdbool.h>
#include <stdint.h>

#define FRAME_HEADERS    42 /* Ethernet, IPv4, UDP */
#define FRAME_FIRST_PORT 1024
#define FRAME_FLOWS_MAX  60000

struct frame_peer {
	uint32_t address; /* <address> and <port> are in network order */
	uint16_t port;
	uint8_t mac[6];
};

/* Write headers and checksums in front of a payload that is already at FRAME_HEADERS. */
void frame_finish(uint8_t *frame, uint32_t length, uint32_t flow, uint32_t our_address,
		  const uint8_t our_mac[6], const struct frame_peer *peer);

/*
 * Find the flow and the payload of a received frame. False unless it is a whole, sound UDP datagram
 * from the target of one of <flows> flows to that flow. <peers> are the <n> targets; flow f belongs
 * to target f modulo <n>.
 */
bool frame_take(const uint8_t *frame, uint32_t length, uint32_t flows, uint32_t our_address,
		const struct frame_peer *peers, unsigned int n,
		struct transport_datagram *datagram);

#endif
