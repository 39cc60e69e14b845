/* SPDX-License-Identifier: BSD-3-Clause */
#include <netinet/in.h>

#include "rdma/frame.h"
#include "rdma/roce_wire.h"

#define ETHER 14

static uint16_t frame_get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static enum frame_kind frame_locate_udp(const uint8_t *frame, uint32_t l4_length,
					struct roce_frame *out)
{
	const uint8_t *udp = frame + out->ip_offset + out->ip_length;
	uint32_t length;

	if (l4_length < 8 || frame_get16(udp + 2) != ROCE_UDP_PORT)
		return FRAME_OTHER;
	length = frame_get16(udp + 4);
	if (length < 8 || length > l4_length)
		return FRAME_OTHER;
	out->bth_offset = out->ip_offset + out->ip_length + 8;
	out->bth_length = length - 8;
	return FRAME_ROCE;
}

enum frame_kind frame_locate(const uint8_t *frame, uint32_t length, struct roce_frame *out)
{
	uint32_t left, total;
	const uint8_t *ip;
	uint16_t type;

	*out = (struct roce_frame){.ip_offset = ETHER};
	if (length < ETHER + 20)
		return FRAME_OTHER;
	type = frame_get16(frame + 12);
	ip = frame + ETHER;
	left = length - ETHER;
	out->l3_length = left;
	if (type == 0x0806)
		return FRAME_ARP;
	if (type == 0x0800) {
		total = frame_get16(ip + 2);
		/* RoCEv2 packets have no IP options and are not fragmented. */
		if (ip[0] != 0x45 || total < 20 || total > left ||
		    (frame_get16(ip + 6) & 0x3fff) != 0 || ip[9] != IPPROTO_UDP)
			return FRAME_OTHER;
		out->ip_length = 20;
		out->l3_length = total;
		return frame_locate_udp(frame, total - 20, out);
	}
	if (type != 0x86dd || left < 40 || ip[0] >> 4 != 6 || frame_get16(ip + 4) > left - 40u)
		return FRAME_OTHER;
	out->ip_length = 40;
	out->l3_length = 40 + frame_get16(ip + 4);
	if (ip[6] == IPPROTO_ICMPV6)
		return FRAME_ICMP6;
	return ip[6] == IPPROTO_UDP ? frame_locate_udp(frame, frame_get16(ip + 4), out)
				    : FRAME_OTHER;
}
