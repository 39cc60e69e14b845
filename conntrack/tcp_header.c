/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a TCP header (RFC 9293, 3.1). Pure. */
#include "tcp.h"

#define HEADER_MIN 20

#define OPTION_END   0
#define OPTION_NOP   1
#define OPTION_SCALE 3

static inline uint16_t tcp_get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static inline uint32_t tcp_get32(const uint8_t *at)
{
	return (uint32_t)tcp_get16(at) << 16 | tcp_get16(at + 2);
}

static uint8_t tcp_scale_option(const uint8_t *option, uint32_t left)
{
	uint8_t scale = TCP_SCALE_NONE, size;

	for (; left > 0 && option[0] != OPTION_END; option += size, left -= size) {
		size = 1;
		if (option[0] == OPTION_NOP)
			continue;
		if (left < 2 || option[1] < 2 || option[1] > left)
			break;
		size = option[1];
		if (option[0] == OPTION_SCALE && size == 3)
			scale = option[2] < TCP_SCALE_MAX ? option[2] : TCP_SCALE_MAX;
	}
	return scale;
}

enum tcp_reason conntrack_tcp_parse(const uint8_t *tcp, uint32_t length, struct tcp_segment *out)
{
	uint32_t header;

	if (length < HEADER_MIN)
		return TCP_REASON_TRUNCATED;
	header = (tcp[12] >> 4) * 4u;
	if (header < HEADER_MIN)
		return TCP_REASON_OFFSET;
	if (header > length)
		return TCP_REASON_TRUNCATED;
	*out = (struct tcp_segment){
		.seq = tcp_get32(tcp + 4),
		.ack = tcp_get32(tcp + 8),
		.length = length - header,
		.window = tcp_get16(tcp + 14),
		.flags = tcp[13],
		.scale = TCP_SCALE_NONE,
		.header = (uint8_t)header,
	};
	if (out->flags & TCP_BIT_SYN)
		out->scale = tcp_scale_option(tcp + HEADER_MIN, header - HEADER_MIN);
	return TCP_REASON_NONE;
}
