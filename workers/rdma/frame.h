/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the RoCEv2 packet in an Ethernet frame, for an endpoint that accepts nothing else. Pure.
 */
#ifndef RDMA_FRAME_H
#define RDMA_FRAME_H

#include <stdint.h>

enum frame_kind { FRAME_OTHER, FRAME_ROCE, FRAME_ARP, FRAME_ICMP6 };

struct roce_frame {
	uint16_t ip_offset;
	uint16_t ip_length;  /* bytes of the IP header */
	uint16_t bth_offset; /* from the frame's start */
	uint16_t bth_length; /* BTH to ICRC */
	uint16_t l3_length;  /* IP header to the end of the packet */
};

/* Classify a frame; never reads past <length>. FRAME_ROCE fills all of <out>, other kinds only
 * ip_offset and l3_length. */
enum frame_kind frame_locate(const uint8_t *frame, uint32_t length, struct roce_frame *out);

#endif
