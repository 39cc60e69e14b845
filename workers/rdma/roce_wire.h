/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 on the wire: header layouts, opcodes, and the parser of everything behind the UDP header.
 * Pure; no DPDK. Layouts: IBTA volume 1 chapter 9 (BTH, RETH, AETH, ImmDt) and annex A17 (RoCEv2).
 */
#ifndef RDMA_ROCE_WIRE_H
#define RDMA_ROCE_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ROCE_UDP_PORT       4791
#define ROCE_SOURCE_MIN     0xc000 /* UDP source ports: the dynamic range */
#define ROCE_PKEY_DEFAULT   0xffff
#define ROCE_PSN_MASK       0xffffffu
#define ROCE_ICRC_LENGTH    4
#define ROCE_BTH_LENGTH     12
#define ROCE_RETH_LENGTH    16
#define ROCE_AETH_LENGTH    4
#define ROCE_IMM_LENGTH     4
#define ROCE_CNP_BODY       16 /* reserved bytes of a congestion notification */
#define ROCE_MTU_MIN        256
#define ROCE_MTU_MAX        4096
#define ROCE_MESSAGE_MAX    (1u << 31)
#define ROCE_RNR_FOREVER    7    /* RNR retries that never end (IBTA volume 1, 9.7.5.2.8) */
#define ROCE_CREDITS_UNUSED 0x1f /* AETH syndrome of a plain ACK without end-to-end credits */

/* Most bytes before a payload: Ethernet, IPv6, UDP, BTH, RETH, ImmDt. */
#define ROCE_HEADERS_MAX (14 + 40 + 8 + ROCE_BTH_LENGTH + ROCE_RETH_LENGTH + ROCE_IMM_LENGTH)
/* Pad and ICRC. */
#define ROCE_TRAILER_MAX (3 + ROCE_ICRC_LENGTH)

enum roce_opcode {
	ROCE_WRITE_FIRST = 0x06,
	ROCE_WRITE_MIDDLE = 0x07,
	ROCE_WRITE_LAST = 0x08,
	ROCE_WRITE_LAST_IMM = 0x09,
	ROCE_WRITE_ONLY = 0x0a,
	ROCE_WRITE_ONLY_IMM = 0x0b,
	ROCE_ACK = 0x11,
	ROCE_CNP = 0x81,
};

/* Top three bits of the AETH syndrome. */
enum roce_aeth { ROCE_AETH_ACK = 0x00, ROCE_AETH_RNR = 0x20, ROCE_AETH_NAK = 0x60 };
#define ROCE_AETH_KIND(syndrome) ((syndrome)&0xe0)

/* Whole syndromes of the NAKs. */
enum roce_nak {
	ROCE_NAK_SEQUENCE = 0x60,
	ROCE_NAK_INVALID_REQUEST = 0x61,
	ROCE_NAK_REMOTE_ACCESS = 0x62,
	ROCE_NAK_REMOTE_OPERATION = 0x63,
};

struct roce_bth {
	uint8_t opcode;
	uint8_t flags; /* SE [7], M [6], pad [5:4], transport version [3:0] */
	uint16_t pkey;
	uint32_t qpn; /* reserved [31:24] (FECN, BECN in the top bits), QPN [23:0] */
	uint32_t psn; /* A [31], PSN [23:0] */
} __attribute__((packed));
_Static_assert(sizeof(struct roce_bth) == ROCE_BTH_LENGTH, "BTH is 12 bytes");

struct roce_reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t length; /* of the whole message */
} __attribute__((packed));
_Static_assert(sizeof(struct roce_reth) == ROCE_RETH_LENGTH, "RETH is 16 bytes");

/* A parsed packet, in host order. */
struct roce_packet {
	uint8_t opcode;
	uint8_t pad;
	bool ack_request;
	uint8_t syndrome; /* ROCE_ACK only */
	uint32_t qpn;
	uint32_t psn;
	uint32_t msn; /* ROCE_ACK only */
	uint32_t rkey;
	uint64_t va;             /* WRITE first and only */
	uint32_t length;         /* of the whole message; WRITE first and only */
	uint32_t imm;            /* host order; *_IMM */
	uint16_t payload_offset; /* from the BTH */
	uint16_t payload_length; /* without pad */
};

enum roce_parse_result { ROCE_PARSED, ROCE_PARSE_MALFORMED, ROCE_PARSE_OPCODE };

/* Traits of an opcode: the headers behind the BTH and the place in a message. */
#define ROCE_HAS_RETH    0x01
#define ROCE_HAS_IMM     0x02
#define ROCE_HAS_AETH    0x04
#define ROCE_IS_WRITE    0x08
#define ROCE_IS_FIRST    0x10 /* starts a message */
#define ROCE_IS_LAST     0x20 /* ends a message */
#define ROCE_IS_UNSERVED 0x40 /* a request of RC that no queue pair of ours serves */
#define ROCE_IS_KNOWN    0x80
uint8_t roce_opcode_traits(uint8_t opcode);

/*
 * Parse a packet. <bth> points behind the UDP header, <length> counts from there to the end of the
 * ICRC. Checks lengths, transport version and P_Key, not the queue pair or the ICRC. All bytes
 * behind the BTH of a request that is not served count as payload.
 */
enum roce_parse_result roce_parse(const uint8_t *bth, uint32_t length, struct roce_packet *packet);

/* a - b modulo 2^24, signed: negative when a is before b. */
static inline int32_t roce_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t roce_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & ROCE_PSN_MASK;
}

/* RNR NAK timer code to microseconds (IBTA volume 1, table 45). */
uint32_t roce_rnr_us(uint8_t code);

/* Largest path MTU (256, 512 ... 4096) whose packets fit an IP MTU with the usual headers. */
uint32_t roce_path_mtu(uint32_t ip_mtu);

#endif
