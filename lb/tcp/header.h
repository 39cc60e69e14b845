/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a TCP header and its options (RFC 9293, 3.1 and 3.2; 7323; 2018). Pure. */
#ifndef LB_TCP_HEADER_H
#define LB_TCP_HEADER_H

#include "tcp/sequence.h"

/* Bits of the header's 14th byte. */
#define TCP_BIT_FIN 0x01
#define TCP_BIT_SYN 0x02
#define TCP_BIT_RST 0x04
#define TCP_BIT_PSH 0x08
#define TCP_BIT_ACK 0x10
#define TCP_BIT_URG 0x20
#define TCP_BIT_ECE 0x40 /* RFC 3168, 6.1 */
#define TCP_BIT_CWR 0x80

#define TCP_HEADER_MIN  20
#define TCP_HEADER_MAX  60
#define TCP_MSS_DEFAULT 536  /* RFC 9293, 3.7.1: without the option */
#define TCP_SCALE_MAX   14   /* RFC 7323, 2.3 */
#define TCP_SCALE_NONE  0xff /* no such option */
#define TCP_SACKS_MAX   4
#define TCP_TIMESTAMP   12 /* bytes of the option as everybody sends it, with two NOPs */

/* One segment's header, in host order: as it came, or as it is to be sent. */
struct tcp_header {
	uint32_t seq, ack;
	uint32_t length; /* bytes of payload */
	uint16_t window; /* as on the wire, not scaled */
	uint16_t mss;    /* of the option; 0: none */
	uint8_t flags;   /* TCP_BIT_* */
	uint8_t size;    /* bytes of the header, options included */
	uint8_t scale;   /* of the option, or TCP_SCALE_NONE */
	uint8_t n_sacks;
	bool sack_permitted, has_timestamp;
	uint32_t ts_value, ts_echo;
	struct tcp_range sack[TCP_SACKS_MAX];
};

/*
 * Read the header of <length> bytes of TCP, payload included. The caller checks the checksum.
 * Returns 0, or -EINVAL when it is no header, with <out> undefined. Options end at the first
 * malformed one.
 */
int tcp_header_read(const uint8_t *tcp, uint32_t length, struct tcp_header *out);

/* The bytes that tcp_header_write() will write. */
uint32_t tcp_header_size(const struct tcp_header *h);

/*
 * Write the header with checksum 0. <source> and <destination> are ports in network order. <tcp>
 * has room for TCP_HEADER_MAX. Returns its size.
 */
uint32_t tcp_header_write(const struct tcp_header *h, uint16_t source, uint16_t destination,
			  uint8_t *tcp);

/* The sequence numbers that a segment takes. */
static inline uint32_t tcp_header_span(const struct tcp_header *h)
{
	return h->length + !!(h->flags & TCP_BIT_SYN) + !!(h->flags & TCP_BIT_FIN);
}

#endif
